// Texts of disk and editor; see workspace.h.
#include "compiler/lsp/workspace.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <set>
#include <system_error>

#include "compiler/lsp/uri.h"

namespace reflex::lsp {

namespace fs = std::filesystem;

namespace {

bool is_rfx(const std::string& path) {
  constexpr std::string_view kSuffix = ".rfx";
  return path.size() > kSuffix.size() &&
         path.compare(path.size() - kSuffix.size(), kSuffix.size(), kSuffix) == 0;
}

bool is_left_out(const std::string& name) {
  return (!name.empty() && name.front() == '.') || name == "node_modules";
}

void find_below(const fs::path& folder, std::set<std::string>& out) {
  std::error_code error;
  if (fs::is_regular_file(folder, error)) {
    if (is_rfx(folder.string())) out.insert(folder.lexically_normal().string());
    return;
  }
  fs::recursive_directory_iterator it(folder, fs::directory_options::skip_permission_denied, error);
  for (; !error && it != fs::recursive_directory_iterator(); it.increment(error)) {
    std::error_code ignored;
    if (it->is_directory(ignored)) {
      if (is_left_out(it->path().filename().string())) it.disable_recursion_pending();
    } else if (is_rfx(it->path().string()) && it->is_regular_file(ignored)) {
      out.insert(it->path().lexically_normal().string());
    }
  }
}

bool is_below(const std::string& path, const std::string& folder) {
  if (path == folder) return true;
  const bool slash = !folder.empty() && folder.back() == '/';
  return path.size() > folder.size() && path.compare(0, folder.size(), folder) == 0 &&
         (slash || path[folder.size()] == '/');
}

int64_t wall_clock_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace

Workspace::Workspace()
    : session_([](const std::string& path) -> std::optional<std::string> {
        auto text = compiler::read_source(path);
        if (!text) return std::nullopt;
        return std::move(text).value();
      }) {}

void Workspace::changed() {
  index_.reset();
  lines_.clear();
  ++generation_;
}

void Workspace::put(const std::string& path, std::string text) {
  if (session_.set(path, std::move(text))) changed();
}

void Workspace::drop(const std::string& path) {
  if (session_.remove(path)) changed();
}

void Workspace::set_roots(std::vector<std::string> roots, std::vector<std::string> paths) {
  roots_ = std::move(roots);
  paths_ = std::move(paths);
  rescan();
}

bool Workspace::is_ours(const std::string& path) const {
  if (!is_rfx(path)) return false;
  for (const std::string& root : roots_) {
    if (!is_below(path, root)) continue;
    const fs::path relative = fs::path(path).lexically_relative(root);
    const bool hidden = std::any_of(relative.begin(), relative.end(), [](const fs::path& part) {
      return is_left_out(part.string());
    });
    if (hidden) continue;
    if (paths_.empty()) return true;
    for (const std::string& part : paths_) {
      if (is_below(path, (fs::path(root) / part).lexically_normal().string())) return true;
    }
  }
  return false;
}

void Workspace::rescan() {
  std::set<std::string> found;
  for (const std::string& root : roots_) {
    if (paths_.empty()) find_below(root, found);
    for (const std::string& part : paths_) find_below(fs::path(root) / part, found);
  }
  std::vector<std::string> gone;
  for (const ast::Module& m : session_.modules()) {
    const std::string path(session_.sources().path(m.file));
    if (found.count(path) == 0 && documents_.count(path) == 0) gone.push_back(path);
  }
  for (const std::string& path : gone) drop(path);
  for (const std::string& path : found) refresh(path);
}

void Workspace::refresh(const std::string& path) {
  if (documents_.count(path) != 0) return;
  auto text = is_ours(path) ? compiler::read_source(path) : Result<std::string>(Error{""});
  std::error_code ignored;
  if (text && fs::is_regular_file(path, ignored)) {
    put(path, std::move(text).value());
  } else {
    drop(path);
  }
}

std::string Workspace::path_of(const std::string& uri) { return path_of_uri(uri).value_or(uri); }

std::string Workspace::uri_of(const std::string& path) const {
  const auto known = documents_.find(path);
  if (known != documents_.end()) return known->second.uri;
  return !path.empty() && path.front() == '/' ? uri_of_path(path) : path;
}

std::optional<FileId> Workspace::file_of(const std::string& uri) const {
  return session_.file(path_of(uri));
}

std::string Workspace::uri_of(FileId file) const {
  return uri_of(std::string(session_.sources().path(file)));
}

void Workspace::open(const std::string& uri, std::string text, int64_t version) {
  const std::string path = path_of(uri);
  documents_[path] = {uri, text, version};
  put(path, std::move(text));
}

void Workspace::change(const std::string& uri, std::string text, int64_t version) {
  const std::string path = path_of(uri);
  const auto known = documents_.find(path);
  if (known == documents_.end()) return;
  known->second.text = text;
  known->second.version = version;
  put(path, std::move(text));
}

void Workspace::close(const std::string& uri) {
  const std::string path = path_of(uri);
  if (documents_.erase(path) != 0) refresh(path);
}

const Workspace::Document* Workspace::document(const std::string& uri) const {
  const auto known = documents_.find(path_of(uri));
  return known == documents_.end() ? nullptr : &known->second;
}

const compiler::Session::Check& Workspace::check() {
  const bool fresh = !session_.is_checked();
  const auto& check = session_.check(wall_clock_ns());
  if (fresh && !check.sink.has_errors()) {
    facts_.clear();
    for (const auto& signal : check.pack.signals) {
      facts_[signal.name] = {signal.bytes_per_key, signal.horizon_ns};
    }
  }
  return check;
}

const Index& Workspace::index() {
  if (!index_) {
    const auto& now = check();
    index_ = std::make_unique<Index>(session_, now.packs, now.pack);
  }
  return *index_;
}

const TextLines& Workspace::lines(FileId file) {
  const auto known = lines_.find(file);
  if (known != lines_.end()) return known->second;
  return lines_.emplace(file, TextLines(text(file))).first->second;
}

std::vector<compiler::InMemoryFile> Workspace::files() const {
  std::vector<compiler::InMemoryFile> out;
  for (const ast::Module& m : session_.modules()) {
    out.push_back({std::string(session_.sources().path(m.file)), std::string(text(m.file))});
  }
  return out;
}

}  // namespace reflex::lsp

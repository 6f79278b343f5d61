// Session: parsing what changed, checking everything; see session.h.
#include "compiler/driver/session.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "compiler/parse/parse.h"
#include "compiler/sema/sema.h"

namespace reflex::compiler {

std::vector<ast::Module>::iterator Session::module_at(const std::string& path) {
  return std::lower_bound(modules_.begin(), modules_.end(), path,
                          [this](const ast::Module& module, const std::string& wanted) {
                            return sources_.path(module.file) < wanted;
                          });
}

/// A source map takes no new text for a file: it is made anew, every file with its old number.
void Session::rebuild_sources() {
  sources_ = source::SourceMap();
  for (const auto& [path, text] : texts_) sources_.add(path, text);
}

bool Session::set(const std::string& path, std::string text) {
  source::FileId id = 0;
  auto at = module_at(path);
  const auto known = ids_.find(path);
  if (known != ids_.end()) {
    id = known->second;
    if (texts_[id].second == text) return false;
    File& file = files_[id];
    if (!file.broken) file.last_good = std::move(*at);
    texts_[id].second = std::move(text);
    rebuild_sources();
  } else {
    const auto old = gone_.find(path);
    if (old != gone_.end()) {
      id = old->second;
      texts_[id].second = std::move(text);
      rebuild_sources();
      gone_.erase(old);
    } else {
      texts_.emplace_back(path, std::move(text));
      id = sources_.add(path, texts_.back().second);
    }
    ids_[path] = id;
    at = modules_.emplace(at);
  }
  diag::Sink sink;
  *at = parse::parse(sources_, id, {}, sink);
  at->file = id;
  File& file = files_[id];
  file.syntax = sink.all();
  file.broken = sink.has_errors();
  if (!file.broken) file.last_good.reset();
  check_.reset();
  return true;
}

bool Session::remove(const std::string& path) {
  const auto known = ids_.find(path);
  if (known == ids_.end()) return false;
  modules_.erase(module_at(path));
  texts_[known->second].second.clear();
  rebuild_sources();
  files_.erase(known->second);
  gone_[path] = known->second;
  ids_.erase(known);
  check_.reset();
  return true;
}

const Session::Check& Session::check(int64_t now_ns) {
  if (check_) return *check_;
  const auto started = std::chrono::steady_clock::now();
  check_ = std::make_unique<Check>();
  for (const ast::Module& module : modules_) {
    for (const diag::Diagnostic& d : files_[module.file].syntax) {
      check_->sink.report(d.id, d.span, d.message) = d;
    }
  }
  check_->packs = sema::group_packs(sources_, modules_, check_->sink);
  const sema::Input input{sources_, modules_, check_->packs, std::make_shared<SymbolTable>(),
                          true,     reader_,  now_ns};
  sema::Output output;
  sema::analyze(input, check_->sink, output);
  check_->pack = std::move(output.pack);
  check_->milliseconds =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - started).count();
  return *check_;
}

std::optional<source::FileId> Session::file(const std::string& path) const {
  const auto known = ids_.find(path);
  if (known == ids_.end()) return std::nullopt;
  return known->second;
}

bool Session::has_syntax_errors(source::FileId file) const {
  const auto known = files_.find(file);
  return known != files_.end() && known->second.broken;
}

const ast::Module* Session::last_good(source::FileId file) const {
  const auto known = files_.find(file);
  if (known == files_.end() || !known->second.last_good) return nullptr;
  return &*known->second.last_good;
}

}  // namespace reflex::compiler

// Texts by their content, and what a set is made of; see kept_sets.h.
#include "runtime/serve/kept_sets.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>

#include "runtime/base/crc32c.h"
#include "runtime/base/state_stream.h"
#include "runtime/serve/disk.h"

namespace reflex::serve {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kSetSuffix = ".set";
constexpr std::string_view kStateSuffix = ".state";
constexpr std::string_view kPack = "pack";  // the role of what is compiled

/// Beside it and renamed, on disk when it returns: the old file, the new one, or none.
reflex::Status write_durably(const std::string& path, std::string_view text) {
  Disk disk;
  const std::string part = path + ".part";
  std::error_code none;
  fs::remove(part, none);
  const int fd = disk.open_append(part);
  if (fd < 0) return Error{fmt::format("{}: {}", part, std::strerror(-fd))};
  int64_t status = 0;
  while (status >= 0 && !text.empty()) {
    const iovec rest{const_cast<char*>(text.data()), text.size()};
    status = disk.write(fd, {&rest, 1});
    if (status == 0) status = -ENOSPC;
    if (status > 0) text.remove_prefix(static_cast<size_t>(status));
  }
  if (status >= 0) status = disk.sync(fd);
  disk.close(fd);
  std::error_code error;
  if (status >= 0) fs::rename(part, path, error);
  if (status >= 0 && !error) return ok_status();
  fs::remove(part, none);
  const std::string why = error ? error.message() : std::strerror(static_cast<int>(-status));
  return Error{fmt::format("{} cannot be written: {}", path, why)};
}

}  // namespace

std::string KeptSets::path_of(const std::string& key) const {
  return fmt::format("{}/{}{}", folder_, key, kSetSuffix);
}

reflex::Status KeptSets::prepare(uint64_t journal_end) {
  std::error_code error;
  fs::create_directories(folder_ + "/texts", error);
  if (error) return Error{fmt::format("{}: {}", folder_, error.message())};
  found_until_ = journal_end;
  return ok_status();
}

/// The name under texts/. The name is of a checksum, so the content decides.
Result<std::string> KeptSets::keep_text(const std::string& text) {
  const std::string base = fmt::format("{:08x}-{}", crc32c(text), text.size());
  std::string name = base;
  for (int other = 2;; ++other) {
    const std::string path = folder_ + "/texts/" + name;
    const auto there = read_whole(path);
    if (there.ok() && there.value() == text) return name;
    if (!there.ok()) {
      if (auto status = write_durably(path, text); !status.ok()) return status.error();
      return name;
    }
    name = fmt::format("{}-{}", base, other);
  }
}

reflex::Status KeptSets::keep(const std::string& key, const KeptSet& set) {
  const std::lock_guard lock(mutex_);
  until_[key] = UINT64_MAX;
  std::error_code none;
  fs::create_directories(folder_ + "/texts", none);  // it may have been removed under us
  const SymbolTable no_symbols;
  StateWriter out(no_symbols);
  out.text(set.identity);
  out.u64(set.files.size() + set.beside.size());
  const auto add = [&](std::string_view role, const SourceText& file) -> reflex::Status {
    auto name = keep_text(file.text);
    if (!name.ok()) return name.error();
    out.text(role);
    out.text(file.path);
    out.text(name.value());
    return ok_status();
  };
  for (const SourceText& file : set.files) {
    if (auto status = add(kPack, file); !status.ok()) return status;
  }
  for (const FileBeside& beside : set.beside) {
    if (auto status = add(beside.role, beside.file); !status.ok()) return status;
  }
  const std::string body = out.take();
  const std::string text = fmt::format("{:08x}", crc32c(body)) + body;
  const auto there = read_whole(path_of(key));
  if (there.ok() && there.value() == text) return ok_status();
  if (auto status = write_durably(path_of(key), text); !status.ok()) return status;
  Disk disk;
  for (const std::string& folder : {folder_ + "/texts", folder_}) {
    if (const int status = disk.sync_folder(folder); status < 0) {
      return Error{fmt::format("{}: {}", folder, std::strerror(-status))};
    }
  }
  return ok_status();
}

Result<KeptSets::Index> KeptSets::read_index(const std::string& key) const {
  auto text = read_whole(path_of(key));
  if (!text.ok()) return text.error();
  const Error bad{fmt::format("{} is damaged", path_of(key))};
  constexpr size_t kChecksumBytes = 8;
  if (text.value().size() < kChecksumBytes) return bad;
  const std::string_view body = std::string_view(text.value()).substr(kChecksumBytes);
  if (!text.value().starts_with(fmt::format("{:08x}", crc32c(body)))) return bad;
  SymbolTable no_symbols;
  StateReader in(body, no_symbols);
  Index index;
  index.identity = in.text();
  for (size_t left = in.count(3); left > 0 && !in.failed(); --left) {
    auto& [role, source] = index.texts.emplace_back();
    role = in.text();
    source.path = in.text();
    source.text = in.text();
  }
  if (in.failed()) return bad;
  return index;
}

Result<KeptSet> KeptSets::read(const std::string& key) const {
  auto index = read_index(key);
  if (!index.ok()) return index.error();
  KeptSet set;
  set.identity = std::move(index.value().identity);
  for (auto& [role, source] : index.value().texts) {
    const std::string name = source.text;
    auto text = read_whole(folder_ + "/texts/" + name);
    if (!text.ok()) return text.error();
    if (!name.starts_with(fmt::format("{:08x}-{}", crc32c(text.value()), text.value().size()))) {
      return Error{fmt::format("{}/texts/{} is damaged", folder_, name)};
    }
    source.text = std::move(text).value();
    if (role == kPack) {
      set.files.push_back(std::move(source));
    } else {
      set.beside.push_back({role, std::move(source)});
    }
  }
  return set;
}

std::string KeptSets::state_path(const std::string& key, uint64_t position) const {
  return fmt::format("{}/{}@{}{}", folder_, key, position, kStateSuffix);
}

reflex::Status KeptSets::keep_state(const std::string& key, const CapturedState& state) {
  engine::SnapshotHeader header;
  header.set_sha256 = state.set_sha256;
  header.packs = state.packs;
  header.position = state.position;
  header.set_key = key;
  return engine::write_snapshot(state_path(key, state.position), header, state.bytes);
}

Result<engine::Snapshot> KeptSets::read_state(const std::string& key, uint64_t position) const {
  return engine::read_snapshot(state_path(key, position));
}

reflex::Status KeptSets::note_promoted(const Promoted& promoted) {
  return write_durably(folder_ + "/promoted", promoted.key + "\n" + promoted.instead_of);
}

std::optional<KeptSets::Promoted> KeptSets::promoted() const {
  const auto text = read_whole(folder_ + "/promoted");
  if (!text.ok()) return std::nullopt;
  const size_t end = text.value().find('\n');
  if (end == std::string::npos) return std::nullopt;
  return Promoted{text.value().substr(0, end), text.value().substr(end + 1)};
}

/// In the order of their names.
std::vector<std::string> KeptSets::keys() const {
  std::vector<std::string> all;
  std::error_code error;
  for (const auto& file : fs::directory_iterator(folder_, error)) {
    const std::string name = file.path().filename().string();
    if (name.ends_with(kSetSuffix)) all.push_back(name.substr(0, name.size() - kSetSuffix.size()));
  }
  std::sort(all.begin(), all.end());
  return all;
}

void KeptSets::use(const std::string& key) {
  const std::lock_guard lock(mutex_);
  until_[key] = UINT64_MAX;
}

void KeptSets::retire(const std::string& key, uint64_t position) {
  const std::lock_guard lock(mutex_);
  until_[key] = position;
}

void KeptSets::trim(uint64_t position) {
  const std::lock_guard lock(mutex_);
  remove_states_before(position);
  const auto of_promotion = promoted();
  std::error_code none;
  std::set<std::string> used;
  bool removed = false;
  for (const std::string& key : keys()) {
    const auto known = until_.find(key);
    const uint64_t until = known == until_.end() ? found_until_ : known->second;
    const bool stands_in = of_promotion && of_promotion->key == key;
    if (until < position && !stands_in) {
      removed |= fs::remove(path_of(key), none);
      until_.erase(key);
      continue;
    }
    const auto index = read_index(key);
    if (!index.ok()) return;  // what it needs is not known
    for (const auto& [role, source] : index.value().texts) used.insert(source.text);
  }
  if (removed) remove_texts_but(used);
}

void KeptSets::remove_states_before(uint64_t position) const {
  std::error_code none;
  std::vector<fs::path> over;
  for (const auto& file : fs::directory_iterator(folder_, none)) {
    const std::string name = file.path().filename().string();
    const size_t at = name.find('@');
    uint64_t of = UINT64_MAX;
    if (at == std::string::npos || !name.ends_with(kStateSuffix)) continue;
    std::from_chars(name.data() + at + 1, name.data() + name.size(), of);
    if (of < position) over.push_back(file.path());
  }
  for (const auto& path : over) fs::remove(path, none);
}

void KeptSets::remove_texts_but(const std::set<std::string>& used) const {
  std::error_code none;
  std::vector<fs::path> unused;
  for (const auto& file : fs::directory_iterator(folder_ + "/texts", none)) {
    if (!used.contains(file.path().filename().string())) unused.push_back(file.path());
  }
  for (const auto& path : unused) fs::remove(path, none);
}

}  // namespace reflex::serve

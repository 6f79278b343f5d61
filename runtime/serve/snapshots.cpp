// Files of states; see snapshots.h.
#include "runtime/serve/snapshots.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "runtime/base/time.h"

namespace reflex::serve {

namespace fs = std::filesystem;

namespace {
constexpr std::string_view kSuffix = ".snapshot";
constexpr size_t kKept = 2;  // Why 2: when the newest turns out damaged there is one before it
}  // namespace

reflex::Status Snapshots::prepare() {
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error) return Error{fmt::format("{}: {}", folder_, error.message())};
  return ok_status();
}

std::string Snapshots::path_of(uint64_t position) const {
  return fmt::format("{}/{:020}{}", folder_, position, kSuffix);
}

std::vector<uint64_t> Snapshots::positions() const {
  std::vector<uint64_t> all;
  std::error_code error;
  for (const auto& file : fs::directory_iterator(folder_, error)) {
    const std::string name = file.path().filename().string();
    uint64_t position = 0;
    const auto [end, wrong] = std::from_chars(name.data(), name.data() + name.size(), position);
    if (wrong == std::errc() && std::string_view(end) == kSuffix) all.push_back(position);
  }
  std::sort(all.rbegin(), all.rend());
  return all;
}

reflex::Status Snapshots::write(const CapturedState& state, int64_t wall_ns) {
  engine::SnapshotHeader header;
  header.set_sha256 = state.set_sha256;
  header.packs = state.packs;
  header.set_key = state.set_key;
  header.position = state.position;
  header.wall_ns = wall_ns;
  auto wrote = engine::write_snapshot(path_of(state.position), header, state.bytes);
  if (!wrote.ok()) return wrote;
  const auto all = positions();
  size_t good = 0;
  for (const uint64_t position : all) {
    if (good < kKept) {
      // Damaged ones do not count, and stay.
      good += engine::read_snapshot_header(path_of(position)).ok();
      continue;
    }
    std::error_code ignored;
    fs::remove(path_of(position), ignored);
  }
  return ok_status();
}

std::optional<engine::Snapshot> Snapshots::newest(uint64_t journal_begin,
                                                  std::vector<std::string>& found) {
  return before(UINT64_MAX, journal_begin, found);
}

std::optional<engine::Snapshot> Snapshots::before(uint64_t limit, uint64_t journal_begin,
                                                  std::vector<std::string>& found) {
  for (const uint64_t position : positions()) {
    if (position >= limit) continue;
    auto snapshot = engine::read_snapshot(path_of(position));
    if (!snapshot.ok()) {
      found.push_back(fmt::format("snapshot: {} (passed over)", snapshot.error().message));
      continue;
    }
    if (position < journal_begin) {
      found.push_back(
          fmt::format("snapshot: {} is older than the journal (passed over)", path_of(position)));
      continue;
    }
    return std::move(snapshot).value();
  }
  return std::nullopt;
}

uint64_t Snapshots::newest_position() const {
  for (const uint64_t position : positions()) {
    if (engine::read_snapshot_header(path_of(position)).ok()) return position;
  }
  return 0;
}

std::optional<uint64_t> Snapshots::oldest_position() const {
  size_t good = 0;
  for (const uint64_t position : positions()) {
    good += engine::read_snapshot_header(path_of(position)).ok();
    if (good == kKept) return position;
  }
  return std::nullopt;
}

}  // namespace reflex::serve

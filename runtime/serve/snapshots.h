// Snapshots: the states on disk, newest first; the last two that are good are kept.
//
// A file's name carries its position. A snapshot that cannot be read is told and passed over, never
// deleted: a person may want to look at it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/engine/snapshot.h"
#include "runtime/serve/state_capture.h"

namespace reflex::serve {

class Snapshots {
 public:
  explicit Snapshots(std::string folder) : folder_(std::move(folder)) {}

  reflex::Status prepare();
  /// Writes one and removes those beyond the newest two.
  reflex::Status write(const CapturedState& state, int64_t wall_ns);
  /// The newest one that can be read and is not before `journal_begin`; `found` gets a line for
  /// each that cannot.
  std::optional<engine::Snapshot> newest(uint64_t journal_begin, std::vector<std::string>& found);
  /// The newest one older than `position`, for when that one did not load.
  std::optional<engine::Snapshot> before(uint64_t position, uint64_t journal_begin,
                                         std::vector<std::string>& found);
  /// Everything before it may be trimmed: the position of the oldest that is kept.
  [[nodiscard]] std::optional<uint64_t> oldest_position() const;
  /// Of the newest good one; 0: there is none.
  [[nodiscard]] uint64_t newest_position() const;

 private:
  [[nodiscard]] std::vector<uint64_t> positions() const;  // descending
  [[nodiscard]] std::string path_of(uint64_t position) const;
  std::string folder_;
};

}  // namespace reflex::serve

// The two dedups of the stream, both fed in total order: (source, id) and KindSchema::dedup.
//
// Memory is bounded by time windows and by a number of entries; when the number is reached the
// oldest half is forgotten.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/abi/compiled_pack.h"

namespace reflex::stream {

/// Remembers (source, id) for 10 minutes of event time, as 128-bit fingerprints.
class IdDedup {
 public:
  IdDedup();
  /// True when the same (source, id) was seen within the window. Remembers it otherwise.
  bool is_duplicate(const abi::Record& record);

 private:
  struct Slot {
    uint64_t low = 0;
    uint64_t high = 0;  // 0: free
    int64_t ts_ns = 0;
  };
  struct Generation {
    std::vector<Slot> slots;
    size_t used = 0;
    int64_t first_ns = 0;
  };
  static Slot* find(Generation& generation, uint64_t low, uint64_t high);
  void rotate(int64_t ts_ns);
  void grow();
  Generation current_;
  Generation previous_;
};

/// Repeats of a kind within KindSchema::dedup_ns of the first: `dedup (node, gpu, code) for 2s`.
class KindDedup {
 public:
  explicit KindDedup(std::shared_ptr<const abi::CompiledPack> pack);
  [[nodiscard]] bool applies(uint16_t kind) const { return windows_[kind] > 0; }
  [[nodiscard]] int64_t longest_ns() const { return longest_ns_; }
  /// The record that `record` repeats, or null when it is a first one itself (then remembered).
  /// `out_age_ns` is the time since that first record.
  abi::Record* find_first(abi::Record& record, int64_t& out_age_ns);

 private:
  struct First {
    abi::Record* record;  // only valid while the caller still holds it
    int64_t ts_ns;
  };
  void append_key(const abi::Record& record, unsigned slot);
  std::shared_ptr<const abi::CompiledPack> pack_;
  std::vector<int64_t> windows_;  // [kind]
  int64_t longest_ns_ = 0;
  std::unordered_map<std::string, First> firsts_;
  /// Per kind, so that the ends of the windows are in order: (end, key).
  std::vector<std::deque<std::pair<int64_t, std::string>>> expiry_;
  std::string key_;
};

}  // namespace reflex::stream

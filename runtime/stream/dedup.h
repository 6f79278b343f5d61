// The two dedups of the stream, both fed in total order: (source, id) and KindSchema::dedup.
//
// Memory is bounded by time windows and by a number of entries; when the number is reached the
// oldest half is forgotten.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/abi/compiled_pack.h"
#include "runtime/base/state_stream.h"

namespace reflex::stream {

/// Remembers (source, id) for 10 minutes of event time, as 128-bit fingerprints.
class IdDedup {
 public:
  /// `symbols` outlives it.
  explicit IdDedup(const SymbolTable& symbols);
  /// True when the same (source, id) was seen within the window. Remembers it otherwise.
  bool is_duplicate(const abi::Record& record);

  void save(StateWriter& writer) const;
  void load(StateReader& reader);

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
  static void save(StateWriter& writer, const Generation& generation);
  static void load(StateReader& reader, Generation& generation);
  void rotate(int64_t ts_ns);
  void grow();
  uint64_t hash_of_source(SymbolId source);
  const SymbolTable* symbols_;
  /// [SymbolId] 0: not asked yet. Of the name: fingerprints outlive the process.
  std::vector<uint64_t> source_hashes_;
  Generation current_;
  Generation previous_;
};

/// Repeats of a kind within KindSchema::dedup_ns of the first: `dedup (node, gpu, code) for 2s`.
class KindDedup {
 public:
  explicit KindDedup(std::shared_ptr<const abi::CompiledPack> pack);
  /// Another set whose ids mean the same.
  void use(std::shared_ptr<const abi::CompiledPack> pack) { pack_ = std::move(pack); }
  [[nodiscard]] bool applies(uint16_t kind) const { return windows_[kind] > 0; }
  [[nodiscard]] int64_t longest_ns() const { return longest_ns_; }
  struct Found {
    bool is_repeat = false;  // else it is a first one itself, and remembered
    int64_t age_ns = 0;      // since that first record
    abi::Record* first = nullptr;  // null when it came with a saved state and is no longer held
  };
  Found find_first(abi::Record& record);

  /// What a record is known by while it is still held; 0 when it is not.
  using NumberOf = std::function<uint64_t(const abi::Record*)>;
  using RecordOf = std::function<abi::Record*(uint64_t number)>;
  void save(StateWriter& writer, const NumberOf& number_of) const;
  /// A kind that the new set counts repeats of by other fields begins anew.
  void load(StateReader& reader, const RecordOf& record_of);

 private:
  struct First {
    abi::Record* record;  // only valid while the caller still holds it
    int64_t ts_ns;
  };
  void append_key(const abi::Record& record, unsigned slot);
  void save_key(StateWriter& writer, uint16_t kind, std::string_view key) const;
  [[nodiscard]] std::string load_key(StateReader& reader, const std::vector<int>& forms,
                                     uint16_t kind) const;
  std::shared_ptr<const abi::CompiledPack> pack_;
  std::vector<int64_t> windows_;  // [kind]
  int64_t longest_ns_ = 0;
  std::unordered_map<std::string, First> firsts_;
  /// Per kind, so that the ends of the windows are in order: (end, key).
  std::vector<std::deque<std::pair<int64_t, std::string>>> expiry_;
  std::string key_;
};

}  // namespace reflex::stream

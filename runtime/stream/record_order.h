// RecordOrder: the total order of events, independent of arrival and of symbol ids.
//
// Order: ts, source name, line number (log sources), id text, kind name, field contents (names as
// text), line number. Two records that compare equal are the same event in every visible respect.
#pragma once

#include <algorithm>
#include <memory>
#include <string_view>
#include <vector>

#include "runtime/abi/compiled_pack.h"
#include "runtime/base/state_stream.h"

namespace reflex::stream {

class RecordOrder {
 public:
  explicit RecordOrder(std::shared_ptr<const abi::CompiledPack> pack);
  void set_log(SymbolId source);
  /// Another set whose ids mean the same.
  void use(std::shared_ptr<const abi::CompiledPack> pack) { pack_ = std::move(pack); }
  /// Which sources are logs.
  void save(StateWriter& writer) const;
  void load(StateReader& reader);
  [[nodiscard]] bool is_log(SymbolId source) const {
    return source < is_log_.size() && is_log_[source];
  }
  /// True when a comes before b.
  bool less(const abi::Record& a, const abi::Record& b) {
    if (a.ts_ns != b.ts_ns) return a.ts_ns < b.ts_ns;
    return compare_ties(a, b) < 0;
  }
  /// A number that settles most ties of two records of one source without a look at them: that of
  /// the kind, for records that have no id and are not of a log; kNoRank for the others.
  [[nodiscard]] uint16_t tie_rank(const abi::Record& record) const {
    return record.id != nullptr || is_log(record.source) ? kNoRank : kind_rank_[record.kind];
  }
  /// Whether the ranks of two records of one source settle their order.
  [[nodiscard]] static bool told_apart(uint16_t a, uint16_t b) {
    return a != b && a != kNoRank && b != kNoRank;
  }

 private:
  static constexpr uint16_t kNoRank = UINT16_MAX;
  enum class SlotOrder : uint8_t { kNumber, kName, kReal, kText, kArray, kNameArray };
  int compare_ties(const abi::Record& a, const abi::Record& b);
  int compare_slot(SlotOrder order, const abi::Record& a, const abi::Record& b, unsigned slot);
  int compare_names(SymbolId a, SymbolId b) {
    if (a == b) return 0;
    if (std::max(a, b) < prefixes_.size()) {
      const Prefix& left = prefixes_[a];
      const Prefix& right = prefixes_[b];
      if (left.high != 0 && right.high != 0) {
        if (left.high != right.high) return left.high < right.high ? -1 : 1;
        if (left.low != right.low) return left.low < right.low ? -1 : 1;
      }
    }
    return compare_whole_names(a, b);
  }
  int compare_whole_names(SymbolId a, SymbolId b);
  std::string_view name(SymbolId id);

  std::shared_ptr<const abi::CompiledPack> pack_;
  std::vector<uint16_t> kind_rank_;
  std::vector<std::vector<SlotOrder>> slots_;  // [kind]
  /// The first 16 bytes of a name, filled up with 0, as numbers that compare like the text.
  struct Prefix {
    uint64_t high = 0;  // 0: not known (or an empty name)
    uint64_t low = 0;
  };
  std::vector<Prefix> prefixes_;         // [SymbolId], parallel to names_
  std::vector<std::string_view> names_;  // [SymbolId], filled on demand: no lock on a hit
  std::vector<bool> is_log_;             // [SymbolId]
};

}  // namespace reflex::stream

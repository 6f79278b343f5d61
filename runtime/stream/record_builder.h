// RecordBuilder: the members of one event object -> a record in a batch, or a counted rejection.
//
// Both JSON readers end here, so that a line means the same whichever reader took it. A key that
// stands twice: the last one wins.
// A *wire kind* is a name that a `kind` member may have: the kinds of the packs under their own
// numbers, then each alias of an overlay, with members of its own.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/abi/compiled_pack.h"
#include "runtime/stream/field_convert.h"
#include "runtime/stream/json_value.h"
#include "runtime/stream/name_index.h"
#include "runtime/stream/reject_sampler.h"

namespace reflex::stream {

/// Ids of member names; schema fields follow kFirstFieldKey.
enum ReservedKey : uint16_t {
  kKeyUnknown,
  kKeyTs,
  kKeyKind,
  kKeyId,
  kKeySource,
  kKeyArrival,
  kFirstFieldKey
};

/// Why a minute: clocks that are kept by NTP differ by less; what comes through a collector is
/// never stamped later than it came. Beyond it the event's own clock is wrong for sure.
inline constexpr int64_t kAheadOfArrivalMaxNs = 60'000'000'000;

/// Where a line came from.
struct LineOrigin {
  SymbolId source = kNoSymbol;
  uint64_t line = 0;
  std::string_view text;
};

class RecordBuilder {
 public:
  RecordBuilder(std::shared_ptr<const abi::CompiledPack> pack, IngestCounters& counters,
                RejectSampler& sampler);

  [[nodiscard]] uint16_t find_key(std::string_view name) const {
    const uint32_t id = keys_.find(name);
    return id == NameIndex::kAbsent ? uint16_t{kKeyUnknown} : static_cast<uint16_t>(id);
  }
  /// Tells that `name` will probably be interned by the next build.
  void prefetch(std::string_view name) const {
    converter_.symbols().prefetch(LocalSymbols::probe(name));
  }
  FieldConverter& converter() { return converter_; }
  /// The slot of a member of a wire kind; negative when the schema does not know it.
  [[nodiscard]] int slot_of(uint32_t wire, uint16_t key) const { return slot_of_key_[wire][key]; }
  /// What a member is to the envelope: its own key, or the one that an alias says it stands for.
  [[nodiscard]] uint16_t role_of(uint32_t wire, uint16_t key) const {
    const int slot = slot_of_key_[wire][key];
    if (slot <= kRoleBase) return static_cast<uint16_t>(kRoleBase - slot);
    return key < kFirstFieldKey && renamed_role(wire, key) ? uint16_t{kKeyUnknown} : key;
  }
  [[nodiscard]] size_t wire_kind_count() const { return wires_.size(); }
  [[nodiscard]] uint16_t kind_of(uint32_t wire) const { return wires_[wire].kind; }
  /// Sets the constants of an alias, where the record has no value of its own.
  void set_constants(uint32_t wire, abi::Record& record, Slab& slab) const {
    if (!wires_[wire].alias) [[likely]]
      return;
    fill_constants(wire, record, slab);
  }
  /// The event time that a `ts` member means; Reject::kCount, or why there is none.
  static Reject read_time(const JsonValue* ts, int64_t& out_ns);
  /// An event cannot be of a time after it came: a stamp that is ahead of its arrival by more than
  /// kAheadOfArrivalMaxNs gives way to the arrival. Without state, so that no order matters.
  void settle_time(abi::Record& record, int64_t arrival_ns) {
    if (record.ts_ns - kAheadOfArrivalMaxNs <= arrival_ns) [[likely]]
      return;
    record.ts_ns = arrival_ns;
    ++counters_->ahead_of_arrival;
  }
  /// The wire kind of a name; NameIndex::kAbsent when no pack declares it.
  [[nodiscard]] uint32_t find_kind(std::string_view name) const { return kind_names_.find(name); }

  /// Builds from members whose kind is not known yet.
  void build(std::span<const JsonValue> members, const LineOrigin& origin, RecordBatch& out);
  /// Builds an event of a wire kind that the reader has looked up.
  void build_kind(uint32_t wire, std::span<const JsonValue> members, const LineOrigin& origin,
                  RecordBatch& out);

 private:
  static constexpr int16_t kUnknownMember = -1;
  static constexpr int16_t kRoleBase = -2;  // minus a ReservedKey
  struct Wire {
    uint16_t kind = 0;
    const abi::KindAlias* alias = nullptr;
    uint8_t renamed_roles = 0;  // a bit for each ReservedKey that another member stands for
  };
  [[nodiscard]] bool renamed_role(uint32_t wire, uint16_t key) const {
    return (wires_[wire].renamed_roles >> key & 1u) != 0;
  }
  void add_alias(uint16_t kind, const abi::KindAlias& alias);
  void fill_constants(uint32_t wire, abi::Record& record, Slab& slab) const;
  bool set_time(const JsonValue* ts, const JsonValue* arrival, const LineOrigin& origin,
                abi::Record& record);
  void check_keys(uint32_t kind, uint64_t bad, const LineOrigin& origin, abi::Record& record,
                  RecordBatch& out);

  std::shared_ptr<const abi::CompiledPack> pack_;
  IngestCounters* counters_;
  RejectSampler* sampler_;
  FieldConverter converter_;
  NameIndex keys_;
  NameIndex kind_names_;
  std::vector<std::vector<int16_t>> slot_of_key_;  // [wire kind][key id]
  std::vector<Wire> wires_;
};

}  // namespace reflex::stream

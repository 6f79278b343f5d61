// RecordBuilder: the members of one event object -> a record in a batch, or a counted rejection.
//
// Both JSON readers end here, so that a line means the same whichever reader took it. A key that
// stands twice: the last one wins.
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
enum ReservedKey : uint16_t { kKeyUnknown, kKeyTs, kKeyKind, kKeyId, kKeySource, kFirstFieldKey };

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
  /// The slot of a member of a kind; negative when the schema does not know it.
  [[nodiscard]] int slot_of(uint32_t kind, uint16_t key) const { return slot_of_key_[kind][key]; }
  /// The event time that a `ts` member means; Reject::kCount, or why there is none.
  static Reject read_time(const JsonValue* ts, int64_t& out_ns);
  /// Index of a kind or of one of its aliases; NameIndex::kAbsent when no pack declares it.
  [[nodiscard]] uint32_t find_kind(std::string_view name) const { return kind_names_.find(name); }

  /// Builds from members whose kind is not known yet.
  void build(std::span<const JsonValue> members, const LineOrigin& origin, RecordBatch& out);
  /// Builds an event of a kind that the reader has looked up.
  void build_kind(uint32_t kind, std::span<const JsonValue> members, const LineOrigin& origin,
                  RecordBatch& out);

 private:
  static constexpr int16_t kUnknownMember = -1;
  bool set_time(const JsonValue* ts, const LineOrigin& origin, abi::Record& record);
  void check_keys(uint32_t kind, uint64_t bad, const LineOrigin& origin, abi::Record& record,
                  RecordBatch& out);

  std::shared_ptr<const abi::CompiledPack> pack_;
  IngestCounters* counters_;
  RejectSampler* sampler_;
  FieldConverter converter_;
  NameIndex keys_;
  NameIndex kind_names_;
  std::vector<std::vector<int16_t>> slot_of_key_;  // [kind][key id]
};

}  // namespace reflex::stream

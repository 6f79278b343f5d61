// Values, events and records of a plan's state in a form that outlives a compilation: symbols as
// texts, fields and kinds by name. PlanWriter, PlanReader: the bytes of one signal's or feature's
// state (SignalEngine::save), which a reader may skip as a whole.
//
// Contract: what PlanWriter writes, PlanReader reads, of the same or of another pack set; a field
// that vanished or changed its form is absent, a record of a vanished kind is dropped. A reader is
// safe for any bytes (see StateReader).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "runtime/abi/compiled_pack.h"
#include "runtime/abi/firing.h"
#include "runtime/base/state_stream.h"
#include "runtime/eval/record_copy.h"

namespace reflex::eval {

enum class ValueForm : uint8_t { kInteger, kSymbol, kReal, kText, kArray };
inline constexpr uint64_t kValueFormLast = 4;
ValueForm form_of(const abi::Type& type);
inline bool is_symbol(const abi::Type& type) { return form_of(type) == ValueForm::kSymbol; }
/// Whether the value of a feature is a name: the last one of a word or an entity.
bool is_symbol(const abi::CompiledPack& pack, const abi::FeaturePlan& feature);

class PlanWriter {
 public:
  explicit PlanWriter(const abi::CompiledPack& pack) : out(*pack.symbols), pack_(&pack) {}

  StateWriter out;

  /// Numbers of entities ascend; 0 ends them, and another list may begin.
  void entity(uint64_t number) {
    out.u64(number + 1 - next_);
    next_ = number + 1;
  }
  void end_entities() {
    out.u64(0);
    next_ = 0;
  }
  /// kInteger, kSymbol or kReal: what fits into a capture.
  void value(ValueForm form, uint64_t bits);
  void refs(const std::vector<abi::EventRef>& refs);
  void record(const abi::Record& record);

 private:
  const abi::CompiledPack* pack_;
  uint64_t next_ = 0;
  std::map<abi::KindId, uint64_t> kinds_;  // those written already
};

class PlanReader {
 public:
  PlanReader(const abi::CompiledPack& pack, std::string_view bytes, SymbolTable& symbols)
      : in(bytes, symbols), pack_(&pack) {}

  StateReader in;
  int64_t at_ns = 0;        // the time of the state: up to it everything has fired
  bool changed = false;     // what was true then may not be true now: evaluate again at at_ns
  bool too_little = false;  // set by load_plan(): the old plan kept less than the new one needs

  /// False at the end. The number must be below `end`.
  bool entity(uint64_t end, uint64_t& number);
  uint64_t value(ValueForm form);
  void refs(std::vector<abi::EventRef>& refs);
  /// bytes() == 0 when there is no such kind any more.
  RecordCopy record();

  /// A captured field as the writer numbered them; see SequenceStates::save_plan.
  struct Capture {
    ValueForm form = ValueForm::kInteger;
    bool known = false;  // the new plan captures it too
    uint16_t index = 0;
  };
  std::vector<Capture> captures;

 private:
  struct Field {
    ValueForm form = ValueForm::kInteger;
    bool known = false;
    uint16_t slot = 0;
  };
  struct Kind {
    bool known = false;
    abi::KindId id = 0;
    std::vector<Field> fields;
  };
  bool read_kind();
  void read_fields(const Kind& kind, abi::Record& record,
                   std::vector<std::vector<uint64_t>>& memory);

  const abi::CompiledPack* pack_;
  uint64_t next_ = 0;
  std::vector<Kind> kinds_;
};

}  // namespace reflex::eval

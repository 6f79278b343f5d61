// TemplateReader: NDJSON lines of a known shape straight into records, without tokens in between.
//
// A template is what the lines of a kind have in common: the bytes between the values, and for each
// value what becomes of it. Templates are learned from lines that the PredictiveReader took; a line
// that differs in any byte of them, or has a value of another type than usual, is left to that
// reader. Whatever it takes, the slower readers read the same way (property test
// Fast_path_equals_document_reader).
// Nothing is counted and no record is kept for a line that it leaves.
#pragma once

#include <array>
#include <vector>

#include "runtime/stream/json_scan.h"
#include "runtime/stream/predictive_reader.h"
#include "runtime/stream/record_builder.h"

namespace reflex::stream {

class TemplateReader {
 public:
  explicit TemplateReader(RecordBuilder& builder);

  /// Reads the line at `line` and moves it behind the '\n'; null when the line is not for this
  /// reader (then `line` stays).
  abi::Record* read(const char*& line, const LineOrigin& origin, Slab& slab);
  /// Members of the record's line that no schema knows.
  [[nodiscard]] unsigned unknown_members() const { return last_->unknown; }
  /// Tells of a line that the other reader took.
  void observe(const PredictiveReader& line);

 private:
  static constexpr size_t kLiteralMax = 32;  // Why: two compares of 16 bytes
  static constexpr uint32_t kNoPrefix = 0;

  enum class Action : uint8_t {
    kSkip,
    kTime,
    kArrival,
    kKind,
    kInt,
    kReal,
    kName,
    kId,
    kSource,
    kConvert
  };

  /// The bytes before a value (with the opening quote of a string), and what to do with the value.
  struct Step {
    std::array<char, kLiteralMax> bytes{};
    uint32_t mask = 0;  // a bit for each byte
    uint8_t size = 0;
    bool is_string = false;
    Action action = Action::kSkip;
    uint8_t slot = 0;
    [[nodiscard]] bool matches(const char* p) const {
      const auto* text = reinterpret_cast<const __m128i*>(p);
      const auto* own = reinterpret_cast<const __m128i*>(bytes.data());
      auto same = static_cast<unsigned>(
          _mm_movemask_epi8(_mm_cmpeq_epi8(_mm_loadu_si128(text), _mm_loadu_si128(own))));
      if (size > 16) {
        same |= static_cast<unsigned>(_mm_movemask_epi8(
                    _mm_cmpeq_epi8(_mm_loadu_si128(text + 1), _mm_loadu_si128(own + 1))))
                << 16;
      }
      return (same & mask) == mask;
    }
  };
  struct Template {
    std::vector<Step> steps;  // the last one is the end of the line, without a value
    size_t kind_step = 0;
    uint32_t prefix = kNoPrefix;  // equal: the same bytes and token types up to the kind
    uint64_t slots = 0;           // a bit for each slot of a record
    uint64_t required = 0;        // those that must be present
    unsigned slot_count = 0;
    unsigned unknown = 0;
    unsigned misses = 0;
    unsigned patience = 0;  // misses before it is learned (again); doubles each time
  };
  struct Name {
    const char* data = nullptr;
    size_t size = 0;
    LocalSymbols::Probe probe;
    unsigned slot = 0;
  };

  const char* read_prefix(const char* p, uint32_t& kind);
  bool store_prefix(const Template& own, abi::Record& record, Slab& slab);
  const char* read_rest(const Template& own, const char* p, abi::Record& record, Slab& slab);
  bool store(const Step& step, const JsonValue& value, abi::Record& record, Slab& slab);
  bool finish(const Template& own, abi::Record& record);
  void add_name(const char* begin, const char* end, unsigned slot) {
    // Member by member: a wide copy of a struct just written in parts stalls the CPU.
    Name& name = names_[name_count_++];
    name.data = begin;
    name.size = static_cast<size_t>(end - begin);
    name.probe = LocalSymbols::probe({begin, name.size});
    symbols_->prefetch(name.probe);
    name.slot = slot;
  }
  void learn(const PredictiveReader& line, Template& own);
  bool plan_step(uint32_t kind, const JsonValue& member, Step& step) const;
  static bool set_literal(std::string_view bytes, bool is_string, Step& step);
  uint32_t prefix_id(const Template& own);

  RecordBuilder* builder_;
  LocalSymbols* symbols_;                                        // of the builder
  std::vector<Template> templates_;                              // [wire kind]
  const Template* last_ = nullptr;                               // of the previous line
  std::vector<std::vector<Step>> prefixes_;                      // [id - 1]
  std::array<JsonValue, PredictiveReader::kMembersMax> tokens_;  // of the prefix
  std::array<Name, PredictiveReader::kMembersMax> names_;        // interned when the line is whole
  size_t name_count_ = 0;
  int64_t arrival_ns_ = INT64_MAX;  // of the line; INT64_MAX: it has none
};

}  // namespace reflex::stream

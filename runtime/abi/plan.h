// What the compiler hands to the runtime for each construct of the language: plain data.
//
// Naming: an index into a vector of CompiledPack is a typed alias (KindId, SignalId, ...). All
// times are int64 nanoseconds. Expressions are ExprIds; their compiled forms are in EvaluatorSet.
//
// Leaf = (event kind, predicate): the unit of dispatch. An event reaches only the leaves of its
// kind whose indexable constraints match (LeafPlan::constraints); a leaf that is true is handed to
// each of its owners (a step of a sequence, a count, a feature input, ...).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/abi/cause_plan.h"
#include "runtime/abi/plan_ids.h"
#include "runtime/abi/state_shape.h"
#include "runtime/abi/types.h"
#include "runtime/base/symbols.h"

namespace reflex::abi {

// ---------------------------------------------------------------- event kinds

struct FieldSchema {
  std::string name;
  Type type;
  bool is_key = false;
  bool redact = false;
  bool used = true;  // false: no rule reads it, the decoder may skip its value
};

/// `alias kind NAME = KIND { field = member .. }`: what a site's monitoring calls the kind and its
/// members. A renamed field is read from its new member only; the others keep their names.
struct KindAlias {
  /// Slots of a rename that stand for the envelope.
  static constexpr uint16_t kTs = 0xffff;
  static constexpr uint16_t kId = 0xfffe;
  static constexpr uint16_t kSource = 0xfffd;
  struct Rename {
    uint16_t slot = 0;
    std::string member;
  };
  /// A field that the site's events do not carry, since their kind says it.
  struct Constant {
    uint16_t slot = 0;
    uint64_t bits = 0;  // in the slot form of the field; of a string field: `text`
    std::string text;
  };
  std::string name;
  std::vector<Rename> renames;
  std::vector<Constant> constants;
  SourceRef where;
};

struct KindSchema {
  std::string name;                 // "gpu.xid"
  std::vector<FieldSchema> fields;  // at most kFieldsMax; field i is slot i
  std::vector<KindAlias> aliases;
  std::vector<uint16_t> dedup_slots;
  int64_t dedup_ns = 0;  // 0 = no dedup
  bool builtin = false;  // job.start, node.labels, incident.open, ...
  SourceRef where;
};

// ---------------------------------------------------------------- entities

/// One base entity type: "node", "gpu", "nic", "job", "rack", ...
struct EntityType {
  std::string name;
};

/// A tuple of key names that signals, features and faults are kept on: ("node", "gpu").
/// At most 3 keys. The first key decides the shard when it is "node".
struct EntityKind {
  std::vector<std::string> keys;
};

/// How an event of some kind yields the key values of an entity kind.
struct KeyPart {
  enum class From : uint8_t {
    kSlot,       // the field in `slot`
    kJobOfNode,  // the job of the node in `slot` at the event's time
    kNodeLabel,  // label `label` (rack, tor, pod, zone, ...) of the node in `slot`
    kExpr,       // value expression `expr` over the record
  };
  From from = From::kSlot;
  uint16_t slot = 0;
  std::string label;
  ExprId expr = kNone32;
};
struct KeyPlan {
  std::vector<KeyPart> parts;  // parallel to EntityKind::keys
};

// ---------------------------------------------------------------- leaves

/// A top-level conjunct `field in {intervals}` with constant bounds, usable for indexing.
/// The field is integer-like (kI64 form). Intervals are closed, sorted, disjoint.
/// A record without the field does not match.
struct IndexConstraint {
  uint16_t slot = 0;
  struct Interval {
    int64_t lo;
    int64_t hi;
  };
  std::vector<Interval> intervals;
};

enum class OwnerKind : uint8_t {
  kSequenceStep,    // SignalPlan `owner`, step `sub`
  kSequenceUnless,  // SignalPlan `owner`, unless `sub`
  kSignalGuard,     // SignalPlan `owner`, none-guard `sub`
  kCount,           // SignalPlan `owner`
  kCondition,       // SignalPlan `owner`: re-evaluate its `when`
  kFeatureInput,    // FeaturePlan `owner`
  kFeatureReset,    // FeaturePlan `owner`
};

struct LeafOwner {
  OwnerKind kind;
  uint32_t owner;
  uint16_t sub = 0;
};

struct LeafPlan {
  KindId kind = 0;
  ExprId predicate = kNone32;  // the whole predicate; kNone32 = always true
  ExprId residual = kNone32;   // what is left after `constraints`; kNone32 = nothing left
  std::vector<IndexConstraint> constraints;
  std::vector<LeafOwner> owners;    // in declaration order
  std::vector<FeatureId> features;  // read by the predicate, at the owner's entity, before update
  EntityKindId entity_kind = 0;     // whose features are read (only when `features` is not empty)
  bool needs_captures = false;      // reads fields of earlier steps: evaluated per partial match
};

// ---------------------------------------------------------------- features (A7)

enum class FeatureOp : uint8_t {
  kLast,
  kDecayed,
  kEwma,
  kRate,
  kIncrease,
  kResetCount,
  kTrend,
  kCusum,
  kSince,
  kStreak,
  kRecurrences,
  kBurstiness,
  kAge,
  kCount,
  kDistinct,
  kMean,
  kMin,
  kMax,
  kSum,
  kStdDev,
  kMedian,
  kQuantile,
};

struct FeaturePlan {
  std::string name;  // empty for one that the compiler made (last value, mean)
  FeatureOp op = FeatureOp::kLast;
  EntityKindId entity_kind = 0;
  /// Inputs: each leaf that feeds it, the value taken from the record (kNone32 = 1.0), its key.
  struct Input {
    LeafId leaf = kNone32;
    ExprId value = kNone32;  // value expression over the record, as f64
    KeyPlan key;
    bool streak_break = false;  // for kStreak: this input ends the streak
  };
  std::vector<Input> inputs;
  std::vector<Input> resets;   // `reset on kind [where ...]`
  bool counter_input = false;  // value is a raw counter: differences, with resets
  int64_t half_life_ns = 0;    // kDecayed, kEwma, kTrend
  int64_t window_ns = 0;       // `within D`, rate/increase/recurrences window
  uint32_t last_n = 0;         // `last N`
  uint32_t min_samples = 1;    // fewer: missing
  double quantile = 0.5;
  double slack = 0;              // kCusum; absolute, or relative to the target when
  bool slack_relative = false;   //   slack_relative
  ExprId target = kNone32;       // kCusum: expression in the entity's context
  int64_t stale_after_ns = 0;    // kIncrease, kRate of counters; 0 = 3x the median interval
  bool exclude_current = false;  // windowed statistics do not see the event under evaluation
  bool integer_result = false;   // value handed to expressions as i64 (counts, durations)
  bool global_stage = false;     // needs peers or a non-node entity: evaluated after merge
  std::string was;               // full name that its state was kept under
  StateShape state;              // what saved state must look like to be kept
  SourceRef where;
};

// ---------------------------------------------------------------- peers

enum class PeersStat : uint8_t { kMedian, kMad, kMean, kMin, kMax, kRank, kCount };

/// What peers have in common besides their scope: a feature's value or a label of their node.
struct PeersKey {
  FeatureId feature = kNone32;  // on the same keys as the compared one; kNone32: the label
  SymbolId label = kNoSymbol;
};

/// peers(scope by keys).stat of feature `feature`: over the other entities of the same scope.
struct PeersQuery {
  FeatureId feature = 0;
  std::string scope;         // "job", "rack", "tor", "class"
  std::vector<PeersKey> by;  // equal in all of these; without a value is a value of its own
  PeersStat stat = PeersStat::kMedian;
  uint32_t at_least = 3;  // fewer peers with a value: unknown
  int64_t bucket_ns = 30'000'000'000;
};

// ---------------------------------------------------------------- signals (A5, A6, A8)

enum class StepMode : uint8_t { kFirst, kThen, kThenStrictly, kThenEither, kAbsent };

/// A field of a step's event that a later step, unless or guard reads.
struct Capture {
  uint16_t slot = 0;   // of the step's record
  uint16_t index = 0;  // in EvalContext::captures
};

struct StepPlan {
  std::string variable;
  StepMode mode = StepMode::kFirst;
  LeafId leaf = kNone32;
  KindId kind = 0;
  KeyPlan key;
  int64_t tolerance_ns = 0;  // kThenEither: `then ~2s`
  int64_t absent_ns = 0;     // kAbsent: `for 30s`
  std::vector<Capture> captures;
  ExprId join = kNone32;  // predicate over (record, captures); kNone32 = none
};

struct UnlessPlan {
  LeafId leaf = kNone32;
  KindId kind = 0;
  KeyPlan key;
  uint16_t after_step = 0;  // cancels strictly between these two steps
  uint16_t before_step = 1;
  ExprId join = kNone32;
  /// Deferred: the event cannot be judged when it comes, so it is kept for `window_ns`, at most
  /// kept_max events (for each key, or in all when `shared`), and judged later.
  bool deferred = false;
  bool shared = false;      // the event has no key of the signal: `key` has no parts
  bool at_close = false;    // the join reads steps after after_step: judged when check_step
  uint16_t check_step = 0;  //   matches, else by after_step alone, as if it came just in time
  int64_t window_ns = 0;
  uint32_t kept_max = 256;
};

/// `and none KIND where P in the last D`: checked when the rest of the signal matches.
struct NoneGuard {
  LeafId leaf = kNone32;
  KindId kind = 0;
  KeyPlan key;
  int64_t window_ns = 0;
};

enum class KeepMode : uint8_t { kEarliest, kLatest, kAll };

struct SequencePlan {
  std::vector<StepPlan> steps;
  std::vector<UnlessPlan> unless;
  std::vector<NoneGuard> guards;
  int64_t within_ns = 0;  // 0 = unbounded (only legal for one step)
  KeepMode keep = KeepMode::kEarliest;
  uint32_t partials_max = 4;
  uint16_t capture_count = 0;
};

/// `graded [extra N] [rising|steady]`: the count is held against the node's measured benign rate,
/// not against a threshold. Events are counted by how long before the incident they came; lead bins
/// are shares of the count's window (of 72 h: 72-24 h, 24-12, 12-4, 4-1 h, 60-10 min, the rest).
/// The chance that a healthy node shows such an episode is SignalPlan::leak_probability.
inline constexpr size_t kLeadBins = 6;
inline constexpr std::array<double, kLeadBins + 1> kLeadBounds{
    1.0, 1.0 / 3, 1.0 / 6, 1.0 / 18, 1.0 / 72, 1.0 / 432, 0.0};
struct GradedPlan {
  bool on = false;
  double extra_mean = 4;  // events that an active cause adds in the window
  /// Where the extra events fall, sum 1. Why: `rising` is the shape of wear that ends in a failure:
  /// the rate grows as the failure comes near; `steady` has the bins' widths.
  std::array<double, kLeadBins> profile{0.12, 0.18, 0.25, 0.22, 0.13, 0.10};
  /// `votes`: the (distinct) count of one node is held against all votes in the job: of V votes v
  /// name this node. Half of them name an active cause, the others fall on anybody.
  bool votes = false;
};

enum class CountMode : uint8_t { kEvents, kDistinct, kBursts };
enum class CompareOp : uint8_t { kGe, kGt, kLe, kLt, kEq, kNe };

struct CountPlan {
  static constexpr uint16_t kNoPart = 0xffff;
  CountMode mode = CountMode::kEvents;
  struct Input {
    LeafId leaf = kNone32;
    KindId kind = 0;
    KeyPlan key;
    uint16_t distinct_slot = 0;
    uint16_t part_slot = kNoPart;  // field of the kind that names the part of the node
  };
  std::vector<Input> inputs;
  /// Graded counts: the key beside the signal's own that names the part ("gpu", "nic"); of several
  /// signals of a fault the parts should agree. Empty: none.
  std::string part_key;
  int64_t window_ns = 0;
  int64_t gap_ns = 0;  // kBursts
  CompareOp op = CompareOp::kGe;
  ExprId threshold = kNone32;     // f64 value expression in the entity's context
  double threshold_constant = 0;  // used when threshold == kNone32
  bool each = false;              // fire at every event at which the condition holds
  GradedPlan graded;              // on: fires at every event, the counts are the evidence
  double rearm = -1;              // re-arm when the count falls below this; <0 = the threshold
  uint32_t exact_max = 0;         // `exact max n`; 0 = exact up to 64, then exponential buckets
  std::vector<NoneGuard> guards;
};

enum class NoData : uint8_t { kInterrupt, kHold };

struct ConditionPlan {
  ExprId when = kNone32;              // predicate in the entity's context (features, params)
  ExprId clear = kNone32;             // kNone32 = not `when`
  std::vector<FeatureId> features;    // read by when and clear
  std::vector<LeafId> triggers;       // leaves whose events re-evaluate it
  std::vector<KeyPlan> trigger_keys;  // parallel to triggers
  bool time_driven = false;           // reads since/decayed/rate/age: also re-evaluated on ticks
  int64_t for_ns = 0;
  int64_t keep_ns = 0;
  NoData nodata = NoData::kInterrupt;
  int64_t nodata_hold_ns = 0;
  /// For explanations: the value and the limit of the first comparison, and where it came from.
  ExprId shown_value = kNone32;
  ExprId shown_limit = kNone32;
  std::string limit_origin;             // "profile.temp_hot (hwprofiles/nvidia/h100.rfx:12)"
  AdaptiveId limit_adaptive = kNone32;  // the limit is this adaptive parameter
};

enum class SignalShape : uint8_t { kSequence, kCount, kCondition };

/// `exceptions NAME (node ==, gpu ==)` of a signal, with the rows that sites gave in overlays.
/// A firing on an entity that a row names is dropped and counted; where nothing fired, a node of a
/// row is not observed.
struct ExceptionPlan {
  std::string name;                // empty: the signal takes none
  std::vector<uint8_t> positions;  // of the keys, in EntityKind::keys
  struct Row {
    std::vector<uint64_t> values;  // parallel to positions
    std::string overlay;
  };
  std::vector<Row> rows;  // sorted by values' text, without repeats
};

struct SignalPlan {
  std::string name;  // as rules name it; unique in the set: "std.nvidia.xid_48"
  EntityKindId entity_kind = 0;
  SignalShape shape = SignalShape::kSequence;
  SequencePlan sequence;
  CountPlan count;
  ConditionPlan condition;
  int64_t holds_ns = 0;         // how long a firing counts as evidence after its last refire
  double leak_per_hour = 0;     // benign rate; 0 = not stated by the author
  double leak_probability = 0;  // benign chance in one window; used when leak_per_hour == 0
  bool global_stage = false;  // keyed without node, or reads peers: evaluated after merge
  std::vector<KindId> kinds;  // kinds it listens to: decides observed / unobserved
  int64_t horizon_ns = 0;     // longest look-back it needs
  uint32_t bytes_per_key = 0;
  std::string doc;
  ExceptionPlan exceptions;
  /// `disable signal`: firings before this time are dropped and it counts as unobserved.
  int64_t disabled_until_ns = INT64_MIN;
  std::string disabled_by;  // "overlay site_fra: optics swap"
  std::string was;          // full name that its state and learned numbers were kept under
  StateShape state;         // what saved state must look like to be kept
  SourceRef where;
};

// ---------------------------------------------------------------- hardware classes (A3)

struct ParamSchema {
  std::string name;
  Type type;
  AdaptiveId adaptive = kNone32;  // reads Op::kTable, not the folded constant
};

/// `adaptive NAME: T { from FEATURE quantile Q over D default X floor A ceiling B min_samples N }`:
/// one for each adaptive parameter; a profile may override fields (AdaptiveSettings).
struct AdaptivePlan {
  std::string name;
  ParamId param = kNone32;
  FeatureId feature = kNone32;
  SourceRef where;
};
struct AdaptiveSettings {
  double quantile = 0.999;  // of the healthy entities of the class; (0, 1)
  int64_t window_ns = 0;    // half-life of what the sketch remembers
  double initial = 0;       // `default`: until min_samples are in
  double floor = 0;
  double ceiling = 0;
  uint64_t min_samples = 200;
  SourceRef where;  // the line that set the last of them
};

struct ClassPlan {
  std::string name;  // "hw.h100"
  ClassId parent = 0;
  bool abstract_class = false;
  bool fallback = false;
  uint16_t depth = 0;
  ExprId matches = kNone32;            // predicate over the node's labels (EvalContext::entity[0])
  std::vector<uint64_t> params;        // [ParamId] bits in the slot form of the parameter
  std::vector<uint8_t> params_known;   // [ParamId]
  std::vector<SourceRef> param_where;  // [ParamId] the line that set it
  std::vector<AdaptiveSettings> adaptive;  // [AdaptiveId]
  std::string binding;  // hash of what binds nodes to it; comparable within one SymbolTable only
  SourceRef where;
};

// ---------------------------------------------------------------- decoders (A14)

struct DecoderAssign {
  uint16_t slot = 0;
  /// Where the value comes from. A value that does not convert leaves the field missing; when the
  /// field is a key that is not optional, the line makes no event (counted as missing_key).
  enum class From : uint8_t {
    /// Text of RE2 group `group`, by the type of the field (an unset or empty group = missing):
    /// string: the text; enum or word: lower-cased, interned (unseen word of a declared enum:
    /// "other"); named entity: interned as it is; integer, gpu index, bool: in base `base` ("0x"
    /// is accepted in both), in [int_min, int_max], times `scale` when that is not 1 (rounded);
    /// real, quantity: decimal times `scale`; duration: number times `scale`, where scale = ns per
    /// unit of the text (ms(g): 1e6, s(g): 1e9), or with scale == 1 (a bare group): text such as
    /// "45s" or "10m", or a bare number of seconds; instant: RFC 3339 or epoch milliseconds.
    kGroup,
    kConstantInt,   // constant_int is the slot value (durations in ns)
    kConstantReal,  // constant_real is the slot value (base unit)
    kConstantText,  // text for string fields; interned as it is for enums and named entities
    kGpuAtGroup,    // PCI address in the group -> index by LogOptions::gpu_map, else its identity
    kNode,          // the node of the log
    /// Words of the group separated by spaces or commas, into an array field (at most its bound).
    /// A word is hex when it starts with "0x", has a letter a-f, has 8 digits, or base == 16.
    kHexWords,
  } from = From::kGroup;
  int group = -1;  // RE2 group number
  int base = 10;   // integers: 10 or 16
  int64_t constant_int = 0;
  double constant_real = 0;
  std::string constant_text;
  double scale = 1.0;           // see kGroup
  int64_t int_min = INT64_MIN;  // u8(g), u16(g), ...: outside of the range = missing
  int64_t int_max = INT64_MAX;
};

/// One `line /re/ -> kind { ... }`. Lines are tried in order; the first match wins.
struct DecoderLine {
  std::string pattern;  // RE2 syntax, named groups (?P<x>...)
  KindId kind = 0;
  std::vector<DecoderAssign> assigns;
  bool ignore = false;  // `line /re/ -> ignore`: matched and dropped on purpose
  /// Pattern spans up to this many physical lines (prefixes stripped): tried on the line alone,
  /// then on the last lines joined by '\n', then joined by ' ' (an event wrapped by a terminal).
  uint32_t fold_lines = 1;
  SourceRef where;
};

struct DecoderPlan {
  std::string name;
  std::string input;  // "text" | "alertmanager" | ...
  bool prefix_auto = true;
  /// `prefix kernel`: a line that user space is known to have written is not read.
  bool kernel_only = false;
  std::vector<DecoderLine> lines;
  SourceRef where;
};

}  // namespace reflex::abi

// CompiledPack: the whole product of the compiler for one pack set; immutable once made.
//
// Ownership: plain data plus the code behind EvaluatorSet. Dropping the last reference frees the
// JIT code. The runtime holds it by shared_ptr<const CompiledPack>.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/abi/evaluator.h"
#include "runtime/abi/plan.h"
#include "runtime/abi/rule_plan.h"
#include "runtime/base/symbols.h"

namespace reflex::abi {

/// Version of everything under runtime/abi; a mismatch is a build error, not a run-time one.
inline constexpr uint32_t kAbiVersion = 1;

/// What the runtime must prepare before it calls an expression.
struct ExprInfo {
  Type type;
  std::vector<FeatureId> features;  // EvalContext::features entries that must be valid
  bool reads_record = false;
  bool reads_captures = false;
  bool reads_class = false;  // has a variant per hardware class
  bool reads_peers = false;
};

/// A fused chunk: up to 64 predicates of one kind without index constraints.
struct Chunk {
  KindId kind = 0;
  std::vector<LeafId> leaves;       // hit index -> leaf
  std::vector<FeatureId> features;  // union over the leaves
};

/// Compiled code of every expression. Implemented by the interpreter and by the JIT.
class EvaluatorSet {
 public:
  virtual ~EvaluatorSet() = default;
  /// The code of `expr` for nodes of `hw_class`. Valid while the set lives.
  [[nodiscard]] virtual Evaluator expr(ExprId expr, ClassId hw_class) const = 0;
  [[nodiscard]] virtual ChunkEvaluator chunk(uint32_t chunk, ClassId hw_class) const = 0;
  [[nodiscard]] virtual std::string_view backend() const = 0;  // "jit" | "interp"
};

struct EnumWords {
  std::vector<std::string> words;  // in declaration order; "other" stands for the rest
  std::vector<SymbolId> symbols;   // parallel, interned
};

struct PackIdentity {
  std::string name;
  std::string version;
  std::string sha256;  // lower-case hex
};

/// `clock { ... }` and `limits { ... }` of the pack heads, merged (the widest clock, sum-free
/// limits: the largest).
struct ClockPlan {
  int64_t lateness_ns = 5'000'000'000;
  int64_t idle_after_ns = 60'000'000'000;
  int64_t future_skew_ns = 120'000'000'000;
  int64_t settle_ns = 30'000'000'000;
};
struct LimitsPlan {
  uint64_t keys_max = 200'000;
  uint32_t partials_per_key = 4;
  int64_t horizon_ns = 14LL * 24 * 3600 * 1'000'000'000;
  uint64_t state_bytes_max = 512ull << 20;
};

struct CompiledPack {
  std::vector<PackIdentity> packs;
  std::string set_sha256;  // over all of them, in name order
  ClockPlan clock;
  LimitsPlan limits;

  std::vector<EntityType> entity_types;
  std::vector<EntityKind> entity_kinds;
  std::vector<EnumWords> enums;
  std::vector<KindSchema> kinds;
  std::vector<ParamSchema> params;
  std::vector<ClassPlan> classes;  // [0] is the fallback
  std::vector<LeafPlan> leaves;
  std::vector<Chunk> chunks;
  std::vector<FeaturePlan> features;
  std::vector<PeersQuery> peers;
  std::vector<SignalPlan> signals;
  std::vector<CausePlan> causes;
  std::vector<EdgePlan> edges;
  std::vector<MaskPlan> masks;
  std::vector<SynergyPlan> synergies;
  std::vector<SuppressPlan> suppressions;
  std::vector<MaintenancePlan> maintenance;
  std::vector<ExplainedByMaintenance> explained_by_maintenance;
  std::vector<CohortPlan> cohorts;
  std::vector<RepairPlan> repairs;
  std::vector<AdaptivePlan> adaptives;
  std::vector<IncidentPlan> incidents;
  std::vector<DecoderPlan> decoders;
  std::vector<RulePlan> rules;
  /// The fields of the record that rules read; empty without rules.
  std::vector<FieldSchema> verdict_fields;
  std::vector<OverlayChange> overlay_changes;

  std::vector<ExprInfo> exprs;
  std::shared_ptr<const EvaluatorSet> code;
  std::shared_ptr<SymbolTable> symbols;  // shared with every runtime that loads the set
};

/// Kinds that the engine itself understands; always the first kinds of a set, in this order.
enum BuiltinKind : KindId {
  kNodeLabels,  // node, labels (as "key=value" pairs through the topology adapter)
  kJobStart,    // job, nodes[]
  kJobNodes,
  kJobEnd,        // job, status
  kNodeRepaired,  // node
  kGpuReplaced,   // node, gpu
  kMaintStart,    // node
  kMaintEnd,      // node
  kIncidentOpen,  // incident, job, symptom
  kBuiltinKindCount,
};

}  // namespace reflex::abi

// Recording a signal's evaluations and telling them; see signal_watch.h.
#include "runtime/app/signal_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <set>

#include "compiler/backend/interp/recording.h"
#include "runtime/abi/gpu_address.h"
#include "runtime/app/why_not_trace.h"
#include "runtime/base/time.h"
#include "runtime/explain/escape.h"
#include "runtime/explain/story.h"
#include "runtime/explain/verdict_words.h"

namespace reflex::app {
namespace {

// Why: the last ones are asked about; `check --emit ir` and the stream have the rest.
constexpr size_t kTracesMax = 2;
constexpr size_t kNearMissesMax = 5;
// Why: bounds the memory of the recount; a count of more is not a near miss any more.
constexpr size_t kHitsMax = 1'000'000;

/// An expression under watch: what it is of the signal, and what it answered.
struct Watch {
  std::string role;  // "step e: gpu.xid", "when", "limit"
  bool of_leaf = false;
  uint64_t is_true = 0;
  uint64_t is_false = 0;
  uint64_t is_unknown = 0;
  struct Trace {
    int64_t ts_ns;
    std::vector<std::string> lines;
  };
  std::deque<Trace> traces;
  std::optional<double> last;
};

/// An event that a count counts, for the recount.
struct Hit {
  int64_t ts_ns;
  std::vector<uint64_t> key;
  uint64_t value;  // distinct
};

}  // namespace

class SignalWatch::Recorder final : public backend::Recorder {
 public:
  Recorder(const compiler::Compilation& compilation, abi::SignalId signal, SymbolId node,
           std::function<std::string(int64_t)> time_text)
      : pack_(std::make_shared<abi::CompiledPack>(*compilation.pack)),
        module_(std::make_shared<ir::Module>(compilation.ir)),
        signal_(signal),
        node_(node),
        time_text_(std::move(time_text)) {
    for (abi::LeafId l = 0; l < pack_->leaves.size(); ++l) watch_leaf(l);
    const auto& s = pack_->signals[signal_];
    for (const auto& step : s.sequence.steps) watch(step.join, "join of step " + step.variable);
    watch(s.count.threshold, "limit of the count");
    watch(s.condition.when, "when");
    watch(s.condition.shown_value, "value");
    watch(s.condition.shown_limit, "limit");
  }

  /// The pack whose code records. Errors are ours: the IR was compiled once already.
  Result<std::shared_ptr<const abi::CompiledPack>> build() {
    backend::CodegenInput input;
    input.ir = module_;
    input.plans = pack_.get();
    input.symbols = pack_->symbols;
    std::vector<abi::ExprId> watched;
    for (const auto& [expr, w] : watches_) watched.push_back(expr);
    auto code = backend::make_recording(input, watched, *this);
    if (!code.ok()) return code.error();
    pack_->code = std::move(code).value();
    return std::shared_ptr<const abi::CompiledPack>(pack_);
  }

  bool wants(abi::ExprId, const abi::Record* record, const abi::EvalContext* context) override {
    if (node_ == kNoSymbol) return true;
    if (record) {
      const auto& fields = pack_->kinds[record->kind].fields;
      for (unsigned i = 0; i < fields.size(); ++i) {
        if (fields[i].name == "node") return record->has(i) && symbol(*record, i) == node_;
      }
    }
    return context->entity[0] == node_;
  }

  void evaluated(abi::ExprId expr, const abi::Record* record, const abi::EvalContext* context,
                 std::span<const abi::Value> values) override {
    Watch& w = watches_.at(expr);
    const abi::Value v = values.back();
    ++(v.known == 0 ? w.is_unknown : v.bits != 0 ? w.is_true : w.is_false);
    const auto& function = module_->functions[expr];
    if (function.insts.back().rep == ir::Rep::kF64 && v.known != 0) w.last = v.f64();
    if (function.insts.back().rep == ir::Rep::kI64 && v.known != 0) {
      w.last = static_cast<double>(v.i64());
    }
    const int64_t ts = w.of_leaf && record ? record->ts_ns : context->now_ns;
    w.traces.push_back({ts, trace_lines(*pack_, *module_, function, record, values)});
    if (w.traces.size() > kTracesMax) w.traces.pop_front();
    if (w.of_leaf && v.known != 0 && v.bits != 0 && record) keep_hit(expr, *record);
  }

  [[nodiscard]] std::string report(const std::vector<eval::NearMiss>& misses) const;

 private:
  static SymbolId symbol(const abi::Record& r, unsigned slot) {
    return static_cast<SymbolId>(r.i64(slot));
  }

  void watch(abi::ExprId expr, const std::string& role) {
    if (expr != abi::kNone32) watches_[expr].role = role;
  }

  /// A leaf of the signal is evaluated on every event of its kind: the index that would skip it is
  /// taken out, which changes no answer, and one without a predicate gets `true`.
  void watch_leaf(abi::LeafId l) {
    abi::LeafPlan& leaf = pack_->leaves[l];
    std::string role;
    for (const auto& owner : leaf.owners) {
      if (role_of(owner, l, role)) break;
    }
    if (role.empty()) return;
    if (leaf.predicate == abi::kNone32) leaf.predicate = always_true();
    leaf.constraints.clear();
    leaf.residual = leaf.predicate;
    for (auto& chunk : pack_->chunks) std::erase(chunk.leaves, l);
    Watch& w = watches_[leaf.predicate];
    w.role = role + ": " + pack_->kinds[leaf.kind].name;
    w.of_leaf = true;
  }

  bool role_of(const abi::LeafOwner& owner, abi::LeafId l, std::string& role) const {
    const auto& s = pack_->signals[signal_];
    const bool own = owner.owner == signal_;
    switch (owner.kind) {
      case abi::OwnerKind::kSequenceStep:
        if (own) role = "step " + s.sequence.steps[owner.sub].variable;
        break;
      case abi::OwnerKind::kSequenceUnless:
        if (own) role = "unless (cancels)";
        break;
      case abi::OwnerKind::kSignalGuard:
        if (own) role = "none (must not be)";
        break;
      case abi::OwnerKind::kCount:
        if (own) role = "counted";
        break;
      case abi::OwnerKind::kCondition:
        if (own) role = "re-evaluates it";
        break;
      case abi::OwnerKind::kFeatureInput: {
        const auto& reads = s.condition.features;
        if (std::find(reads.begin(), reads.end(), owner.owner) == reads.end()) break;
        const auto& name = pack_->features[owner.owner].name;
        role = "input of " + (name.empty() ? std::string("a feature") : name);
        break;
      }
      case abi::OwnerKind::kFeatureReset:
        break;
    }
    (void)l;
    return !role.empty();
  }

  abi::ExprId always_true() {
    ir::Function f;
    f.name = "always";
    f.type.scalar = abi::Scalar::kBool;
    f.insts.push_back(
        {ir::Op::kConstBool, ir::Rep::kBool, ir::kNoValue, ir::kNoValue, ir::kNoValue, 0, 1});
    module_->functions.push_back(std::move(f));
    abi::ExprInfo info;
    info.type.scalar = abi::Scalar::kBool;
    pack_->exprs.push_back(info);
    return static_cast<abi::ExprId>(pack_->exprs.size() - 1);
  }

  void keep_hit(abi::ExprId expr, const abi::Record& record) {
    const auto& plan = pack_->signals[signal_];
    if (plan.shape != abi::SignalShape::kCount || hits_.size() >= kHitsMax) return;
    for (const auto& input : plan.count.inputs) {
      if (pack_->leaves[input.leaf].predicate != expr) continue;
      Hit hit{record.ts_ns, {}, 0};
      for (const auto& part : input.key.parts) {
        const bool slot = part.from == abi::KeyPart::From::kSlot;
        hit.key.push_back(slot ? record.slots()[part.slot] : 0);
      }
      if (record.has(input.distinct_slot)) hit.value = record.slots()[input.distinct_slot];
      hits_.push_back(std::move(hit));
    }
  }

  struct Peak {
    uint64_t count = 0;
    int64_t at_ns = kNoTimeNs;
    std::vector<uint64_t> key;
  };
  [[nodiscard]] Peak peak() const;
  [[nodiscard]] uint64_t count_of(const std::deque<const Hit*>& window) const;
  [[nodiscard]] std::string key_text(const std::vector<uint64_t>& key) const;
  [[nodiscard]] std::string count_text() const;
  [[nodiscard]] std::string condition_text() const;
  [[nodiscard]] std::string left_out_text() const;
  [[nodiscard]] std::string misses_text(const std::vector<eval::NearMiss>& misses) const;

  std::shared_ptr<abi::CompiledPack> pack_;
  std::shared_ptr<ir::Module> module_;
  abi::SignalId signal_;
  SymbolId node_;
  std::function<std::string(int64_t)> time_text_;
  std::map<abi::ExprId, Watch> watches_;
  std::vector<Hit> hits_;
};

uint64_t SignalWatch::Recorder::count_of(const std::deque<const Hit*>& window) const {
  const auto& plan = pack_->signals[signal_].count;
  if (plan.mode == abi::CountMode::kEvents) return window.size();
  std::set<uint64_t> distinct;
  uint64_t bursts = 0;
  int64_t before = 0;
  for (const Hit* h : window) {
    distinct.insert(h->value);
    if (bursts == 0 || h->ts_ns - before > plan.gap_ns) ++bursts;
    before = h->ts_ns;
  }
  return plan.mode == abi::CountMode::kDistinct ? distinct.size() : bursts;
}

SignalWatch::Recorder::Peak SignalWatch::Recorder::peak() const {
  const int64_t window_ns = pack_->signals[signal_].count.window_ns;
  std::map<std::vector<uint64_t>, std::deque<const Hit*>> windows;
  Peak best;
  for (const Hit& h : hits_) {
    auto& window = windows[h.key];
    window.push_back(&h);
    while (window.front()->ts_ns <= h.ts_ns - window_ns) window.pop_front();
    if (const uint64_t n = count_of(window); n > best.count) best = {n, h.ts_ns, h.key};
  }
  return best;
}

std::string SignalWatch::Recorder::key_text(const std::vector<uint64_t>& key) const {
  const auto& names = pack_->entity_kinds[pack_->signals[signal_].entity_kind].keys;
  std::string out;
  for (size_t i = 0; i < key.size() && i < names.size(); ++i) {
    out += (i > 0 ? "/" : "") +
           (names[i] == "gpu" ? std::to_string(static_cast<int64_t>(key[i]))
                              : std::string(pack_->symbols->name(static_cast<SymbolId>(key[i]))));
  }
  return explain::printable(out);
}

std::string SignalWatch::Recorder::count_text() const {
  const auto& plan = pack_->signals[signal_].count;
  const Peak p = peak();
  const auto limit = plan.threshold == abi::kNone32 ? std::optional<double>(plan.threshold_constant)
                                                    : watches_.at(plan.threshold).last;
  static constexpr std::string_view kOps[] = {">=", ">", "<=", "<", "==", "!="};
  return fmt::format(
      "  count: at most {} within {}{}; it fires when the count is {} {} ({})\n", p.count,
      to_text(Duration{plan.window_ns}),
      p.count > 0 ? fmt::format(" on {} at {}", key_text(p.key), time_text_(p.at_ns)) : "",
      kOps[static_cast<size_t>(plan.op)], limit ? explain::number_text(*limit) : "unknown so far",
      plan.threshold == abi::kNone32 ? "static, " + explain::place(pack_->signals[signal_].where)
                                     : "computed, see the limit above");
}

std::string SignalWatch::Recorder::condition_text() const {
  const auto& plan = pack_->signals[signal_].condition;
  const auto last = [&](abi::ExprId e) -> std::string {
    const auto it = watches_.find(e);
    return it == watches_.end() || !it->second.last ? "unknown"
                                                    : explain::number_text(*it->second.last);
  };
  std::string out;
  if (plan.shown_value != abi::kNone32 && watches_.at(plan.shown_value).last) {
    out += fmt::format("  value {} against limit {}{}\n", last(plan.shown_value),
                       last(plan.shown_limit),
                       plan.limit_origin.empty() ? "" : " (" + plan.limit_origin + ")");
  } else if (!plan.limit_origin.empty()) {
    out += fmt::format("  where the limit comes from: {}\n", plan.limit_origin);
  }
  if (plan.for_ns > 0) {
    out += fmt::format("  it must hold for {}\n", to_text(Duration{plan.for_ns}));
  }
  return out;
}

std::string SignalWatch::Recorder::misses_text(const std::vector<eval::NearMiss>& misses) const {
  std::vector<const eval::NearMiss*> own;
  for (const auto& m : misses) {
    const auto& keys = pack_->entity_kinds[m.entity.kind].keys;
    const bool at_node = !keys.empty() && keys[0] == "node" && m.entity.values[0] == node_;
    if (m.signal == signal_ && (node_ == kNoSymbol || at_node)) own.push_back(&m);
  }
  const size_t steps = pack_->signals[signal_].sequence.steps.size();
  if (steps < 2) return {};
  std::string out =
      fmt::format("  near misses (partial matches that ran out of time): {}\n", own.size());
  for (size_t i = own.size() - std::min(own.size(), kNearMissesMax); i < own.size(); ++i) {
    const auto& m = *own[i];
    out +=
        fmt::format("    {} of {} steps on {}, given up at {}\n", m.steps_matched, steps,
                    key_text({m.entity.values.begin(), m.entity.values.begin() + m.entity.count}),
                    time_text_(m.ts_ns));
  }
  return out;
}

/// What a site's overlays leave out: the best reason of all.
std::string SignalWatch::Recorder::left_out_text() const {
  const auto& plan = pack_->signals[signal_];
  std::string out;
  if (plan.disabled_until_ns == INT64_MAX) {
    out += fmt::format("  disabled by {}\n", plan.disabled_by);
  } else if (plan.disabled_until_ns != INT64_MIN) {
    out += fmt::format("  disabled until {} by {}\n", time_text_(plan.disabled_until_ns),
                       plan.disabled_by);
  }
  const auto& keys = pack_->entity_kinds[plan.entity_kind].keys;
  for (const auto& row : plan.exceptions.rows) {
    std::string text;
    for (size_t i = 0; i < row.values.size(); ++i) {
      const std::string& key = keys[plan.exceptions.positions[i]];
      const bool number = key == "gpu" || key == "link" || key == "rank";
      text += (i == 0 ? "" : ", ") + key + " " +
              (number ? abi::gpu_to_text(static_cast<int64_t>(row.values[i]))
                      : std::string(pack_->symbols->name(static_cast<SymbolId>(row.values[i]))));
    }
    out += fmt::format("  exception {} ({}) of overlay {}\n", plan.exceptions.name, text,
                       row.overlay);
  }
  return explain::printable(out);
}

std::string SignalWatch::Recorder::report(const std::vector<eval::NearMiss>& misses) const {
  std::string out = left_out_text();
  for (const auto& [expr, w] : watches_) {
    const uint64_t n = w.is_true + w.is_false + w.is_unknown;
    const auto& insts = module_->functions[expr].insts;
    if (insts.back().rep == ir::Rep::kBool) {
      out += fmt::format("  {}: {} evaluations, {} true, {} false, {} unknown\n", w.role, n,
                         w.is_true, w.is_false, w.is_unknown);
    } else if (n > 0) {
      out += fmt::format("  {}: {} evaluations, the last gave {}\n", w.role, n,
                         w.last ? explain::number_text(*w.last) : "unknown");
    }
    if (insts.size() < 2) continue;  // `true`, or one load
    for (const auto& t : w.traces) {
      out += fmt::format("    at {}\n", time_text_(t.ts_ns));
      for (const auto& line : t.lines) out += fmt::format("      {}\n", explain::printable(line));
    }
  }
  const auto& plan = pack_->signals[signal_];
  if (plan.shape == abi::SignalShape::kSequence) out += misses_text(misses);
  if (plan.shape == abi::SignalShape::kCount) out += count_text();
  if (plan.shape == abi::SignalShape::kCondition) out += condition_text();
  return out;
}

SignalWatch::SignalWatch(const compiler::Compilation& compilation, abi::SignalId signal,
                         SymbolId node, std::function<std::string(int64_t)> time_text)
    : recorder_(std::make_unique<Recorder>(compilation, signal, node, std::move(time_text))) {}

SignalWatch::~SignalWatch() = default;

Result<std::shared_ptr<const abi::CompiledPack>> SignalWatch::build() { return recorder_->build(); }

std::string SignalWatch::report(const std::vector<eval::NearMiss>& misses) const {
  return recorder_->report(misses);
}

}  // namespace reflex::app

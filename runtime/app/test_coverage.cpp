// Counting evaluators and the four measures; see test_coverage.h.
#include "runtime/app/test_coverage.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <map>
#include <nlohmann/json.hpp>

namespace reflex::app {

// ---------------------------------------------------------------- counting

/// The code of the pack, with a count for each expression.
class TestCoverage::CountingSet final : public abi::EvaluatorSet {
 public:
  struct Counts {
    std::atomic<uint64_t> said_true{0};
    std::atomic<uint64_t> said_other{0};  // false or unknown: the branch that does not match
  };

  CountingSet(std::shared_ptr<const abi::EvaluatorSet> inner, size_t expr_count, size_t class_count)
      : inner_(std::move(inner)), class_count_(class_count), counts_(expr_count) {
    for (size_t e = 0; e < expr_count; ++e) {
      for (size_t c = 0; c < class_count; ++c) {
        slots_.push_back(
            {inner_->expr(static_cast<abi::ExprId>(e), static_cast<abi::ClassId>(c)), &counts_[e]});
      }
    }
  }

  [[nodiscard]] abi::Evaluator expr(abi::ExprId id, abi::ClassId hw_class) const override {
    return {&run, &slots_[id * class_count_ + hw_class]};
  }
  /// The plans have no fused leaves any more.
  [[nodiscard]] abi::ChunkEvaluator chunk(uint32_t, abi::ClassId) const override {
    return {&no_hits, nullptr};
  }
  [[nodiscard]] std::string_view backend() const override { return inner_->backend(); }
  [[nodiscard]] const Counts& counts(abi::ExprId id) const { return counts_[id]; }

 private:
  struct Slot {
    abi::Evaluator inner;
    Counts* counts;
  };

  static uint32_t run(const void* self, const abi::Record* record, const abi::EvalContext* context,
                      uint64_t* out) {
    const auto* slot = static_cast<const Slot*>(self);
    const uint32_t truth = slot->inner(record, context, out);
    auto& counter = truth == abi::kTrue ? slot->counts->said_true : slot->counts->said_other;
    counter.fetch_add(1, std::memory_order_relaxed);
    return truth;
  }
  static uint32_t no_hits(const void*, const abi::Record*, const abi::EvalContext*, uint32_t*) {
    return 0;
  }

  std::shared_ptr<const abi::EvaluatorSet> inner_;
  size_t class_count_;
  std::deque<Counts> counts_;  // atomics do not move
  std::deque<Slot> slots_;     // addresses are handed out
};

struct TestCoverage::Part {
  const char* name;
  size_t total = 0;
  std::vector<std::string> missing;
  [[nodiscard]] size_t covered() const { return total - missing.size(); }
};

namespace {

std::string at(const abi::SourceRef& where) {
  return where.file.empty() ? std::string() : fmt::format(" ({}:{})", where.file, where.line);
}

/// A pack whose every predicate is evaluated by itself, on every event of its kind.
std::shared_ptr<abi::CompiledPack> without_index(const abi::CompiledPack& pack) {
  auto out = std::make_shared<abi::CompiledPack>(pack);
  for (auto& chunk : out->chunks) chunk.leaves.clear();
  for (auto& leaf : out->leaves) {
    leaf.constraints.clear();
    leaf.residual = leaf.predicate;
  }
  return out;
}

/// Which parameters an expression reads.
std::set<abi::ParamId> params_of(const abi::CompiledPack& pack, const ir::Function& function) {
  std::set<abi::ParamId> params;
  for (const ir::Inst& inst : function.insts) {
    if (inst.op == ir::Op::kParam) params.insert(inst.index);
    if (inst.op == ir::Op::kTable && inst.index < pack.adaptives.size()) {
      params.insert(pack.adaptives[inst.index].param);
    }
  }
  return params;
}

/// Names of the profile parameters that packs with tests declare.
std::set<std::string> params_of_tested_packs(const compiler::Compilation& compilation) {
  std::set<std::string> tested;
  for (const auto& [module, decl] : compilation.tests) {
    tested.insert(compilation.module_packs[module]);
  }
  std::set<std::string> names;
  for (size_t m = 0; m < compilation.modules.size(); ++m) {
    if (!tested.contains(compilation.module_packs[m])) continue;
    for (const ast::Decl& d : compilation.modules[m].decls) {
      const auto* profile = std::get_if<ast::ProfileDecl>(&d.node);
      if (profile == nullptr) continue;
      for (const auto& param : profile->params) names.insert(param.name.text);
    }
  }
  return names;
}

std::string owner_text(const abi::CompiledPack& pack, const abi::LeafOwner& owner,
                       abi::SourceRef& where) {
  const bool feature =
      owner.kind == abi::OwnerKind::kFeatureInput || owner.kind == abi::OwnerKind::kFeatureReset;
  if (feature) {
    const auto& plan = pack.features[owner.owner];
    where = plan.where;
    return "feature " + (plan.name.empty() ? std::string("without a name") : plan.name) +
           (owner.kind == abi::OwnerKind::kFeatureReset ? ", reset" : ", input");
  }
  const auto& plan = pack.signals[owner.owner];
  where = plan.where;
  switch (owner.kind) {
    case abi::OwnerKind::kSequenceStep: {
      const auto& variable = plan.sequence.steps[owner.sub].variable;
      return plan.name + ", step " + (variable.empty() ? std::to_string(owner.sub + 1) : variable);
    }
    case abi::OwnerKind::kSequenceUnless:
      return plan.name + ", unless";
    case abi::OwnerKind::kSignalGuard:
      return plan.name + ", none";
    default:
      return plan.name + ", counted events";
  }
}

}  // namespace

TestCoverage::TestCoverage(const compiler::Compilation& compilation) : compilation_(compilation) {
  auto pack = without_index(*compilation.pack);
  code_ = std::make_shared<CountingSet>(pack->code, pack->exprs.size(),
                                        std::max<size_t>(pack->classes.size(), 1));
  pack->code = code_;
  pack_ = std::move(pack);
}

TestCoverage::~TestCoverage() = default;

void TestCoverage::observe(const Observed& observed) {
  const std::scoped_lock lock(mutex_);
  for (const auto& f : observed.firings) {
    if (f.change == abi::FiringChange::kStart) fired_.insert(f.signal);
  }
  for (const auto& verdict : observed.verdicts) {
    for (const auto& h : verdict.hypotheses) {
      for (const auto& c : h.contributions) {
        if (c.state == abi::SignalState::kFired) evidence_.emplace(h.cause, c.signal);
      }
      for (const auto& e : h.explained_away) evidence_.emplace(e.by, e.signal);
    }
  }
}

// ---------------------------------------------------------------- the four measures

TestCoverage::Part TestCoverage::signals() const {
  Part part{"signals", pack_->signals.size(), {}};
  for (abi::SignalId s = 0; s < pack_->signals.size(); ++s) {
    if (fired_.contains(s)) continue;
    part.missing.push_back(pack_->signals[s].name + " never fired" + at(pack_->signals[s].where));
  }
  return part;
}

TestCoverage::Part TestCoverage::edges() const {
  Part part{"edges", pack_->edges.size(), {}};
  for (const auto& edge : pack_->edges) {
    const std::string& from =
        edge.from_signal ? pack_->signals[edge.from].name : pack_->causes[edge.cause].name;
    const std::string& to = pack_->signals[edge.to].name;
    if (evidence_.contains({from, to})) continue;
    part.missing.push_back(from + " causes " + to + " was never evidence" + at(edge.where));
  }
  return part;
}

TestCoverage::Part TestCoverage::parameters() const {
  std::set<abi::ParamId> read;       // by some expression
  std::set<abi::ParamId> evaluated;  // by one that was evaluated
  for (abi::ExprId e = 0; e < pack_->exprs.size(); ++e) {
    const auto& counts = code_->counts(e);
    for (const abi::ParamId p : params_of(*pack_, compilation_.ir.functions[e])) {
      read.insert(p);
      if (counts.said_true + counts.said_other > 0) evaluated.insert(p);
    }
  }
  // What no expression reads counts only when a tested pack declares it: bundled profiles hold
  // parameters for packs that are not here.
  const auto own = params_of_tested_packs(compilation_);
  Part part{"profile parameters", 0, {}};
  for (abi::ParamId p = 0; p < pack_->params.size(); ++p) {
    if (!read.contains(p) && !own.contains(pack_->params[p].name)) continue;
    ++part.total;
    if (evaluated.contains(p)) continue;
    part.missing.push_back("profile." + pack_->params[p].name +
                           (read.contains(p) ? " was never read" : " is read by no expression"));
  }
  return part;
}

TestCoverage::Part TestCoverage::predicates() const {
  std::map<abi::ExprId, std::string> names;  // one entry for all that share it
  const auto add = [&](abi::ExprId expr, const std::string& name, const abi::SourceRef& where) {
    if (expr != abi::kNone32) names.emplace(expr, name + at(where));
  };
  for (const auto& leaf : pack_->leaves) {
    if (leaf.predicate == abi::kNone32 || leaf.owners.empty()) continue;
    abi::SourceRef where;
    std::string name = owner_text(*pack_, leaf.owners.front(), where);
    if (leaf.owners.size() > 1) name += fmt::format(" and {} more", leaf.owners.size() - 1);
    add(leaf.predicate, name, where);
  }
  for (const auto& s : pack_->signals) {
    if (s.shape == abi::SignalShape::kCondition) {
      add(s.condition.when, s.name + ", when", s.where);
      add(s.condition.clear, s.name + ", clear", s.where);
    }
    for (const auto& step : s.sequence.steps) {
      add(step.join, s.name + ", join of step " + step.variable, s.where);
    }
  }
  Part part{"predicates, both answers", names.size(), {}};
  std::vector<std::string> missing;
  for (const auto& [expr, name] : names) {
    const auto& counts = code_->counts(expr);
    const bool yes = counts.said_true > 0;
    const bool no = counts.said_other > 0;
    if (yes && no) continue;
    missing.push_back(name + (yes ? ": never false" : no ? ": never true" : ": never asked"));
  }
  std::sort(missing.begin(), missing.end());
  part.missing = std::move(missing);
  return part;
}

std::vector<TestCoverage::Part> TestCoverage::parts() const {
  const std::scoped_lock lock(mutex_);
  std::vector<Part> all;
  all.push_back(signals());
  all.push_back(edges());
  all.push_back(parameters());
  all.push_back(predicates());
  return all;
}

std::string TestCoverage::text() const {
  std::string out = "coverage:\n";
  for (const Part& part : parts()) {
    const double share = part.total == 0 ? 100.0
                                         : 100.0 * static_cast<double>(part.covered()) /
                                               static_cast<double>(part.total);
    out += fmt::format("  {:<26} {:>6} of {:>6}  {:>5.1f} %\n", part.name, part.covered(),
                       part.total, share);
  }
  for (const Part& part : parts()) {
    for (const auto& line : part.missing) out += fmt::format("  not covered: {}\n", line);
  }
  return out;
}

std::string TestCoverage::json() const {
  nlohmann::ordered_json object;
  for (const Part& part : parts()) {
    object[part.name] = {
        {"covered", part.covered()}, {"total", part.total}, {"missing", part.missing}};
  }
  return nlohmann::ordered_json{{"coverage", object}}.dump(
             -1, ' ', false, nlohmann::json::error_handler_t::replace) +
         "\n";
}

}  // namespace reflex::app

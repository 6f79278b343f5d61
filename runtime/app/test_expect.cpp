// Judging expectations: see test_expect.h.
#include "runtime/app/test_expect.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "runtime/abi/gpu_address.h"
#include "runtime/app/test_script.h"
#include "runtime/explain/explain.h"
#include "runtime/base/time.h"

namespace reflex::app {
namespace {

// Why: an onset that a script gives in whole units is exact; this absorbs only number formatting.
constexpr int64_t kExactNs = kNsPerMs;

bool ends_with_name(std::string_view full, std::string_view name) {
  if (full == name) return true;
  return full.size() > name.size() && full.ends_with(name) &&
         full[full.size() - name.size() - 1] == '.';
}

bool compare(double value, ast::BinaryOp op, double limit) {
  switch (op) {
    case ast::BinaryOp::kGe:
      return value >= limit;
    case ast::BinaryOp::kGt:
      return value > limit;
    case ast::BinaryOp::kLe:
      return value <= limit;
    case ast::BinaryOp::kLt:
      return value < limit;
    case ast::BinaryOp::kEq:
      return value == limit;
    default:
      return value != limit;
  }
}

double number_of(const ast::Expr* expr) {
  if (!expr) return 0;
  const double v =
      expr->kind == ast::ExprKind::kReal ? expr->real_value : static_cast<double>(expr->int_value);
  return expr->unit_text == "%" ? v / 100.0 : v;
}

class Judge {
 public:
  Judge(const compiler::Compilation& compilation, const ast::Module& module,
        const ast::TestDecl& test, const Observed& observed, TestOutcome& outcome)
      : compilation_(compilation),
        pack_(*compilation.pack),
        module_(module),
        test_(test),
        observed_(observed),
        outcome_(outcome) {}

  void run() {
    for (const auto& expect : test_.expects) {
      if (expect.allow) continue;
      ++outcome_.expectations;
      if (expect.verdict) {
        judge_verdict(expect);
      } else {
        judge_signal(expect);
      }
    }
    if (test_.strict) judge_strict();
  }

 private:
  void fail(source::Span span, const std::string& message) {
    const auto at = compilation_.sources.locate(module_.file, span.begin);
    outcome_.report += fmt::format("{}:{}:{}: error: {}\n", compilation_.sources.path(module_.file),
                                   at.line, at.column, message);
  }

  /// The signal that a test means: its own pack's first.
  [[nodiscard]] std::optional<abi::SignalId> signal_named(const std::string& name) const {
    std::optional<abi::SignalId> found;
    const std::string_view own = compilation_.sources.path(module_.file);
    const std::string_view folder = own.substr(0, own.rfind('/') + 1);
    for (abi::SignalId s = 0; s < pack_.signals.size(); ++s) {
      if (!ends_with_name(pack_.signals[s].name, name)) continue;
      if (pack_.signals[s].name == name) return s;
      const bool near = !folder.empty() && pack_.signals[s].where.file.starts_with(folder);
      if (!found || near) found = s;
    }
    return found;
  }

  [[nodiscard]] bool is_on(const abi::Firing& firing, const ast::TestTarget& target) const {
    const std::string text = entity_text(pack_, firing.entity);
    for (const auto& name : expand_target(target)) {
      if (target.sub.empty()) {
        if (text == name || text.starts_with(name + "/")) return true;
        continue;
      }
      const ast::Expr& sub = *target.sub.front();
      std::string wanted =
          sub.kind == ast::ExprKind::kInt ? std::to_string(sub.int_value) : sub.text;
      if (text == name + "/" + wanted) return true;
      const auto pci = abi::gpu_from_pci(wanted);
      if (pci && text == name + "/" + abi::gpu_to_text(*pci)) return true;
    }
    return false;
  }

  void judge_signal(const ast::TestDecl::Expect& expect) {
    const auto signal = signal_named(expect.signal.text);
    if (!signal) return fail(expect.span, fmt::format("no signal '{}'", expect.signal.text));
    const bool timed = expect.at != nullptr;
    const bool bounded = expect.before != nullptr;
    const int64_t before = kTestEpochNs + script_offset_ns(expect.before.get());
    const int64_t at = kTestEpochNs + script_offset_ns(expect.at.get());
    const int64_t tolerance = expect.tolerance ? expect.tolerance->int_value : kExactNs;
    bool found = false;
    std::string others;
    for (const auto& f : observed_.firings) {
      if (f.signal != *signal || f.change != abi::FiringChange::kStart) continue;
      if (expect.target && !is_on(f, *expect.target)) continue;
      if (bounded && f.ts_ns >= before) continue;
      const bool hit =
          !timed || (expect.negated ? active_at(f, at) : std::abs(f.ts_ns - at) <= tolerance);
      found = found || hit;
      others += fmt::format(" {}@{}", entity_text(pack_, f.entity),
                            to_text(Duration{f.ts_ns - kTestEpochNs}));
    }
    if (found == !expect.negated) return;
    const bool one_node = expect.target && !expect.target->ranged &&
                          !pack_.entity_kinds[pack_.signals[*signal].entity_kind].keys.empty() &&
                          pack_.entity_kinds[pack_.signals[*signal].entity_kind].keys[0] == "node";
    outcome_.suspects.emplace_back(*signal, one_node ? expect.target->base : "");
    fail(expect.span,
         fmt::format("expected {}{}{}{}; it fired:{}", expect.negated ? "no " : "",
                     expect.signal.text, expect.target ? " on " + expect.target->text : "",
                     timed ? " at " + to_text(Duration{at - kTestEpochNs}) : "",
                     others.empty() ? " never" : others));
  }

  /// `expect no S at T`: S has not fired up to T, or no longer holds.
  [[nodiscard]] bool active_at(const abi::Firing& firing, int64_t at) const {
    if (firing.ts_ns > at) return false;
    const abi::SignalPlan& plan = pack_.signals[firing.signal];
    if (plan.shape == abi::SignalShape::kCondition) return !ended_by(firing, at);
    return plan.holds_ns <= 0 || at <= firing.ts_ns + plan.holds_ns;
  }

  [[nodiscard]] bool ended_by(const abi::Firing& firing, int64_t at) const {
    return std::any_of(observed_.firings.begin(), observed_.firings.end(), [&](const auto& f) {
      return f.signal == firing.signal && f.entity == firing.entity &&
             f.change == abi::FiringChange::kEnd && f.ts_ns >= firing.ts_ns && f.ts_ns <= at;
    });
  }

  [[nodiscard]] const abi::Verdict* final_verdict(const ast::TestDecl::Expect& expect) const {
    const abi::Verdict* found = nullptr;
    for (const auto& v : observed_.verdicts) {
      if (!v.final_revision) continue;
      if (!expect.incident.empty() && !ends_with_name(v.incident_type, expect.incident.text))
        continue;
      if (!expect.job.base.empty() && v.job != expect.job.base) continue;
      found = &v;
    }
    return found;
  }

  void judge_verdict(const ast::TestDecl::Expect& expect) {
    const abi::Verdict* verdict = final_verdict(expect);
    if (expect.negated) {
      if (verdict) fail(expect.span, fmt::format("expected no verdict, got {}", verdict->level));
      return;
    }
    if (!verdict) {
      return fail(expect.span,
                  fmt::format("no verdict {} for {}", expect.incident.text, expect.job.base));
    }
    for (const auto& clause : expect.clauses) judge_clause(*verdict, clause);
  }

  [[nodiscard]] static const abi::Hypothesis* top_node(const abi::Verdict& verdict) {
    for (const auto& h : verdict.hypotheses) {
      if (h.what == abi::Hypothesis::What::kNode) return &h;
    }
    return nullptr;
  }

  [[nodiscard]] static double node_p(const abi::Verdict& verdict, const std::string& node) {
    for (const auto& n : verdict.nodes) {
      if (n.node == node) return n.p;
    }
    return 0;
  }

  static bool lists(const abi::Verdict& verdict, const std::string& node) {
    return std::find(verdict.culprits.begin(), verdict.culprits.end(), node) !=
           verdict.culprits.end();
  }

  static std::string summary(const abi::Verdict& verdict) {
    std::string text = verdict.level;
    for (const auto& c : verdict.culprits) text += " " + c;
    if (!verdict.external.empty()) text += " " + verdict.external;
    for (size_t i = 0; i < std::min<size_t>(3, verdict.hypotheses.size()); ++i) {
      const auto& h = verdict.hypotheses[i];
      text += fmt::format("; {} {} p={:.4f}", h.cause.empty() ? "none" : h.cause, h.entity, h.p);
    }
    return text;
  }

  void judge_clause(const abi::Verdict& verdict, const ast::TestDecl::Expect::Clause& clause) {
    const auto wrong = [&](const std::string& what) {
      fail(clause.span, fmt::format("{}; the verdict is {}", what, summary(verdict)));
    };
    if (clause.what == "top") return judge_top(verdict, clause);
    if (clause.what == "gpu") return judge_entity(verdict, clause);
    if (clause.what == "not") {
      for (const auto& target : clause.targets) {
        for (const auto& node : expand_target(target)) {
          if (lists(verdict, node)) wrong(fmt::format("{} must not be blamed", node));
        }
      }
    } else if (clause.what == "suspect") {
      for (const auto& target : clause.targets) {
        for (const auto& node : expand_target(target)) {
          if (!lists(verdict, node)) wrong(fmt::format("{} must be a suspect", node));
        }
      }
    } else if (clause.what == "none" || clause.what == "undetermined") {
      if (verdict.level != clause.what) wrong(fmt::format("expected '{}'", clause.what));
    } else if (clause.what == "external") {
      judge_external(verdict, clause);
    } else if (clause.what == "because" || clause.what == "silent") {
      judge_evidence(verdict, clause);
    } else {
      wrong(fmt::format("unknown clause '{}'", clause.what));
    }
  }

  void judge_top(const abi::Verdict& verdict, const ast::TestDecl::Expect::Clause& clause) {
    const std::string node = clause.targets.empty() ? "" : clause.targets.front().base;
    const abi::Hypothesis* top = top_node(verdict);
    const bool named = !verdict.culprits.empty() && verdict.culprits.front() == node;
    if (!named) {
      return fail(clause.span, fmt::format("{} must be the first culprit; the verdict is {}", node,
                                           summary(verdict)));
    }
    if (!clause.names.empty() && top && !ends_with_name(top->cause, clause.names.front().text)) {
      fail(clause.span, fmt::format("the fault must be {}; the verdict is {}",
                                    clause.names.front().text, summary(verdict)));
    }
    if (!clause.targets.front().sub.empty()) judge_entity(verdict, clause);
    if (clause.p && !compare(node_p(verdict, node), clause.p_op, number_of(clause.p.get()))) {
      fail(clause.span, fmt::format("p of {} is {:.4f}; the verdict is {}", node,
                                    node_p(verdict, node), summary(verdict)));
    }
  }

  void judge_entity(const abi::Verdict& verdict, const ast::TestDecl::Expect::Clause& clause) {
    const abi::Hypothesis* top = top_node(verdict);
    const auto& target = clause.targets.front();
    std::string wanted = target.base;
    if (!target.sub.empty()) {
      const ast::Expr& sub = *target.sub.front();
      const auto pci = abi::gpu_from_pci(sub.text);
      wanted += "/" + (sub.kind == ast::ExprKind::kInt ? std::to_string(sub.int_value)
                       : pci                           ? abi::gpu_to_text(*pci)
                                                       : sub.text);
    }
    if (!top || top->entity != wanted) {
      fail(clause.span,
           fmt::format("the entity must be {}; the verdict is {}", wanted, summary(verdict)));
    }
  }

  void judge_external(const abi::Verdict& verdict, const ast::TestDecl::Expect::Clause& clause) {
    const std::string cause = clause.names.empty() ? "" : clause.names.front().text;
    const abi::Hypothesis* best = nullptr;
    for (const auto& h : verdict.hypotheses) {
      if (h.what == abi::Hypothesis::What::kExternal && ends_with_name(h.cause, cause)) {
        best = best ? best : &h;
      }
    }
    if (verdict.answer != abi::Answer::kExternal || !best) {
      return fail(clause.span,
                  fmt::format("expected external {}; the verdict is {}", cause, summary(verdict)));
    }
    if (verdict.hypotheses.empty() || &verdict.hypotheses.front() != best) {
      fail(clause.span,
           fmt::format("external {} must come first; the verdict is {}", cause, summary(verdict)));
    }
    if (clause.p && !compare(best->p, clause.p_op, number_of(clause.p.get()))) {
      fail(clause.span, fmt::format("p is {:.4f}; the verdict is {}", best->p, summary(verdict)));
    }
  }

  void judge_evidence(const abi::Verdict& verdict, const ast::TestDecl::Expect::Clause& clause) {
    const auto wanted =
        clause.what == "because" ? abi::SignalState::kFired : abi::SignalState::kSilent;
    for (const auto& name : clause.names) {
      const bool found =
          !verdict.hypotheses.empty() &&
          std::any_of(verdict.hypotheses.begin(), verdict.hypotheses.begin() + 1,
                      [&](const abi::Hypothesis& h) {
                        return std::any_of(h.contributions.begin(), h.contributions.end(),
                                           [&](const abi::Contribution& c) {
                                             return ends_with_name(c.signal, name.text) &&
                                                    c.state == wanted;
                                           });
                      });
      if (!found) {
        fail(clause.span,
             fmt::format("{} must be {} evidence of the first hypothesis; the verdict is {}",
                         name.text, clause.what == "because" ? "fired" : "silent",
                         summary(verdict)));
      }
    }
  }

  /// Whether an `expect` or `allow` is about this firing: its signal, its place, its time.
  [[nodiscard]] bool covers(const ast::TestDecl::Expect& expect, const abi::Firing& f) const {
    if (expect.verdict || expect.negated || signal_named(expect.signal.text) != f.signal) {
      return false;
    }
    if (expect.target && !is_on(f, *expect.target)) return false;
    const int64_t at_ns = f.ts_ns - kTestEpochNs;
    if (expect.before && at_ns >= script_offset_ns(expect.before.get())) return false;
    const int64_t tolerance = expect.tolerance ? expect.tolerance->int_value : kExactNs;
    return !expect.at || std::abs(at_ns - script_offset_ns(expect.at.get())) <= tolerance;
  }

  void judge_strict() {
    for (const auto& f : observed_.firings) {
      if (f.change != abi::FiringChange::kStart) continue;
      const bool covered =
          std::any_of(test_.expects.begin(), test_.expects.end(),
                      [&](const auto& expect) { return covers(expect, f); });
      if (!covered) {
        outcome_.report +=
            fmt::format("{}: error: {} fired on {} and no `expect` or `allow` covers it\n",
                        outcome_.place, pack_.signals[f.signal].name, entity_text(pack_, f.entity));
      }
    }
  }

  const compiler::Compilation& compilation_;
  const abi::CompiledPack& pack_;
  const ast::Module& module_;
  const ast::TestDecl& test_;
  const Observed& observed_;
  TestOutcome& outcome_;
};

}  // namespace

std::string entity_text(const abi::CompiledPack& pack, const abi::EntityKey& entity) {
  std::string text;
  const auto& keys = pack.entity_kinds[entity.kind].keys;
  for (size_t i = 0; i < entity.count; ++i) {
    if (i > 0) text += "/";
    const bool integer = keys[i] == "gpu" || keys[i] == "link" || keys[i] == "rank";
    if (keys[i] == "gpu") {
      text += abi::gpu_to_text(static_cast<int64_t>(entity.values[i]));
    } else if (integer) {
      text += std::to_string(static_cast<int64_t>(entity.values[i]));
    } else {
      text += pack.symbols->name(static_cast<SymbolId>(entity.values[i]));
    }
  }
  return text;
}

void judge(const compiler::Compilation& compilation, const ast::Module& module,
           const ast::TestDecl& test, const Observed& observed, TestOutcome& outcome) {
  Judge(compilation, module, test, observed, outcome).run();
}

namespace {

// Why: enough to see what happened; a storm must not fill the screen.
constexpr size_t kLinesMax = 40;

/// Which firings are shown: all, or of a storm those of the suspects and then the earliest.
std::vector<bool> shown_firings(
    const Observed& observed,
    const std::vector<std::pair<abi::SignalId, std::string>>& suspects) {
  std::vector<bool> shown(observed.firings.size(), false);
  size_t left = kLinesMax;
  for (const bool of_suspect : {true, false}) {
    for (size_t i = 0; i < shown.size() && left > 0; ++i) {
      const bool suspect =
          std::any_of(suspects.begin(), suspects.end(),
                      [&](const auto& s) { return s.first == observed.firings[i].signal; });
      if (suspect != of_suspect) continue;
      shown[i] = true;
      --left;
    }
  }
  return shown;
}

}  // namespace

std::string timeline(const abi::CompiledPack& pack, const Observed& observed,
                     const std::vector<std::pair<abi::SignalId, std::string>>& suspects) {
  std::string text;
  const auto shown = shown_firings(observed, suspects);
  for (size_t i = 0; i < observed.firings.size(); ++i) {
    if (!shown[i]) continue;
    const auto& f = observed.firings[i];
    const char* change = f.change == abi::FiringChange::kStart ? "fires"
                         : f.change == abi::FiringChange::kEnd ? "ends"
                                                               : "is retracted";
    text += fmt::format("    {:>10}  {} {} on {}\n", to_text(Duration{f.ts_ns - kTestEpochNs}),
                        pack.signals[f.signal].name, change, entity_text(pack, f.entity));
  }
  if (observed.firings.size() > kLinesMax) {
    text += fmt::format("    ... {} more firings\n", observed.firings.size() - kLinesMax);
  }
  for (const auto& miss : observed.near_misses) {
    text +=
        fmt::format("    {:>10}  near miss: {} on {} after {} step(s)\n",
                    to_text(Duration{miss.ts_ns - kTestEpochNs}), pack.signals[miss.signal].name,
                    entity_text(pack, miss.entity), miss.steps_matched);
  }
  for (const auto& reject : observed.rejects) text += fmt::format("    rejected: {}\n", reject);
  if (observed.counters.unmatched_lines > 0) {
    text +=
        fmt::format("    {} log line(s) matched no decoder\n", observed.counters.unmatched_lines);
  }
  if (observed.unplaced > 0) {
    text += fmt::format("    {} trigger(s) on nodes without a job\n", observed.unplaced);
  }
  for (const auto& v : observed.verdicts) {
    if (!v.final_revision) continue;
    abi::Verdict shown_verdict = v;
    // Why: what a test is about is among the first; the rest only repeats it for other nodes.
    constexpr size_t kHypothesesShown = 3;
    if (shown_verdict.hypotheses.size() > kHypothesesShown) {
      shown_verdict.hypotheses.resize(kHypothesesShown);
    }
    text += explain::to_text(shown_verdict, false);
  }
  return text;
}

}  // namespace reflex::app

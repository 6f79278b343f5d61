// Expressions and plans as text without numbers of one compilation; see signature.h.
#include "compiler/migrate/signature.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/ir/semantics.h"

namespace reflex::migrate {
namespace {

using ir::Op;

constexpr abi::KindId kNoRecord = 0xffff;  // the expression reads no record

class Signer {
 public:
  Signer(const Side& side, Detail detail) : side_(side), exact_(detail == Detail::kExact) {}

  std::string signal(abi::SignalId id) {
    const abi::SignalPlan& s = side_.pack.signals[id];
    add("on " + entity_text(side_.pack, s.entity_kind));
    switch (s.shape) {
      case abi::SignalShape::kSequence:
        sequence(s.sequence);
        break;
      case abi::SignalShape::kCount:
        count(s.count);
        break;
      case abi::SignalShape::kCondition:
        condition(s.condition);
        break;
    }
    if (exact_) {
      number("holds", s.holds_ns);
      real("leak_per_hour", s.leak_per_hour);
      real("leak", s.leak_probability);
    }
    return std::move(out_);
  }

  std::string feature(abi::FeatureId id) {
    const abi::FeaturePlan& f = side_.pack.features[id];
    add("feature " + std::to_string(static_cast<int>(f.op)) + " on " +
        entity_text(side_.pack, f.entity_kind));
    for (const auto* list : {&f.inputs, &f.resets}) {
      add(list == &f.inputs ? "inputs" : "resets");
      for (const auto& in : *list) {
        leaf(in.leaf);
        expr(in.value, side_.pack.leaves[in.leaf].kind);
        key(in.key, side_.pack.leaves[in.leaf].kind);
      }
    }
    number("ring", f.last_n > 0 && f.window_ns == 0 ? 1 : 0);  // samples without their times
    number("counter", f.counter_input ? 1 : 0);
    if (exact_) {
      number("half_life", f.half_life_ns);
      number("window", f.window_ns);
      number("last_n", f.last_n);
      number("min", f.min_samples);
      real("quantile", f.quantile);
      real("slack", f.slack);
      number("stale", f.stale_after_ns);
      expr(f.target, kNoRecord);
    }
    return std::move(out_);
  }

  std::string binding(abi::ClassId id) {
    const abi::ClassPlan& c = side_.pack.classes[id];
    add(fmt::format("class {} parent {} abstract {} fallback {}", c.name,
                    side_.pack.classes[c.parent].name, c.abstract_class, c.fallback));
    expr(c.matches, kNoRecord);
    return std::move(out_);
  }

 private:
  void add(const std::string& text) { out_ += text + "\n"; }
  void number(const char* name, int64_t value) { add(fmt::format("{} {}", name, value)); }
  void real(const char* name, double value) { add(fmt::format("{} {}", name, value)); }

  /// By the names of the fields: a slot's number moves when the kind gets another field.
  void key(const abi::KeyPlan& plan, abi::KindId kind) {
    for (const auto& part : plan.parts) {
      const auto& fields = side_.pack.kinds[kind].fields;
      const bool named = part.from != abi::KeyPart::From::kExpr && part.slot < fields.size();
      add(fmt::format("key {} {} {}", static_cast<int>(part.from),
                      named ? fields[part.slot].name : "", part.label));
    }
  }

  void leaf(abi::LeafId id) {
    if (id == abi::kNone32) return;
    const abi::LeafPlan& plan = side_.pack.leaves[id];
    add("kind " + side_.pack.kinds[plan.kind].name);
    expr(plan.predicate, plan.kind);
  }

  void guards(const std::vector<abi::NoneGuard>& list) {
    for (const auto& g : list) {
      add("none");
      leaf(g.leaf);
      if (exact_) number("window", g.window_ns);
    }
  }

  void sequence(const abi::SequencePlan& q) {
    add("sequence keep " + std::to_string(static_cast<int>(q.keep)));
    for (const auto& step : q.steps) {
      add("step " + std::to_string(static_cast<int>(step.mode)));
      leaf(step.leaf);
      key(step.key, step.kind);
      expr(step.join, step.kind);
      if (exact_) number("tolerance", step.tolerance_ns + step.absent_ns);
    }
    for (const auto& u : q.unless) {
      add("unless " + std::to_string(u.after_step) + " " + std::to_string(u.before_step));
      leaf(u.leaf);
      expr(u.join, u.kind);
    }
    guards(q.guards);
    if (exact_) {
      number("within", q.within_ns);
      number("partials", q.partials_max);
    }
  }

  void count(const abi::CountPlan& c) {
    add("count " + std::to_string(static_cast<int>(c.mode)) + (c.exact_max > 0 ? " exact" : "") +
        (c.graded.on ? " graded" : ""));
    for (const auto& in : c.inputs) {
      leaf(in.leaf);
      key(in.key, in.kind);
      if (c.mode == abi::CountMode::kDistinct) {
        add("distinct " + side_.pack.kinds[in.kind].fields[in.distinct_slot].name);
      }
    }
    guards(c.guards);
    if (!exact_) return;
    number("window", c.window_ns);
    number("gap", c.gap_ns);
    number("op", static_cast<int>(c.op));
    expr(c.threshold, kNoRecord);
    real("threshold", c.threshold_constant);
    real("rearm", c.rearm);
    number("each", c.each ? 1 : 0);
    number("exact", c.exact_max);
    real("extra", c.graded.extra_mean);
    add("part " + c.part_key);
  }

  void condition(const abi::ConditionPlan& c) {
    // Its own state is since when it holds; what it reads is the state of features.
    add("condition");
    if (!exact_) return;
    expr(c.when, kNoRecord);
    expr(c.clear, kNoRecord);
    number("for", c.for_ns);
    number("keep", c.keep_ns);
    number("nodata", static_cast<int>(c.nodata));
    number("hold", c.nodata_hold_ns);
  }

  /// `kind`: of the record that is read, or kNoRecord.
  void expr(abi::ExprId id, abi::KindId kind) {
    if (id == abi::kNone32) return add("always");
    const ir::Function& f = side_.ir.functions[id];
    for (const ir::Inst& inst : f.insts) add(instruction(inst, kind));
  }

  std::string instruction(const ir::Inst& inst, abi::KindId kind) {
    const bool membership = inst.op == Op::kInSet || inst.op == Op::kInRange;
    std::string text = membership ? "in" : std::to_string(static_cast<int>(inst.op));
    text += ":" + std::to_string(static_cast<int>(inst.rep));
    for (unsigned i = 0; i < ir::operand_count(inst.op); ++i) {
      text += " %" + std::to_string(ir::operand(inst, i));
    }
    return text + payload(inst, kind);
  }

  std::string payload(const ir::Inst& inst, abi::KindId kind) {
    const abi::CompiledPack& pack = side_.pack;
    switch (inst.op) {
      case Op::kField:
        if (kind < pack.kinds.size() && inst.index < pack.kinds[kind].fields.size()) {
          return " ." + pack.kinds[kind].fields[inst.index].name;
        }
        return " .#" + std::to_string(inst.index);
      case Op::kFeature:
        return " " + named_feature(inst.index);
      case Op::kParam:
        return " profile." + pack.params[inst.index].name + (exact_ ? values_of(inst.index) : "");
      case Op::kTable:
        return inst.index < pack.adaptives.size() ? " profile." + pack.adaptives[inst.index].name
                                                  : " table";
      case Op::kPeers: {
        const auto& q = pack.peers[inst.index];
        std::string by;
        for (const abi::PeersKey& key : q.by) {
          by += key.feature != abi::kNone32
                    ? " by " + named_feature(key.feature)
                    : " by label " + std::string(pack.symbols->name(key.label));
        }
        return " peers " + q.scope + by + " " + std::to_string(static_cast<int>(q.stat)) + " " +
               std::to_string(q.at_least) + " " + named_feature(q.feature);
      }
      case Op::kNodeLabel:
        return " " + std::string(pack.symbols->name(inst.index));
      case Op::kCapture:
      case Op::kEntityKey:
        return " #" + std::to_string(inst.index);
      case Op::kArrayAt:
        return " " + std::to_string(inst.imm);
      default:
        return exact_ ? constant(inst) : std::string();
    }
  }

  /// What the profiles say: another value is another threshold.
  [[nodiscard]] std::string values_of(abi::ParamId param) const {
    std::string text;
    for (const abi::ClassPlan& c : side_.pack.classes) {
      if (param >= c.params.size() || c.params_known[param] == 0) continue;
      text += fmt::format(" {}={}", c.name, c.params[param]);
    }
    return text;
  }

  std::string constant(const ir::Inst& inst) const {
    const auto text = [&](const std::vector<std::string>& table) {
      return inst.index < table.size() ? " \"" + table[inst.index] + "\"" : std::string();
    };
    switch (inst.op) {
      case Op::kConstText:
      case Op::kTextEq:
        return text(side_.ir.texts);
      case Op::kTextLike:
      case Op::kSymbolLike:
        return text(side_.ir.globs);
      case Op::kTextMatches:
        return text(side_.ir.regexes);
      case Op::kInSet:
      case Op::kInRange: {
        std::string out = inst.op == Op::kInRange ? " range" : " set";
        for (const int64_t v : side_.ir.sets[inst.index].values) out += " " + std::to_string(v);
        return out;
      }
      default:
        return " " + std::to_string(inst.imm);
    }
  }

  /// A declared feature by its name; one that the compiler made by what it is.
  std::string named_feature(abi::FeatureId id) {
    const auto& f = side_.pack.features[id];
    if (!f.name.empty()) return f.name;
    std::string text = feature_signature(side_, id, exact_ ? Detail::kExact : Detail::kShape);
    std::replace(text.begin(), text.end(), '\n', '|');
    return "{" + text + "}";
  }

  const Side& side_;
  bool exact_;
  std::string out_;
};

}  // namespace

std::string signal_signature(const Side& side, abi::SignalId signal, Detail detail) {
  return Signer(side, detail).signal(signal);
}

std::string feature_signature(const Side& side, abi::FeatureId feature, Detail detail) {
  return Signer(side, detail).feature(feature);
}

std::string binding_signature(const Side& side, abi::ClassId hw_class) {
  return Signer(side, Detail::kExact).binding(hw_class);
}

std::string entity_text(const abi::CompiledPack& pack, abi::EntityKindId kind) {
  const auto& keys = pack.entity_kinds[kind].keys;
  std::string text;
  for (const auto& key : keys) text += (text.empty() ? "" : ", ") + key;
  return keys.size() == 1 ? text : "(" + text + ")";
}

void describe_states(abi::CompiledPack& pack, const ir::Module& ir,
                     const std::function<std::string(const std::string&)>& hash) {
  const Side side{pack, ir};
  for (abi::SignalId s = 0; s < pack.signals.size(); ++s) {
    abi::SignalPlan& plan = pack.signals[s];
    const abi::SequencePlan& sequence = plan.sequence;
    plan.state.keys = entity_text(pack, plan.entity_kind);
    plan.state.shape = hash(signal_signature(side, s, Detail::kShape));
    plan.state.exact = hash(signal_signature(side, s, Detail::kExact));
    switch (plan.shape) {
      case abi::SignalShape::kSequence:
        plan.state.form = "sequence of " + std::to_string(sequence.steps.size()) + " step(s)";
        plan.state.window_ns = sequence.within_ns;
        for (const auto& guard : sequence.guards) {
          plan.state.window_ns = std::max(plan.state.window_ns, guard.window_ns);
        }
        break;
      case abi::SignalShape::kCount:
        plan.state.form = "count";
        plan.state.window_ns = plan.count.window_ns;
        break;
      case abi::SignalShape::kCondition:
        plan.state.form = "condition";
        break;
    }
  }
  for (abi::FeatureId f = 0; f < pack.features.size(); ++f) {
    abi::FeaturePlan& plan = pack.features[f];
    plan.state.keys = entity_text(pack, plan.entity_kind);
    plan.state.form = "feature";
    plan.state.shape = hash(feature_signature(side, f, Detail::kShape));
    plan.state.exact = hash(feature_signature(side, f, Detail::kExact));
    plan.state.window_ns = plan.window_ns;
    plan.state.samples = plan.last_n;
  }
  for (abi::ClassId c = 0; c < pack.classes.size(); ++c) {
    pack.classes[c].binding = hash(binding_signature(side, c));
  }
}

}  // namespace reflex::migrate

// Leaves: (kind, predicate) pairs with their owners, index constraints and chunks.
//
// A top-level conjunct that pins an integer-like field to constant intervals becomes a constraint;
// what is left is the residual. Both together mean the same as the whole predicate: a record
// without the field is unknown, hence not true, hence not a match.
#include <algorithm>
#include <limits>

#include "compiler/ir/semantics.h"
#include "compiler/sema/phases.h"

namespace reflex::sema {

namespace {

using abi::IndexConstraint;
using Interval = IndexConstraint::Interval;
using ir::Op;
using ir::Rep;

constexpr int64_t kLow = std::numeric_limits<int64_t>::min();
constexpr int64_t kHigh = std::numeric_limits<int64_t>::max();

std::vector<Interval> normalized(std::vector<Interval> in) {
  std::erase_if(in, [](const Interval& i) { return i.lo > i.hi; });
  std::sort(in.begin(), in.end(), [](const Interval& a, const Interval& b) { return a.lo < b.lo; });
  std::vector<Interval> out;
  for (const Interval& i : in) {
    if (!out.empty() && (out.back().hi == kHigh || i.lo <= out.back().hi + 1)) {
      out.back().hi = std::max(out.back().hi, i.hi);
    } else {
      out.push_back(i);
    }
  }
  return out;
}

std::vector<Interval> complement(const std::vector<Interval>& in) {
  std::vector<Interval> out;
  int64_t from = kLow;
  bool open = true;
  for (const Interval& i : in) {
    if (i.lo > kLow) out.push_back({from, i.lo - 1});
    if (i.hi == kHigh) {
      open = false;
      break;
    }
    from = i.hi + 1;
  }
  if (open) out.push_back({from, kHigh});
  return normalized(out);
}

std::vector<Interval> intersect(const std::vector<Interval>& a, const std::vector<Interval>& b) {
  std::vector<Interval> out;
  for (const Interval& x : a) {
    for (const Interval& y : b) out.push_back({std::max(x.lo, y.lo), std::min(x.hi, y.hi)});
  }
  return normalized(out);
}

struct Constraint {
  uint16_t slot = 0;
  std::vector<Interval> intervals;
};

std::optional<Constraint> comparison_constraint(const Node& n) {
  const Node* field = n.args[0].get();
  const Node* value = n.args[1].get();
  Op op = n.op;
  if (field->op != Op::kField) {
    std::swap(field, value);
    op = mirrored(op);
  }
  if (field->op != Op::kField || field->rep != Rep::kI64 || value->op != Op::kConstI64) {
    return std::nullopt;
  }
  const int64_t c = value->imm;
  Constraint out;
  out.slot = static_cast<uint16_t>(field->index);
  switch (op) {
    case Op::kEq:
      out.intervals = {{c, c}};
      break;
    case Op::kNe:
      out.intervals = complement({{c, c}});
      break;
    case Op::kLt:
      if (c != kLow) out.intervals = {{kLow, c - 1}};
      break;
    case Op::kLe:
      out.intervals = {{kLow, c}};
      break;
    case Op::kGt:
      if (c != kHigh) out.intervals = {{c + 1, kHigh}};
      break;
    case Op::kGe:
      out.intervals = {{c, kHigh}};
      break;
    default:
      return std::nullopt;
  }
  return out;
}

std::optional<Constraint> constraint_of(const State& s, const NodePtr& n) {
  switch (n->op) {
    case Op::kField:
      if (n->rep != Rep::kBool) return std::nullopt;
      return Constraint{static_cast<uint16_t>(n->index), {{1, 1}}};
    case Op::kNot: {
      auto inner = constraint_of(s, n->args[0]);
      if (!inner) return std::nullopt;
      // Only for a bool field is "not 1" the same as "0".
      const bool flag = n->args[0]->op == Op::kField;
      inner->intervals = flag ? std::vector<Interval>{{0, 0}} : complement(inner->intervals);
      return inner;
    }
    case Op::kOr:
    case Op::kAnd: {
      auto a = constraint_of(s, n->args[0]);
      auto b = constraint_of(s, n->args[1]);
      if (!a || !b || a->slot != b->slot) return std::nullopt;
      if (n->op == Op::kAnd) {
        a->intervals = intersect(a->intervals, b->intervals);
      } else {
        a->intervals.insert(a->intervals.end(), b->intervals.begin(), b->intervals.end());
        a->intervals = normalized(a->intervals);
      }
      return a;
    }
    case Op::kInSet:
    case Op::kInRange: {
      const NodePtr& x = n->args[0];
      if (x->op != Op::kField || x->rep != Rep::kI64) return std::nullopt;
      const auto& values = s.ir.sets[n->index].values;
      Constraint out{static_cast<uint16_t>(x->index), {}};
      if (n->op == Op::kInRange) {
        out.intervals = {{values[0], values[1]}};
      } else {
        for (const int64_t v : values) out.intervals.push_back({v, v});
        out.intervals = normalized(out.intervals);
      }
      return out;
    }
    case Op::kEq:
    case Op::kNe:
    case Op::kLt:
    case Op::kLe:
    case Op::kGt:
    case Op::kGe:
      return comparison_constraint(*n);
    default:
      return std::nullopt;
  }
}

/// Warns when the constraint excludes, or never excludes, a value that the field can have.
void lint_constraint(State& s, uint32_t kind, const Constraint& c, Span span) {
  const KindInfo& info = s.kinds[kind];
  if (c.slot >= info.ranges.size()) return;
  const FieldRange& range = info.ranges[c.slot];
  const auto possible = intersect(c.intervals, {{range.lo, range.hi}});
  const std::string& field = info.schema.fields[c.slot].name;
  if (possible.empty()) {
    s.report(Id::kConstantPredicate, span, "no value of '" + field + "' can satisfy this");
    return;
  }
  const bool all = possible.size() == 1 && possible[0].lo == range.lo && possible[0].hi == range.hi;
  if (all && (range.lo != kLow || range.hi != kHigh)) {
    s.report(Id::kConstantPredicate, span, "every value of '" + field + "' satisfies this");
  }
}

void extract(State& s, uint32_t kind, const NodePtr& predicate, abi::LeafPlan& leaf,
             const std::string& name) {
  std::vector<NodePtr> parts;
  conjuncts(predicate, parts);
  std::vector<NodePtr> rest;
  for (const NodePtr& part : parts) {
    const auto c = constraint_of(s, part);
    if (!c) {
      rest.push_back(part);
      continue;
    }
    lint_constraint(s, kind, *c, part->span);
    auto same = std::find_if(leaf.constraints.begin(), leaf.constraints.end(),
                             [&](const IndexConstraint& other) { return other.slot == c->slot; });
    if (same == leaf.constraints.end()) {
      leaf.constraints.push_back({c->slot, c->intervals});
      continue;
    }
    same->intervals = intersect(same->intervals, c->intervals);
    if (same->intervals.empty()) {
      s.report(Id::kConstantPredicate, predicate->span,
               "no value of '" + s.kinds[kind].schema.fields[c->slot].name +
                   "' can satisfy both conditions");
    }
  }
  if (const NodePtr residual = conjunction(rest)) {
    leaf.residual =
        rest.size() == parts.size() ? leaf.predicate : emit(s, residual, name + ".residual");
  }
}

}  // namespace

abi::LeafId intern_leaf(State& s, uint32_t kind, const NodePtr& predicate, abi::EntityKindId entity,
                        const std::string& name, Span) {
  abi::LeafPlan leaf;
  leaf.kind = s.kinds[kind].id;
  NodePtr p = predicate;
  // Always true: the runtime needs no predicate at all.
  if (p && constant_bool(p) == true) p = nullptr;
  if (p) {
    leaf.predicate = emit(s, p, name);
    leaf.features = features_of(s, leaf.predicate);
    if (!leaf.features.empty()) leaf.entity_kind = entity;
    leaf.needs_captures = s.pack.exprs[leaf.predicate].reads_captures;
  }
  const std::string key = std::to_string(leaf.kind) + "/" + std::to_string(leaf.predicate) + "/" +
                          std::to_string(leaf.entity_kind);
  const auto [it, added] = s.leaf_ids.emplace(key, static_cast<abi::LeafId>(s.pack.leaves.size()));
  if (!added) return it->second;
  if (p) extract(s, kind, p, leaf, name);
  s.pack.leaves.push_back(std::move(leaf));
  return it->second;
}

void add_owner(State& s, abi::LeafId leaf, abi::OwnerKind kind, uint32_t owner, uint32_t sub) {
  s.pack.leaves[leaf].owners.push_back({kind, owner, static_cast<uint16_t>(sub)});
}

/// Groups unconstrained predicates into chunks; see abi::Chunk.
void finish_leaves(State& s) {
  // Why 64: hits of a chunk fit a machine word; toolchain.md measured it as the fastest size.
  constexpr size_t kChunkMax = 64;
  std::map<std::pair<uint32_t, uint32_t>, std::vector<abi::LeafId>> groups;
  for (abi::LeafId i = 0; i < s.pack.leaves.size(); ++i) {
    const abi::LeafPlan& leaf = s.pack.leaves[i];
    if (leaf.predicate == kNone32 || !leaf.constraints.empty() || leaf.needs_captures) continue;
    const uint32_t entity = leaf.features.empty() ? kNone32 : leaf.entity_kind;
    groups[{leaf.kind, entity}].push_back(i);
  }
  for (const auto& [key, leaves] : groups) {
    for (size_t from = 0; from < leaves.size(); from += kChunkMax) {
      abi::Chunk chunk;
      chunk.kind = static_cast<abi::KindId>(key.first);
      const size_t to = std::min(leaves.size(), from + kChunkMax);
      for (size_t i = from; i < to; ++i) {
        chunk.leaves.push_back(leaves[i]);
        const auto& features = s.pack.leaves[leaves[i]].features;
        chunk.features.insert(chunk.features.end(), features.begin(), features.end());
      }
      std::sort(chunk.features.begin(), chunk.features.end());
      chunk.features.erase(std::unique(chunk.features.begin(), chunk.features.end()),
                           chunk.features.end());
      s.pack.chunks.push_back(std::move(chunk));
    }
  }
}

}  // namespace reflex::sema

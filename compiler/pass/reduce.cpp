// Sharing of equal instructions and removal of dead ones. Linear apart from the look-up.
#include <map>
#include <tuple>

#include "compiler/ir/semantics.h"
#include "compiler/pass/pipeline.h"

namespace reflex::pass {
namespace {

using ir::Inst;
using ir::ValueId;

/// Rewrites the operands of `inst` through `place`; unused operands become kNoValue.
Inst renumbered(const Inst& old, const std::vector<ValueId>& place) {
  Inst inst = old;
  const unsigned count = ir::operand_count(inst.op);
  inst.a = count > 0 ? place[old.a] : ir::kNoValue;
  inst.b = count > 1 ? place[old.b] : ir::kNoValue;
  inst.c = count > 2 ? place[old.c] : ir::kNoValue;
  return inst;
}

}  // namespace

ir::Function share(const ir::Module&, const ir::Function& function) {
  using Key = std::tuple<ir::Op, ir::Rep, ValueId, ValueId, ValueId, uint32_t, int64_t>;
  ir::Function out{function.name, {}, function.type};
  std::vector<ValueId> place;
  std::map<Key, ValueId> seen;
  for (const Inst& old : function.insts) {
    const Inst inst = renumbered(old, place);
    const Key key{inst.op, inst.rep, inst.a, inst.b, inst.c, inst.index, inst.imm};
    const auto [it, fresh] = seen.try_emplace(key, static_cast<ValueId>(out.insts.size()));
    if (fresh) out.insts.push_back(inst);
    place.push_back(it->second);
  }
  if (!place.empty()) out.insts.resize(place.back() + 1);
  return out;
}

ir::Function prune(const ir::Module&, const ir::Function& function) {
  if (function.insts.empty()) return function;
  std::vector<bool> needed(function.insts.size());
  needed.back() = true;
  for (size_t i = function.insts.size(); i-- > 0;) {
    if (!needed[i]) continue;
    const Inst& inst = function.insts[i];
    for (unsigned k = 0; k < ir::operand_count(inst.op); ++k) needed[ir::operand(inst, k)] = true;
  }
  ir::Function out{function.name, {}, function.type};
  std::vector<ValueId> place(function.insts.size(), ir::kNoValue);
  for (size_t i = 0; i < function.insts.size(); ++i) {
    if (!needed[i]) continue;
    place[i] = static_cast<ValueId>(out.insts.size());
    out.insts.push_back(renumbered(function.insts[i], place));
  }
  return out;
}

}  // namespace reflex::pass

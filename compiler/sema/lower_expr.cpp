// Typed tree -> flat IR function, interned: equal expressions share one ExprId.
#include <algorithm>

#include "compiler/sema/phases.h"

namespace reflex::sema {

namespace {

struct Emitter {
  State& s;
  std::vector<ir::Inst> insts;
  std::unordered_map<const Node*, ir::ValueId> done;

  ir::ValueId emit(const NodePtr& node);
  ir::ValueId push(const ir::Inst& inst);
};

ir::ValueId Emitter::push(const ir::Inst& inst) {
  // Why linear: a predicate has a few dozen instructions; equal ones are nearly always close.
  const size_t window = 64;
  const size_t from = insts.size() > window ? insts.size() - window : 0;
  for (size_t i = insts.size(); i > from; --i) {
    if (insts[i - 1] == inst) return static_cast<ir::ValueId>(i - 1);
  }
  insts.push_back(inst);
  return static_cast<ir::ValueId>(insts.size() - 1);
}

ir::ValueId Emitter::emit(const NodePtr& node) {
  const auto found = done.find(node.get());
  if (found != done.end()) return found->second;
  ir::Inst inst{node->op, node->rep};
  inst.index = node->index;
  inst.imm = node->imm;
  if (node->mean) {
    inst.index = intern_feature(s, *node->mean, node->type);
  }
  ir::ValueId* operands[3] = {&inst.a, &inst.b, &inst.c};
  for (size_t i = 0; i < node->args.size() && i < 3; ++i) *operands[i] = emit(node->args[i]);
  const ir::ValueId value = push(inst);
  done.emplace(node.get(), value);
  return value;
}

std::string content_key(const std::vector<ir::Inst>& insts, const abi::Type& type) {
  std::string key;
  key.reserve(insts.size() * 32);
  auto put = [&key](uint64_t v) {
    for (int i = 0; i < 8; ++i) key += static_cast<char>((v >> (8 * i)) & 0xff);
  };
  for (const ir::Inst& i : insts) {
    put(static_cast<uint64_t>(i.op) << 8 | static_cast<uint64_t>(i.rep));
    put(static_cast<uint64_t>(i.a) << 32 | i.b);
    put(static_cast<uint64_t>(i.c) << 32 | i.index);
    put(static_cast<uint64_t>(i.imm));
  }
  put(static_cast<uint64_t>(type.scalar) << 16 | static_cast<uint64_t>(type.unit) << 8 |
      static_cast<uint64_t>(type.per_time));
  put(static_cast<uint64_t>(type.entity) << 16 | type.enum_id);
  return key;
}

abi::ExprInfo info_of(const std::vector<ir::Inst>& insts, const abi::Type& type) {
  using ir::Op;
  abi::ExprInfo info;
  info.type = type;
  for (const ir::Inst& i : insts) {
    switch (i.op) {
      case Op::kField:
      case Op::kTimestamp:
      case Op::kRepeats:
        info.reads_record = true;
        break;
      case Op::kCapture:
        info.reads_captures = true;
        break;
      case Op::kParam:
      case Op::kTable:  // the row of the entity's node, or of its class
        info.reads_class = true;
        break;
      case Op::kPeers:
        info.reads_peers = true;
        break;
      case Op::kFeature:
        info.features.push_back(i.index);
        break;
      default:
        break;
    }
  }
  std::sort(info.features.begin(), info.features.end());
  info.features.erase(std::unique(info.features.begin(), info.features.end()), info.features.end());
  return info;
}

}  // namespace

abi::ExprId emit(State& s, const NodePtr& node, const std::string& name) {
  Emitter e{s, {}, {}};
  const ir::ValueId last = e.emit(node);
  // The result is the last instruction; sharing may have put it earlier.
  e.insts.resize(last + 1);
  const auto [it, added] = s.expr_ids.emplace(content_key(e.insts, node->type),
                                              static_cast<abi::ExprId>(s.ir.functions.size()));
  if (added) {
    s.pack.exprs.push_back(info_of(e.insts, node->type));
    s.ir.functions.push_back({name, std::move(e.insts), node->type});
  }
  return it->second;
}

std::vector<abi::FeatureId> features_of(const State& s, abi::ExprId expr) {
  return expr == kNone32 ? std::vector<abi::FeatureId>{} : s.pack.exprs[expr].features;
}

}  // namespace reflex::sema

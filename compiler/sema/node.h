// Node: the typed tree between the syntax tree and the flat IR.
//
// A checked expression is a tree of nodes that mirror ir::Inst one to one, so that conjuncts can
// be split, constraints extracted and constants folded before anything is emitted. Nodes are
// immutable and shared. A poisoned node has type kError; it silences follow-up diagnostics.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compiler/ir/ir.h"
#include "compiler/source/source_map.h"
#include "runtime/abi/plan.h"
#include "runtime/abi/types.h"

namespace reflex::sema {

struct Node;
using NodePtr = std::shared_ptr<const Node>;

struct Node {
  ir::Op op = ir::Op::kUnknown;
  ir::Rep rep = ir::Rep::kI64;
  abi::Type type;  // kError: poisoned
  uint32_t index = 0;
  int64_t imm = 0;
  std::vector<NodePtr> args;
  source::Span span;
  bool literal = false;  // a written number; it takes the unit of what it meets
  bool bare = false;     // a literal written without a unit
  /// A `mean(...)` that is not made yet: compared with, it becomes sum and count (no division).
  std::shared_ptr<const abi::FeaturePlan> mean;
  /// Of a comparison that was rewritten: its sides as they were written, for explanations.
  NodePtr written_left;
  NodePtr written_right;
};

inline bool is_error(const NodePtr& n) { return n->type.scalar == abi::Scalar::kError; }
ir::Rep rep_of(const abi::Type& type);

abi::Type bool_type();
abi::Type int_type();
abi::Type real_type();
abi::Type duration_type();
abi::Type quantity_type(abi::Unit unit, bool per_time = false);

NodePtr poison(source::Span span);
NodePtr const_bool(bool value, source::Span span);
NodePtr const_i64(int64_t value, const abi::Type& type, source::Span span);
NodePtr const_f64(double value, const abi::Type& type, source::Span span);
NodePtr load(ir::Op op, uint32_t index, const abi::Type& type, source::Span span);
/// Makes a node and folds it when its operands are constants.
NodePtr make(ir::Op op, const abi::Type& type, std::vector<NodePtr> args, source::Span span,
             uint32_t index = 0, int64_t imm = 0);
/// The same value with another type (units only).
NodePtr retype(const NodePtr& node, const abi::Type& type);
/// As f64 / as i64 duration; poison stays poison.
NodePtr to_f64(const NodePtr& node);
NodePtr to_i64(const NodePtr& node, const abi::Type& type);

[[nodiscard]] bool is_constant(const NodePtr& node);
std::optional<double> constant_f64(const NodePtr& node);
std::optional<int64_t> constant_i64(const NodePtr& node);
std::optional<bool> constant_bool(const NodePtr& node);
double bits_to_f64(int64_t bits);
int64_t f64_to_bits(double value);

/// Whether any node below has this operation.
bool reads(const NodePtr& node, ir::Op op);
/// The top-level conjuncts, left to right.
void conjuncts(const NodePtr& node, std::vector<NodePtr>& out);
/// Conjunction of `parts`; null when there are none.
NodePtr conjunction(const std::vector<NodePtr>& parts);
size_t node_count(const NodePtr& node, size_t limit);

}  // namespace reflex::sema

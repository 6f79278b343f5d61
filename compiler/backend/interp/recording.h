// Recording: the interpreter that also tells what each sub-expression was (`explain --why-not`).
//
// Contract: the same IR and the same answers as make_interp. For the expressions in `watched`, and
// when the recorder wants it, the value of every instruction is handed over after the evaluation.
// How: each watched function is also compiled as all of its prefixes, and a prefix ends in the
// value of its last instruction: no second evaluator that could disagree with the reference.
// Cost: O(n^2) for a watched expression of n instructions that the recorder wants; none else.
// Threads: the recorder is called on the thread that evaluates; run with one thread.
#pragma once

#include <span>
#include <vector>

#include "compiler/backend/backend.h"

namespace reflex::backend {

class Recorder {
 public:
  virtual ~Recorder() = default;
  /// Whether this evaluation is worth recording.
  virtual bool wants(abi::ExprId expr, const abi::Record* record,
                     const abi::EvalContext* context) = 0;
  /// `values[i]` is that of instruction i; texts and arrays point into the record.
  virtual void evaluated(abi::ExprId expr, const abi::Record* record,
                         const abi::EvalContext* context, std::span<const abi::Value> values) = 0;
};

/// `recorder` outlives the set.
Result<std::shared_ptr<const abi::EvaluatorSet>> make_recording(
    const CodegenInput& input, const std::vector<abi::ExprId>& watched, Recorder& recorder);

}  // namespace reflex::backend

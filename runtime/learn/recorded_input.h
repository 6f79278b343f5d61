// RecordedInput: what attribution knew of one incident, kept so that it can be weighed again.
//
// A copy of attribution::Input with the answers of `observed` written down; the ids of events
// behind evidence are left out (nothing is computed from them). Its tables must be copies already
// (EngineSinks::final_input gives such). Bound: a few hundred kilobytes for a job of 64 nodes.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "runtime/attribution/attribution.h"
#include "runtime/attribution/past.h"
#include "runtime/learn/labels.h"

namespace reflex::learn {

class RecordedInput {
 public:
  RecordedInput(const abi::CompiledPack& pack, const attribution::Input& input, Label label);
  RecordedInput(const RecordedInput&) = delete;
  RecordedInput& operator=(const RecordedInput&) = delete;

  [[nodiscard]] const Label& label() const { return label_; }
  [[nodiscard]] const attribution::Input& input() const { return input_; }
  /// The hazards once more, under another law.
  void set_history(const abi::HistoryLaw& law) { attribution::apply_history(input_, law); }
  /// Valid while this object and `model` live (null: the authors' numbers). No counterfactual.
  [[nodiscard]] attribution::Input with(const abi::Model* model) const;

 private:
  static bool observed(const void* state, abi::SignalId signal, SymbolId node);

  Label label_;
  attribution::Input input_;
  std::vector<SymbolId> nodes_;  // sorted
  size_t signals_;
  std::vector<bool> observed_;  // [node * signals + signal]
};

using RecordedInputs = std::vector<std::unique_ptr<RecordedInput>>;

/// Calls `work(i)` for each i below `count` on `threads` threads, in no order.
void for_each_parallel(size_t count, unsigned threads, const std::function<void(size_t)>& work);

}  // namespace reflex::learn

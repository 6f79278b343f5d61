// Keeping incidents for a second look; see recorded_input.h.
#include "runtime/learn/recorded_input.h"

#include <algorithm>
#include <atomic>
#include <thread>

namespace reflex::learn {

RecordedInput::RecordedInput(const abi::CompiledPack& pack, const attribution::Input& input,
                             Label label)
    : label_(std::move(label)), input_(input), signals_(pack.signals.size()) {
  for (auto& evidence : input_.evidence) {
    for (auto& episode : evidence.episodes) {
      episode.events.clear();
      episode.events.shrink_to_fit();
    }
  }
  for (const auto& view : input_.nodes) nodes_.push_back(view.node);
  std::sort(nodes_.begin(), nodes_.end());  // only for the search below; nothing shows this order
  observed_.resize(nodes_.size() * signals_);
  for (size_t n = 0; n < nodes_.size(); ++n) {
    for (size_t s = 0; s < signals_; ++s) {
      observed_[n * signals_ + s] =
          input.observed(input.observed_state, static_cast<abi::SignalId>(s), nodes_[n]);
    }
  }
  input_.observed = observed;
  input_.observed_state = this;
  input_.counterfactual = false;
}

bool RecordedInput::observed(const void* state, abi::SignalId signal, SymbolId node) {
  const auto& self = *static_cast<const RecordedInput*>(state);
  const auto it = std::lower_bound(self.nodes_.begin(), self.nodes_.end(), node);
  if (it == self.nodes_.end() || *it != node) return true;
  return self.observed_[static_cast<size_t>(it - self.nodes_.begin()) * self.signals_ + signal];
}

attribution::Input RecordedInput::with(const abi::Model* model) const {
  attribution::Input input = input_;
  input.model = model;
  return input;
}

void for_each_parallel(size_t count, unsigned threads, const std::function<void(size_t)>& work) {
  std::atomic<size_t> next{0};
  const auto run = [&] {
    for (size_t i = next++; i < count; i = next++) work(i);
  };
  std::vector<std::thread> others;
  for (unsigned t = 1; t < threads; ++t) others.emplace_back(run);
  run();
  for (auto& thread : others) thread.join();
}

}  // namespace reflex::learn

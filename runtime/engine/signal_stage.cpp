// Signals of this process: see signal_stage.h.
#include "runtime/engine/signal_stage.h"

namespace reflex::engine {

void LocalSignals::sample(std::span<const abi::FeatureId> features, int64_t at_ns,
                          std::vector<FeatureSample>& out) {
  engine_.sample_features(
      features, at_ns,
      [&](abi::FeatureId feature, const abi::EntityKey& entity, abi::ClassId hw_class, double x) {
        if (pack_->entity_kinds[entity.kind].keys.front() != "node") return;
        out.push_back({feature, static_cast<SymbolId>(entity.values[0]), hw_class, x});
      });
}

}  // namespace reflex::engine

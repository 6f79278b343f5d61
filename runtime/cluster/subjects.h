// Names of the broker's subjects for a pack set.
#pragma once

#include <fmt/format.h>

#include <string>

#include "runtime/abi/compiled_pack.h"

namespace reflex::cluster {

/// What comes in live. Not of a pack set: others publish there.
inline std::string ingest_subject(const std::string& stream) { return stream + ".ingest"; }

class Subjects {
 public:
  // Why 16: as in the names of a set elsewhere; subjects are written in dashboards.
  // The number of partitions stands in the name: workers of another count would own nodes twice.
  Subjects(const std::string& stream, const abi::CompiledPack& pack, uint32_t partitions)
      : prefix_(fmt::format("{}.{}.of{}", stream, pack.set_sha256.substr(0, 16), partitions)) {}
  [[nodiscard]] std::string events(uint32_t partition) const {
    return fmt::format("{}.events.{}", prefix_, partition);
  }
  [[nodiscard]] std::string signals(uint32_t partition) const {
    return fmt::format("{}.signals.{}", prefix_, partition);
  }
  [[nodiscard]] std::string verdicts(uint32_t worker) const {
    return fmt::format("{}.{}", all_verdicts(), worker);
  }
  [[nodiscard]] std::string all_events() const { return prefix_ + ".events"; }
  [[nodiscard]] std::string all_verdicts() const { return prefix_ + ".verdicts"; }
  /// Values: the state of a unit, and that it has ended.
  [[nodiscard]] std::string state(const std::string& role, uint32_t unit) const {
    return fmt::format("{}.state.{}.{}", prefix_, role, unit);
  }
  [[nodiscard]] std::string ended(const std::string& role, uint32_t unit) const {
    return fmt::format("{}.ended.{}.{}", prefix_, role, unit);
  }
  [[nodiscard]] std::string limits() const { return prefix_ + ".limits"; }
  [[nodiscard]] std::string outcomes() const { return prefix_ + ".outcomes"; }

 private:
  std::string prefix_;
};

}  // namespace reflex::cluster

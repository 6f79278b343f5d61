// Elsewhere: incidents that other processes weigh, when attribution is spread by job.
//
// Contract: every process opens and closes all incidents at the same event times; only the owner
// of a job weighs its incidents. What a final verdict says of nodes (history, contamination) goes
// to all: outcome() blocks until the owner has told it. Processes wait for each other only in the
// order of (time, opening), which is the same in all of them, so they cannot wait in a ring.
#pragma once

#include <string>
#include <string_view>

#include "runtime/engine/adaptation.h"

namespace reflex::engine {

class Elsewhere {
 public:
  virtual ~Elsewhere() = default;
  /// Whether another process weighs the incidents of a job.
  [[nodiscard]] virtual bool is_elsewhere(std::string_view job) const = 0;
  /// The outcome of an incident of another process. Blocks.
  virtual Adaptation::Outcome outcome(const std::string& incident_key) = 0;
  /// The outcome of an incident of this process.
  virtual void tell(const std::string& incident_key, const Adaptation::Outcome& outcome) = 0;
};

}  // namespace reflex::engine

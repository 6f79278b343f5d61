// Expectations of a test block, held against what the engine did.
#pragma once

#include <string>
#include <vector>

#include "compiler/driver/compile.h"
#include "runtime/abi/firing.h"
#include "runtime/abi/verdict.h"
#include "runtime/app/test_runner.h"
#include "runtime/eval/signal_engine.h"
#include "runtime/stream/ndjson_decoder.h"

namespace reflex::app {

/// Everything that one run of a script brought about.
struct Observed {
  std::vector<abi::Firing> firings;    // merged order
  std::vector<abi::Verdict> verdicts;  // every revision
  std::vector<eval::NearMiss> near_misses;
  std::vector<std::string> rejects;
  stream::IngestCounters counters;
  size_t late = 0;
  size_t unplaced = 0;
};

/// "n3/5", "n3/mlx5_0", "j1": an entity as tests and explanations write it.
std::string entity_text(const abi::CompiledPack& pack, const abi::EntityKey& entity);

/// Adds a line to `outcome.report` for each expectation that does not hold.
void judge(const compiler::Compilation& compilation, const ast::Module& module,
           const ast::TestDecl& test, const Observed& observed, TestOutcome& outcome);

/// Firings, near misses, rejects and final verdicts, for the report of a failure. Of very many
/// firings those of the suspects come before others.
std::string timeline(const abi::CompiledPack& pack, const Observed& observed,
                     const std::vector<std::pair<abi::SignalId, std::string>>& suspects);

}  // namespace reflex::app

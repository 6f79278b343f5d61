// Measurements on the throughput workload with the library, as the oracle test and the replay
// benchmark use them. Nothing here prints; nothing here knows about other engines.
//
// Time: wall and user CPU of this process, compile time kept apart. Errors come back as Result.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "compiler/driver/compile.h"
#include "runtime/abi/compiled_pack.h"
#include "runtime/base/result.h"

namespace reflex::bench {

struct Compiled {
  std::shared_ptr<const abi::CompiledPack> pack;
  double parse_ms = 0, check_ms = 0, lower_ms = 0, codegen_ms = 0, total_ms = 0;
};
/// Compiles .rfx text; the first diagnostics are the error's message.
Result<Compiled> compile_pack(const std::string& text, compiler::Backend backend);

/// What one run of a rule set gave. `results` and `nodes` are by rule id (signal "r<ID>").
struct RunResult {
  std::vector<uint64_t> results;
  std::vector<uint64_t> nodes;
  uint64_t events = 0;
  uint64_t evaluations = 0;
  uint64_t late = 0;
  uint64_t rejected = 0;
  double wall_s = 0;
  double user_s = 0;
};

/// Reader, decoder, reorder, engine in count-only mode: what `reflex run` does with a file.
Result<RunResult> run_whole(const std::shared_ptr<const abi::CompiledPack>& pack,
                            const std::string& path, unsigned threads);
/// The same with every firing materialised and handed to a sink.
Result<RunResult> run_materialised(const std::shared_ptr<const abi::CompiledPack>& pack,
                                   const std::string& path, unsigned threads);
/// Reorder and evaluation only: all events are decoded before the clock starts.
Result<RunResult> run_evaluation(const std::shared_ptr<const abi::CompiledPack>& pack,
                                 const std::string& path, unsigned threads);
/// Reading and decoding only.
Result<RunResult> run_decoding(const std::shared_ptr<const abi::CompiledPack>& pack,
                               const std::string& path);

/// About so many bytes of dmesg; one line in 500 is one that a decoder reads.
Status write_kernel_log(const std::string& path, size_t bytes);
/// Reading and decoding only, of raw text of one node.
Result<RunResult> run_log_decoding(const std::shared_ptr<const abi::CompiledPack>& pack,
                                   const std::string& path);

struct StateSize {
  uint64_t keys = 0;
  uint64_t state_bytes = 0;  // as the engine accounts for it
  uint64_t heap_bytes = 0;   // growth of the heap
  uint64_t saved_bytes = 0;  // SignalEngine::save
  double save_ms = 0;        // CPU
  double load_ms = 0;
};
/// `key_count` nodes with 20 events each, spread over all kinds.
Result<StateSize> measure_state(const std::shared_ptr<const abi::CompiledPack>& pack,
                                uint32_t key_count);

/// Milliseconds from source text to the first evaluated event.
Result<double> measure_first_event_ms(uint32_t rule_count, compiler::Backend backend,
                                      Compiled& phases);

struct DiagnosisTimes {
  double median_ms = 0;  // of a first verdict, as an open incident gets it
  double worst_ms = 0;
  double final_median_ms = 0;  // of a final one: with its counterfactual
  std::string answer;          // of the verdict, so that a wrong one is seen
};
/// One verdict on a job of `node_count` nodes: a culprit, all its peers shouting, some noise.
Result<DiagnosisTimes> measure_diagnosis(uint32_t node_count, uint32_t repeats);

double wall_seconds();
double user_seconds();

}  // namespace reflex::bench

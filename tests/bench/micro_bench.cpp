// google-benchmark of single parts: decoding a line, compiling a rule, one verdict.
#include <benchmark/benchmark.h>

#include "runtime/stream/ndjson_decoder.h"
#include "tests/bench/replay_measure.h"
#include "tests/bench/workload_rules.h"

namespace {

using namespace reflex;
using namespace reflex::bench;

void compile_rules(benchmark::State& state, compiler::Backend backend) {
  const std::string text = to_rfx(make_rules(static_cast<uint32_t>(state.range(0))));
  for (auto _ : state) {
    auto compiled = compile_pack(text, backend);
    if (!compiled.ok()) {
      state.SkipWithError(compiled.error().message.c_str());
      return;
    }
    benchmark::DoNotOptimize(compiled.value().pack.get());
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
void compile_jit(benchmark::State& state) { compile_rules(state, compiler::Backend::kJit); }
void compile_interp(benchmark::State& state) { compile_rules(state, compiler::Backend::kInterp); }

void decode_line(benchmark::State& state) {
  auto compiled = compile_pack(to_rfx(make_rules(100)), compiler::Backend::kInterp);
  if (!compiled.ok()) {
    state.SkipWithError(compiled.error().message.c_str());
    return;
  }
  const auto& pack = compiled.value().pack;
  std::string text;
  for (int i = 0; i < 1000; ++i) {
    text += R"({"ts":17600000)" + std::to_string(10000 + i) + R"(,"node":"node-0)" +
            std::to_string(1000 + i) +
            R"(","job":"job-012","gpu":3,"kind":"gpu.temp","code":12,"value":61.25,)"
            R"("severity":1,"msg":"gpu.temp: sample taken by the node agent"})"
            "\n";
  }
  const size_t size = text.size();
  text.append(64, ' ');
  stream::NdjsonDecoder decoder(pack);
  const SymbolId source = pack->symbols->intern("s");
  for (auto _ : state) {
    stream::RecordBatch batch;
    decoder.decode(std::string_view(text).substr(0, size), source, 1, batch);
    benchmark::DoNotOptimize(batch.records.data());
  }
  state.SetItemsProcessed(state.iterations() * 1000);
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(size));
}

void verdict(benchmark::State& state) {
  for (auto _ : state) {
    auto times = measure_diagnosis(static_cast<uint32_t>(state.range(0)), 5);
    if (!times.ok()) {
      state.SkipWithError(times.error().message.c_str());
      return;
    }
    state.SetIterationTime(times.value().median_ms / 1e3);
  }
}

BENCHMARK(compile_jit)->Arg(10)->Arg(100)->Unit(benchmark::kMillisecond);
BENCHMARK(compile_interp)->Arg(10)->Arg(100)->Unit(benchmark::kMillisecond);
BENCHMARK(decode_line);
BENCHMARK(verdict)->Arg(8)->Arg(1000)->Arg(10000)->UseManualTime()->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();

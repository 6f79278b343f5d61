// Measurements of throughput and state: reader, decoder, reorder, signal engine.
#include "tests/bench/replay_measure.h"

#include <malloc.h>
#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <set>
#include <utility>

#include "runtime/engine/engine.h"
#include "runtime/engine/pipeline.h"
#include "runtime/eval/signal_engine.h"
#include "runtime/stream/line_source.h"
#include "runtime/stream/ndjson_decoder.h"
#include "runtime/stream/reorder.h"
#include "runtime/topology/topology.h"
#include "tests/bench/workload_rules.h"

namespace reflex::bench {

namespace {

constexpr std::string_view kSignalPrefix = "bench.workload.r";

/// Rule id of each signal; signals of other names are an error of this program.
std::vector<uint32_t> rule_ids(const abi::CompiledPack& pack) {
  std::vector<uint32_t> ids;
  for (const abi::SignalPlan& signal : pack.signals) {
    RFX_CHECK(signal.name.starts_with(kSignalPrefix));
    ids.push_back(static_cast<uint32_t>(std::stoul(signal.name.substr(kSignalPrefix.size()))));
  }
  return ids;
}

void fill_counts(const abi::CompiledPack& pack, const std::vector<uint64_t>& results,
                 const std::vector<uint64_t>& nodes, RunResult& out) {
  const std::vector<uint32_t> ids = rule_ids(pack);
  out.results.assign(ids.size(), 0);
  out.nodes.assign(ids.size(), 0);
  for (size_t signal = 0; signal < ids.size(); ++signal) {
    out.results[ids[signal]] = results[signal];
    out.nodes[ids[signal]] = nodes[signal];
  }
}

class Stopwatch {
 public:
  void stop(RunResult& out) const {
    out.wall_s = wall_seconds() - wall_;
    out.user_s = user_seconds() - user_;
  }

 private:
  double wall_ = wall_seconds();
  double user_ = user_seconds();
};

Result<RunResult> run_engine(const std::shared_ptr<const abi::CompiledPack>& pack,
                             const std::string& path, unsigned threads, bool materialise) {
  std::vector<uint64_t> results(pack->signals.size(), 0);
  std::vector<std::set<uint64_t>> nodes(materialise ? pack->signals.size() : 0);
  engine::EngineSinks sinks;
  sinks.verdict = [](abi::Verdict&&) {};
  if (materialise) {
    sinks.firing = [&](const abi::Firing& firing) {
      ++results[firing.signal];
      nodes[firing.signal].insert(firing.entity.values[0]);
    };
  }
  engine::EngineOptions engine_options;
  engine_options.threads = threads;
  auto made = engine::Engine::create(pack, engine_options, std::move(sinks));
  if (!made.ok()) return made.error();
  engine::Engine& engine = *made.value();
  engine.signals().set_count_only(!materialise);

  engine::PipelineOptions options;
  options.events = {path};
  options.threads = threads;
  options.complete_input = true;  // the workload counts absences up to the end of its 600 s
  RunResult out;
  const Stopwatch watch;
  auto summary = engine::run_pipeline(pack, engine, options, {});
  watch.stop(out);
  if (!summary.ok()) return summary.error();
  const auto& counters = summary.value().counters;
  out.events = summary.value().events_evaluated;
  out.late = counters.rejected[static_cast<size_t>(stream::Reject::kLate)];
  out.rejected = counters.rejected_total();
  out.evaluations = engine.counters().evaluations;
  std::vector<uint64_t> entities(pack->signals.size(), 0);
  if (materialise) {
    for (size_t i = 0; i < entities.size(); ++i) entities[i] = nodes[i].size();
  } else {
    results = engine.signals().firings_by_signal();
    entities = engine.signals().entities_by_signal();
  }
  fill_counts(*pack, results, entities, out);
  return out;
}

constexpr size_t kChunkBytes = 1u << 20;

/// Decodes a whole file, a batch for each chunk.
Result<std::vector<stream::RecordBatch>> decode_file(
    const std::shared_ptr<const abi::CompiledPack>& pack, const std::string& path) {
  auto source = stream::open_lines(path);
  if (!source.ok()) return source.error();
  stream::NdjsonDecoder decoder(pack);
  const SymbolId name = pack->symbols->intern(path);
  std::vector<stream::RecordBatch> batches;
  for (;;) {
    auto chunk = source.value()->next(kChunkBytes);
    if (!chunk.ok()) return chunk.error();
    if (chunk.value().text.empty()) return batches;
    batches.emplace_back();
    decoder.decode(chunk.value().text, name, chunk.value().first_line, batches.back());
  }
}

}  // namespace

double wall_seconds() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

double user_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec) +
         static_cast<double>(usage.ru_utime.tv_usec) * 1e-6;
}

Result<Compiled> compile_pack(const std::string& text, compiler::Backend backend) {
  compiler::Options options;
  options.backend = backend;
  const double begin = wall_seconds();
  auto compilation = compiler::compile_text({{"bench/pack.rfx", text}}, options);
  if (!compilation.ok()) return compilation.error();
  const compiler::Compilation& done = *compilation.value();
  if (done.pack == nullptr) {
    diag::RenderOptions render;
    render.errors_max = 5;
    return Error{diag::render_text(done.sink.sorted(), done.sources, render), 2};
  }
  Compiled out;
  out.total_ms = (wall_seconds() - begin) * 1e3;
  out.pack = done.pack;
  out.parse_ms = done.parse_ms;
  out.check_ms = done.check_ms;
  out.lower_ms = done.lower_ms;
  out.codegen_ms = done.codegen_ms;
  return out;
}

Result<RunResult> run_whole(const std::shared_ptr<const abi::CompiledPack>& pack,
                            const std::string& path, unsigned threads) {
  return run_engine(pack, path, threads, false);
}

Result<RunResult> run_materialised(const std::shared_ptr<const abi::CompiledPack>& pack,
                                   const std::string& path, unsigned threads) {
  return run_engine(pack, path, threads, true);
}

Result<RunResult> run_evaluation(const std::shared_ptr<const abi::CompiledPack>& pack,
                                 const std::string& path, unsigned threads) {
  auto decoded = decode_file(pack, path);
  if (!decoded.ok()) return decoded.error();
  eval::Options eval_options;
  eval_options.threads = threads;
  eval::SignalEngine engine(pack, std::make_shared<topology::Topology>(pack), eval_options);
  engine.set_count_only(true);
  stream::ReorderOptions reorder_options;
  reorder_options.lateness_ns = pack->clock.lateness_ns;
  stream::Reorder reorder(pack, reorder_options);
  reorder.add_source(pack->symbols->intern(path), false);

  RunResult out;
  std::vector<abi::Firing> firings;
  stream::Released released;
  int64_t last_ns = 0;
  const auto step = [&] {
    out.events += released.records.size();
    if (!released.records.empty()) last_ns = released.records.back()->ts_ns;
    engine.process(released.records, released.watermark_ns, firings);
    firings.clear();
  };
  const Stopwatch watch;
  for (stream::RecordBatch& batch : decoded.value()) {
    reorder.push(std::move(batch));
    reorder.release(released);
    step();
  }
  reorder.finish(released);
  step();
  engine.finish(last_ns, firings);
  watch.stop(out);
  out.evaluations = engine.counters().evaluations;
  out.late = reorder.counters().rejected[static_cast<size_t>(stream::Reject::kLate)];
  fill_counts(*pack, engine.firings_by_signal(), engine.entities_by_signal(), out);
  return out;
}

Result<RunResult> run_decoding(const std::shared_ptr<const abi::CompiledPack>& pack,
                               const std::string& path) {
  auto source = stream::open_lines(path);
  if (!source.ok()) return source.error();
  stream::NdjsonDecoder decoder(pack);
  const SymbolId name = pack->symbols->intern(path);
  RunResult out;
  const Stopwatch watch;
  for (;;) {
    auto chunk = source.value()->next(kChunkBytes);
    if (!chunk.ok()) return chunk.error();
    if (chunk.value().text.empty()) break;
    stream::RecordBatch batch;
    decoder.decode(chunk.value().text, name, chunk.value().first_line, batch);
    out.events += batch.records.size();
  }
  watch.stop(out);
  return out;
}

Result<StateSize> measure_state(const std::shared_ptr<const abi::CompiledPack>& pack,
                                uint32_t key_count) {
  constexpr uint32_t kRounds = 20;
  constexpr uint32_t kNodesPerBatch = 1000;
  eval::SignalEngine engine(pack, std::make_shared<topology::Topology>(pack), {});
  engine.set_count_only(true);
  stream::NdjsonDecoder decoder(pack);
  const SymbolId source = pack->symbols->intern("state");
  // Names first: the symbol table is not state of the rules.
  for (uint32_t node = 0; node < key_count; ++node) {
    pack->symbols->intern("node-" + std::to_string(node));
  }
  const size_t heap_before = mallinfo2().uordblks;
  uint64_t order = 0;
  std::vector<abi::Firing> firings;
  for (uint32_t round = 0; round < kRounds; ++round) {
    for (uint32_t first = 0; first < key_count; first += kNodesPerBatch) {
      std::string text;
      const int64_t ts_ms = 1'760'000'000'000 + int64_t{round} * 1000;
      for (uint32_t node = first; node < std::min(first + kNodesPerBatch, key_count); ++node) {
        const uint32_t mix = node * 2654435761u + round * 40503u;
        text += "{\"ts\":" + std::to_string(ts_ms) + ",\"kind\":\"" +
                std::string(kKinds[mix % kKindCount]) + "\",\"node\":\"node-" +
                std::to_string(node) + "\",\"code\":" + std::to_string((mix >> 8) % 64) +
                ",\"value\":50.25,\"severity\":" + std::to_string((mix >> 16) % 7) + "}\n";
      }
      const size_t size = text.size();
      text.append(64, ' ');  // padding that the decoder asks for
      stream::RecordBatch batch;
      decoder.decode(std::string_view(text).substr(0, size), source, 1, batch);
      for (abi::Record* record : batch.records) record->order = ++order;
      const std::vector<const abi::Record*> records(batch.records.begin(), batch.records.end());
      engine.process(records, ts_ms * kNsPerMs, firings);
      firings.clear();
    }
  }
  StateSize out;
  out.keys = engine.counters().keys;
  out.state_bytes = engine.counters().state_bytes;
  out.heap_bytes = mallinfo2().uordblks - heap_before;
  // CPU time: a forked child and a start have a core of their own.
  const auto cpu_ms = [] { return static_cast<double>(clock()) * 1e3 / CLOCKS_PER_SEC; };
  const double save_begin = cpu_ms();
  StateWriter writer(*pack->symbols);
  engine.save(writer);
  const std::string bytes = writer.take();
  out.save_ms = cpu_ms() - save_begin;
  out.saved_bytes = bytes.size();
  const double load_begin = cpu_ms();
  eval::SignalEngine next(pack, std::make_shared<topology::Topology>(pack), {});
  StateReader reader(bytes, *pack->symbols);
  if (!next.load(reader, nullptr)) return Error{"saved state was not loaded"};
  out.load_ms = cpu_ms() - load_begin;
  return out;
}

Result<double> measure_first_event_ms(uint32_t rule_count, compiler::Backend backend,
                                      Compiled& phases) {
  const std::string text = to_rfx(make_rules(rule_count));
  std::string line =
      R"({"ts":1760000000000,"node":"n1","kind":"gpu.xid","code":900,"value":99.5,"severity":5})"
      "\n";
  const size_t size = line.size();
  line.append(64, ' ');
  const double begin = wall_seconds();
  auto compiled = compile_pack(text, backend);
  if (!compiled.ok()) return compiled.error();
  phases = compiled.value();
  const auto& pack = phases.pack;
  eval::SignalEngine engine(pack, std::make_shared<topology::Topology>(pack), {});
  stream::NdjsonDecoder decoder(pack);
  stream::RecordBatch batch;
  decoder.decode(std::string_view(line).substr(0, size), pack->symbols->intern("s"), 1, batch);
  std::vector<abi::Firing> firings;
  const std::vector<const abi::Record*> records(batch.records.begin(), batch.records.end());
  RFX_CHECK(records.size() == 1);
  engine.process(records, records[0]->ts_ns, firings);
  const double ms = (wall_seconds() - begin) * 1e3;
  if (firings.empty()) return Error{"the first event did not fire rule 0", 4};
  return ms;
}

}  // namespace reflex::bench

// Diagnosis latency: one verdict on a job of N nodes, with the attribution library alone.
//
// The case is the hard one: one gpu fails, every other node of the job shouts, one in a hundred
// has an unrelated weak signal. The pack is small but has every scope that costs something; the
// leak of the fatal event is that of std.nvidia (with the default of an author who says nothing, 3
// of 10,000 nodes show it by chance, and nobody can be named).
#include <algorithm>
#include <numeric>

#include "runtime/attribution/attribution.h"
#include "tests/bench/replay_measure.h"

namespace reflex::bench {

namespace {

constexpr std::string_view kPack = R"(pack bench.diagnosis 1.0.0 requires engine >= 1.0 dsl 1
event gpu.xid { key node: node  key gpu: gpu_index?  code: u16 }
event nccl.watchdog { key node: node }
event nic.down { key node: node }
event mem.ce { key node: node }
signal double_bit on (node, gpu) { e: gpu.xid where e.code == 48 } leak 1e-5 per hour
signal watchdog on node { e: nccl.watchdog } leak 1e-3 per hour
signal link_down on node { e: nic.down } leak 1e-3 per hour
signal corrected on node { e: mem.ce } leak 1e-2 per hour
fault gpu_memory on (node, gpu) { prior 2e-4 per job  severity critical  remedy drain }
fault nic_port on node { prior 1e-4 per job  severity critical  remedy drain }
fault host_memory on node { prior 1e-4 per job  severity warning  remedy drain }
external tor_switch on tor { prior 1e-5 per hour }
external software_bug on job { prior 1e-3 per job }
gpu_memory causes double_bit p 0.9 lag -5s .. 10m scope self
gpu_memory causes watchdog p 0.9 lag -30s .. 15m scope peers
nic_port causes link_down p 0.9 lag -5s .. 10m scope self
nic_port causes watchdog p 0.9 lag -30s .. 15m scope peers
host_memory causes corrected p 0.6 lag -24h .. 10m scope self
host_memory causes watchdog p 0.9 lag -30s .. 15m scope peers
tor_switch causes link_down p 0.9 lag -5s .. 5m scope tor
tor_switch causes watchdog p 0.9 lag -30s .. 15m scope tor
software_bug causes watchdog p 0.9 lag -30s .. 15m scope job
incident job_hang on job { opens on watchdog  settle 30s  merge for 10m }
)";

abi::SignalId signal_id(const abi::CompiledPack& pack, std::string_view name) {
  for (size_t i = 0; i < pack.signals.size(); ++i) {
    if (pack.signals[i].name.ends_with(name)) return static_cast<abi::SignalId>(i);
  }
  RFX_CHECK(false && "the pack of this file declares the signal");
  return 0;
}

attribution::Evidence evidence(const abi::CompiledPack& pack, abi::SignalId signal, SymbolId node,
                               int64_t onset_ns) {
  attribution::Evidence out;
  out.signal = signal;
  out.entity.kind = pack.signals[signal].entity_kind;
  out.entity.count = static_cast<uint8_t>(pack.entity_kinds[out.entity.kind].keys.size());
  out.entity.values[0] = node;
  attribution::Evidence::Episode episode;
  episode.onset_ns = onset_ns;
  episode.end_ns = onset_ns + kNsPerHour;
  out.episodes.push_back(episode);
  return out;
}

attribution::Input make_input(const abi::CompiledPack& pack, uint32_t node_count) {
  SymbolTable& symbols = *pack.symbols;
  constexpr int64_t kOpened = 1'760'000'600 * kNsPerSecond;
  attribution::Input input;
  input.opened_ns = kOpened;
  input.now_ns = kOpened + 30 * kNsPerSecond;
  input.job = symbols.intern("job-1");
  input.plan = &pack.incidents.at(0);
  input.observed = [](const void*, abi::SignalId, SymbolId) { return true; };
  const abi::SignalId double_bit = signal_id(pack, ".double_bit");
  const abi::SignalId watchdog = signal_id(pack, ".watchdog");
  const abi::SignalId corrected = signal_id(pack, ".corrected");
  std::vector<uint32_t> by_name(node_count);  // as an open incident holds its nodes
  std::iota(by_name.begin(), by_name.end(), 0u);
  std::sort(by_name.begin(), by_name.end(),
            [](uint32_t a, uint32_t b) { return std::to_string(a) < std::to_string(b); });
  for (const uint32_t i : by_name) {
    attribution::NodeView view;
    view.node = symbols.intern("n" + std::to_string(i));
    view.rack = symbols.intern("rack-" + std::to_string(i / 8));
    view.tor = symbols.intern("tor-" + std::to_string(i / 32));
    input.nodes.push_back(view);
    if (i == 3) {
      input.evidence.push_back(evidence(pack, double_bit, view.node, kOpened - 5 * kNsPerSecond));
    } else {
      input.evidence.push_back(evidence(pack, watchdog, view.node, kOpened + i * kNsPerMs));
    }
    if (i % 100 == 50) {
      input.evidence.push_back(evidence(pack, corrected, view.node, kOpened - kNsPerHour));
    }
  }
  return input;
}

}  // namespace

Result<DiagnosisTimes> measure_diagnosis(uint32_t node_count, uint32_t repeats) {
  auto compiled = compile_pack(std::string(kPack), compiler::Backend::kInterp);
  if (!compiled.ok()) return compiled.error();
  const auto& pack = compiled.value().pack;
  auto graph = attribution::Graph::build(pack);
  if (!graph.ok()) return graph.error();
  attribution::Input input = make_input(*pack, node_count);
  std::vector<double> times_ms;
  std::vector<double> final_ms;
  DiagnosisTimes out;
  for (uint32_t i = 0; i < 2 * repeats; ++i) {
    input.counterfactual = i % 2 == 1;
    const double begin = wall_seconds();
    const abi::Verdict verdict = graph.value()->attribute(input);
    (input.counterfactual ? final_ms : times_ms).push_back((wall_seconds() - begin) * 1e3);
    out.answer = verdict.culprits.empty() ? verdict.level : verdict.culprits.front();
  }
  std::sort(times_ms.begin(), times_ms.end());
  out.median_ms = times_ms[times_ms.size() / 2];
  out.worst_ms = times_ms.back();
  std::sort(final_ms.begin(), final_ms.end());
  out.final_median_ms = final_ms[final_ms.size() / 2];
  return out;
}

}  // namespace reflex::bench

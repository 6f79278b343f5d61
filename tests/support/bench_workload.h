// The throughput workload of the brief: events as its generator makes them, rule sets as its
// rules.py writes them, as records and a hand-made CompiledPack.
//
// Source: bench/gen.cpp and bench/rules.py of the brief (seed 20251009, 1,000,000 events, 600 s);
// expected counts in tests/data/bench/expected_*.tsv.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "tests/support/pack_builder.h"

namespace reflex::test {

struct BenchEvent {
  uint32_t t_ms, node;
  uint16_t kind, code, quarters;
  uint8_t severity, gpu;
  uint32_t arrival_ms;
};

inline const std::vector<std::string>& bench_kinds() {
  static const std::vector<std::string> kKinds = {
      "gpu.temp",      "gpu.power",      "gpu.util",     "nic.rx_gbps",   "nccl.op_slow",
      "ecc.sbe",       "pcie.replay",    "hbm.temp",     "kernel.warn",   "gpu.clock",
      "nic.crc_error", "fs.slow_io",     "nvlink.crc",   "cpu.throttle",  "mem.ce",
      "nic.retrans",   "gpu.xid",        "gpu.throttle", "nccl.timeout",  "nic.link_down",
      "nic.link_up",   "job.ckpt_begin", "job.ckpt_end", "job.step_slow", "ecc.dbe",
      "ib.symbol_err", "ib.port_flap",   "nvme.smart",   "psu.volt",      "fan.rpm",
      "oom.kill",      "proc.exit",      "node.reboot",  "node.drain",    "switch.congest",
      "pfc.pause",     "dns.fail",       "ntp.skew",     "gpu.fell_off",  "hang.detect"};
  return kKinds;
}

/// Events in order of time (equal times in order of arrival), as a reorder buffer releases them.
class BenchGenerator {
 public:
  std::vector<BenchEvent> run() {
    constexpr size_t kEvents = 1'000'000;
    std::vector<double> cumulative(40);
    double total = 0;
    for (int i = 0; i < 40; ++i) cumulative[i] = total += 1.0 / (i + 1);
    for (auto& c : cumulative) c /= total;
    bool gauge[40] = {};
    for (int g : {0, 1, 2, 3, 7, 9, 28, 29}) gauge[g] = true;
    base_.resize(kNodes * 40);
    for (auto& b : base_) b = static_cast<uint16_t>(160 + below(160));
    used_.resize(kNodes);
    events_.reserve(kEvents);
    inject();
    while (events_.size() < kEvents) {
      const auto at = std::lower_bound(cumulative.begin(), cumulative.end(), unit());
      const int k = std::min(static_cast<int>(at - cumulative.begin()), 39);
      const auto n = static_cast<uint32_t>(below(kNodes));
      int q;
      if (gauge[k]) {
        const int b = base_[n * 40 + k];
        q = b * (900 + static_cast<int>(below(201))) / 1000;
        if (k != 7 && below(200) == 0) q = q * (3 + static_cast<int>(below(6))) / 2;
      } else {
        q = static_cast<int>(below(401));
      }
      const int sv = static_cast<int>(below(100));
      const int sev = sv < 40   ? 0
                      : sv < 65 ? 1
                      : sv < 80 ? 2
                      : sv < 90 ? 3
                      : sv < 96 ? 4
                      : sv < 99 ? 5
                                : 6;
      // Braces: the generator draws t, then code, in the order of its argument list on g++.
      const auto code = static_cast<int>(below(64));
      const auto t = static_cast<uint32_t>(below(kSpanMs));
      put(t, n, k, code, q, sev);
    }
    std::stable_sort(events_.begin(), events_.end(),
                     [](const auto& a, const auto& b) { return a.arrival_ms < b.arrival_ms; });
    std::stable_sort(events_.begin(), events_.end(),
                     [](const auto& a, const auto& b) { return a.t_ms < b.t_ms; });
    return std::move(events_);
  }

 private:
  static constexpr uint64_t kSpanMs = 600'000;
  static constexpr uint32_t kNodes = 10'000;
  uint64_t next() {
    uint64_t z = (state_ += 0x9E3779B97F4A7C15ull);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
  }
  uint64_t below(uint64_t n) {
    __extension__ using Wide = unsigned __int128;
    return static_cast<uint64_t>((static_cast<Wide>(next()) * n) >> 64);
  }
  double unit() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }
  void put(uint32_t t, uint32_t node, int kind, int code, int q, int sev) {
    while (!used_[node].insert(t).second) ++t;
    BenchEvent e{t,
                 node,
                 static_cast<uint16_t>(kind),
                 static_cast<uint16_t>(code),
                 static_cast<uint16_t>(q),
                 static_cast<uint8_t>(sev),
                 static_cast<uint8_t>(below(8)),
                 0};
    e.arrival_ms = t + static_cast<uint32_t>(below(10) == 0 ? below(1990) : below(100));
    events_.push_back(e);
  }
  uint32_t start() { return static_cast<uint32_t>(5000 + below(kSpanMs - 85000)); }
  void inject() {
    std::vector<uint32_t> perm(kNodes);
    for (uint32_t i = 0; i < kNodes; ++i) perm[i] = i;
    for (uint32_t i = kNodes - 1; i > 0; --i) std::swap(perm[i], perm[below(i + 1)]);
    size_t used = 0;
    const auto kind = [](std::string_view n) {
      return static_cast<int>(std::find(bench_kinds().begin(), bench_kinds().end(), n) -
                              bench_kinds().begin());
    };
    for (int i = 0; i < 1500; ++i) {
      const int c = i % 3;
      const auto n = static_cast<uint32_t>(below(kNodes));
      put(start(), n, kind("gpu.xid"), 900, c == 1 ? 200 : 320, c == 2 ? 3 : 5);
    }
    // The generator draws the node from the permutation and the time from the stream.
    for (int i = 0; i < 1000; ++i) {
      const uint32_t n = perm[used++], t = start();
      const int m = i < 500 ? 5 : i < 750 ? 4 : 5;
      const uint32_t gap = i < 750 ? 10000 : 15100;
      for (int j = 0; j < m; ++j) put(t + j * gap, n, kind("ecc.sbe"), 901, 40, 4);
    }
    for (int i = 0; i < 1000; ++i) {
      const uint32_t n = perm[used++], t = start();
      const auto gap = static_cast<uint32_t>(i < 500   ? 1000 + below(28000)
                                             : i < 750 ? 31000 + below(14000)
                                                       : 1000);
      const bool rev = i >= 750;
      put(t, n, kind(rev ? "nccl.timeout" : "nic.link_down"), 902, 0, 4);
      put(t + gap, n, kind(rev ? "nic.link_down" : "nccl.timeout"), 902, 0, 4);
    }
    for (int i = 0; i < 1100; ++i) {
      const uint32_t n = perm[used++], t = start();
      put(t, n, kind("job.ckpt_begin"), 903, 0, 4);
      if (i >= 500) {
        const auto gap =
            static_cast<uint32_t>(i < 1000 ? 1000 + below(28000) : 31000 + below(9000));
        put(t + gap, n, kind("job.ckpt_end"), 903, 0, 4);
      }
    }
    for (int i = 0; i < 500; ++i) {
      const uint32_t n = perm[used++], t = start();
      const int b = base_[n * 40 + kind("hbm.temp")];
      for (uint32_t j = 0; j < 6; ++j) put(t + j * 2000, n, kind("hbm.temp"), 904, b, 1);
      put(t + 12500, n, kind("hbm.temp"), 904, b * 3, 5);
    }
  }
  uint64_t state_ = 20251009;
  std::vector<uint16_t> base_;
  std::vector<std::unordered_set<uint32_t>> used_;
  std::vector<BenchEvent> events_;
};

// Slots of every bench kind.
enum BenchSlot : uint16_t { kBenchNode, kBenchCode, kBenchSeverity, kBenchValue, kBenchSlots };

struct AboveMean {  // value * n > k * sum, see SYNTAX decision 5
  double k;
  abi::FeatureId sum, count;
};
struct MeanChunk {
  std::vector<AboveMean> rules;
  static uint32_t run(const void* self, const abi::Record* r, const abi::EvalContext* c,
                      uint32_t* hits) {
    uint32_t n = 0;
    if (!r->has(kBenchValue)) return 0;
    const double v = r->f64(kBenchValue);
    const auto& rules = static_cast<const MeanChunk*>(self)->rules;
    for (uint32_t i = 0; i < rules.size(); ++i) {
      const abi::Value& sum = c->features[rules[i].sum];
      const abi::Value& count = c->features[rules[i].count];
      const bool hit = (sum.known & count.known) != 0 &&
                       v * static_cast<double>(count.i64()) > rules[i].k * sum.f64();
      hits[n] = i;
      n += hit ? 1 : 0;
    }
    return n;
  }
};

struct BenchPack {
  std::shared_ptr<abi::CompiledPack> pack;
  std::deque<MeanChunk> chunks;
  std::vector<abi::KindId> kinds;
  std::vector<SymbolId> nodes;
};

inline std::unique_ptr<BenchPack> make_bench_pack(const std::string& rules_path) {
  auto bench = std::make_unique<BenchPack>();
  PackBuilder b;
  for (const auto& name : bench_kinds()) {
    bench->kinds.push_back(b.kind(name, {{"node", entity_type()},
                                         {"code", int_type()},
                                         {"severity", int_type()},
                                         {"value", real_type()}}));
  }
  for (int i = 0; i < 10'000; ++i) {
    const std::string digits = std::to_string(i);
    bench->nodes.push_back(
        b.pack->symbols->intern("node-" + std::string(5 - digits.size(), '0') + digits));
  }
  const abi::EntityKindId node = b.entity_kind({"node"});
  const auto key = PackBuilder::key({kBenchNode});
  const auto kind_id = [&](const std::string& n) {
    const auto at = std::find(bench_kinds().begin(), bench_kinds().end(), n);
    return bench->kinds[static_cast<size_t>(at - bench_kinds().begin())];
  };
  const auto leaf = [&](const nlohmann::json& a, abi::ExprId residual = abi::kNone32) {
    return b.leaf(kind_id(a["kind"]), residual,
                  {{kBenchCode, {{a["lo"].get<int64_t>(), a["hi"].get<int64_t>()}}},
                   {kBenchSeverity, {{a["sev"].get<int64_t>(), INT64_MAX}}}},
                  residual);
  };
  std::ifstream file(rules_path);
  const auto rules = nlohmann::json::parse(file);
  struct Window {
    abi::FeatureId sum, count;
  };
  std::map<std::pair<abi::KindId, uint32_t>, Window> windows;
  std::map<abi::KindId, std::pair<abi::LeafId, abi::ExprId>> inputs;
  std::map<abi::KindId, std::pair<std::vector<abi::LeafId>, MeanChunk>> chunks;
  for (const auto& rule : rules) {
    const std::string shape = rule["shape"];
    const bool counts = shape == "b";
    const auto s = b.signal("r" + std::to_string(rule["id"].get<int>()), node,
                            counts ? abi::SignalShape::kCount : abi::SignalShape::kSequence);
    if (shape == "a") {
      const double limit = rule["val"];
      const auto residual =
          b.predicate([limit](const abi::Record& r) { return r.f64(kBenchValue) > limit; });
      b.step(s, abi::StepMode::kFirst, leaf(rule["A"], residual), key);
    } else if (counts) {
      auto& plan = b.pack->signals[s].count;
      plan.window_ns = rule["win"].get<int64_t>() * 1'000'000;
      plan.threshold_constant = rule["k"];
      plan.each = true;
      b.count_input(s, leaf(rule["A"]), key);
    } else if (shape == "c" || shape == "d") {
      const int64_t window = rule["win"].get<int64_t>() * 1'000'000;
      auto& plan = b.pack->signals[s].sequence;
      plan.within_ns = window;
      plan.keep = shape == "c" ? abi::KeepMode::kLatest : abi::KeepMode::kAll;
      plan.partials_max = 1000;
      b.step(s, abi::StepMode::kFirst, leaf(rule["A"]), key);
      b.step(s, shape == "c" ? abi::StepMode::kThen : abi::StepMode::kAbsent, leaf(rule["B"]), key,
             window);
    } else {
      const abi::KindId k = kind_id(rule["A"]["kind"]);
      const uint32_t w = rule["w"];
      if (inputs.find(k) == inputs.end()) {
        inputs[k] = {b.leaf(k, abi::kNone32), b.field_f64(kBenchValue)};
      }
      if (windows.find({k, w}) == windows.end()) {
        abi::FeaturePlan f;
        f.entity_kind = node;
        f.last_n = w;
        f.min_samples = rule["min"];
        f.op = abi::FeatureOp::kSum;
        const auto sum = b.feature(f);
        f.op = abi::FeatureOp::kCount;
        f.integer_result = true;
        const auto count = b.feature(f);
        for (auto id : {sum, count}) {
          b.feature_input(id, inputs[k].first, inputs[k].second, key);
        }
        windows[{k, w}] = {sum, count};
      }
      const Window win = windows[{k, w}];
      const abi::LeafId l = b.leaf(k, abi::kNone32);
      b.pack->leaves[l].features = {win.sum, win.count};
      b.pack->leaves[l].entity_kind = node;
      b.step(s, abi::StepMode::kFirst, l, key);
      chunks[k].first.push_back(l);
      chunks[k].second.rules.push_back({rule["k"], win.sum, win.count});
    }
  }
  for (auto& [kind, chunk] : chunks) {
    auto& [leaves, code] = chunk;
    for (size_t at = 0; at < leaves.size(); at += 64) {
      const size_t end = std::min(at + 64, leaves.size());
      abi::Chunk c;
      c.kind = kind;
      MeanChunk part;
      for (size_t i = at; i < end; ++i) {
        c.leaves.push_back(leaves[i]);
        part.rules.push_back(code.rules[i]);
        c.features.push_back(code.rules[i].sum);
        c.features.push_back(code.rules[i].count);
      }
      bench->chunks.push_back(std::move(part));
      b.pack->chunks.push_back(std::move(c));
      b.code->chunks.push_back({MeanChunk::run, &bench->chunks.back()});
    }
  }
  bench->pack = b.pack;
  return bench;
}

/// Records of the events, one block of memory.
class BenchRecords {
 public:
  BenchRecords(const std::vector<BenchEvent>& events, const BenchPack& pack)
      : words_(events.size() * kWords), pointers_(events.size()) {
    for (size_t i = 0; i < events.size(); ++i) {
      const BenchEvent& e = events[i];
      auto* r = new (&words_[i * kWords]) abi::Record{};
      r->ts_ns = (1'760'000'000'000 + int64_t{e.t_ms}) * 1'000'000;
      r->order = i;
      r->kind = pack.kinds[e.kind];
      r->slot_count = kBenchSlots;
      r->set_i64(kBenchNode, pack.nodes[e.node]);
      r->set_i64(kBenchCode, e.code);
      r->set_i64(kBenchSeverity, e.severity);
      r->set_f64(kBenchValue, e.quarters / 4.0);
      pointers_[i] = r;
    }
  }
  [[nodiscard]] const std::vector<const abi::Record*>& all() const { return pointers_; }

 private:
  static constexpr size_t kWords = sizeof(abi::Record) / 8 + kBenchSlots;
  std::vector<uint64_t> words_;
  std::vector<const abi::Record*> pointers_;
};

}  // namespace reflex::test

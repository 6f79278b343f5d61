// Rule sets of the workload: numbers as CPython makes them, and the .rfx and JSON forms.
#include "tests/bench/workload_rules.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

namespace reflex::bench {

const std::array<std::string_view, kKindCount> kKinds = {
    "gpu.temp",      "gpu.power",      "gpu.util",     "nic.rx_gbps",   "nccl.op_slow",
    "ecc.sbe",       "pcie.replay",    "hbm.temp",     "kernel.warn",   "gpu.clock",
    "nic.crc_error", "fs.slow_io",     "nvlink.crc",   "cpu.throttle",  "mem.ce",
    "nic.retrans",   "gpu.xid",        "gpu.throttle", "nccl.timeout",  "nic.link_down",
    "nic.link_up",   "job.ckpt_begin", "job.ckpt_end", "job.step_slow", "ecc.dbe",
    "ib.symbol_err", "ib.port_flap",   "nvme.smart",   "psu.volt",      "fan.rpm",
    "oom.kill",      "proc.exit",      "node.reboot",  "node.drain",    "switch.congest",
    "pfc.pause",     "dns.fail",       "ntp.skew",     "gpu.fell_off",  "hang.detect"};

namespace {

/// random.Random(seed) for a small seed: MT19937 with init_by_array and CPython's derived draws.
class PythonRandom {
 public:
  explicit PythonRandom(uint32_t seed) {
    seed_plain(19650218u);
    uint32_t i = 1;
    for (uint32_t k = kSize; k > 0; --k) {
      state_[i] = (state_[i] ^ ((state_[i - 1] ^ (state_[i - 1] >> 30)) * 1664525u)) + seed;
      advance(i);
    }
    for (uint32_t k = kSize - 1; k > 0; --k) {
      state_[i] = (state_[i] ^ ((state_[i - 1] ^ (state_[i - 1] >> 30)) * 1566083941u)) - i;
      advance(i);
    }
    state_[0] = 0x80000000u;
    index_ = kSize;
  }

  /// Random._randbelow_with_getrandbits
  uint32_t below(uint32_t n) {
    uint32_t bits = 0;
    while ((n >> bits) != 0) ++bits;
    uint32_t r = next() >> (32 - bits);
    while (r >= n) r = next() >> (32 - bits);
    return r;
  }
  uint32_t range(uint32_t lo, uint32_t hi) { return lo + below(hi - lo); }

  template <typename T>
  void shuffle(std::vector<T>& values) {
    for (size_t i = values.size() - 1; i > 0; --i) {
      std::swap(values[i], values[below(static_cast<uint32_t>(i + 1))]);
    }
  }

  /// sample(range(40), 2): the set-based branch of Random.sample.
  std::pair<uint32_t, uint32_t> two_of_forty() {
    const uint32_t first = below(40);
    uint32_t second = below(40);
    while (second == first) second = below(40);
    return {first, second};
  }

 private:
  static constexpr uint32_t kSize = 624;

  void seed_plain(uint32_t seed) {
    state_[0] = seed;
    for (uint32_t i = 1; i < kSize; ++i) {
      state_[i] = 1812433253u * (state_[i - 1] ^ (state_[i - 1] >> 30)) + i;
    }
  }
  void advance(uint32_t& i) {
    if (++i >= kSize) {
      state_[0] = state_[kSize - 1];
      i = 1;
    }
  }
  uint32_t next() {
    if (index_ >= kSize) twist();
    uint32_t y = state_[index_++];
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c5680u;
    y ^= (y << 15) & 0xefc60000u;
    return y ^ (y >> 18);
  }
  void twist() {
    for (uint32_t i = 0; i < kSize; ++i) {
      const uint32_t y = (state_[i] & 0x80000000u) | (state_[(i + 1) % kSize] & 0x7fffffffu);
      state_[i] = state_[(i + 397) % kSize] ^ (y >> 1) ^ ((y & 1u) != 0 ? 0x9908b0dfu : 0u);
    }
    index_ = 0;
  }

  std::array<uint32_t, kSize> state_{};
  uint32_t index_ = kSize;
};

struct MeanRule {
  uint32_t kind;
  uint32_t samples;
  double factor;
};

constexpr std::array<uint32_t, 8> kGauges = {0, 1, 2, 3, 7, 9, 28, 29};
constexpr std::array<uint32_t, 5> kSamples = {4, 6, 8, 12, 16};

/// All (gauge, samples, factor) of the shape e, in the order in which the rules take them.
std::vector<MeanRule> mean_rules(PythonRandom& random) {
  const auto combine = [](uint32_t eighths, std::vector<MeanRule>& out) {
    for (uint32_t samples : kSamples) {
      for (uint32_t gauge : kGauges) out.push_back({gauge, samples, eighths / 8.0});
    }
  };
  std::vector<MeanRule> first;
  std::vector<MeanRule> more;
  for (uint32_t k = 12; k < 34; k += 4) combine(k, first);
  for (uint32_t k = 12; k < 120; ++k) {
    if (k % 4 != 0) combine(k, more);
  }
  random.shuffle(first);
  random.shuffle(more);
  first.insert(first.end(), more.begin(), more.end());
  return first;
}

/// The first five rules look for the codes that the generator injects.
WorkloadRule injected_rule(uint32_t id) {
  WorkloadRule rule;
  rule.id = id;
  rule.shape = static_cast<char>('a' + id);
  switch (id) {
    case 0:
      rule.a = {16, 900, 900, 4};
      rule.value = 50;
      break;
    case 1:
      rule.a = {5, 901, 901, 4};
      rule.count = 5;
      rule.window_ms = 60'000;
      break;
    case 2:
      rule.a = {19, 902, 902, 4};
      rule.b = {18, 902, 902, 4};
      rule.window_ms = 30'000;
      break;
    case 3:
      rule.a = {21, 903, 903, 4};
      rule.b = {22, 903, 903, 4};
      rule.window_ms = 30'000;
      break;
    default:
      rule.a = {7, 0, 1000, 0};
      rule.samples = 8;
      rule.factor = 2;
  }
  return rule;
}

double harmonic() {
  double sum = 0;
  for (uint32_t i = 0; i < kKindCount; ++i) sum += 1.0 / (i + 1);
  return sum;
}

WorkloadRule threshold_rule(PythonRandom& random) {
  WorkloadRule rule;
  const uint32_t lo = random.below(57);
  rule.a = {random.below(40), lo, lo + 7, 3};
  rule.value = random.range(160, 280) / 4.0;
  return rule;
}

WorkloadRule count_rule(PythonRandom& random) {
  constexpr std::array<uint32_t, 3> kWidths = {16, 32, 64};
  constexpr std::array<double, 5> kAtLeast = {1, .6, .35, .2, .1};  // P(severity >= s)
  WorkloadRule rule;
  const uint32_t kind = random.below(40);
  const uint32_t width = kWidths[random.below(3)];
  const uint32_t lo = random.below(65 - width);
  const uint32_t severity = random.below(4);
  const double lambda = 1e6 / harmonic() / (kind + 1) * width / 64 * kAtLeast[severity] / 1e4 / 10;
  rule.a = {kind, lo, lo + width - 1, severity};
  rule.count =
      std::max(2u, static_cast<uint32_t>(std::ceil(lambda + 2.5 * std::sqrt(lambda) + .6)));
  rule.window_ms = 60'000;
  return rule;
}

WorkloadRule pair_rule(PythonRandom& random, char shape) {
  WorkloadRule rule;
  const auto [a, b] = random.two_of_forty();
  uint32_t width = 4;
  uint32_t severity = 3;
  if (shape == 'c') {
    width = 16;
    severity = random.range(1, 3);
  }
  const uint32_t lo_a = random.below(65 - width);
  const uint32_t lo_b = random.below(33);
  rule.a = {a, lo_a, lo_a + width - 1, severity};
  rule.b = {b, lo_b, lo_b + 31, random.below(2)};
  rule.window_ms = 30'000;
  return rule;
}

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.17g", value);
  std::string out = text;
  if (out.find_first_of(".e") == std::string::npos) out += ".0";
  return out;
}

std::string predicate(std::string_view name, const RuleLeaf& leaf) {
  const std::string it(name);
  std::string out = leaf.code_lo == leaf.code_hi ? it + ".code == " + std::to_string(leaf.code_lo)
                                                 : it + ".code in " + std::to_string(leaf.code_lo) +
                                                       ".." + std::to_string(leaf.code_hi);
  if (leaf.severity > 0) out += " and " + it + ".severity >= " + std::to_string(leaf.severity);
  return out;
}

std::string signal_body(const WorkloadRule& rule) {
  const std::string a(kKinds[rule.a.kind]);
  const std::string b(kKinds[rule.b.kind]);
  switch (rule.shape) {
    case 'a':
      return "{ e: " + a + " where " + predicate("e", rule.a) + " and e.value > " +
             number(rule.value) + " }";
    case 'b':
      return "{ count " + a + " where " + predicate("it", rule.a) +
             " >= " + std::to_string(rule.count) + " within " +
             std::to_string(rule.window_ms / 1000) + "s each }";
    case 'c':
      return "within " + std::to_string(rule.window_ms / 1000) + "s { a: " + a + " where " +
             predicate("a", rule.a) + " then b: " + b + " where " + predicate("b", rule.b) +
             " keep latest }";
    case 'd':
      return "{ a: " + a + " where " + predicate("a", rule.a) + " then absent b: " + b + " where " +
             predicate("b", rule.b) + " for " + std::to_string(rule.window_ms / 1000) +
             "s keep all max 64 }";
    default:  // any event of the kind: the hand-written engines do not look at its code either
      return "{ e: " + a + " where e.value > " + number(rule.factor) + " * mean(" + a +
             ".value, last " + std::to_string(rule.samples) + ", min " +
             std::to_string(rule.samples_min) + ") }";
  }
}

std::string leaf_json(const RuleLeaf& leaf) {
  return "{\"kind\": \"" + std::string(kKinds[leaf.kind]) +
         "\", \"lo\": " + std::to_string(leaf.code_lo) +
         ", \"hi\": " + std::to_string(leaf.code_hi) +
         ", \"sev\": " + std::to_string(leaf.severity) + "}";
}

}  // namespace

std::vector<WorkloadRule> make_rules(uint32_t count) {
  PythonRandom random(7);
  const std::vector<MeanRule> means = mean_rules(random);
  size_t next_mean = 0;
  std::vector<WorkloadRule> rules;
  for (uint32_t i = 0; i < count; ++i) {
    const char shape = static_cast<char>('a' + i % 5);
    WorkloadRule rule;
    if (i < 5) {
      rule = injected_rule(i);
    } else if (shape == 'a') {
      rule = threshold_rule(random);
    } else if (shape == 'b') {
      rule = count_rule(random);
    } else if (shape == 'e') {
      const MeanRule& mean = means[next_mean++ % means.size()];
      rule.a = {mean.kind, 0, 1000, 0};
      rule.samples = mean.samples;
      rule.factor = mean.factor;
    } else {
      rule = pair_rule(random, shape);
    }
    rule.id = i;
    rule.shape = shape;
    rules.push_back(rule);
  }
  return rules;
}

std::string to_rfx(const std::vector<WorkloadRule>& rules) {
  std::string out =
      "pack bench.workload 1.0.0 requires engine >= 1.0 dsl 1\n"
      "clock { lateness 2s }\n"
      "limits { keys 200k  partials 64 per key  state 8GiB }\n"
      "event bench.base abstract {\n"
      "  key node: node\n  key job: job?\n  gpu: gpu_index?\n  code: u16\n  value: f64\n"
      "  severity: u8\n}\n";
  for (std::string_view kind : kKinds) {
    out += "event " + std::string(kind) + " extends bench.base { }\n";
  }
  for (const WorkloadRule& rule : rules) {
    out += "signal r" + std::to_string(rule.id) + " on node " + signal_body(rule) + "\n";
  }
  return out;
}

std::string to_json(const std::vector<WorkloadRule>& rules) {
  std::string out = "[\n";
  for (const WorkloadRule& rule : rules) {
    if (rule.id > 0) out += ",\n";
    out += "{\"id\": " + std::to_string(rule.id) + ", \"shape\": \"" + rule.shape +
           "\", \"A\": " + leaf_json(rule.a);
    switch (rule.shape) {
      case 'a':
        out += ", \"val\": " + number(rule.value);
        break;
      case 'b':
        out += ", \"k\": " + std::to_string(rule.count) +
               ", \"win\": " + std::to_string(rule.window_ms);
        break;
      case 'e':
        out += ", \"w\": " + std::to_string(rule.samples) + ", \"k\": " + number(rule.factor) +
               ", \"min\": " + std::to_string(rule.samples_min);
        break;
      default:
        out += ", \"B\": " + leaf_json(rule.b) + ", \"win\": " + std::to_string(rule.window_ms);
    }
    out += "}";
  }
  return out + "\n]\n";
}

}  // namespace reflex::bench

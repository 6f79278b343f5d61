// The replay benchmark: our pipeline beside the hand-written engines, in one run on one machine.
//
//   replay_bench [all|decode|whole|eval|backends|state|ready|diagnosis]
//
// Compare by ratio inside one table, never with figures of another machine or day. Every figure is
// the median of kRepeats runs, ours and theirs in turn, each in a process of its own.
// `replay_bench child ...` is one measurement (see run_child).
#include <fmt/core.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>

#include "tests/bench/child_process.h"
#include "tests/bench/replay_measure.h"
#include "tests/bench/workload_rules.h"

namespace {

using namespace reflex;
using namespace reflex::bench;

constexpr int kRepeats = 5;
constexpr uint32_t kSizes[] = {10, 100, 1000};

std::string self() { return std::filesystem::read_symlink("/proc/self/exe").string(); }
std::string binary(const std::string& name) { return std::string(REFLEX_BENCH_BIN) + "/" + name; }
std::string data(const std::string& name) { return std::string(REFLEX_BENCH_DATA) + "/" + name; }

[[noreturn]] void fail(const std::string& message) {
  std::cerr << "replay_bench: " << message << "\n";
  std::exit(3);
}

compiler::Backend backend_of(const std::string& word) {
  return word == "interp" ? compiler::Backend::kInterp : compiler::Backend::kJit;
}

// ---- one measurement, in its own process

Compiled compile_rules(uint32_t count, const std::string& backend) {
  auto compiled = compile_pack(to_rfx(make_rules(count)), backend_of(backend));
  if (!compiled.ok()) fail(compiled.error().message);
  return compiled.value();
}

void print_run(const Result<RunResult>& run) {
  if (!run.ok()) fail(run.error().message);
  const RunResult& r = run.value();
  uint64_t results = 0;
  for (uint64_t count : r.results) results += count;
  fmt::print("events {} wall {:.6f} user {:.6f} results {} evaluations {}\n", r.events, r.wall_s,
             r.user_s, results, r.evaluations);
}

/// The standard packs, which a raw log is read with.
std::shared_ptr<const abi::CompiledPack> compile_std() {
  const std::string root = REFLEX_SOURCE_DIR;
  auto compiled = compiler::compile({root + "/rules/std", root + "/hwprofiles"}, {});
  if (!compiled.ok()) fail(compiled.error().message);
  if (!compiled.value()->pack) fail("rules/std does not compile");
  return compiled.value()->pack;
}

/// The time of `grep -c`, which is what a log costs that nobody understands.
void print_grep(const std::string& path) {
  const double wall = wall_seconds();
  // Through a pipe: grep stops at the first match when its output is /dev/null.
  const std::string command = "grep -c NVRM " + path + " | cat > /dev/null";
  if (std::system(command.c_str()) != 0) fail("failed: " + command);
  fmt::print("wall {:.6f}\n", wall_seconds() - wall);
}

int child(const std::vector<std::string>& args) {
  const std::string& what = args.at(0);
  if (what == "log") {
    print_run(run_log_decoding(compile_std(), data("kernel.log")));
  } else if (what == "grep") {
    print_grep(data("kernel.log"));
  } else if (what == "whole" || what == "eval" || what == "decode") {
    const auto count = static_cast<uint32_t>(std::stoul(args.at(1)));
    const Compiled compiled = compile_rules(count, args.at(2));
    const auto threads = static_cast<unsigned>(std::stoul(args.at(3)));
    const std::string file = data("events.jsonl");
    print_run(what == "whole"  ? run_whole(compiled.pack, file, threads)
              : what == "eval" ? run_evaluation(compiled.pack, file, threads)
                               : run_decoding(compiled.pack, file));
  } else if (what == "state") {
    const auto keys = static_cast<uint32_t>(std::stoul(args.at(2)));
    const Compiled compiled = compile_rules(static_cast<uint32_t>(std::stoul(args.at(1))), "jit");
    const auto size = measure_state(compiled.pack, keys);
    if (!size.ok()) fail(size.error().message);
    fmt::print(
        "keys {} state_bytes {} heap_bytes {} saved_bytes {} save_ms {:.2f} load_ms {:.2f}\n",
        size.value().keys, size.value().state_bytes, size.value().heap_bytes,
        size.value().saved_bytes, size.value().save_ms, size.value().load_ms);
  } else if (what == "ready") {
    Compiled phases;
    const auto ms = measure_first_event_ms(static_cast<uint32_t>(std::stoul(args.at(1))),
                                           backend_of(args.at(2)), phases);
    if (!ms.ok()) fail(ms.error().message);
    fmt::print("ready_ms {:.2f} parse {:.2f} check {:.2f} lower {:.2f} codegen {:.2f}\n",
               ms.value(), phases.parse_ms, phases.check_ms, phases.lower_ms, phases.codegen_ms);
  } else if (what == "diagnosis") {
    const auto times = measure_diagnosis(static_cast<uint32_t>(std::stoul(args.at(1))), 21);
    if (!times.ok()) fail(times.error().message);
    fmt::print("median_ms {:.4f} worst_ms {:.4f} final_ms {:.4f} answer {}\n",
               times.value().median_ms, times.value().worst_ms, times.value().final_median_ms,
               times.value().answer);
  } else {
    fail("unknown measurement '" + what + "'");
  }
  return 0;
}

// ---- the tables

Pairs measure(const std::vector<std::string>& command, unsigned cpus) {
  auto pairs = run_child(command, cpus);
  if (!pairs.ok()) fail(pairs.error().message);
  return pairs.value();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// Median of several commands, run in turn so that drift of the machine hits all alike.
/// Each entry: command, CPUs, and how to read the figure from its pairs.
struct Subject {
  std::vector<std::string> command;
  unsigned cpus = 1;
  std::function<double(const Pairs&)> figure;
};
std::vector<double> medians(const std::vector<Subject>& subjects) {
  std::vector<std::vector<double>> values(subjects.size());
  for (int repeat = 0; repeat < kRepeats; ++repeat) {
    for (size_t i = 0; i < subjects.size(); ++i) {
      values[i].push_back(subjects[i].figure(measure(subjects[i].command, subjects[i].cpus)));
    }
  }
  std::vector<double> out;
  for (const auto& v : values) out.push_back(median(v));
  return out;
}

constexpr double kEvents = 1e6;

std::vector<std::string> ours(const std::string& what, uint32_t rules, const std::string& backend,
                              unsigned threads) {
  return {self(), "child", what, std::to_string(rules), backend, std::to_string(threads)};
}
std::string rules_json(uint32_t rules) { return data("rules_" + std::to_string(rules) + ".json"); }

double wall_ns(const Pairs& p) { return number(p, "wall") * 1e9 / kEvents; }
double table_wall_ns(const Pairs& p) {
  return (number(p, "total_wall") - number(p, "ready_s")) * 1e9 / kEvents;
}
double eval_wall_ns(const Pairs& p) { return number(p, "eval_wall") * 1e9 / kEvents; }

void table_decode() {
  const auto m =
      medians({{{binary("table"), "parse", data("events.jsonl"), "--rules", rules_json(10)},
                1,
                table_wall_ns},
               {{binary("table"), "parsefast", data("events.jsonl"), "--rules", rules_json(10)},
                1,
                table_wall_ns},
               {ours("decode", 1000, "interp", 1), 1, wall_ns}});
  fmt::print("\nDecode only, ns an event (1 thread)\n");
  fmt::print("  simdjson on demand {:7.1f}   fixed-order parser {:7.1f}   ours {:7.1f}\n", m[0],
             m[1], m[2]);
  const auto mb_s = [](const Pairs& p, const char* time) {
    return static_cast<double>(std::filesystem::file_size(data("kernel.log"))) / 1e6 /
           number(p, time);
  };
  const auto log =
      medians({{{self(), "child", "grep"}, 1, [&](const Pairs& p) { return mb_s(p, "wall"); }},
               {{self(), "child", "log"}, 1, [&](const Pairs& p) { return mb_s(p, "wall"); }},
               {{self(), "child", "log"}, 1, [&](const Pairs& p) { return mb_s(p, "user"); }}});
  fmt::print("\nRaw kernel log with rules/std, MB/s (1 thread; higher is better)\n");
  fmt::print("  grep -c {:7.0f}   ours {:7.0f}   ours by user time {:7.0f}\n", log[0], log[1],
             log[2]);
}

void table_whole() {
  fmt::print("\nWhole pipeline: read, decode, reorder, evaluate; ns an event (lower is better)\n");
  fmt::print("  {:>6} {:>12} {:>12} {:>8} {:>12} {:>10} {:>14}\n", "rules", "table 1 thr",
             "ours 1 thr", "ratio", "ours 2 thr", "speed-up", "ours events/s");
  for (uint32_t rules : kSizes) {
    const auto m =
        medians({{{binary("table"), "both", data("events.jsonl"), "--rules", rules_json(rules)},
                  1,
                  table_wall_ns},
                 {ours("whole", rules, "jit", 1), 1, wall_ns},
                 {ours("whole", rules, "jit", 2), 2, wall_ns}});
    fmt::print("  {:>6} {:>12.1f} {:>12.1f} {:>8.2f} {:>12.1f} {:>10.2f} {:>14.0f}\n", rules, m[0],
               m[1], m[1] / m[0], m[2], m[1] / m[2], 1e9 / m[1]);
  }
  fmt::print("  aim: ratio at most 1.00; speed-up at least 1.60\n");
}

void table_eval() {
  fmt::print("\nEvaluate only (reorder and rules), ns an event, 1 thread\n");
  fmt::print("  {:>6} {:>12} {:>14} {:>10} {:>12} {:>12}\n", "rules", "table", "compiled in",
             "ours", "vs table", "vs compiled");
  for (uint32_t rules : kSizes) {
    const auto m = medians(
        {{{binary("table"), "eval", data("events.jsonl"), "--rules", rules_json(rules)},
          1,
          eval_wall_ns},
         {{binary("hard_" + std::to_string(rules)), "eval", data("events.jsonl")}, 1, eval_wall_ns},
         {ours("eval", rules, "jit", 1), 1, wall_ns}});
    fmt::print("  {:>6} {:>12.1f} {:>14.1f} {:>10.1f} {:>12.2f} {:>12.2f}\n", rules, m[0], m[1],
               m[2], m[2] / m[0], m[2] / m[1]);
  }
  fmt::print("  aim: vs compiled at most 1.30\n");
}

void table_backends() {
  fmt::print("\nJIT against interpreter: evaluate only, ns an event, 1 thread\n");
  fmt::print("  {:>6} {:>12} {:>12} {:>10}\n", "rules", "interp", "jit", "speed-up");
  for (uint32_t rules : kSizes) {
    const auto m = medians({{ours("eval", rules, "interp", 1), 1, wall_ns},
                            {ours("eval", rules, "jit", 1), 1, wall_ns}});
    fmt::print("  {:>6} {:>12.1f} {:>12.1f} {:>10.2f}\n", rules, m[0], m[1], m[0] / m[1]);
  }
}

void table_state() {
  fmt::print("\nState of 100 rules, nodes with 20 events each\n");
  fmt::print("  {:>8} {:>10} {:>17} {:>12} {:>13} {:>9} {:>9}\n", "nodes", "keys",
             "accounted B/node", "heap B/node", "saved B/node", "save ms", "load ms");
  for (const char* nodes : {"1000", "100000"}) {
    const Pairs p = measure({self(), "child", "state", "100", nodes}, 1);
    const double count = std::atof(nodes);
    fmt::print("  {:>8} {:>10.0f} {:>17.0f} {:>12.0f} {:>13.0f} {:>9.0f} {:>9.0f}\n", nodes,
               number(p, "keys"), number(p, "state_bytes") / count, number(p, "heap_bytes") / count,
               number(p, "saved_bytes") / count, number(p, "save_ms"), number(p, "load_ms"));
  }
  fmt::print("  aim: 100,000 nodes saved under 1,000 ms (in a forked child)\n");
}

void table_ready() {
  fmt::print("\nFrom source text to the first evaluated event, ms\n");
  fmt::print("  {:>6} {:>10} {:>9} {:>9} {:>9} {:>9} {:>14}\n", "rules", "jit, all", "parse",
             "check", "lower", "codegen", "interp, all");
  for (const char* rules : {"10", "100", "1000", "10000"}) {
    std::vector<Subject> subjects;
    for (const char* field : {"ready_ms", "parse", "check", "lower", "codegen"}) {
      subjects.push_back({{self(), "child", "ready", rules, "jit"}, 2, [field](const Pairs& p) {
                            return number(p, field);
                          }});
    }
    subjects.push_back({{self(), "child", "ready", rules, "interp"}, 2, [](const Pairs& p) {
                          return number(p, "ready_ms");
                        }});
    const auto m = medians(subjects);
    fmt::print("  {:>6} {:>10.1f} {:>9.1f} {:>9.1f} {:>9.1f} {:>9.1f} {:>14.1f}\n", rules, m[0],
               m[1], m[2], m[3], m[4], m[5]);
  }
  fmt::print("  aim: 1,000 rules under 500 ms, 10,000 under 4,000 ms\n");
}

void table_diagnosis() {
  fmt::print("\nOne verdict, ms (one culprit, all peers shouting)\n");
  fmt::print("  {:>8} {:>10} {:>10} {:>10} {:>12}\n", "nodes", "first", "worst", "final", "answer");
  for (const char* nodes : {"8", "1000", "10000"}) {
    const Pairs p = measure({self(), "child", "diagnosis", nodes}, 1);
    fmt::print("  {:>8} {:>10.3f} {:>10.3f} {:>10.3f} {:>12}\n", nodes, number(p, "median_ms"),
               number(p, "worst_ms"), number(p, "final_ms"), p.at("answer"));
  }
  fmt::print("  right answer: n3; aim: 10,000 nodes under 20 ms\n");
}

// ---- set-up

void prepare_data() {
  namespace fs = std::filesystem;
  fs::create_directories(REFLEX_BENCH_DATA);
  for (uint32_t rules : {10u, 100u, 1000u}) {
    std::ofstream(rules_json(rules)) << to_json(make_rules(rules));
  }
  if (!fs::exists(data("kernel.log"))) {
    constexpr size_t kLogBytes = 150'000'000;
    if (auto status = write_kernel_log(data("kernel.log"), kLogBytes); !status.ok()) {
      fail(status.error().message);
    }
  }
  const std::string done = data("complete");
  if (fs::exists(done)) return;
  std::cerr << "replay_bench: generating a million events\n";
  const std::string command = binary("bench_gen") + " " + REFLEX_BENCH_DATA + " > /dev/null";
  if (std::system(command.c_str()) != 0) fail("the generator failed: " + command);
  std::ofstream(done) << "1\n";
}

std::string cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  }
  return "unknown CPU";
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> args(argv + 1, argv + argc);
  if (!args.empty() && args[0] == "child") return child({args.begin() + 1, args.end()});
  const std::string filter = args.empty() ? "all" : args[0];
  const std::vector<std::pair<std::string, void (*)()>> tables = {
      {"decode", table_decode},      {"whole", table_whole}, {"eval", table_eval},
      {"backends", table_backends},  {"state", table_state}, {"ready", table_ready},
      {"diagnosis", table_diagnosis}};
  const bool known =
      filter == "all" ||
      std::any_of(tables.begin(), tables.end(), [&](const auto& t) { return t.first == filter; });
  if (!known)
    fail("unknown table '" + filter +
         "'; one of: all decode whole eval backends state ready diagnosis");
  prepare_data();
  utsname system{};
  uname(&system);
  fmt::print("Reflex replay benchmark: {}, {} CPUs, Linux {}, g++ {}, commit {}\n", cpu_model(),
             sysconf(_SC_NPROCESSORS_ONLN), system.release, __VERSION__, REFLEX_BENCH_COMMIT);
  fmt::print("Median of {} runs in turn, each in its own pinned process; compare by ratio.\n",
             kRepeats);
  for (const auto& [name, run] : tables) {
    if (filter == "all" || filter == name) {
      run();
      std::fflush(stdout);
    }
  }
  return 0;
}

// `reflex test`: runs the test blocks of packs.
#include <fmt/format.h>
#include <re2/re2.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "runtime/app/commands.h"
#include "runtime/app/load_packs.h"
#include "runtime/app/test_coverage.h"
#include "runtime/app/test_runner.h"

namespace reflex::app {
namespace {

struct TestFlags {
  LoadRequest load;
  std::string run_pattern;
  std::string junit;
  TestOptions options;
  unsigned jobs = 2;
  bool coverage = false;
  bool json = false;
};

struct Chosen {
  const ast::Module* module;
  const ast::Decl* decl;
};

std::vector<Chosen> choose(const compiler::Compilation& compilation, const std::string& pattern) {
  std::vector<Chosen> chosen;
  for (const auto& [module_index, decl_index] : compilation.tests) {
    const ast::Module& module = compilation.modules[module_index];
    const ast::Decl& decl = module.decls[decl_index];
    const auto& title = std::get<ast::TestDecl>(decl.node).title;
    if (pattern.empty() || RE2::PartialMatch(title, pattern)) chosen.push_back({&module, &decl});
  }
  return chosen;
}

std::vector<TestOutcome> run_all(const compiler::Compilation& compilation,
                                 const std::vector<Chosen>& chosen, const TestFlags& flags) {
  std::vector<TestOutcome> outcomes(chosen.size());
  std::atomic<size_t> next{0};
  const auto work = [&] {
    for (size_t i; (i = next.fetch_add(1)) < chosen.size();) {
      outcomes[i] = run_test(compilation, *chosen[i].module, *chosen[i].decl, flags.options);
    }
  };
  std::vector<std::jthread> workers;
  for (unsigned i = 1; i < flags.jobs; ++i) workers.emplace_back(work);
  work();
  return outcomes;  // workers join before the vector is used: jthread
}

std::string xml_escape(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '&':
        out += "&amp;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += (static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t') ? ' ' : c;
    }
  }
  return out;
}

bool write_junit(const std::string& path, const std::vector<TestOutcome>& outcomes) {
  std::ofstream file(path);
  size_t failed = 0;
  for (const auto& o : outcomes) failed += o.passed ? 0 : 1;
  file << fmt::format("<testsuite name=\"reflex\" tests=\"{}\" failures=\"{}\">\n", outcomes.size(),
                      failed);
  for (const auto& o : outcomes) {
    file << fmt::format("  <testcase name=\"{}\" classname=\"{}\" time=\"{:.6f}\">",
                        xml_escape(o.title), xml_escape(o.place), o.milliseconds / 1e3);
    if (!o.passed) {
      file << fmt::format("<failure message=\"{}\">",
                          xml_escape(o.report.substr(0, o.report.find('\n'))))
           << xml_escape(o.report) << "</failure>";
    }
    file << "</testcase>\n";
  }
  file << "</testsuite>\n";
  file.flush();
  return file.good();
}

void print_outcomes(const std::vector<TestOutcome>& outcomes, const TestFlags& flags,
                    const CommonFlags& common) {
  const bool color = common.color_on(STDOUT_FILENO);
  for (const auto& o : outcomes) {
    if (common.format == "json") {
      const nlohmann::ordered_json line = {{"title", o.title},     {"place", o.place},
                                           {"passed", o.passed},   {"expectations", o.expectations},
                                           {"ms", o.milliseconds}, {"report", o.report}};
      fmt::print("{}\n", line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
      continue;
    }
    if (o.passed && !flags.options.verbose) continue;
    const char* on = !color ? "" : o.passed ? "\x1b[32m" : "\x1b[1;31m";
    fmt::print("{}{}{} {} ({}, {:.1f} ms)\n{}", on, o.passed ? "pass" : "FAIL",
               color ? "\x1b[0m" : "", o.title, o.place, o.milliseconds, o.report);
  }
}

int run(TestFlags flags, CommonFlags common) {
  if (flags.json) common.format = "json";
  if (!flags.run_pattern.empty() && !RE2(flags.run_pattern, RE2::Quiet).ok()) {
    print_error(common, fmt::format("--run: '{}' is not a regular expression", flags.run_pattern));
    return kUsage;
  }
  const auto started = std::chrono::steady_clock::now();
  Loaded loaded = load_packs(flags.load, common);
  if (loaded.exit_code != kOk) return loaded.exit_code;
  const auto chosen = choose(*loaded.compilation, flags.run_pattern);
  if (chosen.empty()) {
    print_error(common, flags.run_pattern.empty()
                            ? "no tests: the packs hold no `test` block"
                            : fmt::format("no tests: no title matches '{}'", flags.run_pattern));
    return kFindings;
  }
  flags.options.patterns = stream::compile_line_patterns(*loaded.compilation->pack);
  std::optional<TestCoverage> coverage;
  if (flags.coverage) flags.options.coverage = &coverage.emplace(*loaded.compilation);
  const auto outcomes = run_all(*loaded.compilation, chosen, flags);
  print_outcomes(outcomes, flags, common);
  size_t passed = 0;
  size_t expectations = 0;
  for (const auto& o : outcomes) {
    passed += o.passed ? 1 : 0;
    expectations += o.expectations;
  }
  if (!flags.junit.empty() && !write_junit(flags.junit, outcomes)) {
    print_error(common, fmt::format("cannot write {}", flags.junit));
    return kUsage;
  }
  if (common.format != "json") {
    const double s =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
    fmt::print("{} test{}, {} passed, {} failed, {} expectations, {:.2f} s ({})\n", outcomes.size(),
               outcomes.size() == 1 ? "" : "s", passed, outcomes.size() - passed, expectations, s,
               flags.load.backend);
  }
  if (coverage) fmt::print("{}", common.format == "json" ? coverage->json() : coverage->text());
  return passed == outcomes.size() ? kOk : kFindings;
}

}  // namespace

Command add_test(CLI::App& app, const CommonFlags& common) {
  auto flags = std::make_shared<TestFlags>();
  flags->load.include_tests = true;
  auto* sub = app.add_subcommand("test", "run the test blocks of packs");
  sub->add_option("packs", flags->load.packs, "pack folders or .rfx files")->required();
  sub->add_option("--profiles", flags->load.profiles,
                  "hardware profiles (default: hwprofiles/ near the packs)");
  sub->add_option("--run", flags->run_pattern,
                  "only tests whose title matches this RE2 pattern; -run means the same");
  sub->add_flag("-v,--verbose", flags->options.verbose, "show every test with its timeline");
  sub->add_flag("--matrix", flags->options.matrix,
                "also run each test shuffled, in one batch, with 2 threads and from saved states: "
                "all must agree");
  sub->add_option("--shuffle-seed", flags->options.shuffle_seed, "seed of the arrival orders");
  sub->add_option("--junit", flags->junit, "write a JUnit XML file");
  sub->add_flag("--coverage", flags->coverage,
                "tell which signals, edges, parameters and answers of predicates no test showed");
  sub->add_flag("--json", flags->json, "same as --format json: one object a test");
  sub->add_option("--backend", flags->load.backend, "jit or interp")
      ->check(CLI::IsMember({"jit", "interp"}));
  sub->add_option("-j,--jobs", flags->jobs, "tests at a time")->check(CLI::Range(1, 64));
  return [sub, flags, &common] { return sub->parsed() ? run(*flags, common) : -1; };
}

}  // namespace reflex::app

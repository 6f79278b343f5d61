// See daemon_world.h.
#include "tests/unit/serve/daemon_world.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "compiler/driver/compile.h"
#include "compiler/driver/compile_cache.h"

namespace reflex::serve {

namespace fs = std::filesystem;

std::string test_pack(int limit, const std::string& extra) {
  return fmt::format(R"rfx(pack world 1.0.0
clock {{ lateness 2s }}
event gpu.xid {{ key node: node  code: u16 }}
event net.drop {{ key node: node  value: f64 }}
signal xid on node {{ e: gpu.xid where e.code == 79 }} leak 1e-4 per hour
signal drops on node {{ when count(net.drop, 5m) >= {} }} leak 1e-2 per hour
fault gpu on node {{ prior 2e-4 per job }}
fault nic on node {{ prior 2e-4 per job }}
gpu causes xid p 0.8 lag -1m .. 5m
nic causes drops p 0.7 lag -1m .. 5m
incident hang on job {{ opens on incident.open  settle 5s }}
{})rfx",
                     limit, extra);
}

namespace {

Result<CompiledSet> compile_for_test(const PackRequest& request, bool jit,
                                     const std::shared_ptr<compiler::CompileCache>& cache) {
  const auto& paths = request.paths;
  compiler::Options options;
  options.symbols = request.symbols;
  options.backend = jit ? compiler::Backend::kJit : compiler::Backend::kInterp;
  options.compile_threads = 1;
  options.cache = cache;
  std::vector<compiler::InMemoryFile> texts;
  for (const auto& file : request.files) texts.push_back({file.path, file.text});
  auto compiled =
      texts.empty() ? compiler::compile(paths, options) : compiler::compile_text(texts, options);
  if (!compiled.ok()) return compiled.error();
  compiler::Compilation& c = *compiled.value();
  CompiledSet set;
  if (c.sink.has_errors()) {
    set.diagnostics.push_back(diag::render_text(c.sink.sorted(), c.sources, {}));
  } else {
    set.pack = c.pack;
  }
  if (!texts.empty()) {
    set.files = request.files;
    cache->keep(std::move(c));
    return set;
  }
  auto files = compiler::find_sources(paths);
  if (!files.ok()) return files.error();
  for (const auto& path : files.value()) {
    auto text = compiler::read_source(path);
    if (!text.ok()) return text.error();
    set.files.push_back({path, text.value()});
  }
  cache->keep(std::move(c));
  return set;
}

}  // namespace

DaemonWorld::DaemonWorld() { write_pack(test_pack()); }

std::string DaemonWorld::write_pack_at(const std::string& name, const std::string& text) const {
  const std::string folder = folder_.file(name);
  fs::create_directories(folder);
  std::ofstream(folder + "/pack.rfx") << text;
  return folder;
}

void DaemonWorld::write_pack(const std::string& text) const { (void)write_pack_at("rules", text); }

DaemonOptions DaemonWorld::options() const {
  ConfigRequest request;
  request.flags = {{"state_dir", folder_.file("state")},
                   {"packs.paths", folder_.file("rules")},
                   {"clock.ticks", "false"},
                   {"store.keep", "40000d"},  // the events are old
                   {"journal.segment", "64KiB"}};
  request.flags.insert(request.flags.end(), flags.begin(), flags.end());
  auto config = load_config(request);
  EXPECT_TRUE(config.ok()) << config.error().message;
  DaemonOptions options;
  options.config = std::move(config).value();
  const auto cache = std::make_shared<compiler::CompileCache>();
  options.compile = [jit = jit, cache](const PackRequest& packs) {
    return compile_for_test(packs, jit, cache);
  };
  options.disk = disk;
  return options;
}

void DaemonWorld::start() {
  DaemonOptions options = this->options();
  options.reread = reread;
  options.log = [this](const std::string& line) {
    const std::lock_guard lock(mutex_);
    said.push_back(line);
  };
  auto daemon = Daemon::start(std::move(options));
  ASSERT_TRUE(daemon.ok()) << daemon.error().message;
  daemon_ = std::move(daemon).value();
}

void DaemonWorld::kill() { daemon_.reset(); }

void DaemonWorld::give(const std::string& lines, const std::string& key) {
  IngestBody body;
  body.source = "test";
  body.text = lines;
  body.key = key;
  const auto answer = daemon_->accept(std::move(body));
  EXPECT_TRUE(answer.outcome == IngestAnswer::Outcome::kAccepted ||
              answer.outcome == IngestAnswer::Outcome::kRepeated)
      << answer.error;
}

void DaemonWorld::settle() { EXPECT_TRUE(daemon_->settle(std::chrono::seconds(60))); }

std::vector<std::string> DaemonWorld::verdicts() {
  std::vector<std::string> out;
  VerdictFilter filter;
  const auto status = daemon_->store().each_verdict(filter, [&](const StoredVerdict& v) {
    const auto culprits = v.json.find("\"culprits\":");
    out.push_back(fmt::format("{}/{}{} {}", v.incident, v.revision, v.final ? " final" : "",
                              v.json.substr(culprits, v.json.find(']', culprits) - culprits + 1)));
    return true;
  });
  EXPECT_TRUE(status.ok());
  return out;
}

std::string hang_of(int job, int second, int nodes) {
  const auto ts = [&](int offset) { return (1'700'000'000LL + second) * 1000 + offset; };
  std::string list;
  for (int i = 0; i < nodes; ++i) list += fmt::format("{}\"j{}n{}\"", i ? "," : "", job, i);
  std::string out = fmt::format(R"({{"ts":{},"kind":"job.start","job":"j{}","nodes":[{}]}})"
                                "\n",
                                ts(0), job, list);
  for (int i = 0; i < 4; ++i) {
    out += fmt::format(R"({{"ts":{},"kind":"net.drop","node":"j{}n{}","value":{}}})"
                       "\n",
                       ts(100 + i), job, i % 2 == 0 ? 0 : 1 % nodes, i);
  }
  if (job % 2 == 0) {
    out += fmt::format(R"({{"ts":{},"kind":"gpu.xid","node":"j{}n0","code":79}})"
                       "\n",
                       ts(200), job);
  } else {
    for (int i = 0; i < 3; ++i) {
      out += fmt::format(R"({{"ts":{},"kind":"net.drop","node":"j{}n1","value":9}})"
                         "\n",
                         ts(210 + i), job);
    }
  }
  out += fmt::format(
      R"({{"ts":{},"kind":"incident.open","incident":"i{}","job":"j{}","symptom":"hang"}})"
      "\n",
      ts(700), job, job);
  return out;
}

std::string later(int second) {
  return fmt::format(R"({{"ts":{},"kind":"net.drop","node":"far","value":1}})"
                     "\n",
                     (1'700'000'000LL + second) * 1000);
}

}  // namespace reflex::serve

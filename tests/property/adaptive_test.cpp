// The same bytes with everything that adapts in use: days of events, epochs, repairs, cohorts.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "compiler/driver/compile.h"
#include "runtime/engine/engine.h"
#include "runtime/engine/pipeline.h"
#include "runtime/explain/explain.h"

namespace reflex {
namespace {

constexpr const char* kPack = R"rfx(
pack days 1.0.0
event gpu.xid { key node: node  code: u16 }
event gpu.temp { key node: node  value: f64 }
feature heat on node = mean(gpu.temp.value, last 8)
signal xid on node { e: gpu.xid where e.code == 79 } leak 1e-4 per hour
signal warn on node { e: gpu.xid where e.code == 63 } holds 20m leak 1e-3 per hour
signal hot on node { when heat > 70 }
fault gpu on node { prior 2e-4 per job }
fault memory on node { prior 2e-4 per job }
gpu causes xid p 0.6 lag -1m .. 5m
memory causes warn p 0.7 lag -1h .. 5m
memory causes hot p 0.2 lag -1h .. 5m
incident hang on job { opens on incident.open  settle 30s  merge for 2m }
)rfx";

constexpr int64_t kDays = 5;

/// Ten nodes over five days: warnings as a habit, a driver of one fault, repairs.
std::string events() {
  std::mt19937_64 random(5);
  std::string out = R"({"ts":1000,"kind":"job.start","job":"j","nodes":["n0","n1","n2","n3","n4",)"
                    R"("n5","n6","n7","n8","n9"]})"
                    "\n";
  for (int64_t minute = 1; minute < kDays * 24 * 60; minute += 1 + random() % 5) {
    const int64_t ts = minute * 60'000 + static_cast<int64_t>(random() % 60'000);
    const auto node = random() % 10;
    const auto line = [&](const std::string& rest) {
      out += fmt::format("{{\"ts\":{},{}}}\n", ts, rest);
    };
    switch (random() % 12) {
      case 0:
        line(fmt::format(R"("kind":"gpu.xid","node":"n{}","code":63)", node % 3));
        break;
      case 1:
        if (random() % 10 == 0) {
          line(fmt::format(R"("kind":"gpu.xid","node":"n{}","code":79)", node));
          out += fmt::format(
              R"({{"ts":{},"kind":"incident.open","incident":"i{}","job":"j","symptom":"hang"}})"
              "\n",
              ts + 1500, ts);
        }
        break;
      case 2:
        if (random() % 20 == 0) line(fmt::format(R"("kind":"node.repaired","node":"n{}")", node));
        break;
      case 3:
        if (random() % 20 == 0) {
          line(fmt::format(R"("kind":"maint.start","node":"n{}")", node));
          out += fmt::format(R"({{"ts":{},"kind":"maint.end","node":"n{}"}})"
                             "\n",
                             ts + 1'800'000, node);
        }
        break;
      default:
        line(fmt::format(R"("kind":"gpu.temp","node":"n{}","value":{})", node, 40 + random() % 45));
    }
  }
  return out;
}

/// The adaptive parameter is put in by hand: epochs sample `heat` and make thresholds of it.
std::shared_ptr<const abi::CompiledPack> make_pack() {
  auto compiled = compiler::compile_text({{"days/pack.rfx", kPack}}, {});
  EXPECT_TRUE(compiled.ok());
  auto& c = *compiled.value();
  EXPECT_FALSE(c.sink.has_errors()) << diag::render_text(c.sink.sorted(), c.sources, {});
  auto pack = std::make_shared<abi::CompiledPack>(*c.pack);
  for (abi::FeatureId f = 0; f < pack->features.size(); ++f) {
    if (pack->features[f].name.find("heat") == std::string::npos) continue;
    pack->adaptives.push_back({"heat_high", abi::kNone32, f, {}});
    break;
  }
  EXPECT_EQ(pack->adaptives.size(), 1u);
  for (auto& hw : pack->classes) {
    abi::AdaptiveSettings s;
    s.quantile = 0.9;
    s.initial = 65;
    s.floor = 1;
    s.ceiling = 200;
    s.min_samples = 50;
    hw.adaptive = {s};
  }
  return pack;
}

struct Outcome {
  std::string verdicts;
  std::string tables;
};

Outcome run(const std::shared_ptr<const abi::CompiledPack>& pack, const std::string& path,
            unsigned threads, size_t batch, engine::Ablation ablate = {}) {
  Outcome out;
  engine::EngineSinks sinks;
  sinks.verdict = [&](abi::Verdict&& v) { out.verdicts += explain::to_json(v, false) + "\n"; };
  sinks.final_input = [&](const attribution::Input& input, const abi::Verdict& v) {
    out.tables += fmt::format("{} {}", v.incident, v.table_version);
    for (const auto& view : input.nodes) {
      out.tables += fmt::format(" {}", view.hazard);
      if (!input.tables) continue;
      const auto* row = input.tables->row_of_node(view.hw_class, view.node);
      out.tables += fmt::format("/{}", row[0].f64());
      for (abi::SignalId s = 0; s < pack->signals.size(); ++s) {
        const auto rate = input.tables->benign(s, view.hw_class, view.node);
        out.tables += fmt::format("/{}", rate.firings_per_hour);
      }
    }
    out.tables += "\n";
  };
  engine::EngineOptions engine_options;
  engine_options.threads = threads;
  engine_options.ablate = ablate;
  auto engine = engine::Engine::create(pack, engine_options, sinks);
  EXPECT_TRUE(engine.ok());
  engine::PipelineOptions options;
  options.events = {path};
  options.threads = threads;
  options.batch_events = batch;
  EXPECT_TRUE(engine::run_pipeline(pack, *engine.value(), options, {}).ok());
  return out;
}

class Adaptive : public testing::Test {
 protected:
  void SetUp() override {
    path_ = (std::filesystem::temp_directory_path() / fmt::format("reflex_days_{}", getpid()))
                .string();
    std::ofstream(path_) << events();
    pack_ = make_pack();
  }
  void TearDown() override { std::filesystem::remove(path_); }
  std::string path_;
  std::shared_ptr<const abi::CompiledPack> pack_;
};

TEST_F(Adaptive, TheSameBytesForAnyThreadsAndBatches) {
  const Outcome expected = run(pack_, path_, 1, 4096);
  ASSERT_NE(expected.verdicts.find("\"final\":true"), std::string::npos);
  for (const unsigned threads : {1u, 2u}) {
    for (const size_t batch : {size_t{1}, size_t{37}, size_t{100'000}}) {
      const Outcome other = run(pack_, path_, threads, batch);
      ASSERT_TRUE(other.tables == expected.tables) << threads << " threads, batch " << batch;
      ASSERT_TRUE(other.verdicts == expected.verdicts) << threads << " threads, batch " << batch;
    }
  }
}

TEST_F(Adaptive, TablesAndHazardsAreReallyInUse) {
  const Outcome all = run(pack_, path_, 1, 4096);
  engine::Ablation ablate;
  ablate.dynamic = true;
  const Outcome still = run(pack_, path_, 1, 4096, ablate);
  EXPECT_NE(all.verdicts, still.verdicts);
  EXPECT_EQ(still.tables.find('/'), std::string::npos);
  const std::string last = all.tables.substr(all.tables.rfind('\n', all.tables.size() - 2) + 1);
  EXPECT_EQ(last.find("/65/"), std::string::npos) << "the threshold has left its default: " << last;
  ablate = {};
  ablate.history = true;
  const Outcome alike = run(pack_, path_, 1, 4096, ablate);
  EXPECT_NE(all.tables, alike.tables);
  EXPECT_NE(all.verdicts, alike.verdicts);
}

}  // namespace
}  // namespace reflex

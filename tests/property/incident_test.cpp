// The life of an incident: what opens it, what merges, revisions and their ids.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "compiler/driver/compile.h"
#include "runtime/explain/explain.h"
#include "runtime/engine/engine.h"
#include "runtime/engine/pipeline.h"

namespace reflex {
namespace {

constexpr const char* kPack = R"rfx(
pack life 1.0.0
event gpu.xid { key node: node  code: u16 }
signal xid on node { e: gpu.xid where e.code == 79 } leak 1e-4 per hour
signal late_proof on node { e: gpu.xid where e.code == 48 } leak 1e-5 per hour
fault gpu on node { prior 2e-4 per job }
fault memory on node { prior 2e-4 per job }
gpu causes xid p 0.6 lag -1m .. 5m
memory causes late_proof p 0.9 lag -1m .. 5m
incident hang on job {
  opens on xid
  opens on incident.open where it.symptom == "hang"
  settle 30s  merge for 2m
}
)rfx";

std::vector<abi::Verdict> run(const std::string& lines) {
  auto compiled = compiler::compile_text({{"life/pack.rfx", kPack}}, {});
  EXPECT_TRUE(compiled.ok());
  auto& c = *compiled.value();
  EXPECT_FALSE(c.sink.has_errors()) << diag::render_text(c.sink.sorted(), c.sources, {});
  const auto path =
      std::filesystem::temp_directory_path() / fmt::format("reflex_life_{}", getpid());
  std::ofstream(path) << R"({"ts":1000,"kind":"job.start","job":"j","nodes":["n1","n2"]})" << "\n"
                      << lines;
  std::vector<abi::Verdict> verdicts;
  engine::EngineSinks sinks;
  sinks.verdict = [&](abi::Verdict&& v) { verdicts.push_back(std::move(v)); };
  auto engine = engine::Engine::create(c.pack, {}, sinks);
  EXPECT_TRUE(engine.ok());
  engine::PipelineOptions options;
  options.events = {path.string()};
  EXPECT_TRUE(engine::run_pipeline(c.pack, *engine.value(), options, {}).ok());
  std::filesystem::remove(path);
  return verdicts;
}

std::string xid(int ts_s, const char* node, int code) {
  return fmt::format("{{\"ts\":{},\"kind\":\"gpu.xid\",\"node\":\"{}\",\"code\":{}}}\n",
                     ts_s * 1000, node, code);
}

std::string opened(int ts_s, const char* id, const char* symptom) {
  return fmt::format(
      "{{\"ts\":{},\"kind\":\"incident.open\",\"incident\":\"{}\",\"job\":\"j\",\"symptom\":\"{}\"}"
      "}\n",
      ts_s * 1000, id, symptom);
}

TEST(Incident, FirstVerdictAtOnceAndAFinalOneAfterTheSettleWindow) {
  const auto verdicts = run(xid(100, "n1", 79));
  ASSERT_EQ(verdicts.size(), 2u);
  EXPECT_EQ(verdicts[0].revision, 1u);
  EXPECT_FALSE(verdicts[0].final_revision);
  EXPECT_EQ(verdicts[0].ts_ns, 100'000'000'000);
  EXPECT_TRUE(verdicts[1].final_revision);
  EXPECT_EQ(verdicts[1].ts_ns, 130'000'000'000);
  EXPECT_EQ(verdicts[1].culprits, std::vector<std::string>{"n1"});
}

TEST(Incident, NewEvidenceThatChangesTheAnswerGivesARevision) {
  const auto verdicts = run(xid(100, "n1", 79) + xid(110, "n2", 48) + xid(111, "n2", 48));
  ASSERT_EQ(verdicts.size(), 3u);
  EXPECT_EQ(verdicts[1].ts_ns, 111'000'000'000);  // the next whole second after the evidence
  EXPECT_NE(verdicts[1].culprits, verdicts[0].culprits);
  std::set<std::string> ids;
  for (const auto& v : verdicts) ids.insert(v.id);
  EXPECT_EQ(ids.size(), 3u);
  const auto again = run(xid(100, "n1", 79) + xid(110, "n2", 48) + xid(111, "n2", 48));
  for (size_t i = 0; i < verdicts.size(); ++i) EXPECT_EQ(verdicts[i].id, again[i].id);
}

TEST(Incident, ATriggerWithinTheMergeSpanJoinsAndALaterOneIsNew) {
  const auto merged = run(xid(100, "n1", 79) + xid(180, "n2", 79));
  EXPECT_EQ(std::count_if(merged.begin(), merged.end(), [](auto& v) { return v.final_revision; }),
            1);
  const auto apart = run(xid(100, "n1", 79) + xid(400, "n2", 79));
  EXPECT_EQ(std::count_if(apart.begin(), apart.end(), [](auto& v) { return v.final_revision; }), 2);
}

TEST(Incident, AnIncidentFromOutsideKeepsItsIdAndObeysItsPredicate) {
  EXPECT_TRUE(run(opened(100, "i1", "slow")).empty());
  const auto verdicts = run(opened(100, "i1", "hang") + opened(110, "i2", "hang"));
  std::set<std::string> incidents;
  for (const auto& v : verdicts) incidents.insert(v.incident);
  EXPECT_EQ(incidents, (std::set<std::string>{"i1", "i2"}));
  EXPECT_EQ(verdicts.front().symptom, "hang");
}

TEST(Incident, ARequestForAnOpenIncidentGivesItTheAskedId) {
  const auto verdicts = run(xid(100, "n1", 79) + opened(104, "i1", "hang"));
  ASSERT_EQ(
      std::count_if(verdicts.begin(), verdicts.end(), [](auto& v) { return v.final_revision; }), 1);
  EXPECT_EQ(verdicts.back().incident, "i1");
  EXPECT_EQ(verdicts.back().ts_ns, 134'000'000'000);  // settles from the request on
}

TEST(Incident, ContributionsAndPriorSumToTheLogOddsOnTheRealPath) {
  for (const auto& v : run(xid(100, "n1", 79) + xid(110, "n2", 48))) {
    for (const auto& h : v.hypotheses) {
      double sum = h.prior_nats;
      for (const auto& c : h.contributions) sum += c.nats;
      EXPECT_NEAR(sum, h.log_odds_nats, 1e-9) << h.entity;
    }
    auto read = explain::from_json(explain::to_json(v, false));
    ASSERT_TRUE(read.ok());
    EXPECT_EQ(explain::to_json(read.value(), false), explain::to_json(v, false));
  }
}

}  // namespace
}  // namespace reflex

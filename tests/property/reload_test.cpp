// A pack set takes the place of another in the middle of an incident: what is the same comes along,
// what is gone goes, and what has changed is looked at again.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "runtime/base/time.h"
#include "tests/property/stage.h"

namespace reflex {
namespace {

using test::Stage;
using test::compile;

constexpr const char* kPack = R"rfx(
pack re 1.0.0
event gpu.xid { key node: node  code: u16 }
event gpu.temp { key node: node  value: f64 }
feature heat on node = mean(gpu.temp.value, last 2)
signal xid on node { e: gpu.xid where e.code == 79 } leak 1e-4 per hour
signal proof on node { e: gpu.xid where e.code == 48 } holds 20m leak 1e-5 per hour
signal hot on node { when heat > 90 } leak 1e-4 per hour
fault gpu on node { prior 2e-4 per job }
fault memory on node { prior 2e-4 per job }
gpu causes xid p 0.6 lag -1m .. 5m
memory causes proof p 0.9 lag -30m .. 5m
memory causes hot p 0.5 lag -30m .. 5m
incident hang on job { opens on xid  settle 60s  merge for 2m }
)rfx";

std::string changed(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

std::string xid(int64_t ts_s, const char* node, int code) {
  return fmt::format("{{\"ts\":{},\"kind\":\"gpu.xid\",\"node\":\"{}\",\"code\":{}}}\n",
                     ts_s * 1000, node, code);
}

std::string temp(int64_t ts_s, const char* node, double value) {
  return fmt::format("{{\"ts\":{},\"kind\":\"gpu.temp\",\"node\":\"{}\",\"value\":{}}}\n",
                     ts_s * 1000, node, value);
}

const std::string kStart = R"({"ts":1000,"kind":"job.start","job":"j","nodes":["n1","n2"]})"
                           "\n" +
                           temp(2, "n1", 40) + temp(2, "n2", 85) + temp(3, "n1", 40) +
                           temp(3, "n2", 85);
/// Up to ten seconds into the incident that n1 opens at 100 s; lateness is 5 s.
const std::string kFirstHalf = kStart + xid(90, "n2", 48) + xid(100, "n1", 79) + temp(115, "n1", 41);
const std::string kSecondHalf = temp(130, "n1", 42) + temp(200, "n1", 42);

/// The state of kFirstHalf, once.
const std::string& state_midway(const std::shared_ptr<const abi::CompiledPack>& pack) {
  static std::map<const abi::CompiledPack*, std::string> states;
  auto& state = states[pack.get()];
  if (state.empty()) {
    Stage stage(pack);
    stage.feed(kFirstHalf);
    EXPECT_EQ(stage.engine().incidents_open(), 1u);
    EXPECT_FALSE(stage.verdicts.empty());
    state = stage.save();
  }
  return state;
}

std::set<std::string> causes_of(const abi::Verdict& verdict) {
  std::set<std::string> causes;
  for (const auto& h : verdict.hypotheses) causes.insert(h.cause);
  return causes;
}

bool says(const abi::Verdict& verdict, const std::string& signal, const std::string& node) {
  for (const auto& h : verdict.hypotheses) {
    for (const auto& c : h.contributions) {
      if (c.signal == signal && c.entity == node && c.state == abi::SignalState::kFired) return true;
    }
  }
  return false;
}

TEST(Reload, TheSameSetGoesOnAsIfNothingHadHappened) {
  const auto pack = compile(kPack);
  Stage straight(pack);
  straight.feed(kFirstHalf);
  const size_t verdicts = straight.verdicts.size();
  const size_t firings = straight.firings.size();
  straight.feed(kSecondHalf);
  straight.finish();
  straight.verdicts.erase(straight.verdicts.begin(), straight.verdicts.begin() + verdicts);
  straight.firings.erase(straight.firings.begin(), straight.firings.begin() + firings);
  ASSERT_FALSE(straight.verdicts.empty());
  for (const unsigned threads : {1u, 4u}) {
    // Compiled anew: other code, other symbol ids.
    Stage after(compile(kPack), threads);
    auto report = after.load(state_midway(pack));
    ASSERT_TRUE(report.ok()) << report.error().message;
    EXPECT_TRUE(report.value().notes.empty());
    ASSERT_EQ(report.value().rows.size(), 4u);
    for (const StateFate& row : report.value().rows) EXPECT_EQ(row.fate, "kept") << row.name;
    after.feed(kSecondHalf);
    after.finish();
    EXPECT_EQ(after.text(), straight.text());
  }
}

TEST(Reload, EqualStatesAreEqualBytes) {
  const auto pack = compile(kPack);
  Stage one(pack, 1);
  Stage four(pack, 4);
  one.feed(kFirstHalf);
  four.feed(kFirstHalf);
  const std::string state = one.save();
  EXPECT_EQ(one.save(), state);
  EXPECT_EQ(four.save(), state);
  Stage loaded(compile(kPack), 2);
  ASSERT_TRUE(loaded.load(state).ok());
  EXPECT_EQ(loaded.save(), state);
}

TEST(Reload, AnOpenIncidentKeepsItsIdItsRevisionsAndItsEvidence) {
  const auto pack = compile(kPack);
  Stage before(pack);
  before.feed(kFirstHalf);
  Stage after(compile(changed(kPack, "pack re 1.0.0", "pack re 1.1.0")));
  auto report = after.load(state_midway(pack));
  ASSERT_TRUE(report.ok()) << report.error().message;
  after.feed(kSecondHalf);
  after.finish();
  ASSERT_EQ(after.verdicts.size(), 1u) << "the same evidence: no revision but the final one";
  const abi::Verdict& last = after.verdicts.back();
  EXPECT_EQ(last.incident, before.verdicts.back().incident);
  EXPECT_EQ(last.revision, before.verdicts.back().revision + 1);
  EXPECT_TRUE(last.final_revision);
  EXPECT_NE(last.pack_sha256, before.verdicts.back().pack_sha256);
  EXPECT_TRUE(says(last, "re.xid", "n1"));
  EXPECT_TRUE(says(last, "re.proof", "n2"));
  EXPECT_EQ(after.engine().incidents_opened(), 1u);
}

TEST(Reload, AChangedThresholdIsEvaluatedAgain) {
  const auto pack = compile(kPack);
  Stage after(compile(changed(kPack, "heat > 90", "heat > 80")));
  auto report = after.load(state_midway(pack));
  ASSERT_TRUE(report.ok()) << report.error().message;
  after.feed(kSecondHalf);
  after.finish();
  const bool fired = std::any_of(after.firings.begin(), after.firings.end(), [&](const auto& f) {
    return after.pack().signals[f.signal].name == "re.hot";
  });
  EXPECT_TRUE(fired) << "n2 is at 85";
  ASSERT_FALSE(after.verdicts.empty());
  EXPECT_TRUE(says(after.verdicts.back(), "re.hot", "n2"));
}

TEST(Reload, WhatIsRemovedVanishes) {
  const auto pack = compile(kPack);
  std::string text = changed(kPack, "fault gpu on node { prior 2e-4 per job }\n", "");
  text = changed(text, "gpu causes xid p 0.6 lag -1m .. 5m\n", "memory causes xid p 0.1\n");
  Stage no_fault(compile(text));
  ASSERT_TRUE(no_fault.load(state_midway(pack)).ok());
  no_fault.feed(kSecondHalf);
  no_fault.finish();
  ASSERT_FALSE(no_fault.verdicts.empty());
  EXPECT_FALSE(causes_of(no_fault.verdicts.back()).contains("re.gpu"));
  EXPECT_TRUE(causes_of(no_fault.verdicts.back()).contains("re.memory"));

  text = changed(kPack, "signal proof on node { e: gpu.xid where e.code == 48 } holds 20m leak 1e-5 per hour\n", "");
  text = changed(text, "memory causes proof p 0.9 lag -30m .. 5m\n", "");
  Stage no_signal(compile(text));
  auto report = no_signal.load(state_midway(pack));
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report.value().notes.size(), 1u);  // its evidence
  no_signal.feed(kSecondHalf);
  no_signal.finish();
  ASSERT_FALSE(no_signal.verdicts.empty());
  EXPECT_FALSE(says(no_signal.verdicts.back(), "re.proof", "n2"));

  Stage no_incident(compile(changed(kPack, "incident hang on job", "incident stall on job")));
  report = no_incident.load(state_midway(pack));
  ASSERT_TRUE(report.ok());
  ASSERT_EQ(report.value().notes.size(), 1u);
  EXPECT_NE(report.value().notes[0].find("its type is gone"), std::string::npos);
  no_incident.feed(kSecondHalf);
  no_incident.finish();
  EXPECT_TRUE(no_incident.verdicts.empty());
}

TEST(Reload, ARenamedSignalTakesItsEvidenceAlong) {
  const auto pack = compile(kPack);
  std::string text = changed(kPack, "signal proof on node", "signal evidence on node");
  text = changed(text, "holds 20m leak 1e-5 per hour", "holds 20m leak 1e-5 per hour was proof");
  text = changed(text, "memory causes proof", "memory causes evidence");
  Stage after(compile(text));
  auto report = after.load(state_midway(pack));
  ASSERT_TRUE(report.ok()) << report.error().message;
  EXPECT_TRUE(report.value().notes.empty());
  after.feed(kSecondHalf);
  after.finish();
  ASSERT_FALSE(after.verdicts.empty());
  EXPECT_TRUE(says(after.verdicts.back(), "re.evidence", "n2"));
}

TEST(Reload, DamagedStatesAreErrorsAndNeverCrash) {
  const auto pack = compile(kPack);
  const std::string& state = state_midway(pack);
  std::mt19937_64 random(7);
  for (size_t size = 0; size < state.size(); size += 1 + size / 64) {
    Stage stage(pack);
    EXPECT_FALSE(stage.load(std::string_view(state).substr(0, size)).ok()) << size;
  }
  size_t errors = 0;
  for (int i = 0; i < 300; ++i) {
    std::string flipped = state;
    flipped[random() % flipped.size()] ^= static_cast<char>(1 + random() % 255);
    Stage stage(pack);
    if (!stage.load(flipped).ok()) {
      ++errors;
      continue;
    }
    stage.feed(kSecondHalf);  // another value of the right form: a checksum finds it, not we
    stage.finish();
  }
  EXPECT_GT(errors, 20u);
}

constexpr const char* kDays = R"rfx(
pack days 1.0.0
event gpu.xid { key node: node  code: u16 }
event gpu.temp { key node: node  value: f64 }
feature heat on node = mean(gpu.temp.value, last 8)
profile hw.unknown fallback { }
profile hw.one matches label product like "one" { }
signal warn on node { e: gpu.xid where e.code == 63 } holds 20m leak 1e-3 per hour
signal hot on node { when heat > 70 }
fault gpu on node { prior 2e-4 per job }
gpu causes warn p 0.7 lag -1h .. 5m
incident hang on job { opens on incident.open  settle 30s  merge for 2m }
)rfx";

std::string days_of_events(int days) {
  std::mt19937_64 random(9);
  std::string out;
  for (int n = 0; n < 10; ++n) {
    out += fmt::format(
        R"({{"ts":1000,"kind":"node.labels","node":"n{}","labels":{{"product":"one"}}}})"
        "\n",
        n);
  }
  for (int64_t minute = 1; minute < days * 24 * 60; minute += 1 + random() % 5) {
    const auto node = random() % 10;
    out += random() % 6 == 0 ? xid(minute * 60, fmt::format("n{}", node % 3).c_str(), 63)
                             : temp(minute * 60, fmt::format("n{}", node).c_str(),
                                    40 + static_cast<double>(random() % 20));
  }
  return out;
}

const abi::BenignRate rate_of(Stage& stage, const std::string& signal, const char* node) {
  for (abi::SignalId s = 0; s < stage.pack().signals.size(); ++s) {
    if (stage.pack().signals[s].name != signal) continue;
    return stage.engine().adaptation().rates().benign(s, stage.pack().symbols->find(node));
  }
  ADD_FAILURE() << signal;
  return {};
}

TEST(Reload, BenignRatesComeAlongByNameAndNewSignalsHaveNone) {
  Stage before(compile(kDays));
  before.feed(days_of_events(6));
  const abi::BenignRate was = rate_of(before, "days.warn", "n1");
  ASSERT_GT(was.node_hours, 24);
  ASSERT_GT(was.firings_per_hour, 0);
  std::string text = changed(kDays, "signal warn on node", "signal warning on node");
  text = changed(text, "leak 1e-3 per hour", "leak 1e-3 per hour was warn");
  text = changed(text, "gpu causes warn", "gpu causes warning");
  text = changed(text, "fault gpu", "signal other on node { e: gpu.xid where e.code == 64 }\nfault gpu");
  text = changed(text, "profile hw.one", "profile hw.first");
  Stage after(compile(text));
  auto report = after.load(before.save());
  ASSERT_TRUE(report.ok()) << report.error().message;
  const abi::BenignRate now = rate_of(after, "days.warning", "n1");
  EXPECT_EQ(now.firings_per_hour, was.firings_per_hour) << "the class was renamed, not changed";
  EXPECT_EQ(now.node_hours, was.node_hours);
  EXPECT_EQ(rate_of(after, "days.other", "n1").node_hours, 0)
      << "nobody looked for it: silence until now says nothing";
  const auto& notes = report.value().notes;
  EXPECT_TRUE(std::any_of(notes.begin(), notes.end(), [](const std::string& note) {
    return note == "class hw.one is now hw.first";
  }));
}

TEST(Reload, NodesOfAnotherClassBeginAnew) {
  Stage before(compile(kDays));
  before.feed(days_of_events(6));
  const std::string text = changed(kDays, R"(like "one")", R"(like "two")");
  Stage after(compile(text));
  ASSERT_TRUE(after.load(before.save()).ok());
  const SymbolId node = after.pack().symbols->find("n1");
  EXPECT_EQ(after.engine().topology().hw_class(node, INT64_MAX), 0);
  EXPECT_EQ(after.engine().adaptation().rates().cohort_text(node),
            "class " + after.pack().classes[0].name);
}

}  // namespace
}  // namespace reflex

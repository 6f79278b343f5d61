// Model files: bound to a pack set, readable, read back exactly.
#include "runtime/learn/model_file.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>

#include "tests/unit/learn/learn_world.h"

namespace reflex::learn {
namespace {

constexpr double kUnset = std::numeric_limits<double>::quiet_NaN();

/// Every field differs from its default.
abi::Model full_model(const abi::CompiledPack& pack) {
  abi::Model m;
  m.pack_sha256 = pack.set_sha256;
  m.incidents = 123;
  m.from_ns = 1700000000 * kNsPerSecond;
  m.to_ns = 1710000000 * kNsPerSecond;
  m.edge_p.assign(pack.edges.size(), kUnset);
  m.edge_p[0] = 0.1 + 0.2;
  m.edge_p[3] = 1.0 / 3;
  m.leak_per_hour.assign(pack.signals.size(), kUnset);
  m.leak_per_hour[1] = 1e-7;
  m.cause_prior = {0.0123, kUnset};
  m.cause_class_scale = {{kUnset, 2.5}, {kUnset, kUnset}};
  m.signal_multiplier.assign(pack.signals.size(), kUnset);
  m.signal_multiplier[0] = 0;
  m.signal_multiplier[2] = 1.75;
  m.temperature = 1.3;
  m.none_shift_nats = -0.4;
  m.graded_extra.assign(pack.signals.size(), kUnset);
  m.graded_extra[2] = 5.5;
  m.graded_profile.assign(pack.signals.size(), {});
  m.graded_profile[2] = {0.1, 0.2, 0.3, 0.2, 0.1, 0.1};
  m.episode_leak.assign(pack.signals.size(), kUnset);
  m.episode_leak[2] = 0.02;
  m.history = {{9, 4.5, 3, 0.5}, 0.75, 0.25};
  m.co_culprit_odds = 0.04;
  m.degrading_elsewhere = 0.006;
  m.synergy_nats = {1.25};
  m.levels = {0.8, 0.4};
  m.class_levels = {{0, 0}, {0, 0.45}};
  return m;
}

LearnWorld world() {
  LearnWorld w = LearnWorld::two_faults();
  abi::SynergyPlan synergy;
  synergy.cause = 0;
  synergy.signals = {1, 2};
  w.pack->synergies.push_back(synergy);
  return w;
}

bool same(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i]) != std::isnan(b[i]) || (!std::isnan(a[i]) && a[i] != b[i])) return false;
  }
  return true;
}

TEST(ModelFile, IsReadBackExactly) {
  const LearnWorld w = world();
  const abi::Model m = full_model(*w.pack);
  const std::string text = to_json(m, *w.pack);
  const auto back = parse_model(text, *w.pack, "m.json");
  ASSERT_TRUE(back.ok()) << back.error().message;
  const abi::Model& r = back.value();
  EXPECT_TRUE(same(r.edge_p, m.edge_p));
  EXPECT_TRUE(same(r.leak_per_hour, m.leak_per_hour));
  EXPECT_TRUE(same(r.cause_prior, m.cause_prior));
  EXPECT_TRUE(same(r.cause_class_scale[0], m.cause_class_scale[0]));
  EXPECT_TRUE(same(r.signal_multiplier, m.signal_multiplier));
  EXPECT_TRUE(same(r.graded_extra, m.graded_extra));
  EXPECT_TRUE(same(r.episode_leak, m.episode_leak));
  EXPECT_TRUE(same(r.synergy_nats, m.synergy_nats));
  EXPECT_EQ(r.graded_profile, m.graded_profile);
  EXPECT_EQ(r.temperature, m.temperature);
  EXPECT_EQ(r.none_shift_nats, m.none_shift_nats);
  EXPECT_EQ(r.co_culprit_odds, m.co_culprit_odds);
  EXPECT_EQ(r.history.again, m.history.again);
  EXPECT_EQ(r.history.same_cause, m.history.same_cause);
  EXPECT_EQ(r.history.usual, m.history.usual);
  EXPECT_EQ(r.degrading_elsewhere, m.degrading_elsewhere);
  EXPECT_EQ(r.levels.suspect, 0.4);
  EXPECT_EQ(r.levels.confirm, 0.8);
  EXPECT_EQ(r.class_levels[1].suspect, 0.45);
  EXPECT_EQ(r.incidents, 123u);
  EXPECT_EQ(r.from_ns, m.from_ns);
  EXPECT_EQ(r.sha256.size(), 64u);
  EXPECT_EQ(to_json(r, *w.pack), text);
}

TEST(ModelFile, NamesRulesAndShowsTheAuthorsNumber) {
  const LearnWorld w = world();
  const std::string text = to_json(full_model(*w.pack), *w.pack);
  EXPECT_NE(text.find("\"gpu_lost -> xid on self\""), std::string::npos);
  EXPECT_NE(text.find("\"author\": 0.5"), std::string::npos);
  EXPECT_EQ(text.find("nan"), std::string::npos);
  EXPECT_EQ(text.find("null"), std::string::npos);
}

TEST(ModelFile, AnotherPackSetIsRefused) {
  const LearnWorld w = world();
  const std::string text = to_json(full_model(*w.pack), *w.pack);
  const LearnWorld other = world();
  other.pack->set_sha256 = std::string(64, 'c');
  const auto refused = parse_model(text, *other.pack, "m.json");
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("another pack set"), std::string::npos);
  EXPECT_NE(refused.error().message.find("aaaaaaaaaaaa"), std::string::npos);
  EXPECT_NE(refused.error().message.find("cccccccccccc"), std::string::npos);
}

TEST(ModelFile, WhatIsNoModelIsRefused) {
  const LearnWorld w = world();
  const std::string good = to_json(full_model(*w.pack), *w.pack);
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return text.replace(at, from.size(), to);
  };
  const std::vector<std::string> bad = {"",
                                        "[]",
                                        "{}",
                                        good.substr(0, good.size() / 2),
                                        with("gpu_lost -> xid on self", "gpu_lost -> xyz on self"),
                                        with("\"temperature\": 1.3", "\"temperature\": 0"),
                                        with("\"temperature\": 1.3", "\"temperature\": \"hot\""),
                                        with("\"version\": 1", "\"version\": 2"),
                                        with("\"suspect\": 0.4", "\"suspect\": 4"),
                                        with("\"class\": \"hw.b\"", "\"class\": \"hw.z\"")};
  for (const auto& text : bad) {
    const auto result = parse_model(text, *w.pack, "m.json");
    EXPECT_FALSE(result.ok()) << text;
    if (result.ok()) continue;
    EXPECT_EQ(result.error().message.rfind("m.json: ", 0), 0u);
  }
}

TEST(ModelFile, SavesAndLoads) {
  const LearnWorld w = world();
  const std::string path = testing::TempDir() + "model_test.json";
  ASSERT_TRUE(save_model(path, full_model(*w.pack), *w.pack).ok());
  const auto back = load_model(path, *w.pack);
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(back.value().cause_prior[0], 0.0123);
  std::filesystem::remove(path);
  EXPECT_FALSE(load_model(path, *w.pack).ok());
  EXPECT_FALSE(save_model("/nonexistent/m.json", full_model(*w.pack), *w.pack).ok());
}

}  // namespace
}  // namespace reflex::learn

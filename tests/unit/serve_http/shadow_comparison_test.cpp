// What a shadow answers otherwise: which verdicts are compared, and how it is told.
#include "runtime/serve/http/shadow_comparison.h"

#include <gtest/gtest.h>

#include "tests/unit/serve_http/served.h"

namespace reflex::serve {
namespace {

constexpr int64_t kStart = 1'772'323'200'000'000'000;

abi::Verdict at(int second, const std::string& incident, abi::Verdict verdict) {
  verdict.incident = incident;
  verdict.id = "v-" + incident;
  verdict.ts_ns = kStart + second * kNsPerSecond;
  return verdict;
}

abi::Verdict final_of(int second, const std::string& incident) {
  return at(second, incident, small_verdict(incident, 1, true));
}

abi::Verdict no_node(int second, const std::string& incident) {
  abi::Verdict verdict = final_of(second, incident);
  verdict.answer = abi::Answer::kNone;
  verdict.level = "none";
  verdict.culprits.clear();
  return verdict;
}

Status status_of(int since_s, int live_s, int shadow_s) {
  Status status;
  auto shadow = std::make_shared<LaneStatus>();
  status.shadow_since_ns = kStart + since_s * kNsPerSecond;
  status.live.watermark_ns = kStart + live_s * kNsPerSecond;
  shadow->watermark_ns = kStart + shadow_s * kNsPerSecond;
  status.live.firings_by_signal = {{"a.both", 3}, {"a.gone", 2}, {"a.more", 1}};
  shadow->firings_by_signal = {{"a.both", 3}, {"a.more", 5}, {"a.new", 1}};
  status.shadow = std::move(shadow);
  return status;
}

using Shadow = std::vector<std::shared_ptr<const abi::Verdict>>;

Shadow shadow_of(std::initializer_list<abi::Verdict> verdicts) {
  Shadow out;
  for (const auto& verdict : verdicts) out.push_back(std::make_shared<const abi::Verdict>(verdict));
  return out;
}

std::vector<std::string> rows_of(const ShadowComparison& compared) {
  std::vector<std::string> rows;
  for (const auto& row : compared.incidents) {
    rows.push_back(row.incident + ": " + row.live + " | " + row.shadow);
  }
  return rows;
}

TEST(ShadowComparison, FinalVerdictsThatBothCouldHaveSaidAreCompared) {
  const Served s;
  for (const auto& verdict :
       {final_of(10, "at the start"), final_of(20, "same"), final_of(21, "other"),
        final_of(22, "live only"), final_of(41, "not yet of the shadow")}) {
    s.daemon->publish(verdict);
  }
  abi::Verdict other_fault = final_of(23, "other fault");
  s.daemon->publish(other_fault);
  other_fault.nodes.front().top_cause = "site.nic_flap";
  s.daemon->publish(final_of(25, "open in the shadow"));
  abi::Verdict not_yet = no_node(25, "open in the shadow");
  not_yet.final_revision = false;
  abi::Verdict open_live = final_of(26, "open in the live one");
  open_live.final_revision = false;
  s.daemon->publish(open_live);
  const auto compared = compare_shadow(
      status_of(10, 50, 40),
      shadow_of({no_node(10, "at the start"), final_of(20, "same"), no_node(21, "other"),
                 no_node(22, "shadow only"), other_fault, not_yet,
                 final_of(27, "open in the live one"), no_node(45, "not yet of both")}),
      *s.store);
  ASSERT_TRUE(compared.ok()) << compared.error().message;
  EXPECT_EQ(compared.value().same, 1u);
  EXPECT_EQ(compared.value().open, 2u);
  EXPECT_EQ(rows_of(compared.value()),
            (std::vector<std::string>{
                "live only: confirmed n3: site.gpu_dead | ",
                "other: confirmed n3: site.gpu_dead | no node",
                "other fault: confirmed n3: site.gpu_dead | confirmed n3: site.nic_flap",
                "shadow only:  | no node"}));
  EXPECT_EQ(compared.value().incidents[1].live_id, "v-other");
  std::vector<std::string> firings;
  for (const auto& row : compared.value().firings) {
    firings.push_back(row.signal + " " + std::to_string(row.live) + " " +
                      std::to_string(row.shadow));
  }
  EXPECT_EQ(firings, (std::vector<std::string>{"a.gone 2 0", "a.more 1 5", "a.new 0 1"}));
}

// The oldest are forgotten of it: the live set's of that time have no partner, and are no
// difference.
TEST(ShadowComparison, WhatTheShadowHasForgottenIsNotCompared) {
  const Served s;
  s.daemon->publish(final_of(20, "forgotten"));
  s.daemon->publish(final_of(60, "known"));
  Shadow shadow;
  for (size_t i = 0; i < kShadowVerdictsMax; ++i) {
    abi::Verdict open = no_node(30, "busy");
    open.final_revision = false;
    shadow.push_back(std::make_shared<const abi::Verdict>(open));
  }
  shadow.back() = std::make_shared<const abi::Verdict>(final_of(60, "known"));
  const auto compared = compare_shadow(status_of(10, 90, 90), shadow, *s.store);
  ASSERT_TRUE(compared.ok());
  EXPECT_EQ(compared.value().since_ns, kStart + 30 * kNsPerSecond + 1);
  EXPECT_TRUE(rows_of(compared.value()).empty()) << rows_of(compared.value()).front();
  EXPECT_EQ(compared.value().same, 1u);
}

TEST(ShadowComparison, WhatRetentionTookIsNotCompared) {
  const Served s;
  s.daemon->publish(final_of(20, "gone"));
  s.daemon->publish(final_of(60, "kept"));
  Retention retention;
  retention.before_ns = kStart + 40 * kNsPerSecond;
  ASSERT_EQ(s.store->apply(retention).value().verdicts, 1u);
  const auto compared =
      compare_shadow(status_of(10, 90, 90),
                     shadow_of({final_of(20, "gone"), final_of(60, "kept")}), *s.store);
  ASSERT_TRUE(compared.ok());
  EXPECT_TRUE(rows_of(compared.value()).empty());
  EXPECT_EQ(compared.value().same, 1u);
}

TEST(ShadowComparison, AnswersHaveWords) {
  abi::Verdict verdict = final_of(1, "i");
  verdict.culprits = {"n3", "n4"};
  EXPECT_EQ(answer_words(verdict), "confirmed n3, n4: site.gpu_dead");
  verdict.answer = abi::Answer::kExternal;
  verdict.external = "tor_switch on t1";
  EXPECT_EQ(answer_words(verdict), "no node: tor_switch on t1");
  verdict.answer = abi::Answer::kUndetermined;
  EXPECT_EQ(answer_words(verdict), "undetermined");
}

TEST(ShadowComparison, TheRouteTellsIt) {
  const Served s;
  s.daemon->publish(final_of(20, "i1"));
  s.daemon->state = status_of(10, 50, 40);
  const auto differs = json_of(s.get("/api/v1/shadow"))["differs"];
  EXPECT_EQ(differs["since"], "2026-03-01T00:00:10.000000001Z");
  EXPECT_EQ(differs["same"], 0);
  ASSERT_EQ(differs["incidents"].size(), 1u);
  EXPECT_EQ(differs["incidents"][0], (nlohmann::json{{"incident", "i1"},
                                                     {"job", "j1"},
                                                     {"live", "confirmed n3: site.gpu_dead"},
                                                     {"shadow", nullptr},
                                                     {"live_verdict", "v-i1"}}));
  EXPECT_EQ(differs["firings"].size(), 3u);
}

}  // namespace
}  // namespace reflex::serve

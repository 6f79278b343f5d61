// Metrics against cases that were worked out by hand.
#include "runtime/backtest/metrics.h"

#include <gtest/gtest.h>

#include <cmath>

#include "runtime/backtest/report.h"

namespace reflex::backtest {
namespace {

Case make(const std::string& id, std::vector<std::string> truth, std::vector<std::string> said,
          std::vector<std::pair<std::string, double>> ranked, const std::string& type) {
  Case c;
  c.label.incident = id;
  c.label.culprits = std::move(truth);
  c.label.type = type;
  c.label.ts_ns = 0;
  c.answered = true;
  c.culprits = std::move(said);
  for (const auto& [node, p] : ranked) {
    abi::NodeProbability n;
    n.node = node;
    n.p = p;
    c.ranked.push_back(n);
    c.class_of[node] = node < "n5" ? "hw.a" : "hw.b";
  }
  return c;
}

/// a: right. b: wrong node, truth second. c: two culprits, one found. d: nothing wrong, one named.
/// e: nothing wrong, nothing said.
std::vector<Case> five() {
  return {make("a", {"n1"}, {"n1"}, {{"n1", 0.95}, {"n2", 0.02}}, "explicit"),
          make("b", {"n2"}, {"n6"}, {{"n6", 0.65}, {"n2", 0.30}}, "implicit"),
          make("c", {"n1", "n7"}, {"n7"}, {{"n7", 0.95}, {"n3", 0.2}, {"n1", 0.1}}, "explicit"),
          make("d", {}, {"n8"}, {{"n8", 0.55}}, "none"), make("e", {}, {}, {{"n1", 0.05}}, "none")};
}

std::vector<const Case*> pointers(const std::vector<Case>& cases) {
  std::vector<const Case*> out;
  for (const auto& c : cases) out.push_back(&c);
  return out;
}

TEST(Metrics, HandComputed) {
  const auto cases = five();
  const Scores s = score(pointers(cases));
  EXPECT_EQ(s.tp, 2u);
  EXPECT_EQ(s.fp, 2u);
  EXPECT_EQ(s.fn, 2u);
  EXPECT_DOUBLE_EQ(s.precision, 0.5);
  EXPECT_DOUBLE_EQ(s.recall, 0.5);
  EXPECT_DOUBLE_EQ(s.f1, 0.5);
  EXPECT_DOUBLE_EQ(s.exact, 2.0 / 5);          // a, e
  EXPECT_DOUBLE_EQ(s.ac1, (1 + 0 + 1) / 3.0);  // c: min(1, 2) = 1, n7 is true
  EXPECT_DOUBLE_EQ(s.ac3, (1 + 1 + 1) / 3.0);  // c: both within three
  EXPECT_DOUBLE_EQ(s.mrr, (1 + 0.5 + 1) / 3.0);
  EXPECT_DOUBLE_EQ(s.none_accuracy, 0.5);
  EXPECT_DOUBLE_EQ(s.needless_evictions, 2.0 / 5);
  EXPECT_LE(s.f1_low, s.f1);
  EXPECT_GE(s.f1_high, s.f1);
  EXPECT_LT(s.f1_low, s.f1_high);
}

TEST(Metrics, AnIncidentWithoutVerdictIsAllMissed) {
  learn::Label label;
  label.incident = "x";
  label.culprits = {"n1", "n2"};
  const std::vector<Case> cases{make_case(label, nullptr)};
  const Metrics m = measure(cases);
  EXPECT_EQ(m.all.fn, 2u);
  EXPECT_EQ(m.all.f1, 0);
  EXPECT_EQ(m.unanswered, 1u);
  EXPECT_EQ(m.reliability.count, 0u);
}

TEST(Metrics, Reliability) {
  const auto cases = five();
  const Reliability r = reliability(pointers(cases));
  // Best nodes: .95 true, .65 false, .95 true, .55 false, .05 false.
  EXPECT_EQ(r.bins[9].count, 2u);
  EXPECT_DOUBLE_EQ(r.bins[9].share, 1);
  EXPECT_NEAR(r.ece, (2 * 0.05 + 0.65 + 0.55 + 0.05) / 5, 1e-12);
}

TEST(Metrics, StrataSplitByTypeClassCulpritsAndMonth) {
  const auto cases = five();
  const Metrics m = measure(cases);
  double value = 0;
  ASSERT_TRUE(value_of(m, "explicit.f1", value));
  EXPECT_DOUBLE_EQ(value, 2 * 2.0 / (2 * 2 + 0 + 1));
  ASSERT_TRUE(value_of(m, "several.recall", value));
  EXPECT_DOUBLE_EQ(value, 0.5);
  ASSERT_TRUE(value_of(m, "none.none_accuracy", value));
  EXPECT_DOUBLE_EQ(value, 0.5);
  ASSERT_TRUE(value_of(m, "1970-01.f1", value));
  EXPECT_DOUBLE_EQ(value, 0.5);
  // Class b: n7 found, n6 and n8 named wrongly; class a: n1 found, n2 and n1 missed.
  ASSERT_TRUE(value_of(m, "hw.b.precision", value));
  EXPECT_DOUBLE_EQ(value, 1.0 / 3);
  ASSERT_TRUE(value_of(m, "hw.a.recall", value));
  EXPECT_DOUBLE_EQ(value, 1.0 / 3);
  EXPECT_FALSE(value_of(m, "hw.c.f1", value));
}

TEST(Metrics, WorstFirst) {
  const auto cases = five();
  const auto w = worst(cases, 10);
  ASSERT_EQ(w.size(), 3u);
  EXPECT_EQ(w[0]->label.incident, "b");  // -log .30 > -log .45 (d); c is wrong but not surprised
  EXPECT_EQ(w[1]->label.incident, "d");
  EXPECT_NEAR(surprise(*w[0]), -std::log(0.30), 1e-12);
  EXPECT_NEAR(surprise(*w[1]), -std::log(0.45), 1e-12);
}

TEST(Metrics, Expectations) {
  const Metrics m = measure(five());
  Expectation e;
  ASSERT_TRUE(parse_expectation("f1>=0.5", e));
  EXPECT_EQ(check(m, e), "");
  ASSERT_TRUE(parse_expectation(" explicit.f1 >= 0.9", e));
  EXPECT_EQ(check(m, e), "explicit.f1 is 0.8000, expected >= 0.9");
  ASSERT_TRUE(parse_expectation("ece<=0.05", e));
  EXPECT_NE(check(m, e), "");
  ASSERT_TRUE(parse_expectation("speed>=1", e));
  EXPECT_EQ(check(m, e), "speed: no such figure");
  for (const char* bad : {"f1", "f1>0.5", ">=0.5", "f1>=", "f1>=x", "f1>=0.5 or so", "<= 3"}) {
    EXPECT_FALSE(parse_expectation(bad, e)) << bad;
  }
}

TEST(Report, AllFormsHoldTheFigures) {
  Report r;
  r.title = "packs <a>";
  r.pack_sha256 = std::string(64, 'a');
  r.metrics = measure(five());
  r.worst.push_back({"b", "n2", "n6 suspected", 1.2, "because <xid>"});
  r.ablations.push_back(worth_of("history", five(), five(), {}));
  r.baselines.push_back({"most events", r.metrics});
  r.missed = {"f1 is 0.5000, expected >= 0.88"};
  EXPECT_NE(to_json(r).find("\"f1\": 0.5"), std::string::npos);
  EXPECT_NE(to_markdown(r).find("| **all** | 5 | 0.500 | 0.500 |"), std::string::npos);
  EXPECT_NE(to_text(r).find("history"), std::string::npos);
  const std::string html = to_html(r);
  EXPECT_NE(html.find("<svg"), std::string::npos);
  EXPECT_NE(html.find("because &lt;xid&gt;"), std::string::npos);
  EXPECT_EQ(html.find("packs <a>"), std::string::npos);
  EXPECT_EQ(html.find("http"), std::string::npos);  // nothing is loaded from elsewhere
  EXPECT_EQ(to_json(r), to_json(r));
}

}  // namespace
}  // namespace reflex::backtest

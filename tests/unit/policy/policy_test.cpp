// Alerts and actions of rules on verdicts: their life, texts, limits, and both backends alike.
#include "runtime/policy/policy.h"

#include <gtest/gtest.h>

#include "compiler/driver/compile.h"
#include "runtime/base/time.h"

namespace reflex::policy {
namespace {

constexpr const char* kPack = R"(
pack p 1.0.0
event site.hit { key node: node }
signal hit on node { e: site.hit }
fault disk on node { prior 1e-4 per job severity critical remedy drain }
external fabric on job { prior 1e-4 per job }
disk causes hit p 0.9
fabric causes hit p 0.5 scope job
incident hang on job { opens on hit }
)";

constexpr const char* kRule = R"(
rule drain on verdict v of hang where v.top.p >= 0.90 and v.top.fault.remedy == drain {
  severity v.top.fault.severity
  label team = "hw"   label fault = v.top.fault   label rack = label(v.top.node, rack)
  annotate summary "{v.top.node}: {v.top.fault} at {v.top.p:%.0f}, job {v.job}, {count(v.others)} more {{x}}"
  annotate symptom "{v.symptom}"
  action cordon(v.top.node) limit 1 per rack in 1h
  action page("oncall", v.revision) mode live
  repeat every 4h   resolve after 10h
}
)";

constexpr int64_t kStart = 1'767'225'600'000'000'000;

abi::Verdict verdict(const std::string& incident, const std::string& node, double p, int64_t at_ns,
                     uint32_t revision = 1) {
  abi::Verdict v;
  v.id = "v-" + incident + "-" + std::to_string(revision);
  v.incident = incident;
  v.incident_type = "p.hang";
  v.job = "j1";
  v.revision = revision;
  v.ts_ns = kStart + at_ns;
  v.level = "confirmed";
  v.culprits = {node};
  v.nodes = {{node, p, "confirmed", "p.disk", node}, {"n8", 0.02, "", "p.disk", "n8"}};
  abi::Hypothesis h;
  h.what = abi::Hypothesis::What::kNode;
  h.node = h.entity = node;
  h.cause = "p.disk";
  h.severity = "critical";
  h.remedy = "drain";
  h.p = p;
  v.hypotheses = {h};
  return v;
}

struct World {
  std::shared_ptr<const abi::CompiledPack> pack;
  std::shared_ptr<topology::Topology> topology;
  std::vector<Alert> alerts;
  std::vector<ActionRequest> actions;
  std::string lines;
  std::unique_ptr<Policy> policy;

  explicit World(const std::string& rule, compiler::Backend backend = compiler::Backend::kInterp) {
    compiler::Options options;
    options.backend = backend;
    auto compiled = compiler::compile_text({{"p/pack.rfx", kPack + rule}}, options);
    if (!compiled.ok() || !compiled.value()->pack) {
      ADD_FAILURE() << (compiled.ok() ? diag::render_text(compiled.value()->sink.sorted(),
                                                          compiled.value()->sources, {})
                                      : compiled.error().message);
      return;
    }
    pack = compiled.value()->pack;
    auto t = std::make_shared<topology::Topology>(pack);
    auto& symbols = *pack->symbols;
    for (int i = 1; i <= 4; ++i) {
      t->set_labels(symbols.intern("n" + std::to_string(i)), kNoTimeNs + 1,
                    {{symbols.intern("rack"), symbols.intern(i <= 2 ? "r1" : "r2")}});
    }
    topology = t;
    PolicySinks sinks;
    sinks.alert = [this](const Alert& a) {
      alerts.push_back(a);
      lines += to_json(a);
    };
    sinks.action = [this](const ActionRequest& a) {
      actions.push_back(a);
      lines += to_json(a);
    };
    policy = std::make_unique<Policy>(pack, topology, std::move(sinks));
  }

  /// "firing/new n1 @0s" for each alert line.
  [[nodiscard]] std::vector<std::string> told() const {
    std::vector<std::string> out;
    for (const Alert& a : alerts) {
      out.push_back(a.state + "/" + a.reason + " " + a.node + " @" +
                    to_text(Duration{a.ts_ns - kStart}));
    }
    return out;
  }
};

TEST(Policy, A_verdict_that_satisfies_the_rule_fires_with_its_texts) {
  World w(kRule);
  ASSERT_TRUE(w.policy);
  w.policy->on_verdict(verdict("i1", "n1", 0.934, 0));
  ASSERT_EQ(w.alerts.size(), 1u);
  const Alert& a = w.alerts[0];
  EXPECT_EQ(a.rule, "p.drain");
  EXPECT_EQ(a.severity, "critical");
  EXPECT_EQ(a.labels, (Named{{"team", "hw"}, {"fault", "disk"}, {"rack", "r1"}}));
  EXPECT_EQ(a.annotations,
            (Named{{"summary", "n1: disk at 93%, job j1, 1 more {x}"}, {"symptom", "-"}}));
  ASSERT_EQ(w.actions.size(), 2u);
  EXPECT_EQ(w.actions[0].outcome, "dry_run");  // the default: nothing is asked of anybody
  EXPECT_EQ(w.actions[0].args, std::vector<std::string>{"n1"});
  EXPECT_EQ(w.actions[1].outcome, "requested");
  EXPECT_EQ(w.actions[1].args, (std::vector<std::string>{"oncall", "1"}));
}

TEST(Policy, Below_the_level_or_of_another_incident_nothing_fires) {
  World w(kRule);
  ASSERT_TRUE(w.policy);
  w.policy->on_verdict(verdict("i1", "n1", 0.89, 0));
  auto other = verdict("i2", "n1", 0.99, 1);
  other.incident_type = "p.slow";
  w.policy->on_verdict(other);
  auto none = verdict("i3", "n1", 0.99, 2);
  none.hypotheses.clear();
  none.culprits.clear();
  w.policy->on_verdict(none);
  EXPECT_TRUE(w.lines.empty());
}

TEST(Policy, A_revision_updates_the_same_alert_and_one_below_the_level_resolves_it) {
  World w(kRule);
  ASSERT_TRUE(w.policy);
  w.policy->on_verdict(verdict("i1", "n1", 0.93, 0));
  w.policy->on_verdict(verdict("i1", "n1", 0.93, kNsPerSecond, 2));  // says the same: no line
  w.policy->on_verdict(verdict("i1", "n1", 0.97, 2 * kNsPerSecond, 3));
  w.policy->on_verdict(verdict("i1", "n1", 0.50, 3 * kNsPerSecond, 4));
  EXPECT_EQ(w.told(), (std::vector<std::string>{"firing/new n1 @0s", "firing/updated n1 @2s",
                                                "resolved/revised n1 @3s"}));
  EXPECT_EQ(w.alerts[0].id, w.alerts[1].id);
  EXPECT_EQ(w.alerts[0].id, w.alerts[2].id);
  EXPECT_EQ(w.alerts[1].since_ns, kStart);
  EXPECT_EQ(w.actions.size(), 2u);  // once, when it fired
  EXPECT_EQ(w.policy->firing(), 0u);
}

TEST(Policy, Another_top_node_is_another_alert) {
  World w(kRule);
  ASSERT_TRUE(w.policy);
  w.policy->on_verdict(verdict("i1", "n1", 0.93, 0));
  w.policy->on_verdict(verdict("i1", "n3", 0.95, kNsPerSecond, 2));
  EXPECT_EQ(w.told(), (std::vector<std::string>{"firing/new n1 @0s", "resolved/revised n1 @1s",
                                                "firing/new n3 @1s"}));
  EXPECT_NE(w.alerts[0].id, w.alerts[2].id);
}

TEST(Policy, Repeats_and_resolves_in_event_time) {
  World w(kRule);
  ASSERT_TRUE(w.policy);
  w.policy->on_verdict(verdict("i1", "n1", 0.93, 0));
  w.policy->on_verdict(verdict("i2", "n3", 0.5, 9 * kNsPerHour));
  w.policy->finish(kStart + 20 * kNsPerHour);
  EXPECT_EQ(w.told(),
            (std::vector<std::string>{"firing/new n1 @0s", "firing/repeat n1 @4h",
                                      "firing/repeat n1 @8h", "resolved/expired n1 @10h"}));
  World early(kRule);
  early.policy->on_verdict(verdict("i1", "n1", 0.93, 0));
  early.policy->finish(kStart + kNsPerHour);  // nothing is known of the time after the input
  EXPECT_EQ(early.alerts.size(), 1u);
  EXPECT_EQ(early.policy->firing(), 1u);
}

TEST(Policy, A_limit_counts_per_group_in_event_time_over_all_rules) {
  World w(std::string(kRule) + R"(
rule other on verdict v of hang where v.top.p > 0.5 { action cordon(v.top.node) }
)");
  ASSERT_TRUE(w.policy);
  const auto outcome = [&](const std::string& incident, const char* node, int64_t at) {
    w.actions.clear();
    w.policy->on_verdict(verdict(incident, node, 0.95, at));
    std::string text;
    for (const auto& a : w.actions) {
      if (a.action == "cordon") text += (text.empty() ? "" : " ") + a.outcome;
    }
    return text;
  };
  // `other` has no limit of its own, and its actions count for that of `drain`.
  EXPECT_EQ(outcome("i1", "n1", 0), "dry_run dry_run");
  EXPECT_EQ(outcome("i2", "n2", kNsPerMinute), "limited dry_run");  // the same rack
  EXPECT_EQ(w.actions[0].reason, "limit of 1 per rack (r1) in 1h");
  EXPECT_EQ(outcome("i3", "n3", 2 * kNsPerMinute), "dry_run dry_run");
  EXPECT_EQ(outcome("i4", "n2", 90 * kNsPerMinute), "dry_run dry_run");  // the hour is over
}

TEST(Policy, An_action_without_its_argument_is_skipped) {
  World w("rule r on verdict v of hang where v.level == external { action drain(v.top.node) }");
  ASSERT_TRUE(w.policy);
  auto v = verdict("i1", "", 0.95, 0);
  v.culprits.clear();
  v.level = "external";
  v.external = "p.fabric on j1";
  v.hypotheses[0].what = abi::Hypothesis::What::kExternal;
  v.hypotheses[0].node = "";
  v.hypotheses[0].cause = "p.fabric";
  w.policy->on_verdict(v);
  ASSERT_EQ(w.actions.size(), 1u);
  EXPECT_EQ(w.actions[0].outcome, "skipped");
}

std::string saved(const Policy& policy, const abi::CompiledPack& pack) {
  StateWriter writer(*pack.symbols);
  policy.save(writer);
  return writer.take();
}

std::vector<std::string> loaded(World& w, const std::string& state) {
  StateReader reader(state, *w.pack->symbols);
  std::vector<std::string> notes;
  const auto status = w.policy->load(reader, notes);
  EXPECT_TRUE(status.ok());
  return notes;
}

TEST(Policy, A_saved_state_goes_on_as_if_nothing_had_happened) {
  const auto feed = [](World& w, int from, int to) {
    for (int i = from; i < to; ++i) {
      w.policy->on_verdict(verdict("i" + std::to_string(i % 7), "n" + std::to_string(i % 3 + 1),
                                   0.85 + 0.01 * (i % 15), i * 10 * kNsPerMinute,
                                   static_cast<uint32_t>(i)));
    }
  };
  World straight(kRule);
  feed(straight, 0, 40);
  straight.policy->finish(kStart + 100 * kNsPerHour);
  for (const int middle : {1, 13, 39}) {
    World before(kRule);
    feed(before, 0, middle);
    const std::string state = saved(*before.policy, *before.pack);
    World after(kRule);
    EXPECT_TRUE(loaded(after, state).empty());
    EXPECT_EQ(saved(*after.policy, *after.pack), state);
    feed(after, middle, 40);
    after.policy->finish(kStart + 100 * kNsPerHour);
    EXPECT_EQ(before.lines + after.lines, straight.lines) << "at " << middle;
  }
}

TEST(Policy, An_alert_whose_rule_changed_or_went_resolves_with_the_reason) {
  World before(kRule);
  before.policy->on_verdict(verdict("i1", "n1", 0.93, 0));
  before.policy->on_verdict(verdict("i2", "n3", 0.99, kNsPerMinute));
  const std::string state = saved(*before.policy, *before.pack);
  std::string text = kRule;
  text.replace(text.find("0.90"), 4, "0.95");
  World stricter(text);
  EXPECT_EQ(loaded(stricter, state),
            std::vector<std::string>{"alert p.drain of i1 ends: rule changed"});
  EXPECT_TRUE(stricter.told().empty()) << "nothing is said while loading";
  stricter.policy->advance(kStart + kNsPerHour);
  EXPECT_EQ(stricter.told(), std::vector<std::string>{"resolved/rule changed n1 @1h"});
  EXPECT_EQ(stricter.policy->firing(), 1u);
  World none("");
  EXPECT_EQ(loaded(none, state).size(), 2u);
  none.policy->advance(kStart + kNsPerHour);
  EXPECT_EQ(none.told(), (std::vector<std::string>{"resolved/rule removed n1 @1h",
                                                   "resolved/rule removed n3 @1h"}));
}

TEST(Policy, Both_backends_write_the_same_lines) {
  std::string lines[2];
  for (const auto backend : {compiler::Backend::kInterp, compiler::Backend::kJit}) {
    World w(kRule, backend);
    ASSERT_TRUE(w.policy);
    for (int i = 0; i < 40; ++i) {
      w.policy->on_verdict(verdict("i" + std::to_string(i % 7), "n" + std::to_string(i % 3 + 1),
                                   0.85 + 0.01 * (i % 15), i * 10 * kNsPerMinute,
                                   static_cast<uint32_t>(i)));
    }
    w.policy->finish(kStart + 100 * kNsPerHour);
    lines[backend == compiler::Backend::kJit] = w.lines;
  }
  EXPECT_GT(lines[0].size(), 2000u);
  EXPECT_EQ(lines[0], lines[1]);
}

}  // namespace
}  // namespace reflex::policy

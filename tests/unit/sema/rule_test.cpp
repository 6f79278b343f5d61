// Rules on verdicts (A10), renames (`was`), maps: plans and mistakes.
#include "tests/unit/sema/support.h"

namespace reflex::test {
namespace {

constexpr const char* kCauses =
    "signal s on node { e: gpu.xid } fault disk on node { prior 1e-4 per job remedy drain } "
    "disk causes s p 0.5 incident hang on job { opens on s } ";

std::string rule(const std::string& body, const std::string& where = "v.top.p > 0.9") {
  return kCauses + std::string("rule r on verdict v of hang where ") + where + " { " + body + " }";
}

TEST(Rule, Plan_holds_every_clause) {
  const auto c = compile_pack(rule(
      "severity critical label team = \"hw\" annotate a \"x {v.top.node} {v.top.p:%.1f}\" "
      "action cordon(v.top.node) limit 3 per rack in 1h mode live repeat every 4h resolve after "
      "30m"));
  ASSERT_EQ(ids(*c, true), "") << rendered(*c);
  ASSERT_EQ(c->pack->rules.size(), 1u);
  const abi::RulePlan& r = c->pack->rules[0];
  EXPECT_EQ(r.name, "t.r");
  EXPECT_NE(r.where, abi::kNone32);
  EXPECT_NE(r.severity, abi::kNone32);
  ASSERT_EQ(r.annotations.size(), 1u);
  ASSERT_EQ(r.annotations[0].parts.size(), 4u);
  EXPECT_EQ(r.annotations[0].parts[0].text, "x ");
  EXPECT_EQ(r.annotations[0].parts[3].format, "%.1f");
  ASSERT_EQ(r.actions.size(), 1u);
  EXPECT_TRUE(r.actions[0].live);
  EXPECT_EQ(r.actions[0].limit, 3u);
  EXPECT_EQ(r.actions[0].window_ns, 3'600'000'000'000);
  EXPECT_EQ(r.repeat_ns, 4 * 3'600'000'000'000);
  EXPECT_EQ(r.resolve_ns, 1'800'000'000'000);
}

struct Case {
  const char* name;
  std::string text;
  const char* ids;
  const char* underlined;
  const char* help;  // "" = any
};

class RuleMistakes : public ::testing::TestWithParam<Case> {};

TEST_P(RuleMistakes, ids_place_and_help) {
  const Case& c = GetParam();
  const auto out = compile_pack(c.text);
  EXPECT_EQ(ids(*out, true), c.ids) << rendered(*out);
  ASSERT_FALSE(out->sink.sorted().empty());
  const auto d = out->sink.sorted()[0];
  EXPECT_EQ(underlined(*out, d), c.underlined) << rendered(*out);
  if (c.help[0] != '\0') {
    EXPECT_EQ(d.help, c.help) << rendered(*out);
  }
}

INSTANTIATE_TEST_SUITE_P(
    sema, RuleMistakes,
    ::testing::Values(
        Case{"field", rule("severity info", "v.top.nod is missing"), "R102", "top.nod",
             "did you mean 'top.node'?"},
        Case{"fault_word", rule("severity info", "v.top.fault == dsk"), "R113", "dsk",
             "did you mean 'disk'?"},
        Case{"incident",
             std::string(kCauses) + "rule r on verdict v of hangg where v.top.p > 0.9 { }", "R116",
             "hangg", "did you mean 'hang'?"},
        Case{"severity_word", rule("severity critcal"), "R113", "critcal",
             "did you mean 'critical'?"},
        Case{"severity_type", rule("severity v.top.p"), "R104", "v.top.p", ""},
        Case{"label_number", rule("label p = v.top.p"), "R325", "v.top.p",
             "put it into a text: annotate p \"{..}\""},
        Case{"label_single", rule("label i = v.incident"), "R325", "v.incident", ""},
        Case{"label_twice", rule("label a = \"x\" label a = \"y\""), "R107", "a", ""},
        Case{"template_open", rule("annotate a \"{v.top.node\""), "R324", "{v.top.node",
             "write {{ for a brace"},
        Case{"template_text", rule("annotate a \"{v.top.}\""), "R324", "v.top.", ""},
        Case{"template_name", rule("annotate a \"n {w.top.node}\""), "R103", "w.top.node",
             ""},
        Case{"profile", rule("severity info", "profile.x > 3").insert(0, "profile hw.a fallback { "
             "x: f64 = 1 } "), "R313", "profile.x > 3", ""},
        Case{"template_format", rule("annotate a \"{v.top.node:%.1f}\""), "R324",
             "v.top.node:%.1f", ""},
        Case{"template_format_number", rule("annotate a \"{v.top.p:%s}\""), "R324", "v.top.p:%s",
             "write: {v.top.p:%.1f}"},
        Case{"template_list", rule("annotate a \"{v.others}\""), "R104", "v.others",
             "write: count(v.others)"},
        Case{"template_missing", rule("annotate a \"{v.symptom}\""), "R211", "v.symptom",
             "ask for it in `where`: v.symptom is not missing"},
        Case{"action_mode", rule("action cordon(v.top.node) mode dryrun"), "R117", "dryrun",
             "did you mean 'dry_run'?"},
        Case{"repeat_zero", rule("repeat every 0s"), "R305", "0s", ""},
        Case{"rule_twice", rule("severity info") + " rule r on verdict v of hang { severity info }",
             "R107", "r", ""},
        Case{"pattern_reads_verdicts",
             std::string(kCauses) + "signal z on node { e: verdict } disk causes z p 0.5", "R310",
             "verdict", ""},
        Case{"pattern_reads_a_signal",
             std::string(kCauses) + "signal z on node { e: s } disk causes z p 0.5", "R310", "s",
             "repeat its pattern here, or join them in the graph: s causes .."},
        Case{"was_still_there",
             std::string(kCauses) + "signal z on node { e: gpu.ecc was s } disk causes z p 0.5",
             "R326", "s", "remove the old one, or `was`"},
        Case{"was_twice",
             std::string(kCauses) + "signal y on node { e: gpu.ecc was o } signal z on node { e: "
                                    "gpu.ecc was o } disk causes y, z p 0.5",
             "R326", "o", ""},
        Case{"was_read",
             std::string(kCauses) + "signal z on node { e: gpu.ecc was o } disk causes z, o p 0.5",
             "R108", "o", "it is called 'z' now"}),
    [](const auto& row) { return std::string(row.param.name); });

TEST(Rename, The_old_name_stands_in_the_plans) {
  const auto c = compile_pack(
      "feature wear on node = rate(gpu.throttle, 6h) was old_wear "
      "signal s on node { when wear > 2 per hour was old.s } " +
      std::string("fault disk on node { } disk causes s p 0.5"));
  ASSERT_EQ(ids(*c), "") << rendered(*c);
  EXPECT_EQ(signal(*c->pack, "t.s").was, "t.old.s");
  EXPECT_EQ(feature(*c->pack, "t.wear").was, "t.old_wear");
}

// ---------------------------------------------------------------- maps

TEST(Map, A_look_up_is_a_value_of_the_map_or_unknown) {
  const auto c = compile_pack(
      "list wait: map<u16, duration> = [48: 5m, 79: 1h] "
      "signal s on node { e: nccl.timeout where e.waited > wait[e.rank] } "
      "signal z on node { e: gpu.xid where e.code in wait } "
      "fault disk on node { } disk causes s, z p 0.5");
  ASSERT_EQ(ids(*c), "") << rendered(*c);
  bool keys = false;
  for (const auto& leaf : c->pack->leaves) {
    keys = keys || constraints(leaf) == "2:[48..48][79..79]";
  }
  EXPECT_TRUE(keys);
}

TEST(Map, Mistakes) {
  const auto with = [](const std::string& text) {
    return ids(*compile_pack(text + " signal s on node { e: gpu.xid where e.code in m } incident i "
                                    "on node { opens on s }"));
  };
  EXPECT_EQ(with("list m: map<u16, celsius> = [48: 85 celsius]"), "");
  EXPECT_EQ(with("list m: map<u16, celsius> = [48: 85 watt]"), "R106");
  EXPECT_EQ(with("list m: map<u16, celsius> = [48: 85 celsius, 48: 86 celsius]"), "R107");
  EXPECT_EQ(with("list m: map<u16, celsius> = [48]"), "R104");
  EXPECT_EQ(with("list m: set<u16> = [48: 3]"), "R104");
  EXPECT_EQ(with("list m: map<u16> = [48: 3]"), "R119");
  EXPECT_EQ(with("list m: map<u8, int> = [300: 3]"), "R416");
  EXPECT_EQ(with("list m: map<u16, string> = [48: \"x\"]"), "R104");
}

}  // namespace
}  // namespace reflex::test

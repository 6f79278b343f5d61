// The machine forms of diagnostics: SARIF against the schema's structure, GitHub commands.
#include <gmock/gmock.h>

#include "tests/unit/diag/sarif_shape.h"
#include "tests/unit/sema/support.h"

namespace reflex::test {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

json sarif_of(const compiler::Compilation& c, int exit_code) {
  return json::parse(
      diag::render_sarif(c.sink.sorted(), c.sink.suppressed(), c.sources, {"1.2.3", exit_code}));
}

// One of everything: a note with a place, a fix, a help line, two equal lines, a suppression.
constexpr const char* kBroken = R"(
feature wear on (node, gpu) = decayed(increase(gpu.ecc.total), half_life 3d)
# allow R205 read by a dashboard
signal shown on node { e: gpu.xid }
signal a on node { when wear > 3 }
signal b on node { e: gpu.xid where e.cod == 48 }
signal c on node { e: gpu.xid where e.cod == 48 }
incident i on node { opens on a or b or c }
)";

TEST(Sarif, has_the_structure_of_the_schema) {
  const auto c = compile_pack(kBroken);
  ASSERT_EQ(ids(*c), "R121 R102 R102") << rendered(*c);
  EXPECT_THAT(sarif_problems(sarif_of(*c, 2)), IsEmpty());
}

TEST(Sarif, an_empty_log_is_one_too) {
  const source::SourceMap none;
  const json log = json::parse(diag::render_sarif({}, {}, none, {"1.2.3", 0}));
  EXPECT_THAT(sarif_problems(log), IsEmpty());
  EXPECT_EQ(log["runs"][0]["results"], json::array());
}

TEST(Sarif, the_check_itself_finds_mistakes) {
  const auto c = compile_pack(kBroken);
  json log = sarif_of(*c, 2);
  json& run = log["runs"][0];
  run["results"][0].erase("message");
  run["results"][1]["level"] = "fatal";
  run["results"][1]["locations"][0]["physicalLocation"]["region"]["startLine"] = 0;
  run["tool"]["driver"]["rules"][0]["helpUri"] = "no scheme";
  run["surprise"] = 1;
  run["results"][1]["fixes"][0]["artifactChanges"] = json::array();
  EXPECT_EQ(sarif_problems(log).size(), 6u);
}

TEST(Sarif, results_point_at_rules_and_places) {
  const auto c = compile_pack(kBroken);
  const json run = sarif_of(*c, 2)["runs"][0];
  EXPECT_EQ(run["invocations"][0]["exitCode"], 2);
  const json& first = run["results"][0];
  EXPECT_EQ(first["ruleId"], "R121");
  EXPECT_EQ(run["tool"]["driver"]["rules"][first["ruleIndex"].get<size_t>()]["id"], "R121");
  const json& region = first["locations"][0]["physicalLocation"]["region"];
  const auto at = c->sources.locate(c->sink.sorted()[0].span.file, c->sink.sorted()[0].span.begin);
  EXPECT_EQ(region["startLine"], at.line);
  EXPECT_EQ(region["startColumn"], 25);
  EXPECT_EQ(region["endColumn"], 29);  // `wear`, one past its last character
  EXPECT_EQ(first["relatedLocations"][0]["message"]["text"], "declared here");
}

TEST(Sarif, equal_lines_have_different_fingerprints) {
  const auto c = compile_pack(
      "signal b on node { e: gpu.xid where e.cod == 48 and e.cod == 48 } incident i on node { "
      "opens on b }");
  const json results = sarif_of(*c, 2)["runs"][0]["results"];
  ASSERT_EQ(results.size(), 2u);
  EXPECT_NE(results[0]["partialFingerprints"], results[1]["partialFingerprints"]);
}

TEST(Sarif, fingerprints_survive_lines_that_move) {
  const std::string text = "signal b on node { e: gpu.xid where e.cod == 48 }\n";
  const json before = sarif_of(*compile_pack(text), 2)["runs"][0]["results"];
  const json after = sarif_of(*compile_pack("# a\n# b\n  " + text), 2)["runs"][0]["results"];
  EXPECT_EQ(before[0]["partialFingerprints"], after[0]["partialFingerprints"]);
}

TEST(Sarif, an_allow_comment_is_a_suppression_with_its_reason) {
  const auto c =
      compile_pack("# allow R205 read by a dashboard\nsignal shown on node { e: gpu.xid }\n");
  EXPECT_EQ(ids(*c, true), "");
  const json results = sarif_of(*c, 0)["runs"][0]["results"];
  ASSERT_EQ(results.size(), 1u);
  EXPECT_EQ(results[0]["suppressions"],
            json::parse(R"([{"kind":"inSource","justification":"read by a dashboard"}])"));
}

TEST(Sarif, paths_become_uri_references) {
  source::SourceMap map;
  const auto file = map.add("/a b/ü.rfx", "x");
  diag::Sink sink;
  sink.report(diag::Id::kSyntax, {file, 0, 1}, "m");
  const json log = json::parse(diag::render_sarif(sink.sorted(), {}, map, {"1", 2}));
  EXPECT_EQ(log["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"],
            json::parse(R"({"uri":"file:///a%20b/%C3%BC.rfx"})"));
  EXPECT_THAT(sarif_problems(log), IsEmpty());
}

TEST(Github, one_command_a_diagnostic_with_escapes) {
  source::SourceMap map;
  const auto file = map.add("a,b.rfx", "first\nsecond line\n");
  diag::Sink sink;
  auto& d = sink.report(diag::Id::kUnknownKind, {file, 6, 12}, "100% wrong");
  d.help = "did you mean 'x'?";
  EXPECT_EQ(diag::render_github(sink.sorted(), map),
            "::error file=a%2Cb.rfx,line=2,endLine=2,col=1,endColumn=7,title=R101::100%25 wrong"
            "%0Ahelp: did you mean 'x'?\n");
}

TEST(Github, a_range_of_several_lines_has_no_columns) {
  source::SourceMap map;
  const auto file = map.add("a.rfx", "first\nsecond\n");
  diag::Sink sink;
  sink.report(diag::Id::kUnusedList, {file, 0, 9}, "m");
  EXPECT_EQ(diag::render_github(sink.sorted(), map),
            "::warning file=a.rfx,line=1,endLine=2,title=R201::m\n");
}

TEST(Allow, is_not_called_unused_while_errors_keep_lints_from_running) {
  EXPECT_EQ(ids(*compile_pack(kBroken), true), "R121 R102 R102");
}

TEST(Allow, above_a_declaration_it_covers_the_whole_of_it) {
  const std::string body =
      "signal s on (node, gpu) {\n  when gpu.temp.value > peers(job).median\n    + 6 * "
      "peers(job).mad\n}\nincident i on node { opens on s }\n";
  EXPECT_EQ(ids(*compile_pack("\n" + body), true), "R204");
  EXPECT_EQ(ids(*compile_pack("\n# allow R204 the floor is in the metric\n# more\n" + body), true),
            "");
  // On another line of its own it speaks for the next line only.
  const std::string inside =
      "\nsignal s on (node, gpu) {\n  # allow R204 here\n  when gpu.temp.value > "
      "peers(job).median\n    + 6 * peers(job).mad\n}\nincident i on node { opens on s }\n";
  EXPECT_EQ(ids(*compile_pack(inside), true), "R299 R204");
}

}  // namespace
}  // namespace reflex::test

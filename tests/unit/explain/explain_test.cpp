// Renderings of a verdict: schema, round trip, and what an operator must find in the text.
#include "runtime/explain/explain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/unit/attribution/world.h"

namespace reflex::explain {
namespace {

using attribution::Evidence;
using attribution::World;

using Json = nlohmann::json;
using testing::HasSubstr;
using testing::Not;

Json schema() {
  std::ifstream in(std::string(REFLEX_SOURCE_DIR) + "/runtime/verdict.schema.json");
  return Json::parse(in);
}

bool has_type(const Json& v, const std::string& type) {
  if (type == "null") return v.is_null();
  if (type == "string") return v.is_string();
  if (type == "integer") return v.is_number_integer();
  if (type == "number") return v.is_number();
  if (type == "boolean") return v.is_boolean();
  if (type == "array") return v.is_array();
  return type == "object" && v.is_object();
}

// The part of JSON Schema that verdict.schema.json uses, plus: no member that it does not name.
std::string violation(const Json& root, const Json& s, const Json& v, const std::string& at) {
  if (s.contains("$ref")) {
    const std::string ref = s["$ref"];
    return violation(root, root.at(Json::json_pointer(ref.substr(1))), v, at);
  }
  if (s.contains("anyOf")) {
    for (const Json& one : s["anyOf"]) {
      if (violation(root, one, v, at).empty()) return "";
    }
    return at + ": no alternative fits";
  }
  if (s.contains("const") && s["const"] != v) return at + ": not the constant";
  if (s.contains("enum") && std::find(s["enum"].begin(), s["enum"].end(), v) == s["enum"].end()) {
    return at + ": not one of the words: " + v.dump();
  }
  if (s.contains("type")) {
    bool fits = false;
    const Json types = s["type"].is_array() ? s["type"] : Json::array({s["type"]});
    for (const Json& t : types) fits |= has_type(v, t);
    if (!fits) return at + ": wrong type: " + v.dump();
  }
  if (s.contains("minimum") && v.is_number() && v < s["minimum"]) return at + ": too small";
  if (s.contains("minItems") && v.size() < s["minItems"]) return at + ": too few";
  if (v.is_object()) {
    for (const Json& name : s.value("required", Json::array())) {
      if (!v.contains(name)) return at + ": missing " + name.get<std::string>();
    }
    for (const auto& [name, member] : v.items()) {
      if (!s["properties"].contains(name)) return at + ": not in the schema: " + name;
      const std::string deeper = violation(root, s["properties"][name], member, at + "/" + name);
      if (!deeper.empty()) return deeper;
    }
  }
  if (v.is_array() && s.contains("items")) {
    for (size_t i = 0; i < v.size(); ++i) {
      const std::string deeper = violation(root, s["items"], v[i], at + "/" + std::to_string(i));
      if (!deeper.empty()) return deeper;
    }
  }
  return "";
}

struct Sample : World {
  Sample() {
    const auto xid = signal("xid_48", {"node", "gpu"}, 1e-5);
    const auto hot = signal("hot", {"node"}, 1e-3);
    const auto timeout = signal("nccl_timeout", {"node"}, 1e-3);
    const auto f = fault("gpu_memory", {"node", "gpu"}, 2e-4);
    const auto t = external("tor_switch", {"tor"});
    edge(f, xid, 0.8, -10, 60, abi::Scope::kSelf);
    edge(f, hot, 0.5, -10, 60, abi::Scope::kSelf);
    edge(f, timeout, 0.9, -10, 600, abi::Scope::kPeers);
    edge(t, timeout, 0.4, -10, 600, abi::Scope::kTor);
    signal_edge(xid, hot, 0.5, -10, 60, abi::Scope::kSelf);
    pack->signals[hot].condition.limit_origin = "profile.temp_hot (hwprofiles/h100.rfx:12)";
    for (int i = 1; i <= 4; ++i) node("n" + std::to_string(i), "r1", i < 4 ? "t1" : "");
    fire(xid, {"n3", "5"}, -4);
    Evidence& e = fire(hot, {"n3"}, -2);
    e.episodes[0].value = abi::Value::of(91.5);
    e.episodes[0].limit = abi::Value::of(87);
    for (const char* n : {"n1", "n2"}) fire(timeout, {n}, 0);
    blind(timeout, "n4");
  }
  abi::Verdict verdict() {
    abi::Verdict v = run();
    v.id = "abc";
    v.incident = "job_hang:j1";
    v.final_revision = true;
    v.pack_names = {"std.nvidia 1.0.0", "site"};
    v.pack_sha256 = "00ff";
    v.engine = "reflex 1.0.0";
    v.latency_ms = 1.5;
    v.model_sha256 = "ab12";
    v.table_version = 7;
    v.baseline_shifts = {"class hw.h100 moved at 12:00: aer x4"};
    v.counterfactual.push_back({{"hot on n3", "xid_48 on n3/5"}, "none", false});
    abi::Hypothesis& h = v.hypotheses[0];
    h.hazard = 3;
    h.hazard_origin = "2 confirmed faults in 9 days";
    h.suppressed.push_back({"aer", "n3", "suppress lab: burn-in racks", 1.25});
    h.contributions[0].leak_origin = "class hw.h100, 41000 h";
    h.contributions[0].multiplier = 0.8;
    return v;
  }
};

TEST(Explain, json_follows_the_published_schema) {
  const Json root = schema();
  for (bool timing : {false, true}) {
    Sample s;
    const Json v = Json::parse(to_json(s.verdict(), timing));
    EXPECT_EQ(violation(root, root, v, ""), "");
    EXPECT_EQ(v.contains("timing"), timing);
  }
  EXPECT_EQ(
      violation(root, root, Json::parse(to_json(abi::Verdict{}, false)), "").find("/revision"),
      std::string::npos);
  Json broken = Json::parse(to_json(Sample().verdict(), false));
  broken["hypotheses"][0]["p"] = "high";
  EXPECT_EQ(violation(root, root, broken, ""), "/hypotheses/0/p: wrong type: \"high\"");
  broken = Json::parse(to_json(Sample().verdict(), false));
  broken.erase("level");
  EXPECT_EQ(violation(root, root, broken, ""), ": missing level");
}

TEST(Explain, json_is_one_line_and_reads_back) {
  Sample s;
  const std::string line = to_json(s.verdict(), true);
  EXPECT_EQ(line.find('\n'), std::string::npos);
  const auto back = from_json(line);
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(to_json(back.value(), true), line);
  EXPECT_EQ(to_text(back.value(), false), to_text(s.verdict(), false));
  const abi::Verdict& v = back.value();
  EXPECT_EQ(v.model_sha256, "ab12");
  EXPECT_EQ(v.table_version, 7u);
  EXPECT_EQ(v.baseline_shifts.size(), 1u);
  EXPECT_FALSE(v.counterfactual.back().exact);
  EXPECT_EQ(v.hypotheses[0].hazard, 3);
  EXPECT_EQ(v.hypotheses[0].suppressed.at(0).by, "suppress lab: burn-in racks");
  EXPECT_EQ(v.hypotheses[0].contributions[0].leak_origin, "class hw.h100, 41000 h");
  EXPECT_EQ(v.hypotheses[0].contributions[0].multiplier, 0.8);
  EXPECT_EQ(back.value().pack_names[1], "site");
}

TEST(Explain, bad_json_is_an_error_with_its_reason) {
  EXPECT_EQ(from_json("{").error().message, "the verdict is not JSON");
  EXPECT_EQ(from_json("[1]").error().message, "the verdict is not a JSON object");
  EXPECT_EQ(from_json("{}").error().message,
            "not a verdict of schema reflex.verdict/1 (schema: none)");
  EXPECT_EQ(from_json(R"({"schema":"reflex.verdict/1","revision":"x"})").error().message,
            "malformed verdict: revision is not a count");
  EXPECT_EQ(from_json(R"({"schema":"reflex.verdict/1","answer":"maybe"})").error().message,
            "malformed verdict: unknown answer");
  EXPECT_FALSE(from_json(R"({"schema":"reflex.verdict/1","answer":"none","nodes":[7]})").ok());
}

TEST(Explain, text_shows_answer_evidence_and_reasons) {
  Sample s;
  const std::string text = to_text(s.verdict(), false);
  EXPECT_THAT(text, HasSubstr("n3 confirmed"));
  EXPECT_THAT(text, HasSubstr("gpu_memory on n3/5"));
  EXPECT_THAT(text, HasSubstr("xid_48"));
  EXPECT_THAT(text, HasSubstr("91.5 against 87 (profile.temp_hot (hwprofiles/h100.rfx:12))"));
  EXPECT_THAT(text, HasSubstr("2 of 2 peers"));
  EXPECT_THAT(text, HasSubstr("test.rfx:1"));
  EXPECT_THAT(text, HasSubstr("explained away: hot on n3 by xid_48 on n3/5"));
  EXPECT_THAT(text, HasSubstr("unobserved: nccl_timeout on 1 nodes (source not reporting)"));
  EXPECT_THAT(text, HasSubstr("without xid_48 on n3/5"));
  EXPECT_THAT(text, Not(HasSubstr("\x1b[")));
  EXPECT_THAT(to_text(s.verdict(), true), HasSubstr("\x1b["));
}

TEST(Explain, markdown_and_table_row) {
  Sample s;
  const std::string md = to_markdown(s.verdict());
  EXPECT_THAT(md, HasSubstr("## n3 confirmed"));
  EXPECT_THAT(md, HasSubstr("| nats | signal |"));
  EXPECT_THAT(md, HasSubstr("xid\\_48"));
  const std::string row = to_table_row(s.verdict(), false);
  EXPECT_THAT(row, HasSubstr("n3 confirmed"));
  EXPECT_THAT(row, HasSubstr("gpu_memory: "));
  EXPECT_EQ(row.find('\n'), std::string::npos);
  EXPECT_THAT(table_header(false), HasSubstr("ANSWER"));
}

size_t lines_between(const std::string& text, const std::string& from, const std::string& to) {
  const size_t a = text.find(from);
  const size_t b = text.find(to, a);
  return a == std::string::npos || b == std::string::npos
             ? 999
             : static_cast<size_t>(std::count(text.begin() + a, text.begin() + b, '\n')) - 1;
}

TEST(Explain, an_old_verdict_without_the_new_members_is_read) {
  Json j = Json::parse(to_json(Sample().verdict(), false));
  for (const char* name : {"table_version", "baseline_shifts"}) j.erase(name);
  for (Json& h : j["hypotheses"]) {
    h.erase("hazard");
    h["suppressed"] = Json::array();
    for (Json& c : h["contributions"]) c.erase("multiplier"), c.erase("leak_origin");
  }
  for (Json& c : j["counterfactual"]) c.erase("exact");
  const auto v = from_json(j.dump());
  ASSERT_TRUE(v.ok()) << v.error().message;
  EXPECT_EQ(v.value().hypotheses[0].hazard, 1);
  EXPECT_EQ(v.value().hypotheses[0].contributions[0].multiplier, 1);
  EXPECT_TRUE(v.value().counterfactual[0].exact);
}

TEST(Explain, brief_is_answer_why_next_step_and_what_would_change_it) {
  abi::Verdict v = Sample().verdict();
  v.hypotheses[0].remedy = "drain";
  for (int i = 0; i < 20; ++i) {
    abi::Contribution c;
    c.signal = "extra_" + std::to_string(i);
    c.entity = "n3";
    c.nats = 0.25;
    v.hypotheses[0].contributions.push_back(c);
  }
  const std::string text = to_brief(v, false);
  EXPECT_EQ(text.find("n3 confirmed\n"), 0u);
  EXPECT_THAT(text, HasSubstr("n3 is the faulty node (confirmed, "));
  EXPECT_THAT(text, HasSubstr("because xid_48 fired on n3/5, 4s before the opening"));
  EXPECT_LE(lines_between(text, "\nWhy\n", "What to do\n"), 9u);  // "Why" and at most 8 lines
  EXPECT_THAT(text, HasSubstr("xid_48 fired on n3/5, 4s before the opening"));
  EXPECT_THAT(text, HasSubstr("smaller ones together"));
  EXPECT_THAT(text, HasSubstr("  drain n3 (gpu_memory on n3/5)\n"));
  EXPECT_THAT(text, HasSubstr("a smaller set may do it"));
  EXPECT_THAT(text, HasSubstr("does not count: suppress lab"));
}

TEST(Explain, the_lines_of_the_brief_sum_to_the_log_odds) {
  const abi::Verdict v = Sample().verdict();
  const std::string text = to_brief(v, false);
  double sum = 0;
  double total = 0;
  std::istringstream in(text.substr(text.find("\nWhy\n") + 5));
  for (std::string line; std::getline(in, line) && line.rfind("What", 0) != 0;) {
    char* end = nullptr;
    const double nats = std::strtod(line.c_str(), &end);
    if (end == line.c_str()) continue;
    (line.find("sum: ") != std::string::npos ? total : sum) += nats;
  }
  EXPECT_NEAR(total, v.hypotheses[0].log_odds_nats, 0.01);
  EXPECT_NEAR(sum, total, 0.05);  // lines are rounded to 0.01
}

TEST(Explain, a_verdict_without_culprit_says_what_to_do) {
  abi::Verdict v = Sample().verdict();
  v.answer = abi::Answer::kNone;
  v.level = "none";
  v.culprits.clear();
  EXPECT_THAT(to_brief(v, false), HasSubstr("evict no node"));
  v.answer = abi::Answer::kExternal;
  v.external = "tor_switch on t1";
  EXPECT_THAT(to_brief(v, false), HasSubstr("No node is at fault: the external cause tor_switch"));
  v.answer = abi::Answer::kUndetermined;
  EXPECT_THAT(to_brief(v, false), HasSubstr("do not act on this alone"));
  EXPECT_THAT(to_brief(abi::Verdict{}, false), HasSubstr("act on no node yet"));
}

abi::Verdict hostile(const std::string& name) {
  abi::Verdict v = Sample().verdict();
  v.job = v.incident = v.opened_by = v.external = v.engine = v.symptom = name;
  v.culprits = {name};
  v.baseline_shifts = v.pack_names = {name};
  for (auto& n : v.nodes) n.node = n.top_cause = n.top_entity = name;
  for (auto& h : v.hypotheses) {
    h.node = h.entity = h.cause = h.remedy = h.hw_class = h.hazard_origin = name;
    for (auto& c : h.contributions) {
      c.signal = c.entity = c.limit_origin = c.leak_origin = c.rule.file = name;
      c.events.push_back({name, 0, 1, name});
    }
    h.explained_away.push_back({name, name, name, 1});
    h.suppressed.push_back({name, name, name, 1});
    h.unobserved.push_back({name, name, name});
  }
  v.counterfactual.push_back({{name}, name, true});
  return v;
}

TEST(ExplainHtml, hostile_names_stay_text) {
  const std::string page = to_html(hostile("\"'><script>alert(1)</script><img src=x onerror=y>"));
  EXPECT_THAT(page, Not(HasSubstr("<script")));
  EXPECT_THAT(page, Not(HasSubstr("<img")));
  EXPECT_THAT(page, HasSubstr("&lt;script&gt;"));
  EXPECT_THAT(page, HasSubstr("default-src 'none'"));
  const std::string broken = to_html(hostile("n\xff\xc0\x80\x01\xe2\x80\xaexyz"));
  EXPECT_EQ(broken.find('\xff'), std::string::npos);
  EXPECT_EQ(broken.find('\x01'), std::string::npos);
  EXPECT_EQ(broken.find("\xe2\x80\xae"), std::string::npos);
}

TEST(ExplainText, hostile_names_cannot_steer_a_terminal) {
  for (const bool full : {false, true}) {
    const abi::Verdict v = hostile("a\x1b[2Jb\nforged: line\xc2\x9b");
    const std::string text = full ? to_text(v, false) : to_brief(v, false);
    EXPECT_EQ(text.find('\x1b'), std::string::npos);
    EXPECT_THAT(text, Not(HasSubstr("\nforged")));
    EXPECT_THAT(text, Not(HasSubstr("\xc2\x9b")));
  }
}

TEST(ExplainHtml, every_tag_closes_in_order) {
  for (const abi::Verdict& v : {Sample().verdict(), abi::Verdict{}, hostile("a<b>&\"'")}) {
    const std::string page = to_html(v);
    std::vector<std::string> open;
    for (size_t at = page.find('<'); at != std::string::npos; at = page.find('<', at + 1)) {
      const size_t end = page.find('>', at);
      ASSERT_NE(end, std::string::npos);
      const std::string tag = page.substr(at + 1, end - at - 1);
      const std::string name = tag.substr(0, tag.find_first_of(" /", tag[0] == '/' ? 1 : 0));
      if (tag[0] == '!' || tag.back() == '/' || name == "meta" || name == "br") continue;
      if (tag[0] != '/') {
        open.push_back(name);
        continue;
      }
      ASSERT_FALSE(open.empty());
      EXPECT_EQ(name, "/" + open.back());
      open.pop_back();
    }
    EXPECT_TRUE(open.empty());
  }
}

TEST(ExplainHtml, holds_what_an_explanation_must_hold) {
  const std::string page = to_html(Sample().verdict());
  for (const char* part :
       {"n3 is the faulty node", "xid_48", "test.rfx:1", "91.5 against 87",
        "hwprofiles/h100.rfx:12", "explained away: hot on n3", "suppressed: aer on n3",
        "unobserved: nccl_timeout", "2 confirmed faults in 9 days", "class hw.h100, 41000 h",
        "x0.8 (model)", "ab12", "class hw.h100 moved", "without xid_48 on n3/5",
        "tor_switch on tor t1", "role=\"img\"", "aria-labelledby=\"graph-t graph-d\"",
        "prefers-color-scheme: dark", "Skip to the answer"}) {
    EXPECT_THAT(page, HasSubstr(part)) << part;
  }
  EXPECT_LT(page.find("class=\"answer"), page.find("<svg"));
  for (const char* remote : {"http://", "https://", "src=", "url(", "@import"}) {
    EXPECT_THAT(page, Not(HasSubstr(remote)));
  }
  EXPECT_EQ(page, to_html(Sample().verdict()));
}

TEST(ExplainHtml, the_widest_edge_is_the_strongest_evidence) {
  abi::Verdict v = Sample().verdict();
  abi::Hypothesis& h = v.hypotheses[0];
  h.contributions.resize(1);
  h.contributions[0].nats = 6.5;
  v.hypotheses.resize(1);
  EXPECT_THAT(to_html(v), HasSubstr("class=\"edge for fired\" stroke-width=\"6.50\""));
  h.contributions[0].nats = -2.25;
  h.contributions[0].state = abi::SignalState::kSilent;
  EXPECT_THAT(to_html(v), HasSubstr("class=\"edge against silent\" stroke-width=\"2.25\""));
}

TEST(Explain, markdown_loads_and_links_nothing) {
  const std::string md = to_markdown(hostile("![x](http://a/b) [y](c) <b>"));
  EXPECT_THAT(md, Not(HasSubstr("![x](")));
  EXPECT_THAT(md, Not(HasSubstr(" [y](")));
  EXPECT_THAT(md, HasSubstr("\\<b>"));
}

}  // namespace
}  // namespace reflex::explain

// Renderings of a verdict: schema, round trip, and what an operator must find in the text.
#include "runtime/attribution/explain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/unit/attribution/world.h"

namespace reflex::attribution {
namespace {

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

}  // namespace
}  // namespace reflex::attribution

// Every diagnostic of sema occurs, at the right place, with its hint.
#include "tests/unit/sema/support.h"

namespace reflex::test {
namespace {

struct Case {
  const char* name;
  const char* text;        // after the kinds of support.h
  const char* ids;         // all errors and warnings, in order of place
  const char* underlined;  // of the first one
  const char* help;        // "" = any
};

class Reports : public ::testing::TestWithParam<Case> {};

TEST_P(Reports, ids_place_and_help) {
  const Case& c = GetParam();
  const auto out = compile_pack(c.text);
  EXPECT_EQ(ids(*out, true), c.ids) << rendered(*out);
  const auto all = out->sink.sorted();
  ASSERT_FALSE(all.empty());
  EXPECT_EQ(underlined(*out, all[0]), c.underlined) << rendered(*out);
  if (c.help[0] != '\0') {
    EXPECT_EQ(all[0].help, c.help) << rendered(*out);
  }
}

// A signal that something reads, so that only the mistake under test is reported.
#define READ(signal) " incident i on node { opens on " signal " }"

// Features for adaptive parameters; `limit` is read, so only the mistake under test is reported.
#define ADAPTIVE                                                                       \
  "feature f on node = rate(gpu.throttle, 6h) feature g on (node, gpu) = last(gpu.temp.value) " \
  "signal s on node { when f > profile.limit } signal r on (node, gpu) { when g > 90 celsius } "  \
  "incident i on node { opens on s or r } "

const Case kCases[] = {
    {"unknown_kind",
     "signal s on node { e: gpu.xidd where e.code == 48 } incident i on node { opens on s }",
     "R101", "gpu.xidd", "did you mean 'gpu.xid'?"},
    {"unknown_field", "signal s on node { e: gpu.xid where e.cod == 48 }" READ("s"), "R102", "cod",
     "did you mean 'code'?"},
    {"unknown_name", "signal s on node { e: gpu.xid where code == 48 }" READ("s"), "R103", "code",
     "did you mean 'e.code'?"},
    {"unknown_head",
     "signal s on (node, gpu) { when gpu.temp.value > proflie.temp_hot } incident i on node { "
     "opens on s }",
     "R103", "proflie.temp_hot", "did you mean 'profile.temp_hot'?"},
    {"type_mismatch", "signal s on node { e: gpu.xid where e.code == \"48\" }" READ("s"), "R104",
     "e.code == \"48\"", ""},
    {"unknown_parameter",
     "profile hw.a fallback { temp_hot: celsius = 85 } "
     "signal s on (node, gpu) { when gpu.temp.value > profile.temp_hto } incident i on node { "
     "opens on s }",
     "R105", "temp_hto", "did you mean 'temp_hot'?"},
    {"override_unknown",
     "profile hw.a abstract { temp_hot: celsius = 85 } profile hw.b extends hw.a fallback { "
     "temp_hto = 83 }",
     "R105", "temp_hto", "did you mean 'temp_hot'?"},
    {"unit_mismatch",
     "signal s on (node, gpu) { when gpu.temp.value > 300 watt } incident i on node { opens on s }",
     "R106", "gpu.temp.value > 300 watt", ""},
    {"unit_missing",
     "signal s on (node, gpu) { when gpu.temp.value > 90 } incident i on node { opens on s }",
     "R106", "90", "write the unit: celsius"},
    {"temperatures_add",
     "signal s on (node, gpu) { when gpu.temp.value + gpu.temp.limit > 90 celsius } incident i on "
     "node { opens on s }",
     "R106", "gpu.temp.value + gpu.temp.limit", "a difference can be added: a + (b - c)"},
    {"duplicate_signal",
     "signal s on node { e: gpu.xid } signal s on node { e: gpu.ecc }" READ("s"), "R107", "s", ""},
    {"unknown_signal",
     "fault f on node { prior 1e-4 per job } signal xid_48 on node { e: gpu.xid } "
     "f causes xid48 p 0.5 incident i on node { opens on xid_48 }",
     "R108", "xid48", "did you mean 'xid_48'?"},
    {"unknown_profile", "profile hw.x extends hw.bse fallback { }", "R109", "hw.bse", ""},
    {"not_a_key", "signal s on nod { e: gpu.xid } incident i on node { opens on s }", "R110", "nod",
     "did you mean 'node'?"},
    {"unknown_function",
     "signal s on node { e: gpu.xid where lable(e.node, site) == \"lab\" }" READ("s"), "R111",
     "lable(e.node, site)", "did you mean 'label'?"},
    {"unknown_list", "signal s on node { e: gpu.xid where e.code in xid_hwd }" READ("s"), "R112",
     "xid_hwd", ""},
    {"unknown_word", "signal s on node { e: gpu.ecc where e.kind == corected }" READ("s"), "R113",
     "corected", "did you mean 'corrected'?"},
    {"bad_arguments",
     "feature f on node = rate(gpu.throttle) signal s on node { when f > 3 per hour }" READ("s"),
     "R114", "rate(gpu.throttle)", "write: rate(gpu.throttle, 6h)"},
    {"unknown_cause", "signal s on node { e: gpu.xid } gpu_mem causes s p 0.5" READ("s"), "R115",
     "gpu_mem", ""},
    {"unknown_incident", "test \"t\" { nodes n1 expect verdict job_hng n1 { none } }", "R116",
     "job_hng", ""},
    {"unknown_option",
     "feature f on node = since(node.heartbeat, slack 3) signal s on node { when f > 5m }" READ(
         "s"),
     "R117", "slack 3", ""},
    {"unknown_group",
     "decoder d for text { line /Xid (?<code>\\d+)/ -> gpu.xid { code = u16(cod) } }", "R118",
     "cod", "did you mean 'code'?"},
    {"unknown_type", "event k { key node: node  code: u61 }", "R119", "u61", ""},
    {"counter_read",
     "signal s on (node, gpu) { when gpu.ecc.total > 100 } incident i on node { opens on s }",
     "R120", "gpu.ecc.total", "write: increase(gpu.ecc.total, 1h)"},
    {"entity_mismatch",
     "feature wear on (node, gpu) = decayed(increase(gpu.ecc.total), half_life 3d) "
     "signal s on node { when wear > 3 }" READ("s"),
     "R121", "wear", ""},
    {"unused",
     "list l: set<u16> = [48] macro m(e: gpu.xid) = e.code == 48 "
     "feature f on node = since(node.heartbeat)",
     "R201 R202 R203", "l", ""},
    {"mad_without_floor",
     "signal s on (node, gpu) { when gpu.temp.value > peers(job).median + 6 * peers(job).mad } "
     "incident i on node { opens on s }",
     "R204", "peers(job).mad", "write: max(peers(job).mad, 0.5 celsius)"},
    {"unread_signal", "signal s on node { e: gpu.xid }", "R205", "s", ""},
    {"fault_without_edges", "fault f on node { prior 1e-4 per job }", "R206", "f", ""},
    {"p_high",
     "fault f on node { prior 1e-4 per job } signal s on node { e: gpu.xid } f causes s p 0.999",
     "R208", "0.999", ""},
    {"constant_code", "signal s on node { e: gpu.xid where e.code == 70000 }" READ("s"), "R209",
     "e.code == 70000", ""},
    {"constant_both",
     "signal s on node { e: gpu.xid where e.code == 48 and e.code == 63 }" READ("s"), "R209",
     "e.code == 48 and e.code == 63", ""},
    {"unused_allow", "signal s on node { e: gpu.xid } # allow R204 known\n" READ("s"), "R299",
     "# allow R204", ""},
    {"fan_out", "signal s on (node, nic) { e: gpu.xid } incident i on node { opens on s }", "R301",
     "gpu.xid", ""},
    {"fallback_none", "profile hw.a { }", "R303", "hw.a", ""},
    {"fallback_two", "profile hw.a fallback { } profile hw.b fallback { }", "R303", "hw.b", ""},
    {"abstract_kind", "signal s on node { e: gpu.base }" READ("s"), "R304", "gpu.base", ""},
    {"lag_turned",
     "fault f on node { prior 1e-4 per job } signal s on node { e: gpu.xid } "
     "f causes s p 0.5 lag 1h .. 0s" READ("s"),
     "R305", "1h .. 0s", ""},
    {"p_range",
     "fault f on node { prior 1e-4 per job } signal s on node { e: gpu.xid } "
     "f causes s p 1.5" READ("s"),
     "R306", "1.5", ""},
    {"scope",
     "external tor_switch on tor { prior 1e-5 per hour } signal s on node { e: gpu.xid } "
     "tor_switch causes s p 0.5" READ("s"),
     "R307", "s", "write: scope tor"},
    {"mixed_weight",
     "fault f on node { prior 1e-4 per job } signal s on node { e: gpu.xid } "
     "f causes s p 0.5 weight 2.5 nats" READ("s"),
     "R308", "2.5 nats", ""},
    {"macro_recursion",
     "macro m(e: gpu.xid) = m(e) signal s on node { e: gpu.xid where m(e) }" READ("s"), "R309",
     "m(e)", ""},
    {"kind_cycle", "event a extends b { } event b extends a { }", "R311", "a", ""},
    {"parameter_range",
     "profile hw.a abstract { temp_hot: celsius = 85 within 70 .. 95 } "
     "profile hw.b extends hw.a fallback { temp_hot = 120 }",
     "R312", "120", ""},
    {"feature_in_feature",
     "feature a on node = since(node.heartbeat) "
     "feature b on node = count(gpu.xid where a > 2m, within 1h) signal s on node { when b > 2 and "
     "a > 1m }" READ("s"),
     "R313", "a", ""},
    {"stray_clause", "signal s on node { e: gpu.xid for 5m }" READ("s"), "R313", "5m", ""},
    {"peers_in_a_step",
     "signal s on (node, gpu) { e: gpu.temp where e.value > peers(job).median } incident i on node "
     "{ opens on s }",
     "R313", "peers(job).median", ""},
    {"peers_by_a_measure",
     "signal s on (node, gpu) { when gpu.temp.value > peers(job by gpu.temp.value + 1 "
     "celsius).median } incident i on node { opens on s }",
     "R104", "gpu.temp.value + 1 celsius",
     "write: peers(job by train.step.role) or peers(job by label(node, role))"},
    {"kept_unless_reads_a_feature",
     "feature f on node = since(node.heartbeat) signal s on node within 1m { a: gpu.xid then b: "
     "nccl.timeout unless c: job.ended where c.job == b.job and f > 2m between a and b }" READ("s"),
     "R313", "f", "compare with fields of the event and of the steps"},
    {"unless_fan_out",
     "signal s on node within 1m { a: gpu.xid then b: gpu.ecc unless c: job.ended where c.reason "
     "== \"done\" between a and b }" READ("s"),
     "R301", "job.ended", "keep the signal on a key that the kind has, or add the key to the kind"},
    {"byte_rate_is_no_bit_rate",
     "signal s on (node, nic) { e: nic.state where e.speed > 5 GB/s }" READ("s"), "R106",
     "e.speed > 5 GB/s", ""},
    {"no_nanoseconds",
     "decoder d for text { line /(?<job>j) (?<n>\\d+)/ -> nccl.timeout { job = job waited = ns(n) "
     "} "
     "}",
     "R111", "ns(n)", "durations are read with us(), ms(), s(), minutes() or hours()"},
    {"bad_regex", "decoder d for text { line /(a/ -> gpu.xid { } }", "R314", "/(a/", ""},
    {"peers_alone",
     "signal s on (node, gpu) { when 3 celsius < peers(job).median } incident i on node { opens on "
     "s }",
     "R315", "peers(job).median", ""},
    {"no_pattern", "signal s on node { holds 5m }" READ("s"), "R316", "s", ""},
    {"no_window", "signal s on node { a: gpu.xid then b: gpu.ecc }" READ("s"), "R316", "s", ""},
    {"guard_reads_step",
     "signal s on node { e: gpu.xid and none gpu.xid where it.code == e.code in the last 24h "
     "}" READ("s"),
     "R317", "e.code", ""},
    {"test_without_expectation", "test \"t\" { nodes n1 }", "R318", "test", ""},
    {"not_constant", "signal s on node within node { a: gpu.xid then b: gpu.ecc }" READ("s"),
     "R319", "node", ""},
    {"absent_first", "signal s on node { then absent u: nic.state for 30s }" READ("s"), "R320",
     "then absent u: nic.state for 30s", ""},
    {"missing_key", "decoder d for text { line /x/ -> nic.state { } }", "R321", "nic.state", ""},
    {"state", "signal s on node { count gpu.xid >= 3 within 1h exact max 100000000 }" READ("s"),
     "R412", "100000000", ""},
    {"index",
     "signal s on (node, gpu) { e: gpu.xid where e.reg[7] == 1 } incident i on node { opens on s }",
     "R414", "7", ""},
    {"bit",
     "signal s on (node, gpu) { e: gpu.xid where e.reg[0] any bits (64) } incident i on node { "
     "opens on s }",
     "R414", "64", ""},
    {"number_range",
     "list l: set<u8> = [300] signal s on node { e: gpu.xid where e.code in l }" READ("s"), "R416",
     "300", ""},
    {"enum_word_twice", "event k { key node: node  state: enum(up, down, up) }", "R107", "up", ""},
    {"array_too_large", "event k { key node: node  reg: array<u32, 70000> }", "R416",
     "array<u32, 70000>", "send what is larger as several events"},
    {"fault_half_life_zero",
     "fault f on node { prior 1e-4 per job half_life 0s } signal s on node { e: gpu.xid } "
     "f causes s p 0.5",
     "R305", "0s", "such as 3d or 30d"},
    {"feature_half_life_zero",
     "signal s on (node, gpu) { when decayed(increase(gpu.ecc.total), half_life 0s) > 3 } "
     "incident i on node { opens on s }",
     "R305", "0s", "such as 3d or 30d"},
    {"test_title_twice",
     "test \"t\" { nodes n1 at 1s: gpu.ecc n1/0 expect no verdict } "
     "test \"t\" { nodes n2 at 1s: gpu.ecc n2/0 expect no verdict }",
     "R107", "test", ""},
    {"suppress_without_end", "signal s on node { e: gpu.xid } suppress lab { signals s reason \"x\" }" READ("s"),
     "R207", "lab", ""},
    {"suppress_without_reason",
     "signal s on node { e: gpu.xid } suppress lab { signals s until 2027-03-31 }" READ("s"), "R207",
     "lab", ""},
    {"suppress_bad_date",
     "signal s on node { e: gpu.xid } suppress lab { signals s until 2027-13-31 reason \"x\" }" READ(
         "s"),
     "R319", "lab", ""},
    {"suppress_nothing", "suppress lab { until 2027-03-31 reason \"x\" }", "R316", "lab", ""},
    {"maintenance_of_a_job", "maintenance from event gpu.xid until gpu.ecc on job", "R110 R110", "job",
     "write: on node; the kind needs a field `node`"},
    {"maintenance_without_node", "maintenance from event fs.lost until gpu.ecc on node", "R110",
     "node", "write: on node; the kind needs a field `node`"},
    {"cohort_field", "cohort from event gpu.xid by cod on node", "R102", "cod",
     "did you mean 'code'?"},
    {"cohort_of_a_number", "event k { key node: node  load: f64 } cohort from event k by load on node",
     "R104", "load", ""},
    {"repair_kind", "repair from event gpu.xidd on node", "R101", "gpu.xidd",
     "did you mean 'gpu.xid'?"},
    {"mask_of_a_node",
     "fault x on node { prior 1e-5 per hour } signal s on node { e: gpu.xid } x causes s p 0.5 "
     "x masks s",
     "R322", "x", ""},
    {"mask_share",
     "external x on tor { prior 1e-5 per hour } signal s on node { e: gpu.xid } x causes s p 0.5 "
     "scope tor x masks s when at least 130% of members in 60s",
     "R306", "130% of members", ""},
    {"mask_of_nodes",
     "external x on tor { prior 1e-5 per hour } signal s on node { e: gpu.xid } x causes s p 0.5 "
     "scope tor x masks s when at least 30% of node in 60s",
     "R117", "node", "write: when at least 30% of members in 60s"},
    {"mask_with_p",
     "external x on tor { prior 1e-5 per hour } signal s on node { e: gpu.xid } x causes s p 0.5 "
     "scope tor x masks s p 0.5",
     "R313", "0.5", ""},
    {"edge_with_when",
     "external x on tor { prior 1e-5 per hour } signal s on node { e: gpu.xid } x causes s p 0.5 "
     "scope tor when at least 30% of members in 60s" READ("s"),
     "R313", "30% of members", ""},
    {"explained_by_maintenance_of_nothing",
     "signal s on node { e: gpu.xid } s explained by maintenance" READ("s"), "R110", "maintenance",
     "write: explained by maintenance on node"},
    {"explained_by_maintenance_with_p",
     "signal s on node { e: gpu.xid } s explained by maintenance on node p 0.5" READ("s"), "R313",
     "maintenance", ""},
    {"synergy_of_an_effect_that_is_none",
     "fault f on node { prior 1e-5 per job } signal a on node { e: gpu.xid } signal b on node { e: "
     "gpu.ecc } f causes a p 0.5 synergy f from a and b weight 1.5 nats" READ("b"),
     "R108", "b", "a synergy is on top of edges: f causes b p .."},
    {"synergy_twice",
     "fault f on node { prior 1e-5 per job } signal a on node { e: gpu.xid } f causes a p 0.5 "
     "synergy f from a and a weight 1.5 nats",
     "R107", "a", ""},
    {"adaptive_incomplete",
     ADAPTIVE "profile hw.a fallback { adaptive limit: per<hour> { default 3 over 7d } }", "R316",
     "limit", "write: { from FEATURE quantile 0.999 over 7d default 3 floor 1 ceiling 30 }"},
    {"adaptive_floor",
     ADAPTIVE "profile hw.a fallback { adaptive limit: per<hour> { from f over 7d default 3 floor 30 ceiling 1 } }", "R305",
     "limit", ""},
    {"adaptive_default",
     ADAPTIVE "profile hw.a fallback { adaptive limit: per<hour> { from f over 7d default 31 floor 1 ceiling 30 } }", "R312",
     "limit", ""},
    {"adaptive_quantile",
     ADAPTIVE "profile hw.a fallback { adaptive limit: per<hour> { from f quantile 1.5 over 7d default 3 } }", "R306",
     "1.5", ""},
    {"adaptive_feature",
     ADAPTIVE "profile hw.a fallback { adaptive limit: per<hour> { from ff over 7d default 3 } }", "R103",
     "ff", ""},
    {"adaptive_unit",
     ADAPTIVE "profile hw.a fallback { adaptive limit: per<hour> { from g over 7d default 3 } }", "R106",
     "g", ""},
    {"adaptive_setting",
     ADAPTIVE "profile hw.a fallback { adaptive limit: per<hour> { from f over 7d default 3 ceilin 30 } }", "R117",
     "ceilin", "did you mean 'ceiling'?"},
    {"adaptive_whole_number",
     ADAPTIVE "profile hw.a fallback { limit: per<hour> = 3 per hour  adaptive n: u8 { from f over 7d default 3 } }", "R104",
     "u8", "such as f64, celsius or per<hour>"},
    {"adaptive_override_value",
     ADAPTIVE "profile hw.a fallback { adaptive limit: per<hour> { from f quantile 0.999 over 7d default 3 floor 1 ceiling 30 } } profile hw.b extends hw.a { limit = 5 per hour }", "R104",
     "limit", "write: limit { default .. }"},
    {"adaptive_override_from",
     ADAPTIVE "profile hw.a fallback { adaptive limit: per<hour> { from f quantile 0.999 over 7d default 3 floor 1 ceiling 30 } } profile hw.b extends hw.a { limit { from g } }", "R313",
     "from", ""},
    {"adaptive_override_default",
     ADAPTIVE "profile hw.a fallback { adaptive limit: per<hour> { from f quantile 0.999 over 7d default 3 floor 1 ceiling 30 } } profile hw.b extends hw.a { limit { default 40 } }", "R312",
     "limit", ""},
    {"adaptive_override_of_a_plain_one",
     ADAPTIVE "profile hw.a fallback { adaptive limit: per<hour> { from f quantile 0.999 over 7d default 3 floor 1 ceiling 30 } q: f64 = 3 } profile hw.b extends hw.a { q { default 4 } }", "R104",
     "q", "write: q = .."},
    {"exceptions_key",
     "signal s on (node, gpu) { when gpu.temp.value > 90 celsius exceptions known (node ==, gpuu "
     "==) } incident i on node { opens on s }",
     "R110", "gpuu", "did you mean 'gpu'?"},
};

INSTANTIATE_TEST_SUITE_P(sema, Reports, ::testing::ValuesIn(kCases),
                         [](const auto& row) { return std::string(row.param.name); });

TEST(Diagnostics, horizon_is_a_cap_only_when_stated) {
  const std::string signal =
      "signal s on node { count gpu.xid >= 3 within 30d } incident i on node { opens on s }";
  const auto free = compile_pack(signal);
  ASSERT_NE(free->pack, nullptr) << rendered(*free);
  EXPECT_EQ(free->pack->limits.horizon_ns, 30LL * 24 * 3600 * 1'000'000'000);
  const auto capped = compile_pack("limits { horizon 7d } " + signal);
  EXPECT_EQ(ids(*capped), "R410") << rendered(*capped);
}

TEST(Diagnostics, too_many_fields) {
  std::string text = "event k { key node: node ";
  for (int i = 0; i < 64; ++i) text += " f" + std::to_string(i) + ": u8 ";
  EXPECT_EQ(ids(*compile_pack(text + "}")), "R411");
}

TEST(Diagnostics, profile_depth) {
  std::string text = "profile p0 fallback { } ";
  for (int i = 1; i <= 10; ++i) {
    text += "profile p" + std::to_string(i) + " extends p" + std::to_string(i - 1) + " { } ";
  }
  const auto out = compile_pack(text);
  EXPECT_EQ(only(*out, "R413").message, "profiles inherit at most 8 levels deep");
}

TEST(Diagnostics, kind_depth_from_the_base_up) {
  // Declared base first: no recursion is deep, yet the chain is.
  std::string text = "event k0 { key node: node } ";
  for (int i = 1; i <= 12; ++i) {
    text += "event k" + std::to_string(i) + " extends k" + std::to_string(i - 1) + " { } ";
  }
  const auto out = compile_pack(text);
  EXPECT_EQ(ids(*out), "R413") << rendered(*out);
  EXPECT_EQ(only(*out, "R413").message,
            "event kinds inherit at most 8 levels deep; 'k9' is one too deep");
}

TEST(Diagnostics, kind_depth_from_the_last_down) {
  std::string text;
  for (int i = 12; i >= 1; --i) {
    text += "event k" + std::to_string(i) + " extends k" + std::to_string(i - 1) + " { } ";
  }
  const auto out = compile_pack(text + "event k0 { key node: node }");
  EXPECT_EQ(ids(*out), "R413") << rendered(*out);
}

TEST(Diagnostics, eight_levels_of_kinds_are_allowed) {
  std::string text = "event k0 { key node: node } ";
  for (int i = 1; i <= 8; ++i) {
    text += "event k" + std::to_string(i) + " extends k" + std::to_string(i - 1) + " { } ";
  }
  EXPECT_EQ(ids(*compile_pack(text)), "");
}

TEST(Diagnostics, one_title_in_two_packs_is_fine) {
  const std::string test = " test \"t\" { nodes n1  expect no verdict }";
  const auto out = compile_files(
      {{"a/pack.rfx", "pack a 1.0.0" + test}, {"b/pack.rfx", "pack b 1.0.0" + test}});
  EXPECT_EQ(ids(*out), "") << rendered(*out);
}

TEST(Diagnostics, json_has_the_cap_of_the_text_form) {
  std::string text;
  for (int i = 0; i < 23; ++i) text += "event k" + std::to_string(i) + " { a: u61 } ";
  const auto out = compile_pack(text);
  const std::string json = diag::render_json(out->sink.sorted(), out->sources);
  EXPECT_EQ(std::count(json.begin(), json.end(), '\n'), 21);
  EXPECT_NE(json.find("{\"severity\":\"note\",\"message\":\"3 more errors\"}\n"),
            std::string::npos)
      << json;
}

TEST(Diagnostics, bit_rates_in_the_short_form) {
  for (const char* speed : {"6 Gb/s", "6Gb/s", "6 Gbit/s", "6Gbps"}) {
    const auto out = compile_pack("signal s on (node, nic) { e: nic.state where e.speed < " +
                                  std::string(speed) + " } incident i on node { opens on s }");
    EXPECT_EQ(ids(*out, true), "") << speed << rendered(*out);
  }
}

TEST(Diagnostics, an_end_in_the_past_is_a_warning_by_the_given_clock) {
  const std::string text = kKinds + std::string(
      "signal s on node { e: gpu.xid } incident i on node { opens on s } "
      "suppress lab { signals s until 2026-01-31 reason \"x\" }");
  compiler::Options options;
  for (const auto& [now, wanted] : {std::pair<int64_t, const char*>{0, ""},
                                    {1'769'817'599'000'000'000, ""},        // the second before
                                    {1'769'817'601'000'000'000, "R210"}}) {  // the second after
    options.now_ns = now;
    auto out = compiler::compile_text({{"t/pack.rfx", text}}, options);
    ASSERT_TRUE(out.ok());
    EXPECT_EQ(ids(*out.value(), true), wanted);
    ASSERT_EQ(out.value()->pack->suppressions.size(), 1u);  // the runtime compares with event time
  }
}

TEST(Diagnostics, macros_that_explode_are_stopped) {
  std::string text = "macro m0(e: gpu.xid) = e.code == 1 or e.code == 2 ";
  for (int i = 1; i < 24; ++i) {
    const std::string below = "m" + std::to_string(i - 1) + "(e)";
    text += "macro m" + std::to_string(i) + "(e: gpu.xid) = " + below + " or " + below + " ";
  }
  const auto out = compile_pack(text + "signal s on node { e: gpu.xid where m23(e) }");
  EXPECT_EQ(only(*out, "R415").severity, diag::Severity::kError);
}

TEST(Diagnostics, several_independent_mistakes_are_all_reported) {
  const auto out = compile_pack(R"(
    signal a on node { e: gpu.xidd }
    signal b on node { e: gpu.xid where e.cod == 1 }
    signal c on nod { e: gpu.xid }
    incident i on node { opens on a or b or c })");
  EXPECT_EQ(ids(*out), "R101 R102 R110") << rendered(*out);
}

TEST(Diagnostics, a_poisoned_name_silences_what_follows) {
  const auto out = compile_pack(
      "signal s on node { e: gpu.xid where e.cod + 3 > 4 and e.cod == \"x\" and e.code == 3 } "
      "incident i on node { opens on s }");
  // Two uses of the unknown field, nothing about the sums and comparisons above them.
  EXPECT_EQ(ids(*out), "R102 R102") << rendered(*out);
}

TEST(Diagnostics, allow_comment_suppresses_a_warning) {
  const auto out =
      compile_pack("# allow R205 kept for dashboards\nsignal s on node { e: gpu.xid }");
  EXPECT_EQ(ids(*out, true), "") << rendered(*out);
}

TEST(Diagnostics, cycle_prints_the_circle_and_what_to_cut) {
  const auto out = compile_pack(R"(
    signal a on node { e: gpu.xid }  signal b on node { e: gpu.ecc }
    signal c on node { e: gpu.throttle }
    a causes b p 0.5   b causes c p 0.2   c causes a p 0.4)");
  const auto d = only(*out, "R302");
  EXPECT_EQ(d.message, "the causes go in a circle: t.a -> t.b -> t.c -> t.a");
  EXPECT_EQ(d.help.substr(0, 45), "cut the weakest edge: t.b causes t.c (t/pack.");
}

TEST(Diagnostics, text_form_has_place_and_id) {
  const auto out = compile_pack("signal s on nod { e: gpu.xid }");
  const std::string text = rendered(*out);
  EXPECT_NE(text.find("t/pack.rfx:15:13: error:"), std::string::npos) << text;
  EXPECT_NE(text.find("[R110]"), std::string::npos) << text;
}

}  // namespace
}  // namespace reflex::test

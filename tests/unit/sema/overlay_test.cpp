// Overlays (A4): what each verb makes of the plans, what is listed, and what is refused.
#include "tests/unit/sema/support.h"

namespace reflex::test {
namespace {

constexpr const char* kBase = R"(
profile hw.base abstract { temp_hot: celsius = 85 within 70 .. 95  wide: int = 4 }
profile hw.h100 extends hw.base matches label p like "H100*" { temp_hot = 87 }
profile hw.h200 extends hw.h100 matches label p like "H200*" { }
profile hw.unknown extends hw.base fallback { }
list codes: set<u16> = [48]
signal hot on (node, gpu) {
  when gpu.temp.value > profile.temp_hot for 2m
  exceptions known_sensor (node ==, gpu ==)
}
signal bad on node { e: gpu.xid where e.code in codes }
fault f on node { prior 1e-4 per job }
f causes hot, bad p 0.5
)";

std::unique_ptr<compiler::Compilation> with_overlay(const std::string& overlay,
                                                    const std::string& file = "site.rfx") {
  return compile_files({{"t/pack.rfx", std::string(kKinds) + kBase}, {file, overlay}});
}

std::vector<std::string> changes(const compiler::Compilation& c) {
  std::vector<std::string> out;
  for (const auto& change : c.pack->overlay_changes) out.push_back(change.text);
  return out;
}

const abi::ClassPlan& hw_class(const abi::CompiledPack& pack, const std::string& name) {
  for (const auto& c : pack.classes) {
    if (c.name == name) return c;
  }
  ADD_FAILURE() << "no class " << name;
  return pack.classes[0];
}

double temp_hot(const abi::CompiledPack& pack, const std::string& name) {
  return std::bit_cast<double>(hw_class(pack, name).params[0]);
}

TEST(Overlay, A_file_of_overlays_needs_no_head) {
  const auto c = with_overlay("overlay fra for t { extend list codes [140] }");
  ASSERT_EQ(ids(*c), "") << rendered(*c);
  EXPECT_EQ(changes(*c), (std::vector<std::string>{"list t.codes also has [140]"}));
  bool found = false;
  for (const auto& leaf : c->pack->leaves) {
    found = found || constraints(leaf) == "2:[48..48][140..140]";
  }
  EXPECT_TRUE(found);
}

TEST(Overlay, Set_changes_the_class_and_those_below_it) {
  const auto c = with_overlay("overlay fra for t ^1 { set profile hw.h100 temp_hot = 89 celsius }");
  ASSERT_EQ(ids(*c), "") << rendered(*c);
  EXPECT_EQ(temp_hot(*c->pack, "hw.h100"), 89);
  EXPECT_EQ(temp_hot(*c->pack, "hw.h200"), 89);
  EXPECT_EQ(temp_hot(*c->pack, "hw.unknown"), 85);
  // Explanations name the line of the overlay as the origin.
  EXPECT_EQ(hw_class(*c->pack, "hw.h200").param_where[0].file, "site.rfx");
  EXPECT_EQ(changes(*c),
            (std::vector<std::string>{"profile hw.h100 temp_hot: 87 celsius -> 89 celsius"}));
}

TEST(Overlay, Set_prior_scale) {
  const auto c = with_overlay("overlay fra for t { set profile hw.h100 prior_scale f = 3 }");
  ASSERT_EQ(ids(*c), "") << rendered(*c);
  const auto& scales = c->pack->causes[0].class_prior_scale;
  ASSERT_EQ(scales.size(), c->pack->classes.size());
  for (size_t i = 0; i < scales.size(); ++i) {
    const std::string& name = c->pack->classes[i].name;
    EXPECT_EQ(scales[i], name == "hw.h100" || name == "hw.h200" ? 3.0 : 1.0) << name;
  }
  EXPECT_EQ(changes(*c).size(), 1u);
}

TEST(Overlay, Disable_and_except_stand_in_the_plans) {
  const auto c = with_overlay(R"(overlay fra for t {
    disable signal bad reason "optics swap" until 2031-01-01
    except hot known_sensor (gpu, node) [ (3, n0417) ("0000:3b:00", "n-2") (3, n0417) ]
  })");
  ASSERT_EQ(ids(*c), "") << rendered(*c);
  const auto& bad = signal(*c->pack, "t.bad");
  EXPECT_EQ(bad.disabled_until_ns, 1'924'992'000'000'000'000);
  EXPECT_EQ(bad.disabled_by, "overlay fra: optics swap");
  const auto& rows = signal(*c->pack, "t.hot").exceptions.rows;
  ASSERT_EQ(rows.size(), 2u);  // the third says the first again
  EXPECT_EQ(rows[0].values,
            (std::vector<uint64_t>{c->pack->symbols->find("n0417"), 3}));  // author's order
  EXPECT_EQ(rows[1].values[0], c->pack->symbols->find("n-2"));
  EXPECT_EQ(changes(*c).size(), 3u);
}

TEST(Overlay, Alias_renames_members_and_sets_constants) {
  const auto c = with_overlay(R"(overlay fra for t {
    alias kind dcgm.sbe_burst = gpu.ecc { node = host  gpu = field("gpu-id")  total = count
                                          kind = "corrected"  ts = stamp }
    alias kind "XID-event" = gpu.xid
  })");
  ASSERT_EQ(ids(*c), "") << rendered(*c);
  const abi::KindSchema* ecc = nullptr;
  const abi::KindSchema* xid = nullptr;
  for (const auto& kind : c->pack->kinds) {
    if (kind.name == "gpu.ecc") ecc = &kind;
    if (kind.name == "gpu.xid") xid = &kind;
  }
  ASSERT_TRUE(ecc && xid);
  ASSERT_EQ(ecc->aliases.size(), 1u);
  const abi::KindAlias& alias = ecc->aliases[0];
  EXPECT_EQ(alias.name, "dcgm.sbe_burst");
  ASSERT_EQ(alias.renames.size(), 4u);
  EXPECT_EQ(alias.renames[1].member, "gpu-id");
  EXPECT_EQ(alias.renames[3].slot, abi::KindAlias::kTs);
  ASSERT_EQ(alias.constants.size(), 1u);
  EXPECT_EQ(alias.constants[0].bits, c->pack->symbols->find("corrected"));
  ASSERT_EQ(xid->aliases.size(), 1u);
  EXPECT_EQ(xid->aliases[0].name, "XID-event");
  EXPECT_EQ(changes(*c)[1], "kind XID-event is read as gpu.xid");
}

TEST(Overlay, Tests_of_a_site_write_its_own_kinds_and_members) {
  const auto c = with_overlay(R"(overlay fra for t {
    alias kind site.xid = gpu.xid { code = number }
  }
  test "the site's own" { nodes n1  at 1m: site.xid n1/0 number 48  expect bad on n1 }
  )");
  EXPECT_EQ(ids(*c), "") << rendered(*c);
  const auto wrong = with_overlay(R"(overlay fra for t {
    alias kind site.xid = gpu.xid { code = number }
  }
  test "the old name" { nodes n1  at 1m: site.xid n1/0 code 48  expect bad on n1 }
  )");
  EXPECT_EQ(ids(*wrong), "R102") << rendered(*wrong);
}

struct Case {
  const char* name;
  const char* text;
  const char* ids;
  const char* underlined;
  const char* help;  // "" = any
};

class Refused : public ::testing::TestWithParam<Case> {};

TEST_P(Refused, ids_place_and_help) {
  const Case& c = GetParam();
  const auto out = with_overlay(c.text);
  EXPECT_EQ(ids(*out), c.ids) << rendered(*out);
  ASSERT_NE(std::string(c.ids), "");
  const auto d = only(*out, std::string(c.ids).substr(0, 4));
  EXPECT_EQ(underlined(*out, d), c.underlined) << rendered(*out);
  if (c.help[0] != '\0') {
    EXPECT_EQ(d.help, c.help) << rendered(*out);
  }
}

const Case kCases[] = {
    {"unknown_pack", "overlay o for tt { extend list codes [1] }", "R520", "tt",
     "did you mean 't'?"},
    {"version", "overlay o for t ^2 { extend list codes [1] }", "R524", "t", ""},
    {"vanished_signal", "overlay o for t { disable signal bda }", "R108", "bda",
     "did you mean 'bad'?"},
    {"vanished_list", "overlay o for t { extend list code [1] }", "R112", "code",
     "did you mean 'codes'?"},
    {"vanished_kind", "overlay o for t { alias kind a.b = gpu.xidd }", "R101", "gpu.xidd",
     "did you mean 'gpu.xid'?"},
    {"vanished_profile", "overlay o for t { set profile hw.h10 temp_hot = 80 }", "R109", "hw.h10",
     ""},
    {"vanished_parameter", "overlay o for t { set profile hw.h100 temp_hto = 80 }", "R105",
     "temp_hto", "did you mean 'temp_hot'?"},
    {"out_of_range", "overlay o for t { set profile hw.h100 temp_hot = 99 }", "R312", "99", ""},
    {"declares", "overlay o for t { set profile hw.h100 other: int = 1 }", "R313", "other: int = 1",
     ""},
    {"list_element", "overlay o for t { extend list codes [70000] }", "R416", "70000", ""},
    {"twice",
     "overlay a for t { set profile hw.h100 temp_hot = 80 }\n"
     "overlay b for t { set profile hw.h100 temp_hot = 81 }",
     "R527", "temp_hot", "leave it to one of the two"},
    {"alias_of_a_kind", "overlay o for t { alias kind gpu.xid = gpu.ecc }", "R107", "gpu.xid", ""},
    {"alias_field", "overlay o for t { alias kind a.b = gpu.ecc { totl = n } }", "R102", "totl",
     "did you mean 'total'?"},
    {"alias_word", "overlay o for t { alias kind a.b = gpu.ecc { kind = \"corectd\" } }", "R113",
     "\"corectd\"", "did you mean 'corrected'?"},
    {"alias_abstract", "overlay o for t { alias kind a.b = gpu.base }", "R304", "gpu.base", ""},
    {"no_exceptions", "overlay o for t { except bad known (node) [ (n1) ] }", "R323", "known",
     "its author must write: exceptions known (..)"},
    {"other_keys", "overlay o for t { except hot known_sensor (node) [ (n1) ] }", "R323",
     "known_sensor", "write: except hot known_sensor (node, gpu) [ .. ]"},
    {"key_value", "overlay o for t { except hot known_sensor (node, gpu) [ (n1, x) ] }", "R104",
     "x", ""},
    {"bad_date", "overlay o for t { disable signal bad until \"soon\" }", "R319",
     "disable signal bad until \"soon\"", ""},
};

INSTANTIATE_TEST_SUITE_P(sema, Refused, ::testing::ValuesIn(kCases),
                         [](const auto& row) { return std::string(row.param.name); });

TEST(Overlay, A_renamed_signal_is_offered_under_its_new_name) {
  const auto c = compile_files(
      {{"t/pack.rfx", std::string(kKinds) +
                          "signal xid_new on node { e: gpu.xid was xid_old } fault f on node { } "
                          "f causes xid_new p 0.5"},
       {"site.rfx", "overlay o for t { disable signal xid_old }"}});
  EXPECT_EQ(only(*c, "R108").help, "it is called 'xid_new' now") << rendered(*c);
}

TEST(Overlay, An_end_that_has_passed_is_a_warning_and_the_entry_inert) {
  compiler::Options options;
  options.backend = compiler::Backend::kInterp;
  options.now_ns = 1'800'000'000'000'000'000;  // 2027
  auto c = compiler::compile_text(
      {{"t/pack.rfx", std::string(kKinds) + kBase},
       {"site.rfx", "overlay o for t { disable signal bad until 2026-06-01 }"}},
      options);
  ASSERT_TRUE(c.ok());
  EXPECT_EQ(ids(*c.value(), true), "R210") << rendered(*c.value());
  ASSERT_TRUE(c.value()->pack);
  EXPECT_TRUE(c.value()->pack->overlay_changes.at(0).inert);
}

}  // namespace
}  // namespace reflex::test

// Packs: heads, imports, visibility, version ranges, hashes, lists from files.
#include "compiler/sema/packs.h"

#include "tests/unit/sema/support.h"

namespace reflex::test {
namespace {

using Files = std::vector<compiler::InMemoryFile>;

const char* const kBase =
    "pack base 1.4.0 event gpu.xid { key node: node code: u16 } "
    "list private_list: set<u16> = [1] export list codes: set<u16> = [48, 63] "
    "signal hard on node { e: gpu.xid where e.code in codes } "
    "signal other on node { e: gpu.xid where e.code in private_list } ";

TEST(Packs, import_makes_names_visible_plain_qualified_and_by_alias) {
  const Files files{{"base/pack.rfx", kBase},
                    {"site/pack.rfx",
                     "pack site 1.0.0 import base ^1 as b "
                     "signal s on node { e: gpu.xid where e.code in b.codes } "
                     "fault f on node { prior 1e-4 per job } "
                     "f causes hard, base.other, b.hard, site.s p 0.5"}};
  const auto out = compile_files(files);
  ASSERT_NE(out->pack, nullptr) << rendered(*out);
  EXPECT_EQ(out->pack->edges.size(), 4u);
}

TEST(Packs, private_and_missing_imports_are_told_apart) {
  const Files files{{"base/pack.rfx", kBase},
                    {"site/pack.rfx",
                     "pack site 1.0.0 import base "
                     "signal s on node { e: gpu.xid where e.code in private_list }"},
                    {"third/pack.rfx", "pack third 1.0.0 signal t on node { e: gpu.xid }"}};
  const auto out = compile_files(files);
  EXPECT_EQ(ids(*out), "R525 R525") << rendered(*out);
  EXPECT_EQ(out->sink.sorted().back().help, "add: import base");
}

TEST(Packs, only_limits_what_an_import_shows) {
  const Files files{{"base/pack.rfx", kBase},
                    {"site/pack.rfx",
                     "pack site 1.0.0 import base only (gpu.xid) "
                     "signal s on node { e: gpu.xid where e.code in codes }"}};
  EXPECT_EQ(ids(*compile_files(files)), "R525");
}

TEST(Packs, one_name_of_two_imports_needs_a_prefix) {
  const char* const kOther = "pack other 1.0.0 import base signal hard on node { e: gpu.xid }";
  const Files files{{"base/pack.rfx", kBase},
                    {"other/pack.rfx", kOther},
                    {"site/pack.rfx",
                     "pack site 1.0.0 import base import other "
                     "fault f on node { prior 1e-4 per job } f causes hard, other.hard p 0.5"}};
  EXPECT_EQ(ids(*compile_files(files)), "R526");
}

TEST(Packs, unknown_and_cyclic_imports) {
  const auto unknown =
      compile_files({{"base/pack.rfx", kBase}, {"site/pack.rfx", "pack site 1.0.0 import bas"}});
  EXPECT_EQ(only(*unknown, "R520").help, "did you mean 'base'?");
  const auto far = compile_files({{"site/pack.rfx", "pack site 1.0.0 import std.nvidia"}});
  EXPECT_EQ(only(*far, "R520").help, "add the folder that holds its pack.rfx to the command line");
  const auto cycle = compile_files({{"a/pack.rfx", "pack a 1.0.0 import b"},
                                    {"b/pack.rfx", "pack b 1.0.0 import c"},
                                    {"c/pack.rfx", "pack c 1.0.0 import a"}});
  EXPECT_EQ(only(*cycle, "R521").message, "packs import each other in a circle: a -> b -> c -> a");
}

TEST(Packs, versions_are_checked) {
  const auto out = compile_files(
      {{"base/pack.rfx", kBase}, {"site/pack.rfx", "pack site 1.0.0 import base ^3"}});
  EXPECT_EQ(ids(*out), "R524");
  using sema::version_satisfies;
  EXPECT_TRUE(version_satisfies("1.4.0", ""));
  EXPECT_TRUE(version_satisfies("1.4.0", "1.2"));
  EXPECT_FALSE(version_satisfies("1.1.9", "1.2"));
  EXPECT_FALSE(version_satisfies("2.0.0", "1.2"));
  EXPECT_TRUE(version_satisfies("3.0.1", "^3"));
  EXPECT_FALSE(version_satisfies("3.1.0-rc1", "^3"));
  EXPECT_TRUE(version_satisfies("2.0.0", ">=1.4"));
  EXPECT_TRUE(version_satisfies("1.10.0", ">= 1.9"));
  EXPECT_TRUE(version_satisfies("1.4.2", "~1.4"));
  EXPECT_FALSE(version_satisfies("1.5.0", "~1.4"));
  EXPECT_TRUE(version_satisfies("1.5.0", "< 2"));
  EXPECT_FALSE(version_satisfies("2.0.0", "<= 1.9"));
  EXPECT_FALSE(version_satisfies("1.0.0", "!= 1.0.0"));
  EXPECT_FALSE(version_satisfies("", "^1"));  // an implicit pack has no version
}

TEST(Packs, a_diamond_of_two_majors_prints_both_paths) {
  const auto out = compile_files(
      {{"base/pack.rfx", kBase},
       {"a/pack.rfx", "pack a 1.0.0 import base ^1"},
       {"b/pack.rfx", "pack b 1.0.0 import base ^2"},
       {"site/pack.rfx", "pack site 1.0.0 import a import b"}});
  EXPECT_EQ(ids(*out), "R528") << rendered(*out);
  EXPECT_EQ(only(*out, "R528").message,
            "two versions of pack 'base' are wanted: site -> b -> base ^2, and site -> a -> base "
            "^1");
}

TEST(Packs, what_an_import_names_must_be_there) {
  const auto only_typo = compile_files(
      {{"base/pack.rfx", kBase},
       {"site/pack.rfx", "pack site 1.0.0 import base only (gpu.xidd)"}});
  EXPECT_EQ(only(*only_typo, "R103").help, "did you mean 'gpu.xid'?");
  const auto alias = compile_files({{"base/pack.rfx", kBase},
                                    {"b/pack.rfx", "pack b 1.0.0"},
                                    {"site/pack.rfx",
                                     "pack site 1.0.0 import base as x import b as x"}});
  EXPECT_EQ(ids(*alias), "R107");
}

TEST(Packs, two_packs_of_one_name_and_files_without_a_head) {
  EXPECT_EQ(ids(*compile_files({{"a/pack.rfx", "pack p 1.0.0"}, {"b/pack.rfx", "pack p 1.0.0"}})),
            "R522");
  const auto out = compile_files({{"x/loose.rfx", "signal s on node { e: job.end }"}});
  EXPECT_NE(ids(*out).find("R523"), std::string::npos) << rendered(*out);
}

TEST(Packs, a_file_of_site_words_needs_no_head_even_without_an_overlay) {
  const std::string base =
      "pack base 1.0.0 event gpu.xid { key node: node code: u16 } "
      "signal s on node { e: gpu.xid } incident i on node { opens on s }";
  for (const char* site : {"test \"t\" { nodes n1 } ",
                           "suppress known { signals s  until 2030-01-01  reason \"known\" }"}) {
    const auto out = compile_files({{"base/pack.rfx", base}, {"site.rfx", site}});
    EXPECT_EQ(ids(*out).find("R523"), std::string::npos) << rendered(*out);
    EXPECT_EQ(ids(*out).find("R10"), std::string::npos) << rendered(*out);
  }
}

TEST(Packs, files_below_the_pack_folder_and_profiles_need_no_head) {
  const auto out = compile_files(
      {{"base/pack.rfx", "pack base 1.0.0 event gpu.xid { key node: node code: u16 }"},
       {"base/more/rules.rfx", "signal s on node { e: gpu.xid } incident i on node { opens on s }"},
       {"hwprofiles/nvidia/h100.rfx", "profile hw.h100 fallback { temp_hot: celsius = 87 }"}});
  ASSERT_NE(out->pack, nullptr) << rendered(*out);
  EXPECT_EQ(out->pack->signals[0].name, "base.s");
  EXPECT_EQ(out->pack->classes[0].name, "hw.h100");
}

TEST(Packs, empty_set_is_an_environment_error) {
  const auto none = compiler::compile({}, {});
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().exit_code, 3);
  const auto absent = compiler::compile({"/no/such/folder"}, {});
  ASSERT_FALSE(absent.ok());
  EXPECT_EQ(absent.error().exit_code, 3);
}

TEST(Packs, hash_depends_on_bytes_and_not_on_place_or_tests) {
  auto hash = [](const std::string& folder, const std::string& extra, bool with_test) {
    Files files{{folder + "/pack.rfx", std::string(kBase) + extra}};
    if (with_test) {
      files.push_back({folder + "/a_test.rfx", "test \"t\" { nodes n1 expect no hard }"});
    }
    const auto out = compile_files(files);
    EXPECT_NE(out->pack, nullptr) << rendered(*out);
    return out->pack ? out->pack->packs[0].sha256 : std::string();
  };
  EXPECT_EQ(hash("a/b", "", false), hash("c", "", false));
  EXPECT_EQ(hash("a/b", "", false), hash("c", "", true));
  EXPECT_NE(hash("a/b", "", false), hash("a/b", " # x", false));
  EXPECT_EQ(hash("a/b", "", false).size(), 64u);
}

TEST(Packs, hash_of_an_importer_holds_those_of_its_imports) {
  auto site_hash = [](const std::string& extra) {
    const auto out =
        compile_files({{"base/pack.rfx", std::string(kBase) + extra},
                       {"site/pack.rfx",
                        "pack site 1.0.0 import base "
                        "fault f on node { prior 1e-4 per job } f causes hard p 0.5"}});
    return out->pack ? out->pack->packs[1].sha256 : rendered(*out);
  };
  EXPECT_EQ(site_hash(""), site_hash(""));
  EXPECT_NE(site_hash(""), site_hash("# changed"));
}

TEST(Packs, list_from_a_file) {
  Files files{{"base/pack.rfx",
               "pack base 1.0.0 event gpu.xid { key node: node code: u16 } "
               "list codes: set<u16> from \"codes.csv\" column 2 "
               "signal s on node { e: gpu.xid where e.code in codes } "
               "incident i on node { opens on s }"},
              {"base/codes.csv", "name,code\n\"a, b\",48\nc,63\n"}};
  const auto out = compile_files(files);
  ASSERT_NE(out->pack, nullptr) << rendered(*out);
  EXPECT_EQ(constraints(out->pack->leaves[0]), "1:[48..48][63..63]");
  const std::string before = out->pack->set_sha256;
  files[1].text += "d,64\n";
  EXPECT_NE(compile_files(files)->pack->set_sha256, before);
  files[1].text = "a,b\nc,x\n";
  EXPECT_EQ(ids(*compile_files(files)), "R416");
  files.pop_back();
  EXPECT_EQ(ids(*compile_files(files)), "R112");
}

TEST(Packs, limits_and_clock_are_merged) {
  const auto out = compile_files(
      {{"a/pack.rfx",
        "pack a 1.0.0 clock { lateness 5s settle 40s } limits { keys 1k state 16MiB }"},
       {"b/pack.rfx", "pack b 1.0.0 clock { lateness 9s } limits { keys 2k partials 8 per key }"}});
  ASSERT_NE(out->pack, nullptr) << rendered(*out);
  EXPECT_EQ(out->pack->clock.lateness_ns, 9'000'000'000);
  EXPECT_EQ(out->pack->clock.settle_ns, 40'000'000'000);
  EXPECT_EQ(out->pack->limits.keys_max, 2000u);
  EXPECT_EQ(out->pack->limits.partials_per_key, 8u);
  EXPECT_EQ(out->pack->limits.state_bytes_max, 16u << 20);
}

}  // namespace
}  // namespace reflex::test

// Packs for tests alone: no part of what runs, of its hash or its signals; `check` and `test` see
// them.
#include <gtest/gtest.h>

#include "compiler/driver/compile.h"

namespace reflex::compiler {
namespace {

const InMemoryFile kPack{"a/pack.rfx",
                         "pack a 1.0.0\nevent k { key node: node }\nsignal s on node { e: k }\n"};
const InMemoryFile kCases{"cases/pack.rfx", "pack cases 1.0.0\nimport a\n"};
const InMemoryFile kTest{"cases/x_test.rfx",
                         "signal probe on node { e: k }\ntest \"t\" { nodes n1\n at 1s: k n1\n"
                         " expect probe on n1 at 1s }\n"};

std::unique_ptr<Compilation> compiled(const std::vector<InMemoryFile>& files, bool tests) {
  Options options;
  options.backend = Backend::kInterp;
  options.include_tests = tests;
  auto done = compile_text(files, options);
  EXPECT_TRUE(done.ok());
  EXPECT_TRUE(done.value()->pack != nullptr)
      << diag::render_text(done.value()->sink.sorted(), done.value()->sources, {});
  return std::move(done).value();
}

TEST(TestPacks, AreNoPartOfWhatRuns) {
  const auto alone = compiled({kPack}, false);
  const auto run = compiled({kPack, kCases, kTest}, false);
  ASSERT_EQ(run->pack->packs.size(), alone->pack->packs.size());
  EXPECT_EQ(run->pack->set_sha256, alone->pack->set_sha256);
  EXPECT_EQ(run->pack->signals.size(), 1u);
}

TEST(TestPacks, AreThereForTestsUnderTheSameHash) {
  const auto run = compiled({kPack, kCases, kTest}, false);
  const auto test = compiled({kPack, kCases, kTest}, true);
  EXPECT_EQ(test->pack->signals.size(), 2u);
  EXPECT_EQ(test->tests.size(), 1u);
  EXPECT_EQ(test->pack->set_sha256, run->pack->set_sha256);
}

// What a daemon keeps of a set must make that set again.
TEST(TestPacks, CompiledFilesMakeTheSameSetAgain) {
  InMemoryFile limits = kCases;
  limits.text += "limits { keys 7 }\n";
  for (const auto& files : {std::vector{kPack},
                            {kPack, kCases, kTest},
                            {kPack, limits, kTest},
                            {kCases, kTest, kPack}}) {
    const auto first = compiled(files, false);
    const auto again = compiled(compiled_files(*first), false);
    EXPECT_EQ(again->pack->set_sha256, first->pack->set_sha256);
    EXPECT_EQ(again->pack->packs.size(), first->pack->packs.size());
  }
  Options options;
  options.backend = Backend::kInterp;
  const std::string root = REFLEX_SOURCE_DIR;
  for (const auto& paths :
       {std::vector{root + "/rules/std", root + "/hwprofiles"},
        {root + "/rules/fleet", root + "/rules/std/kinds", root + "/hwprofiles"}}) {
    auto first = compile(paths, options);
    ASSERT_TRUE(first.ok() && first.value()->pack);
    const auto again = compiled(compiled_files(*first.value()), false);
    EXPECT_EQ(again->pack->set_sha256, first.value()->pack->set_sha256) << paths.front();
  }
}

TEST(TestPacks, StayWhenTheySayMore) {
  const size_t alone = compiled({kPack}, false)->pack->packs.size();
  // Limits or a clock of its own, a declaration, no test at all, an importer.
  InMemoryFile cases = kCases;
  cases.text += "limits { keys 7 }\n";
  EXPECT_EQ(compiled({kPack, cases, kTest}, false)->pack->packs.size(), alone + 1);
  cases.text = kCases.text + "list l: set<u16> = [1]\n";
  EXPECT_EQ(compiled({kPack, cases, kTest}, false)->pack->packs.size(), alone + 1);
  EXPECT_EQ(compiled({kPack, kCases}, false)->pack->packs.size(), alone + 1);
  const InMemoryFile user{"b/pack.rfx",
                          "pack b 1.0.0\nimport cases\nevent k2 { key node: node }\n"};
  EXPECT_EQ(compiled({kPack, user, kCases, kTest}, false)->pack->packs.size(), alone + 2);
  EXPECT_EQ(compiled({{"c/pack.rfx", "pack c 1.0.0\n"}, {"c/x_test.rfx", "test \"t\" {}\n"}}, false)
                ->pack->packs.size(),
            1u);
}

}  // namespace
}  // namespace reflex::compiler

// Sets on disk: what comes back, what is damaged, what goes and what stays.
#include "runtime/serve/kept_sets.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/unit/serve/scratch_folder.h"

namespace reflex::serve {
namespace {

namespace fs = std::filesystem;

KeptSet set_of(const std::string& text) {
  return {"identity of " + text,
          {{"rules/a.rfx", text}, {"rules/nodes.csv", std::string("\0binary\n", 8)}},
          {{"model", {"m.json", "model"}}, {"inventory", {"inv.json", "shared"}}}};
}

size_t texts_in(const ScratchFolder& folder) {
  return static_cast<size_t>(std::distance(fs::directory_iterator(folder.file("sets/texts")), {}));
}

class KeptSetsTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(sets_.prepare(0).ok()); }
  ScratchFolder folder_;
  KeptSets sets_{folder_.file("sets")};
};

TEST_F(KeptSetsTest, GivesBackWhatWasKept) {
  ASSERT_TRUE(sets_.keep("a", set_of("one")).ok());
  ASSERT_TRUE(sets_.keep("a", set_of("one")).ok());
  auto read = sets_.read("a");
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read.value().identity, "identity of one");
  ASSERT_EQ(read.value().files.size(), 2u);
  EXPECT_EQ(read.value().files[0].path, "rules/a.rfx");
  EXPECT_EQ(read.value().files[0].text, "one");
  EXPECT_EQ(read.value().files[1].text, std::string("\0binary\n", 8));
  ASSERT_EQ(read.value().beside.size(), 2u);
  EXPECT_EQ(read.value().beside[1].role, "inventory");
  EXPECT_EQ(read.value().beside[1].file.text, "shared");
  EXPECT_FALSE(sets_.read("b").ok());
}

TEST_F(KeptSetsTest, DamageIsAnErrorAndNeverAnotherSet) {
  ASSERT_TRUE(sets_.keep("a", set_of("one")).ok());
  std::vector<fs::path> files{folder_.file("sets/a.set")};
  for (const auto& file : fs::directory_iterator(folder_.file("sets/texts"))) {
    files.push_back(file.path());
  }
  ASSERT_EQ(files.size(), 5u);
  for (const auto& path : files) {
    std::ifstream in(path, std::ios::binary);
    const std::string good((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    for (size_t at = 0; at < good.size(); ++at) {
      std::string bad = good;
      bad[at] = static_cast<char>(bad[at] ^ 1);
      std::ofstream(path, std::ios::binary) << bad;
      EXPECT_FALSE(sets_.read("a").ok()) << path << " " << at;
      std::ofstream(path, std::ios::binary) << good.substr(0, at);
      EXPECT_FALSE(sets_.read("a").ok()) << path << " cut at " << at;
    }
    std::ofstream(path, std::ios::binary) << good;
    EXPECT_TRUE(sets_.read("a").ok());
  }
}

/// Two texts of one checksum and size cannot be made here; a damaged one is written anew.
TEST_F(KeptSetsTest, ADamagedTextIsNotTakenForTheSame) {
  ASSERT_TRUE(sets_.keep("a", set_of("one")).ok());
  for (const auto& file : fs::directory_iterator(folder_.file("sets/texts"))) {
    std::ofstream(file.path(), std::ios::binary) << "";
  }
  ASSERT_TRUE(sets_.keep("b", set_of("one")).ok());
  auto read = sets_.read("b");
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read.value().files[0].text, "one");
}

TEST_F(KeptSetsTest, TrimLeavesWhatTheJournalAndAPromotionNeed) {
  for (const char* key : {"a", "b", "c", "d"}) {
    ASSERT_TRUE(sets_.keep(key, set_of(key)).ok());
  }
  CapturedState state;
  state.bytes = "state";
  state.position = 40;
  ASSERT_TRUE(sets_.keep_state("d", state).ok());
  sets_.retire("a", 10);
  sets_.retire("b", 20);
  sets_.retire("c", 30);
  ASSERT_TRUE(sets_.note_promoted({"b", "some\nidentity"}).ok());
  sets_.trim(10);
  EXPECT_TRUE(sets_.read("a").ok());
  sets_.trim(31);
  EXPECT_FALSE(sets_.read("a").ok());
  EXPECT_TRUE(sets_.read("b").ok()) << "it is promoted";
  EXPECT_FALSE(sets_.read("c").ok());
  EXPECT_TRUE(sets_.read("d").ok()) << "it is live";
  EXPECT_TRUE(sets_.read_state("d", 40).ok());
  EXPECT_EQ(texts_in(folder_), 5u) << "two own texts, three that are shared";
  ASSERT_TRUE(sets_.promoted());
  EXPECT_EQ(sets_.promoted()->key, "b");
  EXPECT_EQ(sets_.promoted()->instead_of, "some\nidentity");
  sets_.trim(41);
  EXPECT_TRUE(sets_.read("d").ok());
  EXPECT_FALSE(sets_.read_state("d", 40).ok());
}

TEST_F(KeptSetsTest, WhatWasThereAtAStartIsNeededForTheJournalOfThen) {
  ASSERT_TRUE(sets_.keep("a", set_of("a")).ok());
  KeptSets next(folder_.file("sets"));
  ASSERT_TRUE(next.prepare(100).ok());
  next.trim(100);
  EXPECT_TRUE(next.read("a").ok());
  next.trim(101);
  EXPECT_FALSE(next.read("a").ok());
}

}  // namespace
}  // namespace reflex::serve

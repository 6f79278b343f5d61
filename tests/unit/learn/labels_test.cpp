// Labelled history: tolerant reading, appending, matching.
#include "runtime/learn/labels.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

namespace reflex::learn {
namespace {

TEST(Labels, ReadsTheFieldsInAnyOrderOfLines) {
  const auto file = parse_labels(
      R"({"incident":"b","job":"j2","ts":2000,"culprits":[],"external":"storage","category":"storage_outage","type":"none"})"
      "\n"
      R"({"incident":"a","job":"j1","ts":"1970-01-01T00:00:01Z","culprits":["n2","n1","n2"],"fault":null,"category":"gpu_lost","type":"explicit"})"
      "\n\n",
      "x");
  ASSERT_EQ(file.labels.size(), 2u);
  EXPECT_EQ(file.bad_lines, 0u);
  EXPECT_EQ(file.labels[0].incident, "a");
  EXPECT_EQ(file.labels[0].ts_ns, kNsPerSecond);
  EXPECT_EQ(file.labels[0].culprits, (std::vector<std::string>{"n1", "n2"}));
  EXPECT_EQ(file.labels[1].external, "storage");
  EXPECT_TRUE(file.labels[1].culprits.empty());
  EXPECT_EQ(file.labels[1].category, "storage_outage");
}

TEST(Labels, BadLinesAreCountedAndTheRestIsRead) {
  const auto file = parse_labels(
      "{\n"
      "[1,2]\n"
      R"({"job":"j1","culprits":[]})"
      "\n"
      R"({"incident":"a","job":"j1"})"
      "\n"
      R"({"incident":"a","culprits":[1]})"
      "\n"
      R"({"incident":"a","culprits":["n1"],"ts":"yesterday"})"
      "\n"
      R"({"incident":"a","culprits":["n1"],"ts":5})"
      "\n",
      "h.ndjson");
  EXPECT_EQ(file.bad_lines, 6u);
  ASSERT_EQ(file.labels.size(), 1u);
  ASSERT_FALSE(file.samples.empty());
  EXPECT_EQ(file.samples[0], "h.ndjson:1: not a JSON object");
  EXPECT_EQ(file.samples[2], "h.ndjson:3: no `incident`");
}

TEST(Labels, TheLastWordWinsButWrongTakesNothingBack) {
  const auto file = parse_labels(R"({"incident":"a","culprits":["n1"],"ts":1})"
                                 "\n"
                                 R"({"incident":"a","culprits":["n2"],"ts":1})"
                                 "\n"
                                 R"({"incident":"a","outcome":"wrong","ts":1})"
                                 "\n",
                                 "x");
  ASSERT_EQ(file.labels.size(), 1u);
  EXPECT_EQ(file.labels[0].culprits, std::vector<std::string>{"n2"});
  EXPECT_TRUE(file.labels[0].truth_known);
  EXPECT_EQ(file.replaced, 2u);
}

TEST(Labels, AppendedLinesAreReadBack) {
  const std::string path = testing::TempDir() + "labels_append.ndjson";
  std::filesystem::remove(path);
  Label a;
  a.incident = "a";
  a.job = "j\"1";
  a.ts_ns = 1700000000123 * kNsPerMs;
  a.culprits = {"n1"};
  a.category = "gpu";
  a.verdict = "v1";
  a.outcome = "confirmed";
  Label b = a;
  b.incident = "b";
  b.culprits.clear();
  b.truth_known = false;
  b.outcome = "wrong";
  ASSERT_TRUE(append_label(path, a).ok());
  { std::ofstream(path, std::ios::app) << "{\"incident\":\"torn"; }  // a crash in the middle
  ASSERT_TRUE(append_label(path, b).ok());
  const auto file = read_labels(path);
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file.value().bad_lines, 1u);
  EXPECT_EQ(file.value().labels, (std::vector<Label>{a, b}));
  std::filesystem::remove(path);
}

TEST(Labels, AFileThatIsMissingIsAnError) {
  const auto file = read_labels("/nonexistent/labels.ndjson");
  ASSERT_FALSE(file.ok());
  EXPECT_NE(file.error().message.find("/nonexistent/labels.ndjson"), std::string::npos);
}

TEST(Labels, AreFoundByIdElseByJobAndTime) {
  std::vector<Label> labels(2);
  labels[0].incident = "a";
  labels[0].job = "j1";
  labels[0].ts_ns = 0;
  labels[1].incident = "b";
  labels[1].job = "j1";
  labels[1].ts_ns = 20 * kNsPerMinute;
  const LabelIndex index(labels);
  EXPECT_EQ(index.find("b", "other", 0), &labels[1]);
  EXPECT_EQ(index.find("made-up", "j1", 4 * kNsPerMinute), &labels[0]);
  EXPECT_EQ(index.find("made-up", "j1", 15 * kNsPerMinute), &labels[1]);
  EXPECT_EQ(index.find("made-up", "j1", 51 * kNsPerMinute), nullptr);
  EXPECT_EQ(index.find("made-up", "j2", 0), nullptr);
}

}  // namespace
}  // namespace reflex::learn

// Golden diagnostics: tests/golden/diag/NAME.rfx and what an author is told about it, NAME.text.
//
// A case is one file of the pack `t`, whose kinds are in kinds.rfx; a line `#--- PATH` begins a
// further file, and when it is the first line the case states all its files itself.
// UPDATE_GOLDEN=1 golden_test rewrites the side files: read the difference before committing it.
// Every id of diagnostics.def must occur in one of them, but for the exemptions below.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "compiler/diag/help_page.h"
#include "compiler/driver/compile.h"
#include "compiler/driver/reference.h"
#include "compiler/sema/builtins.h"

namespace reflex::test {
namespace {

namespace fs = std::filesystem;

// Why: each of them needs megabytes of input, which limits_test generates, or a bug of ours.
// This list only shrinks.
const std::map<std::string, std::string> kExempt = {
    {"R220", "needs an inventory: cli_test, `check --nodes`"},
    {"R401", "9 MB: tests/unit/parse/limits_test.cpp"},
    {"R402", "2,000,000 tokens: tests/unit/parse/limits_test.cpp"},
    {"R901", "a bug of the parser"},
};

const fs::path kFolder = fs::path(REFLEX_SOURCE_DIR) / "tests/golden/diag";

std::string read(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return std::move(text).str();
}

std::vector<std::string> case_names() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(kFolder)) {
    if (entry.path().extension() != ".rfx" || entry.path().stem() == "kinds") continue;
    names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<compiler::InMemoryFile> files_of(const std::string& name) {
  static constexpr std::string_view kMark = "#--- ";
  const std::string text = read(kFolder / (name + ".rfx"));
  std::vector<compiler::InMemoryFile> files;
  if (!text.starts_with(kMark)) {
    files.push_back({"t/pack.rfx", read(kFolder / "kinds.rfx")});
    files.push_back({"t/" + name + ".rfx", ""});
  }
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with(kMark)) {
      files.push_back({line.substr(kMark.size()), ""});
    } else {
      files.back().text += line + "\n";
    }
  }
  return files;
}

std::unique_ptr<compiler::Compilation> compiled(const std::string& name) {
  compiler::Options options;
  options.backend = compiler::Backend::kInterp;
  options.include_tests = true;
  options.now_ns = 1'767'225'600'000'000'000;  // 2026-01-01: what has passed by then has passed
  auto result = compiler::compile_text(files_of(name), options);
  EXPECT_TRUE(result.ok()) << result.error().message;
  return result.ok() ? std::move(result).value() : std::make_unique<compiler::Compilation>();
}

class Golden : public ::testing::TestWithParam<std::string> {};

TEST_P(Golden, text_is_that_of_the_side_file) {
  const auto c = compiled(GetParam());
  const std::string text = diag::render_text(c->sink.sorted(), c->sources, {});
  const fs::path side = kFolder / (GetParam() + ".text");
  if (std::getenv("UPDATE_GOLDEN") != nullptr) {
    std::ofstream(side, std::ios::binary) << text;
    return;
  }
  EXPECT_EQ(text, read(side)) << "UPDATE_GOLDEN=1 golden_test rewrites it";
  EXPECT_FALSE(text.empty()) << "a case without a diagnostic shows nothing";
}

TEST_P(Golden, json_tells_the_same_ids_at_the_same_places) {
  const auto c = compiled(GetParam());
  std::istringstream in(diag::render_json(c->sink.sorted(), c->sources));
  const std::string text = read(kFolder / (GetParam() + ".text"));
  for (std::string line; std::getline(in, line);) {
    const auto json = nlohmann::json::parse(line);
    const auto& start = json["range"]["start"];
    const std::string head = json["file"].get<std::string>() + ":" + start["line"].dump() + ":" +
                             start["col"].dump() + ": " + json["severity"].get<std::string>() +
                             ": ";
    const size_t at = text.find(head);
    ASSERT_NE(at, std::string::npos) << head << "\n" << text;
    EXPECT_NE(text.find("[" + json["id"].get<std::string>() + "]", at), std::string::npos);
  }
}

INSTANTIATE_TEST_SUITE_P(diag, Golden, ::testing::ValuesIn(case_names()),
                         [](const auto& row) { return row.param; });

std::set<std::string> ids_in_goldens() {
  std::set<std::string> ids;
  for (const std::string& name : case_names()) {
    const auto c = compiled(name);
    for (const auto& d : c->sink.sorted()) ids.insert(diag::to_text(d.id));
  }
  return ids;
}

TEST(GoldenCoverage, every_id_occurs_or_is_exempt) {
  const auto found = ids_in_goldens();
  for (const diag::IdInfo& row : diag::all_ids()) {
    const std::string id = diag::to_text(row.id);
    EXPECT_NE(found.contains(id), kExempt.contains(id))
        << id
        << (found.contains(id) ? " occurs: take it off the exemptions"
                               : " occurs in no golden: add tests/golden/diag/..rfx");
  }
}

/// Packs as a tired SRE breaks them: one mistake, one diagnostic, and it says what to write.
TEST(TiredAuthor, one_mistake_gives_one_diagnostic_with_help) {
  size_t packs = 0;
  for (const std::string& name : case_names()) {
    if (!name.starts_with("tired_")) continue;
    ++packs;
    const auto c = compiled(name);
    const auto all = c->sink.sorted();
    ASSERT_EQ(all.size(), 1u) << diag::render_text(all, c->sources, {});
    EXPECT_EQ(all[0].severity, diag::Severity::kError) << name;
    EXPECT_FALSE(all[0].help.empty()) << diag::render_text(all, c->sources, {});
  }
  EXPECT_GE(packs, 9u);
}

TEST(HelpPages, every_id_has_a_page_with_cause_and_fix) {
  for (const diag::IdInfo& row : diag::all_ids()) {
    const diag::HelpText text = diag::help_text(row.id);
    EXPECT_FALSE(text.cause.empty()) << diag::to_text(row.id) << ": a row in help.def is missing";
    EXPECT_FALSE(text.fix.empty()) << diag::to_text(row.id);
    EXPECT_FALSE(row.title.empty()) << diag::to_text(row.id);
  }
}

TEST(Reference, every_function_of_the_checker_is_documented) {
  std::vector<std::string> documented;
  for (const sema::FunctionDoc& doc : sema::function_docs()) documented.emplace_back(doc.name);
  std::sort(documented.begin(), documented.end());
  EXPECT_EQ(documented, sema::known_functions());
}

/// UPDATE_GOLDEN=1 rewrites the generated files of grammar/ too.
void compare_generated(const std::string& name, const std::string& text) {
  const fs::path path = fs::path(REFLEX_SOURCE_DIR) / "grammar" / name;
  if (std::getenv("UPDATE_GOLDEN") != nullptr) {
    std::ofstream(path, std::ios::binary) << text;
    return;
  }
  EXPECT_TRUE(text == read(path)) << path << " is stale: UPDATE_GOLDEN=1 golden_test rewrites it";
}

TEST(Reference, builtins_are_those_of_the_table) {
  compare_generated("BUILTINS.md", compiler::builtins_reference());
}

TEST(Reference, diagnostics_are_those_of_the_tables) {
  compare_generated("DIAGNOSTICS.md", compiler::diagnostics_reference());
}

}  // namespace
}  // namespace reflex::test

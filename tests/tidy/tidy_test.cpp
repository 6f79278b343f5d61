// Runs the checks of tidy.h over the sources of the product, and tests each check on a text that
// breaks its rule.
#include "tests/tidy/tidy.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

namespace reflex::tidy {
namespace {

namespace fs = std::filesystem;

std::string read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream out;
  out << file.rdbuf();
  return out.str();
}

fs::path root() { return REFLEX_SOURCE_DIR; }

std::vector<SourceFile> sources(const std::vector<std::string>& folders) {
  std::vector<SourceFile> files;
  for (const std::string& folder : folders) {
    if (!fs::exists(root() / folder)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(root() / folder)) {
      const std::string extension = entry.path().extension().string();
      if (!entry.is_regular_file() || (extension != ".h" && extension != ".cpp")) continue;
      const std::string path = fs::relative(entry.path(), root()).generic_string();
      // The yardstick engines are kept as their author wrote them.
      if (path.starts_with("tests/bench/baseline/")) continue;
      files.push_back({path, read(entry.path())});
    }
  }
  return files;
}

const std::vector<SourceFile>& product() {
  static const std::vector<SourceFile> files = sources({"compiler", "runtime"});
  return files;
}
const std::vector<SourceFile>& everything() {
  static const std::vector<SourceFile> files = sources({"compiler", "runtime", "tests"});
  return files;
}

Layers layers() { return parse_layers(read(root() / "tests/tidy/layers.txt")); }

void expect_none(const Problems& problems) {
  for (const std::string& problem : problems) ADD_FAILURE() << problem;
}

TEST(Tidy, IncludesFollowTheLayers) {
  const Layers rules = layers();
  ASSERT_GT(rules.folders.size(), 15u);
  ASSERT_FALSE(product().empty());
  for (const SourceFile& file : product()) expect_none(check_includes(file, rules));
}

TEST(Tidy, LayersHaveNoCycle) {
  // A folder may only allow folders that do not (transitively) allow it.
  const Layers rules = layers();
  for (const auto& [folder, allowed] : rules.folders) {
    std::set<std::string> seen;
    std::vector<std::string> open(allowed.begin(), allowed.end());
    while (!open.empty()) {
      const std::string next = open.back();
      open.pop_back();
      if (!seen.insert(next).second) continue;
      const auto found = rules.folders.find(next);
      EXPECT_NE(found, rules.folders.end()) << folder << " allows unknown folder " << next;
      if (found != rules.folders.end()) {
        open.insert(open.end(), found->second.begin(), found->second.end());
      }
    }
    EXPECT_FALSE(seen.contains(folder)) << folder << " reaches itself";
  }
}

TEST(Tidy, FileNamesSayWhatIsInside) {
  for (const SourceFile& file : everything()) expect_none(check_name(file.path));
}

TEST(Tidy, FilesStaySmall) {
  const auto exemptions = parse_exemptions(read(root() / "tests/tidy/exemptions.txt"));
  for (const SourceFile& file : everything()) expect_none(check_size(file, exemptions));
  for (const auto& [path, reason] : exemptions) {
    EXPECT_TRUE(fs::exists(root() / path)) << path << " is exempted but does not exist";
    EXPECT_GT(reason.size(), 20u) << path << " needs a reason";
  }
}

TEST(Tidy, EveryFileStartsWithItsPurpose) {
  for (const SourceFile& file : everything()) expect_none(check_header_comment(file));
}

TEST(Tidy, HeadersHavePragmaOnce) {
  for (const SourceFile& file : everything()) expect_none(check_pragma_once(file));
}

// ---- the checks themselves: each one must see what it is for

TEST(TidyChecks, UpwardIncludeIsFound) {
  const Layers rules = parse_layers("folder a/low:\nfolder a/high: a/low\n");
  EXPECT_EQ(check_includes({"a/low/x.h", "#include \"runtime/base/time.h\"\n"}, rules).size(), 1u);
  EXPECT_EQ(check_includes({"a/high/x.h", "#include \"a/low/y.h\"\n"}, rules).size(), 1u)
      << "a/low is not a root of ours, so the path counts as relative";
  const Layers real = layers();
  EXPECT_EQ(
      check_includes({"runtime/stream/x.cpp", "#include \"runtime/eval/signal_engine.h\"\n"}, real)
          .size(),
      1u);
  EXPECT_EQ(
      check_includes({"runtime/engine/x.cpp", "#  include \"compiler/driver/compile.h\"\n"}, real)
          .size(),
      1u);
  EXPECT_TRUE(
      check_includes({"runtime/engine/x.cpp", "#include \"runtime/eval/signal_engine.h\"\n"}, real)
          .empty());
}

TEST(TidyChecks, LibraryOutsideItsFileIsFound) {
  const Layers rules = layers();
  const std::string boost = "#include <boost/graph/adjacency_list.hpp>\n";
  EXPECT_EQ(check_includes({"runtime/attribution/rank.cpp", boost}, rules).size(), 1u);
  EXPECT_TRUE(check_includes({"runtime/attribution/graph_boost.cpp", boost}, rules).empty());
  EXPECT_EQ(
      check_includes({"compiler/sema/x.cpp", "#include \"antlr4-runtime.h\"\n"}, rules).size(), 1u);
  EXPECT_EQ(check_includes({"compiler/ir/x.cpp", "#include <llvm/IR/Module.h>\n"}, rules).size(),
            1u);
}

TEST(TidyChecks, UnknownFolderAndRelativeIncludeAreFound) {
  EXPECT_EQ(check_includes({"runtime/new/x.h", ""}, layers()).size(), 1u);
  EXPECT_EQ(check_includes({"runtime/base/x.h", "#include \"time.h\"\n"}, layers()).size(), 1u);
}

TEST(TidyChecks, NamesSizesAndCommentsAreFound) {
  EXPECT_EQ(check_name("runtime/base/string_utils.h").size(), 1u);
  EXPECT_EQ(check_name("runtime/base/Misc.h").size(), 1u);
  EXPECT_TRUE(check_name("runtime/base/symbols.h").empty());
  EXPECT_EQ(check_size({"a.h", std::string(301, '\n')}, {}).size(), 1u);
  EXPECT_TRUE(check_size({"a.h", std::string(300, '\n')}, {}).empty());
  EXPECT_EQ(check_size({"a.cpp", std::string(501, '\n')}, {}).size(), 1u);
  EXPECT_TRUE(check_size({"a.cpp", std::string(501, '\n')}, {{"a.cpp", "why"}}).empty());
  EXPECT_EQ(check_size({"a.cpp", "\n"}, {{"a.cpp", "why"}}).size(), 1u);
  EXPECT_EQ(check_header_comment({"a.h", "#pragma once\n"}).size(), 1u);
  EXPECT_EQ(check_pragma_once({"a.h", "// x\n"}).size(), 1u);
}

}  // namespace
}  // namespace reflex::tidy

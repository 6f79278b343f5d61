// With a cache as without: over edits of the real packs, good and bad ones, the plans, the IR, the
// places and the diagnostics are those of a cold compilation.
#include "compiler/driver/compile_cache.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <random>

#include "compiler/driver/compile.h"

namespace reflex::compiler {
namespace {

namespace fs = std::filesystem;

std::vector<InMemoryFile> files_of(const std::vector<std::string>& folders) {
  std::vector<InMemoryFile> files;
  for (const auto& folder : folders) {
    for (const auto& entry : fs::recursive_directory_iterator(REFLEX_SOURCE_DIR "/" + folder)) {
      if (entry.path().extension() != ".rfx") continue;
      auto text = read_source(entry.path().string());
      EXPECT_TRUE(text.ok());
      files.push_back({fs::relative(entry.path(), REFLEX_SOURCE_DIR).string(), text.value()});
    }
  }
  std::sort(files.begin(), files.end(),
            [](const auto& a, const auto& b) { return a.path < b.path; });
  return files;
}

std::string place(const abi::SourceRef& at) {
  return fmt::format("{}:{}:{}", at.file, at.line, at.column);
}

/// All that a compilation says, as text.
std::string told(const Compilation& c) {
  std::string out = diag::render_json(c.sink.sorted(), c.sources, 100'000);
  for (const ast::Module& module : c.modules) {
    out += fmt::format("file {}\n", module.file);
    for (const ast::Decl& d : module.decls) {
      out += fmt::format("{} {} {}\n", d.span.file, d.span.begin, d.span.end);
    }
    out += ast::print(module);
  }
  for (const auto& [module, decl] : c.tests) out += fmt::format("test {} {}\n", module, decl);
  if (!c.pack) return out + "no pack\n";
  out += c.pack->set_sha256 + "\n";
  for (const ir::Function& f : c.ir.functions) out += f.name + ir::print(c.ir, f);
  for (const auto& s : c.pack->signals) {
    out += fmt::format("{} {} {} {} {} {}\n", s.name, place(s.where), s.state.exact, s.state.shape,
                       s.bytes_per_key, s.doc);
  }
  for (const auto& f : c.pack->features) out += fmt::format("{} {}\n", f.name, f.state.exact);
  for (const auto& f : c.pack->causes) out += fmt::format("{} {}\n", f.name, place(f.where));
  for (const auto& e : c.pack->edges) {
    out += fmt::format("{} {} {} {}\n", e.cause, e.lag_lo_ns, e.lag_hi_ns, place(e.where));
  }
  return out;
}

class Both {
 public:
  explicit Both(bool tests) {
    cold_.backend = warm_.backend = Backend::kInterp;
    cold_.include_tests = warm_.include_tests = tests;
    warm_.cache = cache;
  }
  /// Whether there was a pack.
  bool expect_same(const std::vector<InMemoryFile>& files, const std::string& what) {
    const auto cold = compile_text(files, cold_);
    auto warm = compile_text(files, warm_);
    EXPECT_EQ(cold.ok(), warm.ok()) << what;
    if (!cold.ok() || !warm.ok()) return false;
    const std::string expected = told(*cold.value());
    const std::string actual = told(*warm.value());
    if (expected != actual) {
      const auto at = std::mismatch(expected.begin(), expected.end(), actual.begin(), actual.end());
      const auto from = std::max<ptrdiff_t>(0, at.first - expected.begin() - 100);
      ADD_FAILURE() << what << "\ncold: " << expected.substr(static_cast<size_t>(from), 300)
                    << "\nwarm: " << actual.substr(static_cast<size_t>(from), 300);
    }
    cache->keep(std::move(*warm.value()));
    return cold.value()->pack != nullptr;
  }
  std::shared_ptr<CompileCache> cache = std::make_shared<CompileCache>();

 private:
  Options cold_, warm_;
};

/// One edit of a text, as people make them; `what` says which.
void edit(std::string& text, std::mt19937& rng, std::string& what) {
  const auto below = [&rng](size_t n) { return n == 0 ? 0 : rng() % n; };
  const size_t at = below(text.size());
  const size_t line = text.rfind('\n', at) == std::string::npos ? 0 : text.rfind('\n', at) + 1;
  const size_t next = std::min(text.find('\n', at), text.size() - 1) + 1;
  switch (below(7)) {
    case 0: {
      const size_t digit = text.find_first_of("123456789", at);
      if (digit == std::string::npos) return;
      text[digit] = static_cast<char>('1' + below(9));
      what += "digit ";
      return;
    }
    case 1:
      text.insert(line, "# a comment of some length\n");
      what += "comment ";
      return;
    case 2:
      text.erase(line, next - line);
      what += "line gone ";
      return;
    case 3:
      text.insert(line, text.substr(line, next - line));
      what += "line twice ";
      return;
    case 4:
      text.insert(at, " ");
      what += "blank ";
      return;
    case 5:
      text.insert(at, "\"\"\"");
      what += "quotes ";
      return;
    default:
      text.insert(line, "event extra.kind" + std::to_string(below(1000)) + " { key node: node }\n");
      what += "event ";
      return;
  }
}

TEST(CompileCache, EditsGiveWhatAColdCompilationGives) {
  const std::vector<InMemoryFile> good =
      files_of({"rules/std/nvidia", "rules/std/kinds", "hwprofiles"});
  ASSERT_GT(good.size(), 10u);
  std::mt19937 rng(20'261'130);
  Both both(true);
  std::vector<InMemoryFile> files = good;
  int with_pack = 0;
  both.expect_same(files, "first");
  for (int i = 0; i < 24; ++i) {
    std::string what;
    if (i % 4 == 3) {
      files = good;  // what was bad is mended
      what = "as it was";
    } else if (i == 9) {
      files.erase(files.begin() + 1);
      what = "a file less";
    } else {
      InMemoryFile& file = files[rng() % files.size()];
      what = file.path + ": ";
      edit(file.text, rng, what);
    }
    with_pack += both.expect_same(files, fmt::format("step {}: {}", i, what));
    if (HasFailure()) break;
  }
  EXPECT_GT(with_pack, 6);
}

TEST(CompileCache, TreesAreMovedWithAllTheirPlaces) {
  // Every file moves to another number and, behind its second statement, to another byte; then what
  // they read is not there, and a diagnostic for each use tells where the trees say that they are.
  std::vector<InMemoryFile> files = files_of({"rules/std", "hwprofiles"});
  Both both(true);
  both.expect_same(files, "first");
  for (InMemoryFile& file : files) {
    size_t at = 0;
    for (int statement = 0; statement < 6 && at != std::string::npos; ++statement) {
      at = file.text.find("\n\n", at + 1);
    }
    if (at != std::string::npos) file.text.insert(at + 1, "# moved\n");
  }
  EXPECT_TRUE(both.expect_same(files, "moved"));
  EXPECT_GT(both.cache->last().files_edited, 5u);
  EXPECT_EQ(both.cache->last().files_taken + both.cache->last().files_edited +
                both.cache->last().files_parsed,
            files.size());
  std::erase_if(files,
                [](const auto& file) { return file.path.find("kinds") != std::string::npos; });
  EXPECT_FALSE(both.expect_same(files, "without kinds"));
  EXPECT_GT(both.cache->last().files_taken, 20u);
}

TEST(CompileCache, OneRuleAmongManyIsParsedAlone) {
  Both both(false);
  const auto pack = [](int limit) {
    std::string text = "pack many 1.0.0\nevent m.sample { key node: node  code: u16 }\n";
    for (int i = 0; i < 100; ++i) {
      text += fmt::format(
          "signal s{} on node {{ when count(m.sample where it.code == {}, 5m) >= {} }}\n", i, i,
          i == 50 ? limit : 3);
    }
    return text;
  };
  for (const int limit : {3, 4, 50'000, 7}) {
    EXPECT_TRUE(both.expect_same({{"many.rfx", pack(limit)}}, std::to_string(limit)));
    EXPECT_EQ(both.cache->last().files_edited, limit == 3 ? 0u : 1u);
  }
  EXPECT_FALSE(both.expect_same({{"many.rfx", pack(7) + "signal"}}, "bad"));
  EXPECT_TRUE(both.expect_same({{"many.rfx", pack(7)}}, "mended"));
}

TEST(CompileCache, IsBounded) {
  Both both(false);
  const std::string comment(CompileCache::kTextMax / 3, 'x');
  for (int i = 0; i < 6; ++i) {
    const auto text = fmt::format("pack big{} 1.0.0\n# {}\n", i, comment);
    both.cache->keep(std::move(*compile_text({{fmt::format("big{}.rfx", i), text}}, {}).value()));
    EXPECT_LE(both.cache->text_bytes(), CompileCache::kTextMax);
  }
  EXPECT_GT(both.cache->text_bytes(), CompileCache::kTextMax / 2);
}

}  // namespace
}  // namespace reflex::compiler

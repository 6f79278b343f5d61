// See test_packs.h.
#include "compiler/driver/test_packs.h"

#include <algorithm>

namespace reflex::compiler {
namespace {

bool is_test(const ast::Decl& decl) { return std::holds_alternative<ast::TestDecl>(decl.node); }

std::string folder_of(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? std::string() : std::string(path.substr(0, slash + 1));
}

}  // namespace

bool is_test_file(const std::string& path) { return path.ends_with("_test.rfx"); }

std::vector<bool> test_packs(const source::SourceMap& sources,
                             const std::vector<ast::Module>& modules, const sema::PackSet& packs,
                             const std::vector<std::string>& test_files) {
  std::vector<bool> only(packs.packs.size(), false);
  for (sema::PackIndex p = 0; p < packs.packs.size(); ++p) {
    const sema::Pack& pack = packs.packs[p];
    if (pack.head == nullptr || !pack.head->clock.empty() || !pack.head->limits.empty()) continue;
    bool has_tests = false;
    bool declares = false;
    for (const uint32_t m : pack.modules) {
      const std::string path(sources.path(modules[m].file));
      const auto& decls = modules[m].decls;
      has_tests = has_tests || std::any_of(decls.begin(), decls.end(), is_test);
      if (!is_test_file(path)) {
        declares = declares || !std::all_of(decls.begin(), decls.end(), is_test);
      }
      const std::string folder = folder_of(path);
      has_tests = has_tests || (modules[m].head.has_value() &&
                                std::any_of(test_files.begin(), test_files.end(),
                                            [&](const auto& t) { return t.starts_with(folder); }));
    }
    only[p] = has_tests && !declares;
  }
  for (const sema::Pack& pack : packs.packs) {
    for (const sema::ImportRef& import : pack.imports) only[import.pack] = false;
  }
  return only;
}

}  // namespace reflex::compiler

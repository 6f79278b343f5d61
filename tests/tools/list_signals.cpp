// list_signals write|check ROOT: writes ROOT/rules/SIGNALS.md from ROOT/rules/std, or compares it
// and the code tables of std.nvidia with its policy lists. Exit: 0 up to date and complete, 1 stale
// or something is missing, 3 usage or files.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "compiler/parse/parse.h"
#include "tests/tools/code_table.h"
#include "tests/tools/signal_page.h"

namespace {

namespace fs = std::filesystem;

std::string read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream out;
  out << file.rdbuf();
  return out.str();
}

std::vector<fs::path> packs(const fs::path& root) {
  std::vector<fs::path> out;
  for (const auto& entry : fs::recursive_directory_iterator(root / "rules/std")) {
    if (entry.is_regular_file() && entry.path().extension() == ".rfx") out.push_back(entry.path());
  }
  std::sort(out.begin(), out.end());
  return out;
}

int compare(const std::string& page, const fs::path& path,
            const std::vector<std::string>& missing) {
  for (const std::string& line : missing) std::fprintf(stderr, "%s\n", line.c_str());
  const bool stale = read(path) != page;
  if (stale) {
    std::fprintf(stderr, "%s is stale: run build/release/list_signals write .\n",
                 path.generic_string().c_str());
  }
  return stale || !missing.empty() ? 1 : 0;
}

int run(const std::string& mode, const fs::path& root) {
  reflex::source::SourceMap map;
  reflex::diag::Sink sink;
  std::vector<reflex::ast::Module> modules;
  for (const fs::path& path : packs(root)) {
    const auto file = map.add(fs::relative(path, root).generic_string(), read(path));
    modules.push_back(reflex::parse::parse(map, file, {}, sink));
  }
  if (modules.empty() || sink.has_errors()) {
    std::fprintf(stderr, "rules/std has no files or syntax errors: see reflex check\n");
    return 3;
  }
  const auto catalogue = reflex::tools::collect(modules, map);
  const std::string page = reflex::tools::to_markdown(catalogue);
  const fs::path path = root / "rules/SIGNALS.md";
  if (mode == "check") {
    std::vector<std::string> missing = reflex::tools::gaps(catalogue);
    for (const auto& [prefix, file] :
         {std::pair{"policy_", "xid_codes.csv"}, {"sxid_", "sxid_codes.csv"}}) {
      const std::string csv = read(root / "rules/std/nvidia" / file);
      for (std::string& line : reflex::tools::table_differences(modules, prefix, csv)) {
        missing.push_back(std::move(line));
      }
    }
    return compare(page, path, missing);
  }
  std::ofstream(path, std::ios::binary) << page;
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc == 3 ? argv[1] : "";
  if ((mode != "write" && mode != "check") || !fs::is_directory(fs::path(argv[2]) / "rules/std")) {
    std::fprintf(stderr, "usage: list_signals write|check ROOT\n");
    return 3;
  }
  return run(mode, argv[2]);
}

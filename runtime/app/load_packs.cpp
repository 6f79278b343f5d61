// Compiling for a command: see load_packs.h.
#include "runtime/app/load_packs.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>

#include "runtime/engine/engine_version.h"

namespace reflex::app {

namespace fs = std::filesystem;

bool names_profiles(const std::vector<std::string>& packs) {
  std::error_code ignored;
  for (const auto& pack : packs) {
    for (const auto& part : fs::absolute(pack, ignored).lexically_normal()) {
      if (part == "hwprofiles") return true;
    }
  }
  return false;
}

std::vector<std::string> default_profiles(const std::vector<std::string>& packs) {
  std::error_code ignored;
  if (names_profiles(packs)) return {};
  for (const auto& pack : packs) {
    fs::path folder = fs::absolute(pack, ignored).lexically_normal();
    for (int level = 0; level < 4 && folder.has_parent_path(); ++level) {
      folder = folder.parent_path();
      const fs::path candidate = folder / "hwprofiles";
      if (fs::is_directory(candidate, ignored)) {
        const fs::path relative = fs::relative(candidate, fs::current_path(ignored), ignored);
        return {relative.empty() ? candidate.string() : relative.string()};
      }
    }
  }
  return {};
}

bool CommonFlags::color_on(int fd) const {
  if (color == "always") return true;
  return color == "auto" && isatty(fd) != 0 && std::getenv("NO_COLOR") == nullptr;
}

void print_error(const CommonFlags& common, const std::string& message) {
  const bool color = common.color_on(STDERR_FILENO);
  fmt::print(stderr, "{}reflex: error:{} {}\n", color ? "\x1b[1;31m" : "", color ? "\x1b[0m" : "",
             message);
}

void print_note(const CommonFlags& common, const std::string& message) {
  if (!common.quiet) fmt::print(stderr, "reflex: {}\n", message);
}

Loaded load_packs(const LoadRequest& request, const CommonFlags& common) {
  Loaded loaded;
  std::vector<std::string> paths = request.packs;
  const auto profiles =
      request.profiles.empty() ? default_profiles(request.packs) : request.profiles;
  paths.insert(paths.end(), profiles.begin(), profiles.end());

  compiler::Options options;
  options.include_tests = request.include_tests;
  options.compile_threads = request.compile_threads;
  options.symbols = request.symbols;
  options.backend =
      request.backend == "interp" ? compiler::Backend::kInterp : compiler::Backend::kJit;
  // Only for warnings about ends that have passed; what a pack does depends on event time alone.
  options.now_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(
                       std::chrono::system_clock::now().time_since_epoch())
                       .count();
  auto compiled = compiler::compile(paths, options);
  if (!compiled.ok()) {
    print_error(common, compiled.error().message);
    loaded.exit_code = compiled.error().exit_code;
    return loaded;
  }
  loaded.compilation = std::move(compiled).value();
  if (loaded.compilation->sink.has_errors()) {
    loaded.exit_code = kInvalidPack;
  } else if (!loaded.compilation->pack) {
    print_error(common, "the compiler gave no pack and no diagnostic; please report this");
    loaded.exit_code = kInternal;
  }
  if (request.print_diagnostics && loaded.exit_code != kOk) {
    print_diagnostics(*loaded.compilation, /*warnings=*/false, loaded.exit_code, common);
  }
  return loaded;
}

void print_diagnostics(const compiler::Compilation& compilation, bool warnings, int exit_code,
                       const CommonFlags& common) {
  auto diagnostics = compilation.sink.sorted();
  if (!warnings) {
    std::erase_if(diagnostics,
                  [](const diag::Diagnostic& d) { return d.severity != diag::Severity::kError; });
  }
  const source::SourceMap& sources = compilation.sources;
  if (common.format == "text") {
    if (common.quiet && !compilation.sink.has_errors()) return;
    diag::RenderOptions render;
    render.color = common.color_on(STDERR_FILENO);
    const std::string text = diag::render_text(diagnostics, sources, render);
    std::fwrite(text.data(), 1, text.size(), stderr);
    return;
  }
  std::string text;
  if (common.format == "json") {
    text = diag::render_json(diagnostics, sources);
  } else if (common.format == "github") {
    text = diag::render_github(diagnostics, sources);
  } else {
    const auto suppressed =
        warnings ? compilation.sink.suppressed() : std::vector<diag::Suppressed>();
    text = diag::render_sarif(diagnostics, suppressed, sources,
                              {std::string(engine::kEngineVersion), exit_code});
  }
  std::fwrite(text.data(), 1, text.size(), stdout);
}

}  // namespace reflex::app

// Compiling for the daemon: see serve_packs.h.
#include "runtime/app/serve_packs.h"

#include <algorithm>
#include <chrono>
#include <sstream>

#include "compiler/driver/compile.h"
#include "compiler/driver/compile_cache.h"
#include "runtime/app/load_packs.h"

namespace reflex::app {
namespace {

/// The diagnostics that `reflex check --format json` prints, one object each.
std::vector<std::string> diagnostics_of(const compiler::Compilation& compilation) {
  std::vector<std::string> out;
  std::istringstream lines(diag::render_json(compilation.sink.sorted(), compilation.sources));
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty()) out.push_back(line);
  }
  return out;
}

/// What was compiled, and not what stands on the disk by now.
std::vector<serve::SourceText> files_of(const compiler::Compilation& c) {
  std::vector<serve::SourceText> files;
  for (auto& file : compiler::compiled_files(c)) {
    files.push_back({std::move(file.path), std::move(file.text)});
  }
  return files;
}

Result<serve::CompiledSet> compile(const serve::PackRequest& request,
                                   const compiler::Options& options) {
  std::vector<compiler::InMemoryFile> texts;
  for (const auto& file : request.files) texts.push_back({file.path, file.text});
  std::vector<std::string> paths = request.paths;
  const auto near = request.profiles.empty() ? default_profiles(paths) : request.profiles;
  for (const auto& path : near) {
    if (std::find(paths.begin(), paths.end(), path) == paths.end()) paths.push_back(path);
  }
  const auto began = std::chrono::steady_clock::now();
  auto compiled = texts.empty() ? compiler::compile(paths, options)
                                : compiler::compile_text(texts, options);
  if (!compiled.ok()) return compiled.error();
  compiler::Compilation& c = *compiled.value();
  serve::CompiledSet set;
  set.compile_ms =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - began).count();
  set.diagnostics = diagnostics_of(c);
  if (!c.sink.has_errors() && c.pack) {
    set.pack = c.pack;
    set.files = files_of(c);
    set.code_bytes = options.cache->code()->last().bytes;
  }
  options.cache->keep(std::move(c));
  set.rest = std::shared_ptr<compiler::Compilation>(std::move(compiled).value());
  return set;
}

}  // namespace

serve::PackSource serve_packs(const std::string& backend) {
  compiler::Options options;
  options.backend = backend == "interp" ? compiler::Backend::kInterp : compiler::Backend::kJit;
  options.cache = std::make_shared<compiler::CompileCache>();
  return [options](const serve::PackRequest& request) {
    compiler::Options own = options;
    own.symbols = request.symbols;
    return compile(request, own);
  };
}

}  // namespace reflex::app

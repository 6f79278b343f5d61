// `reflex lsp`: the language server on standard input and output. Tests run in this process, over
// the texts as they stand in the editor.
#include "runtime/app/cmd_lsp.h"

#include <unistd.h>

#include <csignal>

#include "compiler/lsp/serve.h"
#include "runtime/app/test_runner.h"
#include "runtime/engine/engine_version.h"

namespace reflex::app {
namespace {

std::string first_error(const compiler::Compilation& c) {
  for (const diag::Diagnostic& d : c.sink.sorted()) {
    if (d.severity != diag::Severity::kError) continue;
    return std::string(c.sources.path(d.span.file)) + ": " + d.message + " [" +
           diag::to_text(d.id) + "]";
  }
  return "the packs do not compile";
}

Result<std::vector<lsp::TestResult>> run_tests(const std::vector<compiler::InMemoryFile>& files,
                                               const std::string& path,
                                               std::optional<uint32_t> line) {
  compiler::Options options;
  options.backend = compiler::Backend::kInterp;  // one run: code would cost more than it saves
  options.include_tests = true;
  const auto compiled = compiler::compile_text(files, options);
  if (!compiled) return Error(compiled.error());
  const compiler::Compilation& c = *compiled.value();
  if (!c.pack) return Error{"the packs have mistakes: " + first_error(c)};
  TestOptions test_options;
  test_options.patterns = stream::compile_line_patterns(*c.pack);
  std::vector<lsp::TestResult> results;
  for (const auto& [module, index] : c.tests) {
    const ast::Decl& decl = c.modules[module].decls[index];
    if (c.sources.path(c.modules[module].file) != path) continue;
    if (line && c.sources.locate(decl.span.file, decl.span.begin).line != *line) continue;
    const TestOutcome outcome = run_test(c, c.modules[module], decl, test_options);
    results.push_back({outcome.title, outcome.passed, outcome.report});
  }
  if (results.empty()) return Error{"there is no test here any more"};
  return results;
}

}  // namespace

Command add_lsp(CLI::App& app, const CommonFlags&) {
  auto* sub = app.add_subcommand("lsp", "language server (LSP 3.17) on standard input and output");
  auto stdio = std::make_shared<bool>(false);
  sub->add_flag("--stdio", *stdio, "the only way; some editors give it");
  return [sub, stdio]() -> int {
    if (!sub->parsed()) return -1;
    std::signal(SIGPIPE, SIG_IGN);  // an editor that is gone is a write error, not a death
    return lsp::serve(STDIN_FILENO, STDOUT_FILENO, {run_tests},
                      std::string(engine::kEngineVersion));
  };
}

}  // namespace reflex::app

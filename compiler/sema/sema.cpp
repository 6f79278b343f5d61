// The order of the checks; see sema.h.
#include "compiler/sema/sema.h"

#include "compiler/sema/overlay.h"
#include "compiler/sema/phases.h"

namespace reflex::sema {

void analyze(const Input& input, diag::Sink& sink, Output& output) {
  State s(input, sink, output);
  s.syntax_errors = sink.has_errors();
  output.pack.symbols = input.symbols;
  collect_allows(s);
  // Names first, then types that names need, then everything that reads them.
  collect(s);
  check_imports(s);
  check_overlays(s);
  check_heads(s);
  check_kinds(s);
  apply_aliases(s);
  check_lists(s);
  check_profiles(s);
  check_macros(s);
  check_features(s);
  check_adaptives(s);
  check_signals(s);
  check_renames(s);
  apply_signal_overlays(s);
  check_causes(s);
  check_edges(s);
  check_cycles(s);
  check_incidents(s);
  check_baselines(s);
  check_decoders(s);
  check_tests(s);
  check_synergies(s);
  check_suppressions(s);
  check_rules(s);
  check_limits(s);
  lint(s);
  report_unused_allows(s);
  finish_leaves(s);
}

}  // namespace reflex::sema

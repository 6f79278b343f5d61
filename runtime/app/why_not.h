// Why not: why a node is not named, or why a signal did not fire (`reflex explain --why-not`).
//
// Contract: runs the same packs over the same stream as `run` would and watches; nothing of it is
// computed a second way, but for the largest count in a window, which is recounted from the leaf
// evaluations. Fields that a pack marks `redact` are never printed.
// Not here: predictions; "would it have fired if" is the reader's conclusion.
#pragma once

#include <string>
#include <vector>

#include "runtime/abi/compiled_pack.h"
#include "runtime/app/commands.h"
#include "runtime/app/input_options.h"
#include "runtime/app/load_packs.h"

namespace reflex::app {

struct WhyNotFlags {
  InputFlags input;  // as of `run`
  std::string model;
  std::string history;
  std::string subject;   // a node or a signal
  std::string on;        // a node: only there (signals)
  std::string incident;  // a node: of this incident; empty: the last one of a job that it was in
  std::string job;       // that incident's
  std::string at;        // RFC 3339; default: the end of the input
};

int why_not(const WhyNotFlags& flags, const CommonFlags& common);

// The two halves; `at_ns` INT64_MAX: the end of the input.
int why_not_node(const WhyNotFlags& flags, int64_t at_ns, const compiler::Compilation& compilation,
                 const CommonFlags& common);
int why_not_signal(const WhyNotFlags& flags, int64_t at_ns, abi::SignalId signal,
                   const compiler::Compilation& compilation, const CommonFlags& common);

}  // namespace reflex::app

// Overlays (A4) as the other files of sema apply them; internal. See overlay.cpp.
#pragma once

#include "compiler/sema/phases.h"

namespace reflex::sema {

/// Looks up every overlay's target pack and version; fills State::overlays.
void check_overlays(State& s);
/// After check_kinds.
void apply_aliases(State& s);
/// After check_signals: `disable` and `except`.
void apply_signal_overlays(State& s);

/// Whether this is the first change of `what`; a second one is reported (R527).
bool claim(State& s, const std::string& what, Span span);
/// Lists a change for `check -v`.
void note_change(State& s, const OverlayUse& use, Span span, std::string text, bool inert = false);

/// Every entry of one verb, in the order of packs, files and places.
template <typename F>
void for_each_entry(State& s, ast::OverlayEntry::Verb verb, F&& f) {
  for (size_t i = 0; i < s.overlays.size(); ++i) {
    const OverlayUse use = s.overlays[i];
    for (const ast::OverlayEntry& entry : use.decl->entries) {
      if (entry.verb == verb) f(use, entry);
    }
  }
}

}  // namespace reflex::sema

// The parts of the page that to_html puts together. Each returns finished, escaped HTML or SVG.
//
// No part uses a script, a link to elsewhere, or colour as the only carrier of meaning: states have
// words and line styles as well. Drawings are `role="img"` with a title and a description; the
// tables hold the same facts for those who do not see them.
#pragma once

#include <string>
#include <string_view>

#include "runtime/abi/verdict.h"

namespace reflex::explain {

/// The style sheet, light and dark.
std::string_view page_style();
/// Causes -> signals -> entities of the answer and its nearest rivals; edge width = nats.
std::string evidence_graph(const abi::Verdict& v);
/// When each signal began, one row an entity, relative to the opening.
std::string timeline(const abi::Verdict& v);
/// Prior and contributions of one hypothesis as bars in a table, with what did not count.
std::string contribution_section(const abi::Hypothesis& h, int64_t opened_ns);

/// Two decimals for coordinates: no locale, no exponent.
std::string px(double v);

}  // namespace reflex::explain

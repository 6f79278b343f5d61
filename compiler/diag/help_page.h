// The page of a diagnostic id (`reflex help R105`), from diagnostics.def and help.def.
//
// Contract: pure data and its two forms, a terminal page and the generated reference
// grammar/DIAGNOSTICS.md. An id without a row in help.def has an empty cause and fix; a test says
// so.
#pragma once

#include <string>
#include <string_view>

#include "compiler/diag/diagnostic.h"

namespace reflex::diag {

struct HelpText {
  std::string_view cause;
  std::string_view fix;
};
/// Both empty when the id has no row.
HelpText help_text(Id id);

/// The page as plain text: title, cause, what is wrong, how to write it, what to do.
std::string render_help(Id id);

/// All pages as grammar/DIAGNOSTICS.md, in the order of the table.
std::string diagnostics_reference();

}  // namespace reflex::diag

// The canonical layout of a .rfx file (`reflex fmt`, the formatting of the LSP).
//
// Contract: format_text(x) has the tokens and comments of x in their order, so that it parses to
// the same tree; format_text(format_text(x)) == format_text(x). Lines are where the author broke
// them, as long as one of these rules does not say otherwise:
//   - a declaration begins a line; at most one empty line between lines, none inside of braces'
//   ends
//   - a block in braces stands on one line, its items two blanks apart; or it was broken anywhere,
//     then its braces end and begin a line and the items inside are indented by two
//   - what continues an item is indented by two more; `{ , ; ) ]` stay on the line before them
//   - one blank between tokens, none where the language binds closely (`n[1..8]`, `it.code`, `-5s`)
//   - comments of neighbouring lines stand in one column
//   - a line is broken beyond 100 columns, comments not counted: before `->`; between items; its first
//     block; then filled before `and or where lag scope half_life` and behind commas, outside of as
//     many brackets as possible. A token that is longer stays.
// Never: lines are joined. Cost: linear, two parses.
#pragma once

#include <optional>
#include <string>

#include "compiler/diag/diagnostic.h"
#include "compiler/parse/parse.h"
#include "compiler/source/source_map.h"

namespace reflex::format {

/// Nothing when the file has syntax errors (in the sink).
std::optional<std::string> format_file(const source::SourceMap& map, source::FileId file,
                                       const parse::Limits& limits, diag::Sink& sink);

/// The difference of two texts in unified form with three lines of context; "" when equal.
std::string unified_diff(const std::string& name, const std::string& before,
                         const std::string& after);

}  // namespace reflex::format

// Layout tokens: a file as the formatter sees it, with what only the grammar knows about blanks.
//
// Contract: every token of a file without syntax errors, comments included, in order. `begins` and
// `blanks` come from the parse tree; how lines are broken and indented is compiler/format's matter.
// A construct that is not listed in layout.cpp gets the defaults: it is laid out less tidily, never
// wrongly. No ANTLR type shows here. Errors: syntax errors go to the sink, then nothing is
// returned.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "compiler/diag/diagnostic.h"
#include "compiler/parse/parse.h"
#include "compiler/source/source_map.h"

namespace reflex::parse {

struct LayoutToken {
  enum class Begins : uint8_t { kNothing, kDeclaration, kItem };  // item: of a { .. } block
  enum class Blanks : uint8_t {
    kDefault,     // one before, unless punctuation says otherwise
    kNoneBefore,  // the bracket of a call, an index, a type
    kNoneAround,  // the slash of a target, the range of a list
    kNoneAfter,   // a sign, `^`, `~`
    kOneBefore,   // the bracket of `on (node, gpu)`
    kAsWritten,   // free text: the body of a rule on verdicts
  };
  source::Span span;
  std::string_view text;  // of the source map
  bool comment = false;
  Begins begins = Begins::kNothing;
  Blanks blanks = Blanks::kDefault;
};

std::optional<std::vector<LayoutToken>> layout_tokens(const source::SourceMap& map,
                                                      source::FileId file, const Limits& limits,
                                                      diag::Sink& sink);

/// The kinds and texts of all tokens, comments included: two texts with equal ones mean the same.
/// Blanks between `line` or `matches` and its pattern do not count.
std::vector<std::string> token_texts(const source::SourceMap& map, source::FileId file);

}  // namespace reflex::parse

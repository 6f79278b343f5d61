// What an editor asks of the text itself: its tokens, and what could stand at a place.
//
// Contract: works on every text, broken ones too; never reports. Nothing for a text that is not
// valid UTF-8 or beyond the limits of parse. No ANTLR type shows here.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compiler/parse/parse.h"
#include "compiler/source/source_map.h"

namespace reflex::parse {

struct EditorToken {
  enum class Class : uint8_t {
    kKeyword,  // a word of the grammar; where a name can stand it may be one
    kName,
    kNumber,   // with its unit
    kText,     // strings
    kPattern,  // `line /../`, `matches /../` whole
    kComment,
    kOperator,
    kOther,
  };
  source::Span span;
  std::string_view text;  // of the source map
  Class cls = Class::kOther;
};

std::vector<EditorToken> editor_tokens(const source::SourceMap& map, source::FileId file);

/// What the grammar accepts behind the tokens of [begin, end) of the file, where `begin` starts a
/// declaration.
struct Continuation {
  bool fits = false;  // the tokens are the beginning of a declaration
  std::vector<std::string> keywords;
  bool name = false;
  bool number = false;
  bool text = false;
  bool unit = false;
  bool complete = false;  // a declaration could end here
};
Continuation continuation(const source::SourceMap& map, source::FileId file, uint32_t begin,
                          uint32_t end);

/// Every keyword of the grammar, sorted.
std::vector<std::string> grammar_keywords();

}  // namespace reflex::parse

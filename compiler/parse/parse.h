// parse: text -> ast::Module. The only entry to the ANTLR grammar; no ANTLR type shows here.
//
// Errors: syntax errors go to the sink, several per file; the statements that parsed are returned.
// Limits (each a diagnostic, R4xx): file size, token count, nesting depth (checked on tokens before
// parsing: ANTLR overflows the stack at about 30,000 parentheses). Invalid UTF-8 is a diagnostic.
// `requires engine` of a head that this engine does not meet is reported before anything else.
// No exception leaves. Threads: safe to call from several threads with different sinks.
#pragma once

#include <string_view>

#include "compiler/ast/ast.h"
#include "compiler/diag/diagnostic.h"
#include "compiler/source/source_map.h"

namespace reflex::parse {

struct Limits {
  size_t file_bytes_max = 8u << 20;
  size_t tokens_max = 2'000'000;
  size_t depth_max = 200;  // Why: the AST walk recurses; 200 fits any stack with room to spare
};

ast::Module parse(const source::SourceMap& map, source::FileId file, const Limits& limits,
                  diag::Sink& sink);

/// The tree of a file from that of its older text, which had nothing to report: only declarations
/// around the change are parsed. True: `module` is what parse() gives for the new text, which has
/// nothing to report either. False: it cannot be done so, call parse(); `module` is as it was.
bool reparse(const source::SourceMap& map, source::FileId file, std::string_view old_text,
             const Limits& limits, ast::Module& module);

}  // namespace reflex::parse

// Tokens: the token stream of one file with byte spans.
//
// Contract: owns ANTLR's input, lexer and stream; internal to compiler/parse. ANTLR counts in code
// points, spans are bytes: byte_of() converts (free for ASCII files). `visible` holds the tokens
// that the grammar sees, the end of the file last.
#pragma once

#include <antlr4-runtime.h>

#include <string>
#include <string_view>
#include <vector>

#include "RuleLexer.h"
#include "compiler/diag/diagnostic.h"
#include "compiler/parse/parse.h"
#include "compiler/source/source_map.h"

namespace reflex::parse {

using Lexer = rfxgen::RuleLexer;

class Tokens {
 public:
  /// Throws what ANTLR throws; the text must be valid UTF-8.
  Tokens(const source::SourceMap& map, source::FileId file);
  /// A part of a file.
  Tokens(const source::SourceMap& map, source::Span part);
  /// A part of the text of another one, lexed anew (an expression inside a string).
  Tokens(const Tokens& outer, source::Span part);

  [[nodiscard]] size_t size() const { return visible_.size(); }
  [[nodiscard]] antlr4::Token* at(size_t position) const { return visible_[position]; }
  [[nodiscard]] size_t type(size_t position) const { return visible_[position]->getType(); }
  [[nodiscard]] bool is_end(size_t position) const { return type(position) == antlr4::Token::EOF; }
  /// Position in `visible` of the token with this stream index (or of the next visible one).
  [[nodiscard]] size_t position_of(size_t stream_index) const { return positions_[stream_index]; }

  [[nodiscard]] source::Span span(const antlr4::Token* token) const;
  [[nodiscard]] source::Span span(const antlr4::Token* first, const antlr4::Token* last) const;
  [[nodiscard]] std::string_view text(const antlr4::Token* token) const;
  [[nodiscard]] std::string_view text(source::Span span) const {
    return text_.substr(span.begin, span.end - span.begin);
  }
  /// The visible tokens from first to last without anything between them.
  [[nodiscard]] std::string joined(const antlr4::Token* first, const antlr4::Token* last) const;
  /// True if no visible token stands before this one on its line.
  [[nodiscard]] bool starts_line(size_t position) const;
  [[nodiscard]] source::FileId file() const { return file_; }
  [[nodiscard]] antlr4::CommonTokenStream& stream() { return stream_; }

 private:
  void fill(std::string_view part);
  [[nodiscard]] uint32_t byte_of(size_t code_point) const;

  source::FileId file_;
  std::string_view text_;
  uint32_t base_ = 0;  // where the lexed part begins
  uint32_t end_ = 0;
  antlr4::ANTLRInputStream input_;
  Lexer lexer_;
  antlr4::CommonTokenStream stream_;
  std::vector<antlr4::Token*> visible_;
  std::vector<size_t> positions_;
  std::vector<uint32_t> bytes_;  // of the part; empty for ASCII
};

/// Size, UTF-8, NUL, double BOM: one diagnostic at most. False: do not lex.
bool check_text(const source::SourceMap& map, source::FileId file, const Limits& limits,
                diag::Sink& sink);
/// `requires engine` and `dsl` of a head this engine does not meet. False: stop here.
bool check_engine(const Tokens& tokens, diag::Sink& sink);
/// Token count and nesting (brackets, prefix operators, type arguments). False: do not parse.
bool check_limits(const Tokens& tokens, const Limits& limits, diag::Sink& sink);

}  // namespace reflex::parse

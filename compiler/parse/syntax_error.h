// SyntaxErrors: one clear diagnostic for a declaration that does not parse, and where to go on.
//
// Internal to compiler/parse. Finds the true place with the Simulator, names what was expected,
// a misspelt keyword, a block that was never closed, or a character that is no token.
#pragma once

#include "compiler/diag/diagnostic.h"
#include "compiler/parse/expected.h"
#include "compiler/parse/tokens.h"

namespace reflex::parse {

class SyntaxErrors {
 public:
  SyntaxErrors(const antlr4::Parser& parser, const Tokens& tokens, diag::Sink& sink)
      : parser_(parser), tokens_(tokens), sink_(sink) {}

  /// Reports the error of the declaration at `start`; `previous` is where the declaration before
  /// it began (== start for none). Returns where parsing can go on: behind start, or one before it
  /// when the declaration before took the first word of this one for a name.
  size_t report(size_t start, size_t previous);

 private:
  bool report_stray_brace(size_t start);
  bool report_bad_token(size_t at);
  bool report_misspelt_start(size_t start, size_t at);
  bool report_unclosed(size_t start, size_t at);
  bool report_misspelt(size_t start, size_t at, const Expectation& here);
  bool report_known_slip(size_t at, const Expectation& here);
  void report_expected(size_t at, const Expectation& here);
  [[nodiscard]] bool begins_declaration(size_t at) const;
  [[nodiscard]] bool looks_like_new_block(size_t start, size_t at) const;
  [[nodiscard]] size_t resume(size_t start, size_t at) const;
  [[nodiscard]] std::string quoted(size_t at) const;

  const antlr4::Parser& parser_;
  const Tokens& tokens_;
  diag::Sink& sink_;
};

}  // namespace reflex::parse

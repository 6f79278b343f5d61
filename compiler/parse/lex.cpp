// Tokens and continuations for editors; see lex.h.
#include "compiler/parse/lex.h"

#include <algorithm>
#include <exception>

#include "RuleParser.h"
#include "compiler/parse/expected.h"
#include "compiler/parse/tokens.h"

namespace reflex::parse {
namespace {

using Class = EditorToken::Class;

/// A limit that no editor text reaches by being typed: behind it, nothing is offered.
bool is_usable(const source::SourceMap& map, source::FileId file) {
  diag::Sink unheard;
  return check_text(map, file, {}, unheard);
}

Class class_of(const antlr4::Token& token) {
  if (token.getChannel() != antlr4::Token::DEFAULT_CHANNEL) return Class::kComment;
  const size_t type = token.getType();
  switch (type) {
    case Lexer::LINE_RE:
    case Lexer::MATCHES_RE:
      return Class::kPattern;
    case Lexer::IDENT:
      return Class::kName;
    case Lexer::STRING:
    case Lexer::RAW_STRING:
    case Lexer::UNTERMINATED:
      return Class::kText;
    case Lexer::DATE:
    case Lexer::VERSION:
    case Lexer::HEX:
    case Lexer::DURATION:
    case Lexer::PERCENT:
    case Lexer::QUANTITY:
    case Lexer::REAL:
    case Lexer::INT:
    case Lexer::REPEAT_COUNT:
      return Class::kNumber;
    case Lexer::ERROR_CHAR:
      return Class::kOther;
    default:
      break;
  }
  if (type >= Lexer::K_PACK && type <= Lexer::UNIT) return Class::kKeyword;
  return Class::kOperator;
}

}  // namespace

std::vector<EditorToken> editor_tokens(const source::SourceMap& map, source::FileId file) {
  std::vector<EditorToken> out;
  if (!is_usable(map, file)) return out;
  try {
    Tokens tokens(map, file);
    for (antlr4::Token* token : tokens.stream().getTokens()) {
      if (token->getType() == antlr4::Token::EOF) break;
      out.push_back({tokens.span(token), tokens.text(token), class_of(*token)});
    }
  } catch (const std::exception&) {
    out.clear();  // parse reports it
  }
  return out;
}

Continuation continuation(const source::SourceMap& map, source::FileId file, uint32_t begin,
                          uint32_t end) {
  Continuation out;
  if (!is_usable(map, file)) return out;
  try {
    source::SourceMap part;
    const auto copy = part.add(std::string(map.path(file)),
                               std::string(map.text(file).substr(begin, end - begin)));
    Tokens tokens(part, copy);
    rfxgen::RuleParser grammar(&tokens.stream());
    Simulator simulator(grammar, tokens);
    size_t stop = 0;
    while (!tokens.is_end(stop)) ++stop;
    if (simulator.run(0, stop) != stop) return out;
    const Expectation next = simulator.next();
    out.fits = true;
    out.keywords = next.keywords;
    out.name = next.wants(Lexer::IDENT) ||
               std::find(next.shown.begin(), next.shown.end(), "a name") != next.shown.end();
    out.number = next.wants(Lexer::INT);
    out.text = next.wants(Lexer::STRING);
    out.unit = next.wants(Lexer::UNIT);
    out.complete = simulator.complete();
  } catch (const std::exception&) {
    out = {};
  }
  return out;
}

std::vector<std::string> grammar_keywords() {
  std::vector<std::string> words;
  antlr4::ANTLRInputStream empty("");
  Lexer lexer(&empty);
  for (size_t type = Lexer::K_PACK; type <= Lexer::K_DAY; ++type) {
    const std::string literal = lexer.getVocabulary().getLiteralName(type);
    if (literal.size() > 2) words.push_back(literal.substr(1, literal.size() - 2));
  }
  std::sort(words.begin(), words.end());
  return words;
}

}  // namespace reflex::parse

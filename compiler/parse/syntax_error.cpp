// See syntax_error.h.
#include "compiler/parse/syntax_error.h"

#include <algorithm>
#include <array>

#include "RuleParser.h"

namespace reflex::parse {
namespace {

using diag::Id;

// Why: more alternatives than that are a grammar, not a message.
constexpr size_t kShownMax = 7;
// Why: a quoted token is there to be recognised, not to be read.
constexpr size_t kQuotedMax = 40;

const std::vector<std::string>& declaration_words() {
  static const std::vector<std::string> kWords = {
      "clock",   "cohort", "decoder",  "event",  "export",      "external", "fault",
      "feature", "import", "incident", "limits", "list",        "macro",    "maintenance",
      "overlay", "pack",   "profile",  "repair", "rule",        "signal",   "suppress",
      "synergy", "test"};
  return kWords;
}

bool is_declaration_word(size_t type) {
  static constexpr std::array<size_t, 23> kTypes = {
      Lexer::K_CLOCK,       Lexer::K_DECODER, Lexer::K_EVENT,    Lexer::K_EXPORT,
      Lexer::K_EXTERNAL,    Lexer::K_FAULT,   Lexer::K_FEATURE,  Lexer::K_IMPORT,
      Lexer::K_INCIDENT,    Lexer::K_LIMITS,  Lexer::K_LIST,     Lexer::K_MACRO,
      Lexer::K_MAINTENANCE, Lexer::K_OVERLAY, Lexer::K_PACK,     Lexer::K_PROFILE,
      Lexer::K_RULE,        Lexer::K_SIGNAL,  Lexer::K_SUPPRESS, Lexer::K_TEST,
      Lexer::K_COHORT,      Lexer::K_REPAIR,  Lexer::K_SYNERGY};
  return std::find(kTypes.begin(), kTypes.end(), type) != kTypes.end();
}

bool is_edge_verb(size_t type) {
  return type == Lexer::K_CAUSES || type == Lexer::K_MASKS || type == Lexer::K_EXPLAINED;
}

bool is_word(size_t type) {
  return type == Lexer::IDENT || type == Lexer::REPEAT_COUNT || type == Lexer::UNIT ||
         (type >= Lexer::K_PACK && type <= Lexer::K_DAY);
}

bool opens(size_t type) {
  return type == Lexer::LPAREN || type == Lexer::LBRACKET || type == Lexer::LBRACE;
}
bool closes(size_t type) {
  return type == Lexer::RPAREN || type == Lexer::RBRACKET || type == Lexer::RBRACE;
}

bool is_time_unit(std::string_view word) {
  static constexpr std::array<std::string_view, 8> kUnits = {"ns", "us", "ms", "s",
                                                             "m",  "h",  "d",  "w"};
  return std::find(kUnits.begin(), kUnits.end(), word) != kUnits.end();
}

std::string join_alternatives(const std::vector<std::string>& words) {
  std::string text;
  const size_t count = std::min(words.size(), kShownMax);
  for (size_t i = 0; i < count; ++i) {
    if (i > 0) {
      text += i + 1 == words.size() ? " or " : ", ";
    }
    text += words[i];
  }
  return words.size() > count ? text + ", .." : text;
}

}  // namespace

std::string SyntaxErrors::quoted(size_t at) const {
  if (tokens_.is_end(at)) {
    return "the end of the file";
  }
  std::string text(tokens_.text(tokens_.at(at)));
  text = text.substr(0, text.find_first_of("\r\n"));
  if (text.size() > kQuotedMax) {
    size_t cut = kQuotedMax;
    while (cut > 0 && (static_cast<unsigned char>(text[cut]) & 0xC0u) == 0x80u) {
      --cut;
    }
    text = text.substr(0, cut) + "..";
  }
  return "'" + text + "'";
}

bool SyntaxErrors::begins_declaration(size_t at) const {
  const size_t type = tokens_.type(at);
  if (tokens_.is_end(at)) {
    return false;
  }
  const size_t next = tokens_.type(at + 1);
  if (is_declaration_word(type)) {
    const bool named = is_word(next) || next == Lexer::STRING;
    const bool block = (type == Lexer::K_CLOCK || type == Lexer::K_LIMITS) && next == Lexer::LBRACE;
    return named || block;
  }
  if (!is_word(type)) {
    return false;
  }
  size_t verb = at + 1;
  while (tokens_.type(verb) == Lexer::DOT && is_word(tokens_.type(verb + 1))) {
    verb += 2;
  }
  return is_edge_verb(tokens_.type(verb));
}

/// A declaration that begins a line, not deeper than the failed one: its author thinks that the
/// block before it is closed.
bool SyntaxErrors::looks_like_new_block(size_t start, size_t at) const {
  return at > start && tokens_.starts_line(at) && begins_declaration(at) &&
         tokens_.at(at)->getCharPositionInLine() <= tokens_.at(start)->getCharPositionInLine();
}

size_t SyntaxErrors::resume(size_t start, size_t at) const {
  size_t depth = 0;
  for (size_t i = start; !tokens_.is_end(i); ++i) {
    if (i > start && i >= at) {
      const bool fresh = tokens_.starts_line(i) || tokens_.type(i - 1) == Lexer::RBRACE ||
                         tokens_.type(i - 1) == Lexer::SEMICOLON;
      if (looks_like_new_block(start, i) || (depth == 0 && fresh && begins_declaration(i))) {
        return i;
      }
    }
    const size_t type = tokens_.type(i);
    depth += opens(type) ? 1 : 0;
    depth -= closes(type) && depth > 0 ? 1 : 0;
  }
  return tokens_.size() - 1;
}

bool SyntaxErrors::report_stray_brace(size_t start) {
  if (!closes(tokens_.type(start))) {
    return false;
  }
  sink_
      .report(Id::kSyntax, tokens_.span(tokens_.at(start)),
              quoted(start) + " closes nothing: no block is open here")
      .help = "remove it, or look for a block above that ends too early";
  return true;
}

bool SyntaxErrors::report_bad_token(size_t at) {
  const size_t type = tokens_.type(at);
  const source::Span span = tokens_.span(tokens_.at(at));
  if (type == Lexer::UNTERMINATED) {
    sink_.report(Id::kSyntax, span, "the string has no closing '\"' on its line").help =
        R"(close it, or write """ .. """ for a text of several lines)";
    return true;
  }
  if (type != Lexer::ERROR_CHAR) {
    return false;
  }
  auto& d = sink_.report(Id::kSyntax, span,
                         "the character " + quoted(at) + " has no meaning in the language");
  const std::string_view text = tokens_.text(span);
  if (text == "!") {
    d.help = "write 'not'";
  } else if (text == "'" || text == "`") {
    d.help = "strings are written with double quotes";
  } else if (text == "$") {
    d.help = "$node is for texts of 'log' in tests; elsewhere write the name alone";
  }
  return true;
}

bool SyntaxErrors::report_misspelt_start(size_t start, size_t at) {
  if (tokens_.type(start) != Lexer::IDENT || at > start + 1) {
    return false;
  }
  const auto better = diag::did_you_mean(tokens_.text(tokens_.at(start)), declaration_words());
  const source::Span span = tokens_.span(tokens_.at(start));
  if (better) {
    auto& d = sink_.report(Id::kSyntax, span, quoted(start) + " does not begin a declaration");
    d.help = "did you mean '" + *better + "'?";
    d.fixes.push_back({span, *better, false});
    return true;
  }
  const size_t next = tokens_.type(start + 1);
  if (is_word(next) || next == Lexer::LBRACE || next == Lexer::STRING ||
      tokens_.is_end(start + 1)) {
    sink_.report(Id::kSyntax, span, quoted(start) + " does not begin a declaration").help =
        "a declaration begins with a word like event, signal, feature, fault, incident, test; "
        "an edge is 'cause causes signal ..'";
    return true;
  }
  return false;
}

bool SyntaxErrors::report_unclosed(size_t start, size_t at) {
  size_t blamed = at;
  if (!tokens_.is_end(at)) {
    if (at > start + 1 && looks_like_new_block(start, at - 1)) {
      blamed = at - 1;
    } else if (at > start + 2 && looks_like_new_block(start, at - 2)) {
      blamed = at - 2;
    } else if (!looks_like_new_block(start, at)) {
      return false;
    }
  }
  std::vector<size_t> open;
  for (size_t i = start; i < blamed; ++i) {
    if (opens(tokens_.type(i))) {
      open.push_back(i);
    } else if (closes(tokens_.type(i)) && !open.empty()) {
      open.pop_back();
    }
  }
  if (open.empty()) {
    // No block is open: the declaration stops in the middle, before the next one.
    Simulator paths(parser_, tokens_);
    if (blamed == at || paths.run(start, blamed) != blamed) {
      return false;
    }
    report_expected(blamed, paths.next());
    return true;
  }
  const size_t opener = open.back();
  const std::string closer = tokens_.type(opener) == Lexer::LBRACE   ? "'}'"
                             : tokens_.type(opener) == Lexer::LPAREN ? "')'"
                                                                     : "']'";
  auto& d = sink_.report(Id::kSyntax, tokens_.span(tokens_.at(blamed)),
                         closer + " is missing before " + quoted(blamed));
  d.notes.push_back({tokens_.span(tokens_.at(opener)), "the block was opened here"});
  d.help = "close the block with " + closer;
  return true;
}

bool SyntaxErrors::report_misspelt(size_t start, size_t at, const Expectation& here) {
  // The word itself, or the word before it that was taken for a name.
  for (const size_t candidate : {at, at - 1}) {
    if (candidate < start || candidate > at || tokens_.type(candidate) != Lexer::IDENT) {
      continue;
    }
    std::optional<std::string> better;
    if (candidate == at) {
      better = diag::did_you_mean(tokens_.text(tokens_.at(at)), here.keywords);
    } else if (candidate > start && tokens_.type(candidate - 1) != Lexer::DOT) {
      Simulator before(parser_, tokens_);
      if (before.run(start, candidate) == candidate) {
        better = diag::did_you_mean(tokens_.text(tokens_.at(candidate)), before.next().keywords);
      }
    }
    if (better) {
      const source::Span span = tokens_.span(tokens_.at(candidate));
      auto& d = sink_.report(Id::kSyntax, span, quoted(candidate) + " is not expected here");
      d.help = "did you mean '" + *better + "'?";
      d.fixes.push_back({span, *better, false});
      return true;
    }
  }
  return false;
}

/// Slips that have a name of their own: the message says what is wrong, the help what to write.
bool SyntaxErrors::report_known_slip(size_t at, const Expectation& here) {
  const size_t type = tokens_.type(at);
  const size_t before = at > 0 ? tokens_.type(at - 1) : antlr4::Token::EOF;
  const size_t after = tokens_.is_end(at) ? antlr4::Token::EOF : tokens_.type(at + 1);
  std::string message, help;
  if (type == Lexer::ASSIGN && here.wants(Lexer::EQ)) {
    message = "'=' is not a comparison";
    help = "write '=='";
  } else if (type == Lexer::AMP && before == Lexer::AMP) {
    message = "'&&' is not an operator";
    help = "write 'and'";
  } else if (type == Lexer::PIPE && before == Lexer::PIPE) {
    message = "'||' is not an operator";
    help = "write 'or'";
  } else if (type == Lexer::SLASH && (before == Lexer::SLASH || after == Lexer::SLASH)) {
    message = "'//' does not begin a comment";
    help = "write '#'";
  } else if ((type == Lexer::K_LINE || type == Lexer::K_MATCHES) && after == Lexer::SLASH) {
    message = "the regular expression has no closing '/' on its line";
    help = "close it; write '\\/' for a slash inside of it";
  } else if ((type >= Lexer::EQ && type <= Lexer::GT) && here.wants(Lexer::RBRACE)) {
    message = "comparisons do not chain: " + quoted(at) + " follows a complete comparison";
    help = "join two comparisons with 'and', or use parentheses";
  } else if (is_time_unit(tokens_.text(tokens_.at(at))) &&
             (before == Lexer::INT || before == Lexer::REAL)) {
    const std::string number(tokens_.text(tokens_.at(at - 1)));
    const std::string unit(tokens_.text(tokens_.at(at)));
    message = "a blank between the number and the unit of a duration";
    help = "write '" + number + unit + "'";
  } else {
    return false;
  }
  sink_.report(Id::kSyntax, tokens_.span(tokens_.at(at)), message).help = help;
  return true;
}

void SyntaxErrors::report_expected(size_t at, const Expectation& here) {
  std::string message;
  if (here.shown.empty()) {
    message = quoted(at) + " is not expected here";
  } else {
    message = "expected " + join_alternatives(here.shown);
    if (at > 0) {
      message += " after " + quoted(at - 1);
    }
    message += ", found " + quoted(at);
  }
  auto& d = sink_.report(Id::kSyntax, tokens_.span(tokens_.at(at)), message);
  if (tokens_.is_end(at) && here.wants(Lexer::RBRACE)) {
    d.help = "close the block with '}'";
  }
}

size_t SyntaxErrors::report(size_t start, size_t previous) {
  if (report_stray_brace(start)) {
    return start + 1;
  }
  if (previous < start && !tokens_.starts_line(start) && start > previous + 1 &&
      looks_like_new_block(previous, start - 1)) {
    // The declaration before this one took the first word of its successor for a name.
    Simulator paths(parser_, tokens_);
    paths.run(previous, start - 1);
    report_expected(start - 1, paths.next());
    return start - 1;
  }
  const size_t last = tokens_.size();  // the end of the file is a token that may be refused
  Simulator paths(parser_, tokens_);
  size_t at = std::min(paths.run(start, last), last - 1);
  // Words behind a complete declaration on its line are a misspelt clause of it.
  const bool continues = previous < start && !tokens_.starts_line(start) && at <= start + 1 &&
                         tokens_.type(start - 1) != Lexer::SEMICOLON &&
                         !is_declaration_word(tokens_.type(start));
  size_t begin = start;
  if (continues) {
    begin = previous;
    at = std::min(paths.run(previous, last), last - 1);
  }
  const Expectation here = paths.next();
  const bool told = report_bad_token(at) || (!continues && report_misspelt_start(start, at)) ||
                    report_unclosed(begin, at) || report_known_slip(at, here) ||
                    report_misspelt(begin, at, here);
  if (!told) {
    report_expected(at, here);
  }
  return std::max(resume(start, std::max(at > 2 ? at - 2 : at, start + 1)), start + 1);
}

}  // namespace reflex::parse

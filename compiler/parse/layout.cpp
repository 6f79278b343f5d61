// Which token begins an item and which blanks belong to it, read off the parse tree; see layout.h.
#include "compiler/parse/layout.h"

#include <exception>
#include <memory>

#include "RuleParser.h"
#include "compiler/parse/tokens.h"

namespace reflex::parse {
namespace {

using Parser = rfxgen::RuleParser;
using antlr4::atn::PredictionMode;
using Begins = LayoutToken::Begins;
using Blanks = LayoutToken::Blanks;

/// Rules that are an item of a block.
bool is_item(size_t rule) {
  switch (rule) {
    case Parser::RuleFieldDecl:
    case Parser::RuleSetting:
    case Parser::RuleProfileItem:
    case Parser::RuleDecoderItem:
    case Parser::RuleAssignment:
    case Parser::RuleSignalClause:
    case Parser::RuleFaultItem:
    case Parser::RuleIncidentItem:
    case Parser::RuleOverlayEntry:
    case Parser::RuleRuleItem:
    case Parser::RuleSuppressItem:
    case Parser::RuleTestStatement:
    case Parser::RuleVerdictClause:
      return true;
    default:
      return false;
  }
}

/// Blanks of a token that is a direct child of a rule.
Blanks blanks_of(size_t rule, size_t type) {
  switch (rule) {
    case Parser::RuleCallArguments:
    case Parser::RuleMacroDecl:
    case Parser::RuleCountSource:
    case Parser::RuleRuleItem:
      if (type == Lexer::LPAREN) return Blanks::kNoneBefore;
      break;
    case Parser::RuleTypeRef:
      if (type == Lexer::LPAREN || type == Lexer::GT) return Blanks::kNoneBefore;
      if (type == Lexer::LT) return Blanks::kNoneAround;
      break;
    case Parser::RuleKeys:
    case Parser::RuleDedup:
    case Parser::RuleImportDecl:
    case Parser::RuleTestTable:
    case Parser::RuleOverlayEntry:
    case Parser::RuleSignalClause:
      if (type == Lexer::LPAREN || type == Lexer::LBRACKET) return Blanks::kOneBefore;
      break;
    case Parser::RuleComparisonTail:
      if (type == Lexer::RANGE) return Blanks::kNoneAround;
      if (type == Lexer::LPAREN) return Blanks::kOneBefore;
      break;
    case Parser::RuleAccess:
    case Parser::RuleAccessTail:
      if (type == Lexer::LBRACKET) return Blanks::kNoneBefore;
      break;
    case Parser::RuleTarget:
    case Parser::RuleClauseTarget:
      if (type == Lexer::SLASH || type == Lexer::RANGE) return Blanks::kNoneAround;
      if (type == Lexer::LBRACKET) return Blanks::kNoneBefore;
      break;
    case Parser::RuleListElement:
    case Parser::RuleTestStatement:
      if (type == Lexer::RANGE) return Blanks::kNoneAround;
      break;
    case Parser::RuleTerm:
    case Parser::RuleTestNumber:
      if (type == Lexer::MINUS) return Blanks::kNoneAfter;
      break;
    default:
      break;
  }
  return type == Lexer::CARET || type == Lexer::TILDE ? Blanks::kNoneAfter : Blanks::kDefault;
}

/// `set profile hw.h100 temp_hot = 89`: the parameter belongs to the entry, it begins no item.
bool is_inside_entry(const antlr4::ParserRuleContext* ctx) {
  const auto* parent = dynamic_cast<const antlr4::ParserRuleContext*>(ctx->parent);
  return ctx->getRuleIndex() == Parser::RuleProfileItem && parent != nullptr &&
         parent->getRuleIndex() == Parser::RuleOverlayEntry;
}

class Marker {
 public:
  explicit Marker(const Tokens& tokens) : marks_(tokens.size()), tokens_(tokens) {}

  /// Depth is bounded by check_limits: every level of nesting is a bracket or a prefix operator.
  void walk(antlr4::ParserRuleContext* ctx) {
    const size_t rule = ctx->getRuleIndex();
    if (is_item(rule) && !is_inside_entry(ctx)) at(ctx->start).begins = Begins::kItem;
    for (antlr4::tree::ParseTree* child : ctx->children) {
      if (auto* leaf = dynamic_cast<antlr4::tree::TerminalNode*>(child)) {
        const antlr4::Token* token = leaf->getSymbol();
        const Blanks blanks = blanks_of(rule, token->getType());
        if (blanks != Blanks::kDefault) at(token).blanks = blanks;
      } else if (auto* inner = dynamic_cast<antlr4::ParserRuleContext*>(child)) {
        walk(inner);
      }
    }
  }
  void declaration(size_t position) { marks_[position].begins = Begins::kDeclaration; }

  struct Mark {
    Begins begins = Begins::kNothing;
    Blanks blanks = Blanks::kDefault;
  };
  [[nodiscard]] const Mark& mark(size_t position) const { return marks_[position]; }

 private:
  Mark& at(const antlr4::Token* token) {
    return marks_[tokens_.position_of(token->getTokenIndex())];
  }
  std::vector<Mark> marks_;
  const Tokens& tokens_;
};

std::unique_ptr<Parser> make_parser(Tokens& tokens, PredictionMode mode) {
  auto parser = std::make_unique<Parser>(&tokens.stream());
  parser->removeErrorListeners();
  parser->setErrorHandler(std::make_shared<antlr4::BailErrorStrategy>());
  parser->getInterpreter<antlr4::atn::ParserATNSimulator>()->setPredictionMode(mode);
  return parser;
}

/// Marks the declaration at `start`; `next` is the position behind it.
bool mark_declaration(Tokens& tokens, size_t start, Marker& marker, size_t& next) {
  for (const PredictionMode mode : {PredictionMode::SLL, PredictionMode::LL}) {
    tokens.stream().seek(tokens.at(start)->getTokenIndex());
    auto parser = make_parser(tokens, mode);
    try {
      marker.walk(parser->declaration());
    } catch (const antlr4::ParseCancellationException&) {
      continue;
    }
    marker.declaration(start);
    next = tokens.position_of(tokens.stream().index());
    return true;
  }
  return false;
}

std::vector<LayoutToken> collect(Tokens& tokens, const Marker& marker) {
  std::vector<LayoutToken> out;
  for (antlr4::Token* token : tokens.stream().getTokens()) {
    if (token->getType() == antlr4::Token::EOF) break;
    LayoutToken t;
    t.span = tokens.span(token);
    t.text = tokens.text(token);
    t.comment = token->getChannel() != antlr4::Token::DEFAULT_CHANNEL;
    if (!t.comment) {
      const auto& mark = marker.mark(tokens.position_of(token->getTokenIndex()));
      t.begins = mark.begins;
      t.blanks = mark.blanks;
    }
    out.push_back(t);
  }
  return out;
}

}  // namespace

std::optional<std::vector<LayoutToken>> layout_tokens(const source::SourceMap& map,
                                                      source::FileId file, const Limits& limits,
                                                      diag::Sink& sink) {
  // The parser finds and tells the mistakes; here only their absence matters.
  const size_t errors_before = sink.error_count();
  (void)parse(map, file, limits, sink);
  if (sink.error_count() != errors_before) return std::nullopt;
  try {
    Tokens tokens(map, file);
    Marker marker(tokens);
    for (size_t at = 0; !tokens.is_end(at);) {
      if (tokens.type(at) == Lexer::SEMICOLON) {
        ++at;
      } else if (!mark_declaration(tokens, at, marker, at)) {
        sink.report(diag::Id::kParserInternal, tokens.span(tokens.at(at)),
                    "internal error of the formatter: a declaration parses only once");
        return std::nullopt;
      }
    }
    return collect(tokens, marker);
  } catch (const std::exception& e) {
    sink.report(diag::Id::kParserInternal, {file, 0, 0},
                std::string("internal error of the parser: ") + e.what());
    return std::nullopt;
  }
}

std::vector<std::string> token_texts(const source::SourceMap& map, source::FileId file) {
  std::vector<std::string> out;
  try {
    Tokens tokens(map, file);
    for (antlr4::Token* token : tokens.stream().getTokens()) {
      if (token->getType() == antlr4::Token::EOF) break;
      std::string text = std::to_string(token->getType()) + " ";
      const std::string_view written = tokens.text(token);
      const bool pattern =
          token->getType() == Lexer::LINE_RE || token->getType() == Lexer::MATCHES_RE;
      if (!pattern) {
        text += written;
      } else {
        const size_t slash = written.find('/');
        text += std::string(written.substr(0, written.find_first_of(" \t"))) +
                std::string(written.substr(slash));
      }
      // A comment ends before the blanks at its end.
      while (token->getChannel() != antlr4::Token::DEFAULT_CHANNEL &&
             (text.back() == ' ' || text.back() == '\t')) {
        text.pop_back();
      }
      out.push_back(std::move(text));
    }
  } catch (const std::exception& e) {
    out.push_back(std::string("error ") + e.what());
  }
  return out;
}

}  // namespace reflex::parse

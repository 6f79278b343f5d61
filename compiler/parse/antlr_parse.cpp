// parse::parse: guards, then one declaration at a time through ANTLR, then the builder.
//
// Each declaration is parsed in SLL mode first (fast); only if that fails in full LL mode (always
// right), and only if that fails too it is an error. A parser object lives for one declaration,
// so parse trees are freed at once. This file is the border that no exception crosses.
#include <antlr4-runtime.h>

#include <exception>
#include <memory>
#include <utility>

#include "compiler/parse/builder.h"
#include "compiler/parse/parse.h"
#include "compiler/parse/parse_file.h"
#include "compiler/parse/syntax_error.h"
#include "compiler/parse/tokens.h"

namespace reflex::parse {
namespace {

// Why: behind that many mistakes lies one cause (a merge marker, another language).
constexpr size_t kErrorsPerFileMax = 50;

using antlr4::atn::PredictionMode;

std::unique_ptr<Parser> make_parser(Tokens& tokens, PredictionMode mode) {
  auto parser = std::make_unique<Parser>(&tokens.stream());
  parser->removeErrorListeners();
  parser->setErrorHandler(std::make_shared<antlr4::BailErrorStrategy>());
  parser->getInterpreter<antlr4::atn::ParserATNSimulator>()->setPredictionMode(mode);
  return parser;
}

/// Parses at stream position `start`; false on a syntax error. `next` is the position behind.
bool parse_declaration(Tokens& tokens, size_t start, Builder& builder, size_t& next) {
  for (const PredictionMode mode : {PredictionMode::SLL, PredictionMode::LL}) {
    tokens.stream().seek(tokens.at(start)->getTokenIndex());
    auto parser = make_parser(tokens, mode);
    Parser::DeclarationContext* tree = nullptr;
    try {
      tree = parser->declaration();
    } catch (const antlr4::ParseCancellationException&) {
      continue;  // the other mode, or a syntax error
    }
    next = tokens.position_of(tokens.stream().index());
    builder.declaration(tree);
    return true;
  }
  return false;
}

}  // namespace

void parse_file(Tokens& tokens, diag::Sink& sink, ast::Module& module) {
  Builder builder(tokens, sink, module);
  auto grammar = make_parser(tokens, PredictionMode::SLL);  // for the automaton of the grammar
  SyntaxErrors errors(*grammar, tokens, sink);
  size_t previous = 0, at = 0, failed = 0;
  while (!tokens.is_end(at) && failed < kErrorsPerFileMax) {
    if (tokens.type(at) == Lexer::SEMICOLON) {
      ++at;
      continue;
    }
    size_t next = at;
    if (parse_declaration(tokens, at, builder, next)) {
      previous = at;
      at = next;
    } else {
      at = errors.report(at, previous);
      previous = at;
      ++failed;
    }
  }
}

ast::Module parse(const source::SourceMap& map, source::FileId file, const Limits& limits,
                  diag::Sink& sink) {
  ast::Module module;
  module.file = file;
  if (!check_text(map, file, limits, sink)) {
    return module;
  }
  try {
    Tokens tokens(map, file);
    if (check_engine(tokens, sink) && check_limits(tokens, limits, sink)) {
      parse_file(tokens, sink, module);
    }
  } catch (const std::exception& e) {
    sink.report(diag::Id::kParserInternal, {file, 0, 0},
                std::string("internal error of the parser: ") + e.what());
  } catch (...) {
    sink.report(diag::Id::kParserInternal, {file, 0, 0}, "internal error of the parser");
  }
  return module;
}

}  // namespace reflex::parse

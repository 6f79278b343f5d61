// Tokens of one file: lexing and the way back from code points to bytes.
#include "compiler/parse/tokens.h"

#include <algorithm>

namespace reflex::parse {
namespace {

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

}  // namespace

Tokens::Tokens(const source::SourceMap& map, source::FileId file)
    : file_(file),
      text_(map.text(file)),
      end_(static_cast<uint32_t>(text_.size())),
      input_(std::string(text_)),
      lexer_(&input_),
      stream_(&lexer_) {
  fill(text_);
}

Tokens::Tokens(const source::SourceMap& map, source::Span part)
    : file_(part.file),
      text_(map.text(part.file)),
      base_(part.begin),
      end_(part.end),
      input_(std::string(text(part))),
      lexer_(&input_),
      stream_(&lexer_) {
  fill(text(part));
}

Tokens::Tokens(const Tokens& outer, source::Span part)
    : file_(outer.file_),
      text_(outer.text_),
      base_(part.begin),
      end_(part.end),
      input_(std::string(outer.text(part))),
      lexer_(&input_),
      stream_(&lexer_) {
  fill(outer.text(part));
}

void Tokens::fill(std::string_view part) {
  lexer_.removeErrorListeners();  // ERROR_CHAR makes lexer errors impossible
  if (!is_ascii(part)) {
    for (uint32_t i = 0; i < part.size(); ++i) {
      if ((static_cast<unsigned char>(part[i]) & 0xC0u) != 0x80u) {
        bytes_.push_back(i);
      }
    }
    bytes_.push_back(static_cast<uint32_t>(part.size()));
  }
  stream_.fill();
  const auto all = stream_.getTokens();
  positions_.reserve(all.size());
  for (antlr4::Token* token : all) {
    positions_.push_back(visible_.size());
    if (token->getChannel() == antlr4::Token::DEFAULT_CHANNEL) {
      visible_.push_back(token);
    }
  }
}

uint32_t Tokens::byte_of(size_t code_point) const {
  if (bytes_.empty()) {
    return static_cast<uint32_t>(std::min<size_t>(base_ + code_point, end_));
  }
  return base_ + bytes_[std::min(code_point, bytes_.size() - 1)];
}

source::Span Tokens::span(const antlr4::Token* token) const {
  if (token->getType() == antlr4::Token::EOF) {
    return {file_, end_, end_};
  }
  return {file_, byte_of(token->getStartIndex()), byte_of(token->getStopIndex() + 1)};
}

source::Span Tokens::span(const antlr4::Token* first, const antlr4::Token* last) const {
  // An empty rule stops before it starts.
  if (last == nullptr || last->getTokenIndex() < first->getTokenIndex()) {
    const source::Span at = span(first);
    return {file_, at.begin, at.begin};
  }
  return source::cover(span(first), span(last));
}

std::string_view Tokens::text(const antlr4::Token* token) const { return text(span(token)); }

std::string Tokens::joined(const antlr4::Token* first, const antlr4::Token* last) const {
  std::string result;
  const size_t end = positions_[last->getTokenIndex()];
  for (size_t i = positions_[first->getTokenIndex()]; i <= end; ++i) {
    result += text(visible_[i]);
  }
  return result;
}

bool Tokens::starts_line(size_t position) const {
  return position == 0 || visible_[position - 1]->getLine() != visible_[position]->getLine();
}

}  // namespace reflex::parse

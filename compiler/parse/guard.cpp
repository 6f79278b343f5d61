// What is checked before the parser sees a file: its bytes, the engine that it asks for, its size
// in tokens and its nesting. ANTLR recurses without a bound, so depth is checked here.
#include <charconv>
#include <string>

#include "compiler/parse/engine_version.h"
#include "compiler/parse/tokens.h"

namespace reflex::parse {
namespace {

using diag::Id;

/// Length of the UTF-8 sequence at `i`, 0 if it is malformed (overlong forms, surrogates too).
size_t sequence_size(std::string_view text, size_t i) {
  const auto byte = [&](size_t k) {
    return k < text.size() ? static_cast<unsigned char>(text[k]) : 0u;
  };
  const unsigned first = byte(i);
  const auto tail = [&](size_t count) {
    for (size_t k = 1; k <= count; ++k) {
      if ((byte(i + k) & 0xC0u) != 0x80u) {
        return false;
      }
    }
    return true;
  };
  if (first < 0x80) {
    return 1;
  }
  if (first >= 0xC2 && first <= 0xDF) {
    return tail(1) ? 2 : 0;
  }
  if (first >= 0xE0 && first <= 0xEF) {
    const unsigned second = byte(i + 1);
    const bool bad = (first == 0xE0 && second < 0xA0) || (first == 0xED && second > 0x9F);
    return !bad && tail(2) ? 3 : 0;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    const unsigned second = byte(i + 1);
    const bool bad = (first == 0xF0 && second < 0x90) || (first == 0xF4 && second > 0x8F);
    return !bad && tail(3) ? 4 : 0;
  }
  return 0;
}

struct Version {
  int64_t parts[3] = {0, 0, 0};
  friend auto operator<=>(const Version&, const Version&) = default;
};

Version to_version(std::string_view text) {
  Version version;
  size_t part = 0;
  for (size_t i = 0; i < text.size() && part < 3; ++part) {
    const char* end = text.data() + text.size();
    const auto result = std::from_chars(text.data() + i, end, version.parts[part]);
    if (result.ec == std::errc::result_out_of_range) {
      version.parts[part] = INT64_MAX;
    }
    i = static_cast<size_t>(result.ptr - text.data()) + 1;
  }
  return version;
}

bool engine_meets(std::string_view op, const Version& wanted) {
  const Version own{{kEngineMajor, kEngineMinor, kEnginePatch}};
  if (op == ">") {
    return own > wanted;
  }
  if (op == "<") {
    return own < wanted;
  }
  if (op == "<=") {
    return own <= wanted;
  }
  if (op == "==") {
    return own == wanted;
  }
  if (op == "!=") {
    return own != wanted;
  }
  if (op == "^") {
    return own >= wanted && own.parts[0] == wanted.parts[0];
  }
  if (op == "~") {
    return own >= wanted && own.parts[0] == wanted.parts[0] && own.parts[1] == wanted.parts[1];
  }
  return own >= wanted;  // ">=" and a plain version: at least that
}

std::string own_version() {
  return std::to_string(kEngineMajor) + "." + std::to_string(kEngineMinor) + "." +
         std::to_string(kEnginePatch);
}

bool is_version(size_t type) {
  return type == Lexer::INT || type == Lexer::REAL || type == Lexer::VERSION;
}

bool check_requires(const Tokens& tokens, size_t at, diag::Sink& sink) {
  std::string op = ">=";
  size_t version = at + 2;
  if (!tokens.is_end(version) && !is_version(tokens.type(version))) {
    op = std::string(tokens.text(tokens.at(version)));
    ++version;
  }
  if (version >= tokens.size() || !is_version(tokens.type(version))) {
    return true;  // malformed: the parser says so
  }
  const std::string wanted(tokens.text(tokens.at(version)));
  if (engine_meets(op, to_version(wanted))) {
    return true;
  }
  auto& d = sink.report(
      Id::kEngineVersion, tokens.span(tokens.at(at), tokens.at(version)),
      "the pack needs engine " + op + " " + wanted + ", this is engine " + own_version());
  d.help = "run it with an engine of that version, or load an older version of the pack";
  return false;
}

bool check_dsl(const Tokens& tokens, size_t at, diag::Sink& sink) {
  if (tokens.type(at + 1) != Lexer::INT) {
    return true;
  }
  const std::string wanted(tokens.text(tokens.at(at + 1)));
  if (to_version(wanted).parts[0] <= kDslVersion) {
    return true;
  }
  sink.report(Id::kDslVersion, tokens.span(tokens.at(at), tokens.at(at + 1)),
              "the pack is written in dsl " + wanted + ", this engine reads dsl " +
                  std::to_string(kDslVersion))
      .help = "run it with a newer engine";
  return false;
}

bool opens(size_t type) {
  return type == Lexer::LPAREN || type == Lexer::LBRACKET || type == Lexer::LBRACE;
}
bool closes(size_t type) {
  return type == Lexer::RPAREN || type == Lexer::RBRACKET || type == Lexer::RBRACE;
}

bool report_depth(const Tokens& tokens, size_t at, const Limits& limits, diag::Sink& sink,
                  const std::string& what) {
  sink.report(Id::kNestingDepth, tokens.span(tokens.at(at)),
              what + " deeper than " + std::to_string(limits.depth_max) + " levels")
      .help = "name a part of the expression with a macro or a feature";
  return false;
}

}  // namespace

bool check_text(const source::SourceMap& map, source::FileId file, const Limits& limits,
                diag::Sink& sink) {
  const std::string_view text = map.text(file);
  if (text.size() > limits.file_bytes_max) {
    sink.report(Id::kFileSize, {file, 0, 0},
                "the file has " + std::to_string(text.size()) + " bytes, the limit is " +
                    std::to_string(limits.file_bytes_max))
        .help = "split the pack into several files";
    return false;
  }
  for (size_t i = 0; i < text.size();) {
    const size_t size = sequence_size(text, i);
    const auto at = static_cast<uint32_t>(i);
    if (size == 0) {
      sink.report(Id::kInvalidText, {file, at, at + 1},
                  "byte " + std::to_string(i) + " is not valid UTF-8")
          .help = "save the file as UTF-8";
      return false;
    }
    if (text[i] == '\0') {
      sink.report(Id::kInvalidText, {file, at, at + 1},
                  "byte " + std::to_string(i) + " is NUL: this is not a text file")
          .help = "save the file as UTF-8";
      return false;
    }
    i += size;
  }
  if (text.substr(0, 3) == "\xEF\xBB\xBF") {
    sink.report(Id::kInvalidText, {file, 0, 3}, "the file begins with two byte order marks");
    return false;
  }
  return true;
}

bool check_engine(const Tokens& tokens, diag::Sink& sink) {
  if (tokens.type(0) != Lexer::K_PACK) {
    return true;
  }
  for (size_t i = 1; i + 2 < tokens.size(); ++i) {
    const size_t type = tokens.type(i);
    if (opens(type) || type == Lexer::K_IMPORT || type == Lexer::SEMICOLON) {
      break;
    }
    // "dsl" may be part of the pack's name; then no number follows it.
    if (type == Lexer::K_REQUIRES && tokens.type(i + 1) == Lexer::K_ENGINE) {
      if (!check_requires(tokens, i, sink)) {
        return false;
      }
    } else if (type == Lexer::K_DSL && !check_dsl(tokens, i, sink)) {
      return false;
    }
  }
  return true;
}

bool check_limits(const Tokens& tokens, const Limits& limits, diag::Sink& sink) {
  if (tokens.size() > limits.tokens_max) {
    sink.report(Id::kTokenCount, tokens.span(tokens.at(limits.tokens_max)),
                "the file has more than " + std::to_string(limits.tokens_max) + " tokens")
        .help = "split the pack into several files";
    return false;
  }
  size_t depth = 0;
  size_t prefixes = 0;   // run of `not not ..` or `- - ..`
  size_t type_args = 0;  // run of `word < word < ..`
  size_t percents = 0;   // run of `5% of 5% of ..`
  for (size_t i = 0; i < tokens.size(); ++i) {
    const size_t type = tokens.type(i);
    if (opens(type) && ++depth > limits.depth_max) {
      return report_depth(tokens, i, limits, sink, "brackets are nested");
    }
    if (closes(type) && depth > 0) {
      --depth;
    }
    prefixes = type == Lexer::K_NOT || type == Lexer::MINUS ? prefixes + 1 : 0;
    const bool type_arg = type == Lexer::LT && i >= 2 && tokens.type(i - 2) == Lexer::LT;
    type_args = type == Lexer::LT ? (type_arg ? type_args + 1 : 0) : type_args;
    const bool chained = i >= 2 && tokens.type(i - 2) == Lexer::PERCENT;
    percents = type == Lexer::PERCENT ? (chained ? percents + 1 : 0) : percents;
    if (prefixes > limits.depth_max || type_args > limits.depth_max ||
        percents > limits.depth_max) {
      return report_depth(tokens, i, limits, sink, "operators are nested");
    }
  }
  return true;
}

}  // namespace reflex::parse

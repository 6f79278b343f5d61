// Lines, indentation and blanks; see format.h for the rules.
#include "compiler/format/format.h"

#include <algorithm>
#include <vector>

#include "compiler/parse/layout.h"

namespace reflex::format {
namespace {

using parse::LayoutToken;
using Begins = LayoutToken::Begins;
using Blanks = LayoutToken::Blanks;

constexpr size_t kIndent = 2;
// Why: beyond that a comment would be pushed off the screen by one long line beside it.
constexpr size_t kCommentColumnMax = 80;
// Source: format.h, "a line is broken beyond 100 columns".
constexpr size_t kColumns = 100;
// Why: every round breaks what the one before left too long; nesting is a few levels.
constexpr int kRoundsMax = 20;

struct Line {
  std::string code;
  std::string comment;  // behind the code; a comment alone on its line is code
  size_t first = 0;     // its tokens
  size_t end = 0;
};

/// A word that a long line may be broken before, when no bracket or block has to be.
bool breaks_well(std::string_view word) {
  static constexpr std::string_view kWords[] = {"and", "or", "where", "lag", "scope", "half_life"};
  return std::find(std::begin(kWords), std::end(kWords), word) != std::end(kWords);
}

class Layout {
 public:
  Layout(std::string_view text, const std::vector<LayoutToken>& tokens)
      : text_(text),
        tokens_(tokens),
        broken_(tokens.size(), false),
        forced_(tokens.size(), false),
        partner_(tokens.size(), 0),
        column_(tokens.size(), 0) {
    find_blocks();
  }

  std::string run() {
    for (int round = 0; round < kRoundsMax; ++round) {
      lines_.clear();
      block_indents_.clear();
      inside_item_ = false;
      for (size_t i = 0; i < tokens_.size(); ++i) place(i);
      end_line();
      bool broke = false;
      for (const Line& line : lines_) broke = break_line(line) || broke;
      if (!broke) break;
    }
    return joined();
  }

 private:
  /// Lines between a token and the one before it in the source.
  [[nodiscard]] size_t lines_before(size_t i) const {
    if (i == 0) return 0;
    const std::string_view gap =
        text_.substr(tokens_[i - 1].span.end, tokens_[i].span.begin - tokens_[i - 1].span.end);
    return static_cast<size_t>(std::count(gap.begin(), gap.end(), '\n'));
  }

  /// broken_[i] of an open brace: the block has a line break between two of its tokens.
  void find_blocks() {
    std::vector<size_t> open;
    for (size_t i = 0; i < tokens_.size(); ++i) {
      if (lines_before(i) > 0) {
        for (const size_t block : open) broken_[block] = true;
      }
      if (tokens_[i].comment) continue;
      if (tokens_[i].text == "{") open.push_back(i);
      if (tokens_[i].text != "}" || open.empty()) continue;
      partner_[open.back()] = i;
      broken_[i] = broken_[open.back()];
      // `{` and `}` on two lines with nothing between them: one line.
      if (open.back() + 1 == i) broken_[i] = broken_[open.back()] = false;
      open.pop_back();
    }
  }

  // ---- lines that are too long

  /// Marks breaks in a line beyond kColumns; false: it fits, or nothing can be done about it.
  bool break_line(const Line& line) {
    if (line.end <= line.first || width_of(line.code) <= kColumns) return false;
    if (break_arrow(line)) return true;
    if (break_items(line)) return true;
    if (break_block(line)) return true;
    return fill(line);
  }

  /// The end of an unbroken block that begins at `i`; `i` itself for every other token.
  [[nodiscard]] size_t skip_block(size_t i) const {
    const bool opens = !tokens_[i].comment && tokens_[i].text == "{" && !broken_[i];
    return opens && partner_[i] > i ? partner_[i] : i;
  }

  /// A pattern and what it makes: two lines. Not inside of a block on one line: it would be broken
  /// the next time.
  bool break_arrow(const Line& line) {
    for (size_t i = line.first; i < line.end; ++i) {
      const bool arrow = i > line.first && !tokens_[i].comment && tokens_[i].text == "->";
      if (arrow && !forced_[i]) return forced_[i] = true;
      i = skip_block(i);
    }
    return false;
  }

  /// Items that share a line of a broken block: one a line.
  bool break_items(const Line& line) {
    bool broke = false;
    for (size_t i = line.first; i < line.end; ++i) {
      if (i > line.first && tokens_[i].begins == Begins::kItem) broke = forced_[i] = true;
      i = skip_block(i);
    }
    return broke;
  }

  /// The first block of the line that has anything in it, with its items one a line.
  bool break_block(const Line& line) {
    for (size_t i = line.first; i < line.end; ++i) {
      const size_t close = skip_block(i);
      if (close <= i + 1) continue;
      broken_[i] = broken_[close] = true;
      for (size_t k = i + 2; k < close; ++k) {
        if (tokens_[k].begins == Begins::kItem) forced_[k] = true;
        k = skip_block(k);
      }
      return true;
    }
    return false;
  }

  /// Fills lines: each break at the last place that fits, outside of as many brackets as possible.
  bool fill(const Line& line) {
    const size_t indent = column_[line.first];
    const size_t below = indent + (tokens_[line.first].begins == Begins::kNothing ? 0 : kIndent);
    bool broke = false;
    size_t start = line.first;
    for (size_t from = indent;; from = below) {
      const size_t at = best_break(line, start, from);
      if (at == 0) return broke;
      broke = forced_[at] = true;
      start = at;
    }
  }

  /// Where the rest of a line that begins with token `start` in column `from` is broken; 0: it fits
  /// or cannot be.
  [[nodiscard]] size_t best_break(const Line& line, size_t start, size_t from) const {
    const auto column = [&](size_t i) { return column_[i] - column_[start] + from; };
    const size_t last = line.end - 1;
    if (column(last) + width_of(std::string(tokens_[last].text)) <= kColumns) return 0;
    size_t depth = 0, best = 0, best_depth = SIZE_MAX;
    for (size_t i = start; i <= last; ++i) {
      const std::string_view text = tokens_[i].text;
      if (tokens_[i].comment) break;
      if (text == ")" || text == "]") depth -= depth > 0 ? 1 : 0;
      const bool place =
          i > start && blanks_before(i) > 0 && (breaks_well(text) || tokens_[i - 1].text == ",");
      const bool fits = i > start && column(i) <= kColumns + 1;
      if (!fits && i > start && best != 0) break;
      if (place && (depth < best_depth || (depth == best_depth && fits))) {
        best = i;
        best_depth = depth;
      }
      if (text == "(" || text == "[") ++depth;
    }
    return best;
  }

  [[nodiscard]] bool opens_broken(size_t i) const {
    return !tokens_[i].comment && tokens_[i].text == "{" && broken_[i];
  }
  [[nodiscard]] bool closes_broken(size_t i) const {
    return !tokens_[i].comment && tokens_[i].text == "}" && broken_[i];
  }

  [[nodiscard]] bool breaks_before(size_t i) const {
    if (i == 0) return false;
    const LayoutToken& t = tokens_[i];
    if (tokens_[i - 1].comment || forced_[i]) return true;
    if (t.comment) return lines_before(i) > 0;
    if (t.begins == Begins::kDeclaration || opens_broken(i - 1) || closes_broken(i)) return true;
    if (lines_before(i) == 0) return false;
    static constexpr std::string_view kStays[] = {"{", ",", ";", ")", "]", ":", "."};
    if (std::find(std::begin(kStays), std::end(kStays), t.text) == std::end(kStays)) {
      return t.text != "}";  // of a block that is not broken: an empty one
    }
    // A closing bracket may stand alone when what it closes was broken behind its opening.
    return (t.text == "]" || t.text == ")") && bracket_broken(i);
  }

  /// Whether the bracket that closes at `i` had a line break right behind its opening.
  [[nodiscard]] bool bracket_broken(size_t i) const {
    size_t depth = 0;
    for (size_t k = i; k-- > 0;) {
      if (tokens_[k].comment) continue;
      const std::string_view text = tokens_[k].text;
      if (text == "]" || text == ")") ++depth;
      if (text != "[" && text != "(") continue;
      if (depth == 0) return lines_before(k + 1) > 0;
      --depth;
    }
    return false;
  }

  void place(size_t i) {
    const LayoutToken& t = tokens_[i];
    if (i == 0 || breaks_before(i)) {
      end_line();
      // Not behind an opening brace and not before a closing one.
      const bool blank = i > 0 && lines_before(i) > 1 && !opens_broken(i - 1) && !closes_broken(i);
      if (blank) lines_.push_back({});
      begin_line(i);
    } else if (t.comment) {
      line_.comment = std::string(trimmed(t.text));
      return;
    } else {
      line_.code += std::string(blanks_before(i), ' ');
    }
    column_[i] = width_of(line_.code);
    line_.end = t.comment ? i : i + 1;
    line_.code += t.comment ? std::string(trimmed(t.text)) : canonical(t.text);
    if (!t.comment) track(i);
  }

  void begin_line(size_t i) {
    size_t lead = i;
    while (lead + 1 < tokens_.size() && tokens_[lead].comment) ++lead;  // what a comment is about
    const LayoutToken& t = tokens_[lead];
    size_t indent = block_indents_.empty() ? 0 : block_indents_.back();
    const bool closes = closes_broken(lead);
    if (closes && lead == i) indent -= kIndent;
    const bool closes_bracket = !t.comment && (t.text == "]" || t.text == ")") && lead == i;
    const bool continues =
        t.begins == Begins::kNothing && !t.comment && !closes && !closes_bracket && inside_item_;
    line_indent_ = indent + (continues ? kIndent : 0);
    if (t.begins == Begins::kDeclaration) line_indent_ = 0;
    line_.code = std::string(line_indent_, ' ');
    line_.first = line_.end = i;
    open_ = true;
  }

  /// Keeps count of blocks and of whether an item has begun.
  void track(size_t i) {
    const LayoutToken& t = tokens_[i];
    if (t.begins != Begins::kNothing) inside_item_ = true;
    if (opens_broken(i)) {
      block_indents_.push_back(line_indent_ + kIndent);
      inside_item_ = false;
    } else if (closes_broken(i)) {
      block_indents_.pop_back();
      inside_item_ = true;  // `} leak 1e-3 per hour`
    }
  }

  [[nodiscard]] size_t blanks_before(size_t i) const {
    const LayoutToken& t = tokens_[i];
    const LayoutToken& p = tokens_[i - 1];
    const bool first_of_block = p.text == "{";
    if (t.begins == Begins::kItem) return first_of_block || p.text == "," || p.text == ";" ? 1 : 2;
    if (t.text == "," || t.text == ";") return 0;
    if (t.blanks == Blanks::kAsWritten) return t.span.begin > p.span.end ? 1 : 0;
    if (first_of_block || t.text == "}" || t.text == "{") return 1;
    if (p.blanks == Blanks::kNoneAfter || p.blanks == Blanks::kNoneAround) return 0;
    if (t.blanks == Blanks::kNoneBefore || t.blanks == Blanks::kNoneAround) return 0;
    if (p.text == "(" || p.text == "[" || p.text == "." || t.text == "." || t.text == ")" ||
        t.text == "]" || t.text == ":" || t.text == "?") {
      return 0;
    }
    if (t.text == "(" && t.blanks == Blanks::kDefault && p.text == "?") return 0;
    return 1;
  }

  static std::string_view trimmed(std::string_view comment) {
    const size_t last = comment.find_last_not_of(" \t\r");
    return comment.substr(0, last + 1);
  }

  /// `line   /re/` has one blank; everything else is as written.
  static std::string canonical(std::string_view text) {
    const bool pattern = (text.starts_with("line") || text.starts_with("matches")) &&
                         text.find_first_of(" \t") < text.find('/');
    if (!pattern || text.find('/') == std::string_view::npos) return std::string(text);
    return std::string(text.substr(0, text.find_first_of(" \t"))) + " " +
           std::string(text.substr(text.find('/')));
  }

  void end_line() {
    if (open_) lines_.push_back(std::move(line_));
    line_ = {};
    open_ = false;
  }

  std::string joined() {
    std::string out;
    for (size_t i = 0; i < lines_.size();) {
      size_t end = i;
      size_t column = 0;
      while (end < lines_.size() && !lines_[end].comment.empty()) {
        const size_t width = width_of(lines_[end].code);
        if (width <= kCommentColumnMax) column = std::max(column, width);
        ++end;
      }
      for (; i < end; ++i) {
        const size_t width = width_of(lines_[i].code);
        const size_t pad = width > column ? 0 : column - width;
        out += lines_[i].code + std::string(pad + 2, ' ') + lines_[i].comment + "\n";
      }
      if (end < lines_.size()) out += lines_[i++].code + "\n";
    }
    return out;
  }

  /// Code points behind the last line break (a raw string may hold some).
  static size_t width_of(const std::string& code) {
    const size_t begin = code.rfind('\n') == std::string::npos ? 0 : code.rfind('\n') + 1;
    return static_cast<size_t>(
        std::count_if(code.begin() + static_cast<std::ptrdiff_t>(begin), code.end(),
                      [](char c) { return (static_cast<unsigned char>(c) & 0xC0u) != 0x80u; }));
  }

  std::string_view text_;
  const std::vector<LayoutToken>& tokens_;
  std::vector<bool> broken_;     // [token] of braces
  std::vector<bool> forced_;     // [token] a line begins here, because the one before was too long
  std::vector<size_t> partner_;  // [token] of an opening brace: its closing one
  std::vector<size_t> column_;   // [token] where it stands in its line
  std::vector<Line> lines_;
  Line line_;
  bool open_ = false;                  // a line has begun
  size_t line_indent_ = 0;             // of the line that is being written
  std::vector<size_t> block_indents_;  // of the items in the broken blocks around
  bool inside_item_ = false;           // a line that begins now continues something
};

}  // namespace

std::optional<std::string> format_file(const source::SourceMap& map, source::FileId file,
                                       const parse::Limits& limits, diag::Sink& sink) {
  const auto tokens = parse::layout_tokens(map, file, limits, sink);
  if (!tokens) return std::nullopt;
  std::string out = Layout(map.text(file), *tokens).run();
  // The promise of this folder, held to on every file: nothing but blanks has changed.
  source::SourceMap check;
  const source::FileId copy = check.add(std::string(map.path(file)), out);
  if (parse::token_texts(check, copy) != parse::token_texts(map, file)) {
    sink.report(diag::Id::kParserInternal, {file, 0, 0},
                "internal error of the formatter: the layout would change what the file says");
    return std::nullopt;
  }
  return out;
}

}  // namespace reflex::format

// Diagnostics as text: a GCC style first line (editors and CI match it), the excerpt with a caret
// range, notes, help. Pure function of its arguments.
#include <algorithm>

#include "compiler/diag/diagnostic.h"

namespace reflex::diag {
namespace {

// Why: a terminal line; a longer source line (generated packs) is cut around the caret.
constexpr size_t kExcerptColumnsMax = 160;

constexpr std::string_view kBold = "\x1b[1m";
constexpr std::string_view kRed = "\x1b[1;31m";
constexpr std::string_view kYellow = "\x1b[1;33m";
constexpr std::string_view kCyan = "\x1b[1;36m";
constexpr std::string_view kGreen = "\x1b[1;32m";
constexpr std::string_view kReset = "\x1b[0m";

std::string_view color_of(Severity severity) {
  switch (severity) {
    case Severity::kNote:
      return kCyan;
    case Severity::kWarning:
      return kYellow;
    case Severity::kError:
      return kRed;
  }
  return kRed;
}

class TextRenderer {
 public:
  TextRenderer(const source::SourceMap& map, const RenderOptions& options)
      : map_(map), options_(options) {}

  void add(const Diagnostic& d) {
    head(&d.span, d.severity, d.message + " [" + to_text(d.id) + "]");
    excerpt(d.span);
    for (const Note& note : d.notes) {
      head(note.span ? &*note.span : nullptr, Severity::kNote, note.message);
      if (note.span) {
        excerpt(*note.span);
      }
    }
    if (!d.help.empty()) {
      out_ += paint(kGreen, "help") + ": " + d.help + "\n";
    }
  }
  void line(const std::string& text) { out_ += text + "\n"; }
  std::string take() { return std::move(out_); }

 private:
  std::string paint(std::string_view color, std::string_view text) const {
    if (!options_.color) {
      return std::string(text);
    }
    return std::string(color) + std::string(text) + std::string(kReset);
  }

  void head(const source::Span* span, Severity severity, const std::string& message) {
    if (span != nullptr) {
      const source::LineColumn at = map_.locate(span->file, span->begin);
      out_ += paint(kBold, std::string(map_.path(span->file)) + ":" + std::to_string(at.line) +
                               ":" + std::to_string(at.column) + ":");
      out_ += " ";
    }
    out_ += paint(color_of(severity), word_of(severity)) + ": " + message + "\n";
  }

  /// The first line of the span with `^~~~` below it. Tabs are kept in the caret line, so that it
  /// stays aligned whatever the width of a tab is.
  void excerpt(const source::Span& span) {
    const source::LineColumn at = map_.locate(span.file, span.begin);
    const std::string_view text = map_.line(span.file, at.line);
    if (text.empty()) {
      return;
    }
    const size_t line_begin = static_cast<size_t>(text.data() - map_.text(span.file).data());
    const size_t begin = std::min<size_t>(span.begin - line_begin, text.size());
    const size_t end = std::min<size_t>(std::max(span.end, span.begin) - line_begin, text.size());
    const auto [cut_begin, cut_end] = window(text, begin);
    std::string shown, marks;
    for (size_t i = cut_begin; i < cut_end; ++i) {
      const bool control = static_cast<unsigned char>(text[i]) < 0x20 && text[i] != '\t';
      shown += control ? '?' : text[i];
      const bool continuation = (static_cast<unsigned char>(text[i]) & 0xC0u) == 0x80u;
      if (continuation || (i >= end && i > begin)) {
        continue;
      }
      marks += i < begin ? (text[i] == '\t' ? '\t' : ' ') : (i == begin ? '^' : '~');
    }
    if (begin >= cut_end) {
      marks += '^';  // a place behind the last character of the line
    }
    const std::string number = std::to_string(at.line);
    out_ += " " + number + " | " + shown + "\n";
    out_ += " " + std::string(number.size(), ' ') + " | " + paint(kGreen, marks) + "\n";
  }

  static std::pair<size_t, size_t> window(std::string_view text, size_t begin) {
    if (text.size() <= kExcerptColumnsMax) {
      return {0, text.size()};
    }
    const auto on_border = [&](size_t i) {
      while (i < text.size() && (static_cast<unsigned char>(text[i]) & 0xC0u) == 0x80u) {
        ++i;
      }
      return i;
    };
    const size_t half = kExcerptColumnsMax / 2;
    const size_t from = begin > half ? on_border(begin - half) : 0;
    return {from, on_border(std::min(text.size(), from + kExcerptColumnsMax))};
  }

  const source::SourceMap& map_;
  const RenderOptions& options_;
  std::string out_;
};

}  // namespace

std::string render_text(const std::vector<Diagnostic>& diagnostics, const source::SourceMap& map,
                        const RenderOptions& options) {
  TextRenderer renderer(map, options);
  size_t errors = 0;
  for (const Diagnostic& d : diagnostics) {
    const bool is_error = d.severity == Severity::kError;
    errors += is_error ? 1 : 0;
    if (!is_error || errors <= options.errors_max) {
      renderer.add(d);
    }
  }
  if (errors > options.errors_max) {
    const size_t hidden = errors - options.errors_max;
    renderer.line(std::to_string(hidden) + (hidden == 1 ? " more error" : " more errors"));
  }
  return renderer.take();
}

}  // namespace reflex::diag

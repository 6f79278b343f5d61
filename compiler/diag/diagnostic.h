// Diagnostics: what a rule author is told. Data only; rendering is in render_text / render_json.
//
// Every diagnostic has an id from diagnostics.def (R1xx names/types, R2xx lint, R3xx semantics,
// R4xx limits, R5xx pack/version, R9xx internal), a primary span, notes, and where possible a help
// line that says what to write. Ids are never reused.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/source/source_map.h"

namespace reflex::diag {

enum class Severity : uint8_t { kNote, kWarning, kError };
/// "note", "warning", "error": also the levels of SARIF.
std::string_view word_of(Severity severity);

enum class Id : uint16_t {
#define RFX_DIAGNOSTIC(id, number, severity, title, bad, good) id = number,
#include "compiler/diag/diagnostics.def"
#undef RFX_DIAGNOSTIC
};

/// A row of the table: what `reflex help R105` prints.
struct IdInfo {
  Id id;
  Severity severity;
  std::string_view title;
  std::string_view bad;   // an example that triggers it
  std::string_view good;  // how to write it
};
const IdInfo& info(Id id);
const std::vector<IdInfo>& all_ids();
std::optional<Id> parse_id(std::string_view text);  // "R105"
std::string to_text(Id id);                         // "R105"

struct Note {
  std::optional<source::Span> span;
  std::string message;
};

struct Fix {
  source::Span range;
  std::string new_text;
  bool safe = true;
};

struct Diagnostic {
  Id id;
  Severity severity;
  source::Span span;
  std::string message;  // lower case, what is wrong first
  std::vector<Note> notes;
  std::string help;  // "did you mean 'temp_hot'?"
  std::vector<Fix> fixes;
};

/// What an `# allow` comment silenced, with the reason that stands in the comment.
struct Suppressed {
  Diagnostic diagnostic;
  std::string reason;
};

/// Collects; sorts by place; drops exact repeats. Not thread-safe.
class Sink {
 public:
  /// Adds a diagnostic with the severity of its table row; the reference allows adding notes.
  Diagnostic& report(Id id, source::Span span, std::string message);
  /// Keeps a silenced diagnostic for forms that tell of it (SARIF); it counts nowhere else.
  Diagnostic& suppress(Id id, source::Span span, std::string message, std::string reason);
  [[nodiscard]] bool has_errors() const { return error_count_ > 0; }
  [[nodiscard]] size_t error_count() const { return error_count_; }
  [[nodiscard]] size_t warning_count() const;
  /// Sorted by (file, offset, id), exact repeats removed.
  [[nodiscard]] std::vector<Diagnostic> sorted() const;
  [[nodiscard]] const std::vector<Diagnostic>& all() const { return diagnostics_; }
  /// Sorted by (file, offset, id).
  [[nodiscard]] std::vector<Suppressed> suppressed() const;

 private:
  std::vector<Diagnostic> diagnostics_;
  std::vector<Suppressed> suppressed_;
  size_t error_count_ = 0;
};

/// The closest candidate by edit distance, when it is close enough to be a likely typo.
std::optional<std::string> did_you_mean(std::string_view wrong,
                                        const std::vector<std::string>& candidates);

// Why: more than a screen of errors is not read; the first ones are the causes.
constexpr size_t kErrorsShownMax = 20;
struct RenderOptions {
  bool color = false;
  size_t errors_max = kErrorsShownMax;  // then "n more"
};
/// GCC style: `file:line:col: error: message [R105]`, excerpt with caret range, notes, help.
std::string render_text(const std::vector<Diagnostic>& diagnostics, const source::SourceMap& map,
                        const RenderOptions& options);
/// One JSON object a line (language.md B3); the same cap as in the text form.
std::string render_json(const std::vector<Diagnostic>& diagnostics, const source::SourceMap& map,
                        size_t errors_max = kErrorsShownMax);

/// What a SARIF log says of the run besides its results.
struct SarifRun {
  std::string tool_version;
  int exit_code = 0;
};
/// One SARIF 2.1.0 log: every diagnostic (no cap), what was suppressed in the source, fixes.
std::string render_sarif(const std::vector<Diagnostic>& diagnostics,
                         const std::vector<Suppressed>& suppressed, const source::SourceMap& map,
                         const SarifRun& run);
/// Workflow commands of GitHub Actions, one a line: `::error file=..,line=..,title=R105::message`.
std::string render_github(const std::vector<Diagnostic>& diagnostics,
                          const source::SourceMap& map, size_t errors_max = kErrorsShownMax);

}  // namespace reflex::diag

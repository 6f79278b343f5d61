// Sink: collects diagnostics and hands them out sorted by place without exact repeats.
#include <algorithm>
#include <tuple>

#include "compiler/diag/diagnostic.h"

namespace reflex::diag {
namespace {

auto order(const Diagnostic& d) {
  return std::tie(d.span.file, d.span.begin, d.id, d.span.end, d.message);
}

}  // namespace

Diagnostic& Sink::report(Id id, source::Span span, std::string message) {
  Diagnostic d;
  d.id = id;
  d.severity = info(id).severity;
  d.span = span;
  d.message = std::move(message);
  error_count_ += d.severity == Severity::kError ? 1 : 0;
  diagnostics_.push_back(std::move(d));
  return diagnostics_.back();
}

Diagnostic& Sink::suppress(Id id, source::Span span, std::string message, std::string reason) {
  Suppressed s;
  s.diagnostic.id = id;
  s.diagnostic.severity = info(id).severity;
  s.diagnostic.span = span;
  s.diagnostic.message = std::move(message);
  s.reason = std::move(reason);
  suppressed_.push_back(std::move(s));
  return suppressed_.back().diagnostic;
}

std::vector<Suppressed> Sink::suppressed() const {
  std::vector<Suppressed> result = suppressed_;
  std::stable_sort(result.begin(), result.end(), [](const Suppressed& a, const Suppressed& b) {
    return order(a.diagnostic) < order(b.diagnostic);
  });
  return result;
}

size_t Sink::warning_count() const {
  return static_cast<size_t>(
      std::count_if(diagnostics_.begin(), diagnostics_.end(),
                    [](const Diagnostic& d) { return d.severity == Severity::kWarning; }));
}

std::vector<Diagnostic> Sink::sorted() const {
  std::vector<Diagnostic> result = diagnostics_;
  std::stable_sort(result.begin(), result.end(),
                   [](const Diagnostic& a, const Diagnostic& b) { return order(a) < order(b); });
  const auto same = [](const Diagnostic& a, const Diagnostic& b) { return order(a) == order(b); };
  result.erase(std::unique(result.begin(), result.end(), same), result.end());
  return result;
}

}  // namespace reflex::diag

// The table of diagnostic ids (diagnostics.def) as data: `reflex help R105`, id <-> text.
#include "compiler/diag/diagnostic.h"

#include <charconv>

#include "runtime/base/check.h"

namespace reflex::diag {

const std::vector<IdInfo>& all_ids() {
  static const std::vector<IdInfo> kTable = {
#define RFX_DIAGNOSTIC(id, number, severity, title, bad, good) \
  IdInfo{Id::id, Severity::severity, title, bad, good},
#include "compiler/diag/diagnostics.def"
#undef RFX_DIAGNOSTIC
  };
  return kTable;
}

std::string_view word_of(Severity severity) {
  switch (severity) {
    case Severity::kNote:
      return "note";
    case Severity::kWarning:
      return "warning";
    case Severity::kError:
      return "error";
  }
  return "error";
}

const IdInfo& info(Id id) {
  for (const IdInfo& row : all_ids()) {
    if (row.id == id) {
      return row;
    }
  }
  RFX_CHECK(false && "a diagnostic id without a row");
  return all_ids().front();
}

std::optional<Id> parse_id(std::string_view text) {
  if (text.size() != 4 || (text[0] != 'R' && text[0] != 'r')) {
    return std::nullopt;
  }
  unsigned number = 0;
  const char* end = text.data() + text.size();
  const auto result = std::from_chars(text.data() + 1, end, number);
  if (result.ec != std::errc() || result.ptr != end) {
    return std::nullopt;
  }
  for (const IdInfo& row : all_ids()) {
    if (static_cast<unsigned>(row.id) == number) {
      return row.id;
    }
  }
  return std::nullopt;
}

std::string to_text(Id id) { return "R" + std::to_string(static_cast<unsigned>(id)); }

}  // namespace reflex::diag

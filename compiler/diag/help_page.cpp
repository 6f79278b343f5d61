// Help pages in their two forms; see help_page.h.
#include "compiler/diag/help_page.h"

namespace reflex::diag {
namespace {

// Why: a terminal line; code examples are not broken.
constexpr size_t kColumns = 96;

struct HelpRow {
  Id id;
  HelpText text;
};

const std::vector<HelpRow>& rows() {
  static const std::vector<HelpRow> kRows = {
#define RFX_HELP(id, cause, fix) HelpRow{Id::id, {cause, fix}},
#include "compiler/diag/help.def"
#undef RFX_HELP
  };
  return kRows;
}

std::string wrapped(std::string_view text) {
  std::string out;
  size_t column = 0;
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    const bool breaks = column > 0 && column + 1 + end > kColumns;
    if (column > 0) out += breaks ? "\n" : " ";
    column = (breaks || column == 0 ? 0 : column + 1) + end;
    out += text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out + "\n";
}

std::string_view group_of(unsigned number) {
  switch (number / 100) {
    case 1:
      return "R1xx Names and types";
    case 2:
      return "R2xx Lint";
    case 3:
      return "R3xx Semantics";
    case 4:
      return "R4xx Limits";
    case 5:
      return "R5xx Packs and versions";
    default:
      return "R9xx Internal";
  }
}

}  // namespace

HelpText help_text(Id id) {
  for (const HelpRow& row : rows()) {
    if (row.id == id) return row.text;
  }
  return {};
}

std::string render_help(Id id) {
  const IdInfo& row = info(id);
  const HelpText text = help_text(id);
  std::string out = to_text(id) + " (" + std::string(word_of(row.severity)) +
                    "): " + std::string(row.title) + "\n\n" + wrapped(text.cause);
  if (!row.bad.empty()) out += "\n  wrong:  " + std::string(row.bad) + "\n";
  if (!row.good.empty()) out += "  right:  " + std::string(row.good) + "\n";
  return out + "\n" + wrapped(text.fix);
}

std::string diagnostics_reference() {
  std::string out =
      "# Diagnostics\n\nGenerated from `compiler/diag/diagnostics.def` and `help.def` by `reflex "
      "help --reference diagnostics`; a test compares.\n`reflex help R105` prints one page. Ids "
      "are "
      "never reused.\n";
  std::string_view group;
  for (const IdInfo& row : all_ids()) {
    const auto number = static_cast<unsigned>(row.id);
    if (group_of(number) != group) {
      group = group_of(number);
      out += "\n## " + std::string(group) + "\n";
    }
    const HelpText text = help_text(row.id);
    out += "\n### " + to_text(row.id) + "\n\n" + std::string(word_of(row.severity)) + ": " +
           std::string(row.title) + ". " + std::string(text.cause) + "\n";
    if (!row.bad.empty()) {
      out += "\n    wrong:  " + std::string(row.bad) + "\n";
      if (!row.good.empty()) out += "    right:  " + std::string(row.good) + "\n";
    }
    out += "\n" + std::string(text.fix) + "\n";
  }
  return out;
}

}  // namespace reflex::diag

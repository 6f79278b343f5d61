// Renders a verdict: one NDJSON object (B8), text for a terminal, Markdown for a ticket, a page.
//
// Contract: a verdict is all that is needed. Deterministic: numbers by shortest round trip, times
// RFC 3339 UTC. `timing` stands apart and is only written when asked for. Names come from logs and
// are hostile until escaped: every rendering does that for its own form.
// Not here: how a verdict comes about (runtime/attribution); why something did not (why_not.h).
#pragma once

#include <string>
#include <string_view>

#include "runtime/abi/verdict.h"
#include "runtime/base/result.h"

namespace reflex::explain {

std::string to_json(const abi::Verdict& verdict, bool with_timing);
/// Reads back what to_json wrote (input of `reflex explain`).
Result<abi::Verdict> from_json(std::string_view line);
/// For the engineer on call: the answer, why in at most 8 lines, what to do, what would change it.
std::string to_brief(const abi::Verdict& verdict, bool color);
/// The brief, then every hypothesis with its contributions.
std::string to_text(const abi::Verdict& verdict, bool color);
std::string to_markdown(const abi::Verdict& verdict);
/// One self-contained page: no script, nothing loaded from anywhere, readable without colour.
std::string to_html(const abi::Verdict& verdict);
/// One line for the table that `run` prints on a terminal.
std::string to_table_row(const abi::Verdict& verdict, bool color);
std::string table_header(bool color);

}  // namespace reflex::explain

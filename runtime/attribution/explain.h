// Renders a verdict: one NDJSON object (B8), text for a terminal, Markdown for a ticket.
//
// Deterministic: numbers by shortest round trip, times RFC 3339 UTC. `timing` stands apart and is
// only written when asked for.
#pragma once

#include <string>
#include <string_view>

#include "runtime/abi/verdict.h"
#include "runtime/base/result.h"

namespace reflex::attribution {

std::string to_json(const abi::Verdict& verdict, bool with_timing);
/// Reads back what to_json wrote (input of `reflex explain`).
Result<abi::Verdict> from_json(std::string_view line);
std::string to_text(const abi::Verdict& verdict, bool color);
std::string to_markdown(const abi::Verdict& verdict);
/// One line for the table that `run` prints on a terminal.
std::string to_table_row(const abi::Verdict& verdict, bool color);
std::string table_header(bool color);

}  // namespace reflex::attribution

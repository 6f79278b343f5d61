// Escape: text from logs made harmless for the form it is written in.
//
// Node names and event ids are what somebody's log said: they may hold markup, terminal controls
// or broken UTF-8. Nothing of a verdict is written to HTML or a terminal without one of these.
#pragma once

#include <string>
#include <string_view>

#include "runtime/abi/verdict.h"

namespace reflex::explain {

/// For HTML text and double-quoted attributes: & < > " ' as references, control characters as a
/// space, malformed UTF-8 as U+FFFD. Characters that turn the writing direction are dropped.
std::string html(std::string_view text);

/// Without control characters (each becomes '?') and line breaks: for a terminal.
std::string printable(std::string_view text);
/// The same verdict with every text made printable.
abi::Verdict printable(abi::Verdict verdict);

/// At most `width` characters, the middle left out: "std.nvi...xid_48".
std::string shortened(std::string_view text, size_t width);

}  // namespace reflex::explain

// Story: what a person is told first, the same words in text, Markdown and on the page.
//
// Plain text without escapes or colour; each rendering escapes it for its own form.
#pragma once

#include <string>
#include <vector>

#include "runtime/abi/verdict.h"

namespace reflex::explain {

/// The hypothesis that the answer rests on; null when none of the listed ones does.
const abi::Hypothesis* lead(const abi::Verdict& verdict);

/// The answer in one sentence: who, what, how sure, and the strongest reason.
std::string sentence(const abi::Verdict& verdict);

/// What to do next, one step a line: the remedies of the culprits, or where to look instead.
std::vector<std::string> next_steps(const abi::Verdict& verdict);

/// "without xid_48 on n3/5: none (no smaller set does it)".
std::vector<std::string> changes(const abi::Verdict& verdict);

/// "double_bit fired on n3/5, 20s before the opening, 3 times, 4 against 2 (profile.x)".
std::string reason(const abi::Contribution& c, int64_t opened_ns);

/// What stands behind the numbers of a contribution: "p 0.9, leak 1e-05 (author), x0.8 (model)".
std::string numbers(const abi::Contribution& c);

/// "xid_48" of "std.nvidia.xid_48": the place of the rule stands beside it.
std::string short_name(const std::string& name);
std::string place(const abi::SourceRef& where);
std::string event_text(const abi::EventRefText& e);
std::string percent(double p);
std::string nats_text(double nats);

}  // namespace reflex::explain

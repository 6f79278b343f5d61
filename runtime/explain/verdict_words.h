// Words of the verdict's enums as JSON, text and tests spell them. One place for both directions.
#pragma once

#include <optional>
#include <string_view>

#include "runtime/abi/verdict.h"

namespace reflex::explain {

std::string_view word(abi::SignalState state);
std::string_view word(abi::Hypothesis::What what);
std::string_view word(abi::Answer answer);
std::optional<abi::SignalState> signal_state(std::string_view word);
std::optional<abi::Hypothesis::What> what(std::string_view word);
std::optional<abi::Answer> answer(std::string_view word);

/// "n3, n5 confirmed", "external tor_switch on t1", "none".
std::string headline(const abi::Verdict& verdict);
/// "gpu_memory on n3/5", "tor_switch on tor t1", "no faulty node".
std::string title(const abi::Hypothesis& h);
/// "1.2s", "-4m" relative to the opening; "-" when unknown.
std::string offset_text(int64_t ts_ns, int64_t opened_ns);
/// "81 against 80 (profile.hot)"; "" when there is no value.
std::string value_text(const abi::Contribution& c);
std::string number_text(double v);

}  // namespace reflex::explain

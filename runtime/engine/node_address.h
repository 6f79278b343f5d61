// node_address: the spellings of one network address are one text.
//
// "10.0.0.5", "10.0.0.5:29500", "10.0.0.5<37948>", "::ffff:10.0.0.5", "10.0.0.5/24" are 10.0.0.5;
// "[fe80::1%ib0]:29500" is fe80::1. Nothing for what is no address (a host name, a number).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace reflex::engine {

std::optional<std::string> node_address(std::string_view text);

}  // namespace reflex::engine

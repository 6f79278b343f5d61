// reflex.toml(5), made from the table of keys: what `reflex config manual` prints.
#pragma once

#include <string>
#include <string_view>

namespace reflex::serve {

std::string config_manual();

/// Text as roff shows it: no control lines, no escapes, hyphens that are not broken.
std::string roff_text(std::string_view text);

}  // namespace reflex::serve

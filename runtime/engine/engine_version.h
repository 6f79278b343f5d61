// The engine's own version, as packs require it and verdicts record it.
#pragma once

#include <string_view>

namespace reflex::engine {
inline constexpr std::string_view kEngineVersion = "1.0.0";
}

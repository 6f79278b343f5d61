// What a parser of TOML says, with the step that mends it: of reflex.toml and packs.toml.
#pragma once

#include <string>
#include <string_view>

#include "runtime/base/result.h"

namespace reflex::serve {

/// `line` 0: the file could not be read at all. Else the line of the file is looked at: most are
/// texts without quotes, of which the parser only says which kind of number they are not.
Error toml_error(const std::string& file, unsigned line, std::string_view what);

}  // namespace reflex::serve

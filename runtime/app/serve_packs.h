// The compiler as the daemon's source of packs.
#pragma once

#include <string>

#include "runtime/serve/pack_source.h"

namespace reflex::app {

/// `backend`: jit or interp.
serve::PackSource serve_packs(const std::string& backend);

}  // namespace reflex::app

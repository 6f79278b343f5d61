// The compiler as the daemon's source of packs.
#pragma once

#include <string>

#include "runtime/serve/pack_source.h"

namespace reflex::app {

/// `backend`: jit or interp. What it gives keeps what it compiled for its next call.
serve::PackSource serve_packs(const std::string& backend);

}  // namespace reflex::app

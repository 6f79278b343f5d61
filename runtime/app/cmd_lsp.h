// `reflex lsp`; see commands.h.
#pragma once

#include "runtime/app/commands.h"

namespace reflex::app {

Command add_lsp(CLI::App& app, const CommonFlags& common);

}  // namespace reflex::app

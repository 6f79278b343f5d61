// `reflex config check`: what is wrong with a reflex.toml, before a daemon is started with it.
//
// Contract: reads what the daemon reads, as it does (sources and sinks are made by the daemon's own
// functions over a scratch folder, never started); opens no address, changes nothing. Each problem
// is a line PLACE: CAUSE; FIX.
#pragma once

#include <string>
#include <vector>

#include "runtime/serve/config.h"

namespace reflex::app {

std::vector<std::string> check_config(const serve::Config& config);

}  // namespace reflex::app

// What is wrong with a configuration, before anything is started with it: `reflex config check`, and
// the first thing that `reflex serve` does.
//
// Contract: what is wrong with values is known from reading them (serve/config.h); here comes what
// can only be seen from outside. Reads what the daemon reads, as it does (sources and sinks are made
// by the daemon's own functions over a scratch folder, never started); opens no address, changes
// nothing. Each problem is a line PLACE: CAUSE; FIX.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/serve/config.h"

namespace reflex::app {

enum class CheckedFor : uint8_t {
  kReport,  // everything
  kStart,   // all but packs: without good ones a daemon runs with its copy of the last set
};

/// The problems of reading included.
std::vector<std::string> check_config(const serve::ReadConfig& read, CheckedFor what);

}  // namespace reflex::app

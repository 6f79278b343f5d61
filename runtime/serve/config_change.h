// What a changed reflex.toml changes in a daemon that runs: at a reload some keys come into force,
// the others are named, since they need a restart.
//
// Live are: what the set is made of (packs.*, but for the backend), packs.watch, snapshot.interval,
// store.keep and store.max. Sources, sinks, addresses, folders and limits are not.
#pragma once

#include <string>
#include <vector>

#include "runtime/serve/config.h"

namespace reflex::serve {

/// Whether a reload brings a changed value of the key into force.
bool is_live_key(std::string_view key);

/// Keys whose values differ, in the order of the keys; of the tables: "sources", "sinks".
std::vector<std::string> changed_keys(const Config& before, const Config& after);

/// `before` with the values that `after` has of the live keys.
Config with_live_keys(const Config& before, const Config& after);

}  // namespace reflex::serve

// --config and --set, and the environment: what `serve`, `config` and the client commands share.
#pragma once

#include <string>
#include <vector>

#include "runtime/app/commands.h"
#include "runtime/serve/config.h"

namespace reflex::app {

struct ConfigFlags {
  std::string file;
  std::vector<std::string> set;  // KEY=VALUE
};

/// Read when no other is named and it is there; the package installs it.
inline constexpr const char* kStandardConfig = "/etc/reflex/reflex.toml";

void add_config_options(CLI::App& sub, ConfigFlags& flags);
/// What load_config reads: that of --config, else kStandardConfig when it is there, else "".
std::string config_file(const ConfigFlags& flags);
/// As serve::read_config and load_config, with these flags and the environment of this process.
Result<serve::ReadConfig> read_config(const ConfigFlags& flags);
Result<serve::Config> load_config(const ConfigFlags& flags);

}  // namespace reflex::app

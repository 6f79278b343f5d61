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

void add_config_options(CLI::App& sub, ConfigFlags& flags);
/// Without --config: /etc/reflex/reflex.toml when it is there.
Result<serve::Config> load_config(const ConfigFlags& flags);

}  // namespace reflex::app

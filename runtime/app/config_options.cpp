// See config_options.h.
#include "runtime/app/config_options.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <string_view>

namespace reflex::app {

void add_config_options(CLI::App& sub, ConfigFlags& flags) {
  sub.add_option("-c,--config", flags.file, "reflex.toml (default: /etc/reflex/reflex.toml)");
  sub.add_option("--set", flags.set, "KEY=VALUE: over the file and the environment");
}

std::string config_file(const ConfigFlags& flags) {
  if (!flags.file.empty()) return flags.file;
  std::error_code none;
  return std::filesystem::exists(kStandardConfig, none) ? kStandardConfig : "";
}

namespace {

Result<serve::ConfigRequest> request_of(const ConfigFlags& flags) {
  serve::ConfigRequest request;
  request.file = config_file(flags);
  for (const auto& pair : flags.set) {
    const size_t eq = pair.find('=');
    if (eq == std::string::npos || eq == 0) {
      return Error{fmt::format("--set wants KEY=VALUE, got '{}'", pair)};
    }
    request.flags.emplace_back(pair.substr(0, eq), pair.substr(eq + 1));
  }
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const size_t eq = text.find('=');
    if (!text.starts_with("REFLEX_") || eq == std::string_view::npos) continue;
    request.environment.emplace(text.substr(0, eq), text.substr(eq + 1));
  }
  return request;
}

}  // namespace

Result<serve::ReadConfig> read_config(const ConfigFlags& flags) {
  auto request = request_of(flags);
  if (!request.ok()) return request.error();
  return serve::read_config(request.value());
}

Result<serve::Config> load_config(const ConfigFlags& flags) {
  auto request = request_of(flags);
  if (!request.ok()) return request.error();
  return serve::load_config(request.value());
}

}  // namespace reflex::app

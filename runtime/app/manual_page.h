// reflex(1) as roff.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace reflex::app {

std::string manual_page(const CLI::App& app);

}  // namespace reflex::app

// packs.toml: the list of what to load; see set_loader.h.
#include <fmt/format.h>

#include <filesystem>

#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

#include "runtime/serve/config_toml_error.h"
#include "runtime/serve/set_loader.h"

namespace reflex::serve {

namespace fs = std::filesystem;

/// [0] packs and overlays, [1] profiles.
Result<std::vector<std::vector<std::string>>> read_manifest(const std::string& path,
                                                            std::string& sha256) {
  const toml::parse_result parsed = toml::parse_file(path);
  if (!parsed) {
    const auto& error = parsed.error();
    return toml_error(path, error.source().begin.line, error.description());
  }
  std::vector<std::vector<std::string>> out(2);
  for (const auto& [name, node] : parsed.table()) {
    const std::string_view key = name.str();
    const auto wrong = [&](std::string_view wanted) {
      return Error{fmt::format("{}:{}: '{}' {}", path, node.source().begin.line, key, wanted)};
    };
    if (key == "sha256") {
      const auto* text = node.as_string();
      if (text == nullptr) return wrong("wants a text");
      sha256 = text->get();
      continue;
    }
    if (key != "packs" && key != "overlays" && key != "profiles") {
      return wrong("is not known; there are packs, overlays, profiles and sha256");
    }
    const auto* list = node.as_array();
    if (list == nullptr) return wrong("wants a list of paths");
    for (const auto& item : *list) {
      const auto* text = item.as_string();
      if (text == nullptr) return wrong("wants a list of paths");
      out[key == "profiles" ? 1 : 0].push_back(
          (fs::absolute(path).parent_path() / text->get()).lexically_normal().string());
    }
  }
  if (out[0].empty()) return Error{path + ": it names no packs"};
  return out;
}

}  // namespace reflex::serve

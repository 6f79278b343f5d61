// Comparing two configurations: see config_change.h.
#include "runtime/serve/config_change.h"

#include <algorithm>
#include <array>

namespace reflex::serve {
namespace {

constexpr std::array<std::string_view, 10> kLive{
    "packs.paths",       "packs.manifest", "packs.profiles",    "packs.model", "packs.history",
    "packs.inventories", "packs.watch",    "snapshot.interval", "store.keep",  "store.max"};

bool same(const ConfigTable& a, const ConfigTable& b, const std::vector<KeySpec>& keys) {
  return std::all_of(keys.begin(), keys.end(),
                     [&](const KeySpec& k) { return a.texts(k.key) == b.texts(k.key); });
}

bool same(const std::vector<ConfigTable>& a, const std::vector<ConfigTable>& b,
          const std::vector<KeySpec>& keys) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [&](const ConfigTable& x, const ConfigTable& y) { return same(x, y, keys); });
}

}  // namespace

bool is_live_key(std::string_view key) {
  return std::find(kLive.begin(), kLive.end(), key) != kLive.end();
}

std::vector<std::string> changed_keys(const Config& before, const Config& after) {
  std::vector<std::string> changed;
  for (const KeySpec& spec : config_keys()) {
    if (before.main.texts(spec.key) != after.main.texts(spec.key)) {
      changed.emplace_back(spec.key);
    }
  }
  if (!same(before.sources, after.sources, source_keys())) changed.emplace_back("sources");
  if (!same(before.sinks, after.sinks, sink_keys())) changed.emplace_back("sinks");
  return changed;
}

Config with_live_keys(const Config& before, const Config& after) {
  Config out = before;
  for (const std::string_view key : kLive) {
    out.main.set(key, after.main.all().find(key)->second);
  }
  return out;
}

}  // namespace reflex::serve

// Which of the two questions is asked; see why_not.h.
#include "runtime/app/why_not.h"

#include <fmt/format.h>

#include "runtime/base/time.h"

namespace reflex::app {
namespace {

/// By full name, or by the part after the last dot when only one signal has it.
std::vector<abi::SignalId> signals_named(const abi::CompiledPack& pack, const std::string& name) {
  std::vector<abi::SignalId> out;
  for (abi::SignalId s = 0; s < pack.signals.size(); ++s) {
    const std::string& full = pack.signals[s].name;
    if (full == name) return {s};
    if (full.substr(full.rfind('.') + 1) == name) out.push_back(s);
  }
  return out;
}

}  // namespace

int why_not(const WhyNotFlags& flags, const CommonFlags& common) {
  if (flags.input.load.packs.empty() || (flags.input.events.empty() && flags.input.logs.empty())) {
    print_error(common, "--why-not runs the packs again: give --pack and --events or --log");
    return kUsage;
  }
  int64_t at_ns = INT64_MAX;
  if (!flags.at.empty()) {
    const auto t = parse_rfc3339(flags.at);
    if (!t) {
      print_error(common, fmt::format("--at: '{}' is not an RFC 3339 time", flags.at));
      return kUsage;
    }
    at_ns = t->ns;
  }
  LoadRequest load = flags.input.load;
  load.backend = "interp";  // the recording backend is the interpreter
  const Loaded loaded = load_packs(load, common);
  if (loaded.exit_code != kOk) return loaded.exit_code;
  const auto signals = signals_named(*loaded.compilation->pack, flags.subject);
  if (signals.size() > 1) {
    std::string names;
    for (const auto s : signals) names += " " + loaded.compilation->pack->signals[s].name;
    print_error(common, fmt::format("'{}' names several signals:{}", flags.subject, names));
    return kUsage;
  }
  if (signals.empty()) return why_not_node(flags, at_ns, *loaded.compilation, common);
  return why_not_signal(flags, at_ns, signals.front(), *loaded.compilation, common);
}

}  // namespace reflex::app

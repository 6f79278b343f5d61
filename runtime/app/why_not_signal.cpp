// Why a signal did not fire: near misses, the predicates with the value of every part, counts and
// features against their limits.
#include <fmt/format.h>

#include <deque>

#include "runtime/app/signal_watch.h"
#include "runtime/app/why_not.h"
#include "runtime/base/time.h"
#include "runtime/engine/engine.h"
#include "runtime/engine/inventory.h"
#include "runtime/engine/pipeline.h"
#include "runtime/explain/escape.h"
#include "runtime/explain/story.h"

namespace reflex::app {
namespace {

// Why: the last ones are asked about; the stream has the rest.
constexpr size_t kFiringsMax = 3;

}  // namespace

int why_not_signal(const WhyNotFlags& flags, int64_t at_ns, abi::SignalId signal,
                   const compiler::Compilation& compilation, const CommonFlags& common) {
  const auto fail = [&](const Error& error) {
    print_error(common, error.message);
    return error.exit_code;
  };
  const SymbolId node = flags.on.empty() ? kNoSymbol : compilation.pack->symbols->intern(flags.on);
  SignalWatch watch(compilation, signal, node,
                    [](int64_t ts_ns) { return to_rfc3339(EventTime{ts_ns}); });
  auto pack = watch.build();
  if (!pack.ok()) return fail(pack.error());
  uint64_t fired = 0;
  std::deque<int64_t> last;
  engine::EngineSinks sinks;
  sinks.verdict = [](abi::Verdict&&) {};
  sinks.firing = [&](const abi::Firing& f) {
    const auto& keys = pack.value()->entity_kinds[f.entity.kind].keys;
    const bool here =
        node == kNoSymbol || (!keys.empty() && keys[0] == "node" && f.entity.values[0] == node);
    if (f.signal != signal || f.change != abi::FiringChange::kStart || !here) return;
    ++fired;
    last.push_back(f.ts_ns);
    if (last.size() > kFiringsMax) last.pop_front();
  };
  engine::EngineOptions options;
  options.near_misses = true;
  auto created = engine::Engine::create(pack.value(), options, std::move(sinks));
  if (!created.ok()) return fail(created.error());
  engine::Engine& running = *created.value();
  for (const auto& path : flags.input.inventories) {
    auto summary = engine::load_inventory(path, *pack.value()->symbols, running.topology());
    if (!summary.ok()) return fail(summary.error());
  }
  auto pipeline = pipeline_options(flags.input);
  if (!pipeline.ok()) return fail(pipeline.error());
  pipeline.value().until_ns = at_ns;
  auto summary = engine::run_pipeline(pack.value(), running, pipeline.value(), {});
  if (!summary.ok()) return fail(summary.error());

  const auto& plan = pack.value()->signals[signal];
  fmt::print("{} {}{}{} ({})\n", plan.name,
             fired == 0 ? "did not fire" : fmt::format("fired {} times", fired),
             flags.on.empty() ? "" : " on " + explain::printable(flags.on),
             at_ns == INT64_MAX ? "" : " up to " + flags.at, explain::place(plan.where));
  for (const int64_t t : last) fmt::print("  fired at {}\n", to_rfc3339(EventTime{t}));
  fmt::print("{}", watch.report(running.near_misses()));
  return kOk;
}

}  // namespace reflex::app

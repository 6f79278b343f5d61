// Running a script and judging it: see test_runner.h.
#include "runtime/app/test_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <random>
#include <set>

#include "runtime/app/signal_watch.h"
#include "runtime/app/test_coverage.h"
#include "runtime/app/test_expect.h"
#include "runtime/app/test_script.h"
#include "runtime/explain/explain.h"
#include "runtime/engine/engine.h"
#include "runtime/engine/inventory_names.h"
#include "runtime/stream/log_decoder.h"
#include "runtime/stream/reorder.h"

namespace reflex::app {
namespace {

struct Arrival {
  int64_t at_ns = 0;
  const ScriptItem* item = nullptr;
};

struct Variant {
  std::string name;
  std::vector<Arrival> arrivals;
  unsigned threads = 1;
  bool one_by_one = true;  // release after every item, or only at the end
  /// After each of so many parts of the arrivals the test goes on from a saved state, in a new engine.
  size_t restores = 0;
  unsigned restored_threads = 1;
};

std::vector<Arrival> in_order(const Script& script) {
  std::vector<Arrival> arrivals;
  for (const auto& item : script.items) arrivals.push_back({item.ts_ns + item.late_ns, &item});
  std::stable_sort(arrivals.begin(), arrivals.end(),
                   [](const Arrival& a, const Arrival& b) { return a.at_ns < b.at_ns; });
  return arrivals;
}

/// A random arrival order in which nothing is late that was not late before.
std::vector<Arrival> shuffled(const Script& script, int64_t lateness_ns, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<Arrival> arrivals;
  for (const auto& item : script.items) {
    const auto delay =
        static_cast<int64_t>(random() % static_cast<uint64_t>(std::max<int64_t>(1, lateness_ns)));
    arrivals.push_back({item.ts_ns + (item.late_ns > 0 ? item.late_ns : delay), &item});
  }
  std::stable_sort(arrivals.begin(), arrivals.end(),
                   [](const Arrival& a, const Arrival& b) { return a.at_ns < b.at_ns; });
  return arrivals;
}

class Session {
 public:
  Session(std::shared_ptr<const abi::CompiledPack> pack, const Script& script,
          std::shared_ptr<const stream::LineMatcher> patterns)
      : pack_(std::move(pack)), patterns_(std::move(patterns)), script_(script) {}

  Result<Observed> run(const Variant& variant) {
    if (auto status = begin(variant.threads); !status.ok()) return status.error();
    place();
    names_.emplace(pack_, engine_->topology());
    source_ = pack_->symbols->intern("test");
    reorder_->add_source(source_, /*is_log=*/true);  // the script's order breaks ties
    stream::Released released;
    const size_t part = variant.arrivals.size() / (variant.restores + 1) + 1;
    for (size_t i = 0; i < variant.arrivals.size(); ++i) {
      if (variant.restores > 0 && i % part == part - 1) {
        if (auto status = restore(variant.restored_threads); !status.ok()) return status.error();
      }
      reorder_->push(decode(*variant.arrivals[i].item));
      if (!variant.one_by_one) continue;
      reorder_->release(released);
      feed(released);
    }
    reorder_->finish(released);
    feed(released);
    engine_->finish();
    observed_.counters.add(reorder_->counters());
    observed_.near_misses = engine_->near_misses();
    observed_.unplaced = engine_->triggers_unplaced();
    return std::move(observed_);
  }

 private:
  Status begin(unsigned threads) {
    engine::EngineOptions options;
    options.threads = threads;
    options.near_misses = true;
    engine::EngineSinks sinks;
    sinks.verdict = [this](abi::Verdict&& v) { observed_.verdicts.push_back(std::move(v)); };
    sinks.firing = [this](const abi::Firing& f) { observed_.firings.push_back(f); };
    auto created = engine::Engine::create(pack_, options, sinks);
    if (!created.ok()) return created.error();
    engine_ = std::move(created).value();
    stream::ReorderOptions reorder_options;
    reorder_options.lateness_ns = pack_->clock.lateness_ns;
    reorder_options.idle_after_ns = pack_->clock.idle_after_ns;
    reorder_ = std::make_unique<stream::Reorder>(pack_, reorder_options);
    return ok_status();
  }

  /// As a process does that was stopped and started: all that goes on comes from the state.
  Status restore(unsigned threads) {
    StateWriter writer(*pack_->symbols);
    engine_->save(writer);
    reorder_->save(writer);
    const std::string state = writer.take();
    observed_.counters.add(reorder_->counters());
    if (auto status = begin(threads); !status.ok()) return status;
    StateReader reader(state, *pack_->symbols);
    auto loaded = engine_->load(reader);
    if (!loaded.ok()) return loaded.error();
    if (!loaded.value().notes.empty()) return Error{"a state was not taken over as a whole"};
    return reorder_->load(reader, loaded.value().notes);
  }

  void place() {
    auto& symbols = *pack_->symbols;
    for (const auto& node : script_.nodes) {
      topology::Labels labels;
      for (const auto& [key, value] : node.labels) {
        labels.emplace_back(symbols.intern(key), symbols.intern(value));
      }
      if (!node.profile.empty()) {
        labels.emplace_back(symbols.intern("reflex.profile"), symbols.intern(node.profile));
      }
      engine_->topology().set_labels(symbols.intern(node.name), kNoTimeNs + 1, std::move(labels));
    }
    for (const auto& job : script_.jobs) {
      std::vector<SymbolId> nodes;
      for (const auto& name : job.nodes) nodes.push_back(symbols.intern(name));
      engine_->topology().start_job(symbols.intern(job.name), job.start_ns, std::move(nodes));
    }
    engine_->coverage().assume_all();
    for (const auto& gap : script_.gaps) {
      std::vector<abi::KindId> kinds = kinds_of(gap.source);
      if (!gap.source.empty() && kinds.empty()) continue;  // no decoder makes anything
      engine_->coverage().add_gap(symbols.intern(gap.node), gap.from_ns, gap.to_ns,
                                  std::move(kinds));
    }
  }

  /// The kinds that a source of a gap carries; empty for all.
  [[nodiscard]] std::vector<abi::KindId> kinds_of(const std::string& source) const {
    if (source == "log") return engine_->coverage().decoded_kinds();
    std::vector<abi::KindId> kinds;
    for (abi::KindId k = 0; k < pack_->kinds.size() && !source.empty(); ++k) {
      const std::string& name = pack_->kinds[k].name;
      if (name == source || name.ends_with("." + source) || source.ends_with("." + name)) {
        kinds.push_back(k);
      }
    }
    return kinds;
  }

  stream::RecordBatch decode(const ScriptItem& item) {
    stream::RecordBatch batch;
    const auto on_reject = [this](const stream::RejectedLine& line) {
      observed_.rejects.push_back(
          fmt::format("{}: {} [{}]", stream::to_text(line.reason), line.detail, line.text));
    };
    // simdjson reads past the end; the decoders ask for 64 bytes.
    padded_.assign(item.text);
    padded_.append(64, '\0');
    const std::string_view text(padded_.data(), item.text.size());
    if (item.is_log) {
      stream::LogOptions options;
      options.year = 2026;
      options.base_ns = item.ts_ns;
      stream::LogDecoder decoder(pack_, pack_->symbols->intern(item.node), source_, options,
                                 on_reject, patterns_);
      decoder.decode(text, item.seq * kLinesPerItem, batch);
      decoder.finish(batch);
      observed_.counters.add(decoder.counters());
    } else {
      stream::NdjsonDecoder decoder(pack_, on_reject);
      decoder.decode(text, source_, item.seq * kLinesPerItem, batch);
      observed_.counters.add(decoder.counters());
    }
    names_->rename(batch);
    return batch;
  }

  void feed(const stream::Released& released) {
    engine_->count_late(released.late);
    observed_.late += released.late.size();
    if (!released.records.empty()) {
      engine_->process(released.records, released.records.back()->ts_ns);
    }
    if (released.watermark_ns < INT64_MAX && released.watermark_ns > kTestEpochNs - kNsPerDay &&
        (released.records.empty() || released.watermark_ns > released.records.back()->ts_ns)) {
      engine_->process({}, released.watermark_ns);
    }
  }

  // Why: seq orders ties; one raw text may hold many lines.
  static constexpr uint64_t kLinesPerItem = 100'000;
  std::shared_ptr<const abi::CompiledPack> pack_;
  std::shared_ptr<const stream::LineMatcher> patterns_;
  const Script& script_;
  std::unique_ptr<engine::Engine> engine_;
  std::unique_ptr<stream::Reorder> reorder_;
  std::optional<engine::InventoryNames> names_;
  SymbolId source_ = kNoSymbol;
  std::string padded_;
  Observed observed_;
};

std::string fingerprint(const abi::CompiledPack& pack, const Observed& observed) {
  std::string text;
  for (const auto& f : observed.firings) {
    text += fmt::format("{} {} {} {} {}\n", f.ts_ns, pack.signals[f.signal].name,
                        entity_text(pack, f.entity), static_cast<int>(f.change), f.onset_ns);
  }
  for (const auto& v : observed.verdicts) text += explain::to_json(v, false) + "\n";
  return text;
}

std::string first_difference(const std::string& a, const std::string& b) {
  size_t begin = 0;
  size_t i = 0;
  for (; i < std::min(a.size(), b.size()) && a[i] == b[i]; ++i) {
    if (a[i] == '\n') begin = i + 1;
  }
  const auto line = [&](const std::string& s) {
    return begin < s.size() ? s.substr(begin, std::min<size_t>(300, s.find('\n', begin) - begin))
                            : std::string("(nothing)");
  };
  return fmt::format("  in order: {}\n  variant:  {}\n", line(a), line(b));
}

std::vector<Variant> variants_of(const Script& script, int64_t lateness_ns,
                                 const TestOptions& options) {
  std::vector<Variant> variants;
  const unsigned shuffles = std::max(script.shuffles, options.matrix ? 3u : 0u);
  for (unsigned i = 0; i < shuffles; ++i) {
    const uint64_t seed = options.shuffle_seed * 1000 + i;
    variants.push_back({fmt::format("shuffle seed {}", seed), shuffled(script, lateness_ns, seed)});
  }
  if (options.matrix) {
    variants.push_back({"one batch", in_order(script), 1, false});
    variants.push_back({"2 threads", in_order(script), 2, true});
    variants.push_back({"restored midway", in_order(script), 1, true, 1, 4});
    variants.push_back({"restored 5 times", in_order(script), 4, true, 5, 1});
  }
  return variants;
}

void check_variants(const std::shared_ptr<const abi::CompiledPack>& pack, const Script& script,
                    const TestOptions& options, const Observed& base, TestOutcome& outcome) {
  const std::string expected = fingerprint(*pack, base);
  for (const auto& variant : variants_of(script, pack->clock.lateness_ns, options)) {
    auto observed = Session(pack, script, options.patterns).run(variant);
    if (!observed.ok()) {
      outcome.report += observed.error().message + "\n";
      continue;
    }
    const std::string got = fingerprint(*pack, observed.value());
    if (got == expected) continue;
    outcome.report += fmt::format("{}: error: the result depends on arrival ({})\n{}",
                                  outcome.place, variant.name, first_difference(expected, got));
    return;
  }
}

// Why: the causes of the first failures; more would bury them.
constexpr size_t kWatchedMax = 3;

/// Runs the script once more under watch: what each part of the predicates was.
std::string why_it_failed(const compiler::Compilation& compilation, const Script& script,
                          const TestOptions& options, const TestOutcome& outcome) {
  std::string text;
  std::set<std::pair<abi::SignalId, std::string>> told;
  for (const auto& suspect : outcome.suspects) {
    if (told.size() == kWatchedMax) break;
    if (!told.insert(suspect).second) continue;
    const auto& [signal, node] = suspect;
    SignalWatch watch(compilation, signal,
                      node.empty() ? kNoSymbol : compilation.pack->symbols->intern(node),
                      [](int64_t ts_ns) { return to_text(Duration{ts_ns - kTestEpochNs}); });
    auto pack = watch.build();
    if (!pack.ok()) continue;
    auto observed =
        Session(pack.value(), script, options.patterns).run({"watched", in_order(script)});
    if (!observed.ok()) continue;
    text += fmt::format("  {}{}:\n{}", compilation.pack->signals[signal].name,
                        node.empty() ? "" : " on " + node,
                        watch.report(observed.value().near_misses));
  }
  return text;
}

}  // namespace

TestOutcome run_test(const compiler::Compilation& compilation, const ast::Module& module,
                     const ast::Decl& decl, const TestOptions& options) {
  const auto started = std::chrono::steady_clock::now();
  const auto& test = std::get<ast::TestDecl>(decl.node);
  TestOutcome outcome;
  outcome.title = test.title;
  const auto at = compilation.sources.locate(module.file, decl.span.begin);
  outcome.place =
      fmt::format("{}:{}:{}", compilation.sources.path(module.file), at.line, at.column);
  auto script = build_script(test, *compilation.pack);
  if (!script.ok()) {
    outcome.report = fmt::format("{}: error: {}\n", outcome.place, script.error().message);
    return outcome;
  }
  const auto& pack = options.coverage ? options.coverage->pack() : compilation.pack;
  auto observed = Session(pack, script.value(), options.patterns)
                      .run({"in order", in_order(script.value())});
  if (!observed.ok()) {
    outcome.report = observed.error().message + "\n";
    return outcome;
  }
  if (options.coverage) options.coverage->observe(observed.value());
  judge(compilation, module, test, observed.value(), outcome);
  check_variants(compilation.pack, script.value(), options, observed.value(), outcome);
  if (outcome.expectations == 0) {
    outcome.report += fmt::format("{}: error: no expectation ran\n", outcome.place);
  }
  outcome.passed = outcome.report.empty();
  outcome.report += why_it_failed(compilation, script.value(), options, outcome);
  if (!outcome.passed || options.verbose) {
    outcome.report += timeline(*compilation.pack, observed.value(), outcome.suspects);
  }
  outcome.milliseconds =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - started).count();
  return outcome;
}

}  // namespace reflex::app

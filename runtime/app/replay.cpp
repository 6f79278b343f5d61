// Replays for learning and measuring; see replay.h.
#include "runtime/app/replay.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <set>

#include "runtime/engine/inventory.h"
#include "runtime/engine/pipeline.h"

namespace reflex::app {
namespace {

using Clock = std::chrono::steady_clock;

/// What one pass collects. The engine calls with the input of a final revision, then its verdict.
class Collector {
 public:
  Collector(const abi::CompiledPack& pack, const std::vector<learn::Label>& labels,
            const ReplayRequest& request)
      : pack_(pack), index_(labels), request_(request) {}

  void on_input(const attribution::Input& input, const abi::Verdict& verdict) {
    const learn::Label* label = index_.find(verdict.incident, verdict.job, verdict.opened_ns);
    if (!label) return;
    if (request_.input) request_.input(input, *label);
    auto& classes = classes_[label->incident];
    for (const auto& view : input.nodes) {
      const std::string name(pack_.symbols->name(view.node));
      const auto named = [&](const std::vector<std::string>& list) {
        return std::find(list.begin(), list.end(), name) != list.end();
      };
      const bool best = !verdict.nodes.empty() && verdict.nodes.front().node == name;
      if (best || named(verdict.culprits) || named(label->culprits)) {
        classes[name] = pack_.classes[view.hw_class].name;
        note_rates(input, view, name, label->incident);
      }
    }
  }

  void on_verdict(const abi::Verdict& verdict) {
    if (!verdict.final_revision) return;
    const learn::Label* label = index_.find(verdict.incident, verdict.job, verdict.opened_ns);
    if (!label) return;
    if (request_.verdict) request_.verdict(verdict);
    // Two incidents of one job may match one label: the one that carries its id, else the first.
    const bool own_id = verdict.incident == label->incident;
    const auto [it, fresh] = cases_.emplace(label->incident, backtest::Case());
    if (!fresh) shared_.insert(label->incident);
    if (fresh || own_id) it->second = backtest::make_case(*label, &verdict);
  }

  /// "3 labels match no incident of these events (inc-7, ..)", or "".
  std::vector<std::string> notes(const std::vector<learn::Label>& labels) const {
    std::vector<std::string> out;
    std::vector<std::string> lost;
    for (const auto& label : labels) {
      if (!cases_.contains(label.incident)) lost.push_back(label.incident);
    }
    const auto tell = [&](const std::vector<std::string>& which, const char* what) {
      if (which.empty()) return;
      out.push_back(fmt::format("{} {} {} ({}{})", which.size(),
                                which.size() == 1 ? "label" : "labels", what, which.front(),
                                which.size() > 1 ? ", .." : ""));
    };
    tell(lost, "without an incident in these events: counted as missed");
    tell({shared_.begin(), shared_.end()}, "with more than one incident: one counts");
    return out;
  }

  std::vector<backtest::Case> cases(const std::vector<learn::Label>& labels) {
    std::vector<backtest::Case> out;
    for (const auto& label : labels) {
      const auto it = cases_.find(label.incident);
      out.push_back(it == cases_.end() ? backtest::make_case(label, nullptr)
                                       : std::move(it->second));
      for (const auto& [node, name] : classes_[label.incident]) out.back().class_of[node] = name;
      out.back().benign_per_hour = std::move(rates_[label.incident]);
    }
    return out;
  }

 private:
  void note_rates(const attribution::Input& input, const attribution::NodeView& view,
                  const std::string& name, const std::string& incident) {
    if (!input.tables) return;
    for (const auto& evidence : input.evidence) {
      const auto& keys = pack_.entity_kinds[evidence.entity.kind].keys;
      if (keys.empty() || keys[0] != "node" || evidence.entity.values[0] != view.node) continue;
      rates_[incident][{name, evidence.signal}] =
          input.tables->benign(evidence.signal, view.hw_class, view.node).firings_per_hour;
    }
  }

  const abi::CompiledPack& pack_;
  learn::LabelIndex index_;
  const ReplayRequest& request_;
  std::map<std::string, backtest::Case> cases_;
  std::set<std::string> shared_;
  std::map<std::string, std::map<std::string, std::string>> classes_;
  std::map<std::string, decltype(backtest::Case::benign_per_hour)> rates_;
};

}  // namespace

Status History::read_labels(const std::string& path) {
  auto file = learn::read_labels(path);
  if (!file.ok()) return file.error();
  bad_lines_ = file.value().bad_lines;
  for (const auto& sample : file.value().samples) print_note(common_, sample + " (skipped)");
  if (bad_lines_ > file.value().samples.size()) {
    print_note(common_, fmt::format("{}: {} bad lines in all", path, bad_lines_));
  }
  if (const size_t n = file.value().replaced; n > 0) {
    print_note(common_, fmt::format("{}: {} {} an incident that a later line labels again; the "
                                    "last line counts",
                                    path, n, n == 1 ? "line is of" : "lines are of"));
  }
  size_t unknown = 0;
  for (auto& label : file.value().labels) {
    if (!label.truth_known || label.ts_ns == kNoTimeNs) {
      ++unknown;
      continue;
    }
    labels_.push_back(std::move(label));
  }
  if (unknown > 0) {
    print_note(common_,
               fmt::format("{}: {} labels without truth or time are left out", path, unknown));
  }
  if (labels_.empty()) return Error{fmt::format("{}: no labelled incident", path)};
  return ok_status();
}

int64_t History::split_ns(double fraction) const {
  const int64_t first = labels_.front().ts_ns;
  const auto span = static_cast<double>(labels_.back().ts_ns - first);
  return first + static_cast<int64_t>(span * fraction) + (fraction >= 1 ? 1 : 0);
}

Result<std::vector<backtest::Case>> History::replay(const ReplayRequest& request) const {
  Collector collector(*pack_, labels_, request);
  Clock::time_point chunk_began = Clock::now();
  engine::EngineOptions options;
  options.threads = flags_.threads;
  options.ablate = request.ablate;
  options.model = request.model;
  options.known = request.known;
  options.finals_only = request.finals_only;
  options.counterfactual = !request.finals_only;
  engine::EngineSinks sinks;
  sinks.verdict = [&](abi::Verdict&& v) {
    v.latency_ms = std::chrono::duration<double, std::milli>(Clock::now() - chunk_began).count();
    collector.on_verdict(v);
  };
  sinks.final_input = [&](const attribution::Input& input, const abi::Verdict& verdict) {
    collector.on_input(input, verdict);
  };
  auto created = engine::Engine::create(pack_, options, std::move(sinks));
  if (!created.ok()) return created.error();
  const std::unique_ptr<engine::Engine> engine = std::move(created).value();
  for (const auto& path : flags_.inventories) {
    auto summary = engine::load_inventory(path, *pack_->symbols, engine->topology());
    if (!summary.ok()) return summary.error();
  }
  auto pipeline = pipeline_options(flags_);
  if (!pipeline.ok()) return pipeline.error();
  pipeline.value().until_ns = request.until_ns;
  ProgressBar bar(!common_.quiet && isatty(STDERR_FILENO) != 0, request.what + "  ");
  engine::PipelineHooks hooks;
  hooks.progress = [&](const engine::Progress& p) {
    chunk_began = Clock::now();
    bar.show(p);
  };
  const auto began = Clock::now();
  auto summary = engine::run_pipeline(pack_, *engine, pipeline.value(), hooks);
  bar.clear();
  if (!summary.ok()) return summary.error();
  print_note(common_, fmt::format("{}: {} events, {} incidents, {:.1f} s", request.what,
                                  summary.value().events_evaluated, engine->incidents_opened(),
                                  std::chrono::duration<double>(Clock::now() - began).count()));
  if (const auto& counters = summary.value().counters; counters.rejected_total() > 0) {
    print_note(common_, "rejected: " + rejects_text(counters));
  }
  if (engine->incidents_opened() == 0) {
    return Error{
        "no incident was opened: are these the events of the labels, and do the packs open "
        "incidents on them?"};
  }
  if (request.tell_labels) {
    for (const auto& note : collector.notes(labels_)) print_note(common_, note);
  }
  return collector.cases(labels_);
}

std::vector<backtest::Case> later(const std::vector<backtest::Case>& cases, int64_t from_ns) {
  std::vector<backtest::Case> out;
  for (const auto& c : cases) {
    if (c.label.ts_ns >= from_ns) out.push_back(c);
  }
  return out;
}

}  // namespace reflex::app

// `reflex learn`: labelled history -> a model file, when it is better on the later part of time.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "runtime/app/commands.h"
#include "runtime/app/heap_pages.h"
#include "runtime/app/replay.h"
#include "runtime/attribution/attribution.h"
#include "runtime/learn/fit.h"
#include "runtime/learn/graded_fit.h"
#include "runtime/learn/history_fit.h"
#include "runtime/learn/model_file.h"
#include "runtime/learn/recorded_input.h"

namespace reflex::app {
namespace {

struct LearnFlags {
  InputFlags input;
  std::string labels;
  std::string output;
  double until_fraction = 0.6;
  bool force = false;
};

struct Comparison {
  backtest::Metrics before;
  backtest::Metrics after;
};

std::string row(const std::string& name, const backtest::Scores& a, double ece_a,
                const backtest::Scores& b, double ece_b) {
  if (a.with_culprit == 0) {
    return fmt::format("{:<28} {:>6}   none right {:.3f} -> {:.3f}   ECE {:.3f} -> {:.3f}\n", name,
                       a.incidents, a.none_accuracy, b.none_accuracy, ece_a, ece_b);
  }
  return fmt::format(
      "{:<28} {:>6}   F1 {:.3f} -> {:.3f}   AC@1 {:.3f} -> {:.3f}   ECE {:.3f} -> "
      "{:.3f}\n",
      name, a.incidents, a.f1, b.f1, a.ac1, b.ac1, ece_a, ece_b);
}

const backtest::Stratum* find(const backtest::Metrics& m, const backtest::Stratum& like) {
  for (const auto& s : m.strata) {
    if (s.group == like.group && s.name == like.name) return &s;
  }
  return nullptr;
}

std::string to_text(const Comparison& c) {
  std::string out = "later part of time            cases   author's numbers -> model\n";
  out += row("all", c.before.all, c.before.reliability.ece, c.after.all, c.after.reliability.ece);
  for (const auto& s : c.before.strata) {
    if (s.group == "month") continue;
    const auto* after = find(c.after, s);
    if (after) out += row(s.group + " " + s.name, s.scores, s.ece, after->scores, after->ece);
  }
  return out;
}

nlohmann::ordered_json to_json(const Comparison& c) {
  const auto figures = [](const backtest::Scores& s, double ece) {
    return nlohmann::ordered_json{{"f1", s.f1}, {"ac1", s.ac1}, {"ece", ece}};
  };
  nlohmann::ordered_json j;
  j["before"] = figures(c.before.all, c.before.reliability.ece);
  j["after"] = figures(c.after.all, c.after.reliability.ece);
  j["strata"] = nlohmann::ordered_json::array();
  for (const auto& s : c.before.strata) {
    const auto* after = find(c.after, s);
    if (!after) continue;
    j["strata"].push_back({{"group", s.group},
                           {"name", s.name},
                           {"before", figures(s.scores, s.ece)},
                           {"after", figures(after->scores, after->ece)}});
  }
  return j;
}

std::string history_text(const abi::HistoryLaw& law) {
  std::string text = "after a fault, times as likely:";
  for (size_t s = 0; s < abi::kAfterFault; ++s) {
    text += fmt::format(" {} {:.2f},", abi::kAfterFaultNames[s], law.again[s]);
  }
  return text + fmt::format(" same cause {:.2f}; older faults ^{:.2f}", law.same_cause, law.usual);
}

/// Better: a higher F1, or the same F1 and better calibrated.
bool is_better(const Comparison& c) {
  if (c.after.all.f1 != c.before.all.f1) return c.after.all.f1 > c.before.all.f1;
  return c.after.reliability.ece < c.before.reliability.ece;
}

class Learner {
 public:
  Learner(const LearnFlags& flags, const CommonFlags& common) : flags_(flags), common_(common) {}

  int run() {
    if (auto status = check_files(flags_.input, {flags_.output}); !status.ok()) {
      return fail(status.error());
    }
    Loaded loaded = load_packs(flags_.input.load, common_);
    if (loaded.exit_code != kOk) return loaded.exit_code;
    pack_ = loaded.compilation->pack;
    History history(pack_, flags_.input, common_);
    if (auto status = history.read_labels(flags_.labels); !status.ok()) {
      return fail(status.error());
    }
    split_ns_ = history.split_ns(flags_.until_fraction);
    auto graph = attribution::Graph::build(pack_);
    if (!graph.ok()) return fail(graph.error());
    graph_ = std::move(graph).value();
    return learn(history);
  }

 private:
  int fail(const Error& error) {
    print_error(common_, error.message);
    return error.exit_code;
  }

  bool is_training(const learn::Label& label) const { return label.ts_ns < split_ns_; }

  /// The dossiers of the training time, made on several threads and added in order.
  void add_dossiers(const abi::Model* model, learn::TrainingSet& set) const {
    constexpr size_t kBlock = 64;  // dossiers that wait at a time: bounds memory
    for (size_t begin = 0; begin < inputs_.size(); begin += kBlock) {
      const size_t count = std::min(kBlock, inputs_.size() - begin);
      std::vector<attribution::Input> inputs(count);
      std::vector<attribution::Dossier> dossiers(count);
      learn::for_each_parallel(count, threads_, [&](size_t i) {
        if (!is_training(inputs_[begin + i]->label())) return;
        inputs[i] = inputs_[begin + i]->with(model);
        dossiers[i] = graph_->dossier(inputs[i]);
      });
      for (size_t i = 0; i < count; ++i) {
        const learn::Label& label = inputs_[begin + i]->label();
        if (is_training(label)) set.add(dossiers[i], label, label.ts_ns, &inputs[i]);
      }
    }
    set.sort_by_time();
  }

  /// The later incidents once more, under the model. What the engine had confirmed by then is that
  /// of the author's run, so that only the numbers differ.
  std::vector<backtest::Case> judge_later(const abi::Model& model,
                                          const std::vector<backtest::Case>& before) const {
    std::map<std::string, const backtest::Case*> by_incident;
    for (const auto& c : before) by_incident[c.label.incident] = &c;
    std::vector<backtest::Case> after(inputs_.size());
    learn::for_each_parallel(inputs_.size(), threads_, [&](size_t i) {
      const learn::Label& label = inputs_[i]->label();
      if (is_training(label)) return;
      const abi::Verdict verdict = graph_->attribute(inputs_[i]->with(&model));
      after[i] = backtest::make_case(label, &verdict);
      if (const auto it = by_incident.find(label.incident); it != by_incident.end()) {
        after[i].class_of.insert(it->second->class_of.begin(), it->second->class_of.end());
      }
    });
    std::erase_if(after, [](const backtest::Case& c) { return !c.answered; });
    for (const auto& c : before) {
      if (!c.answered && !is_training(c.label)) after.push_back(c);
    }
    return after;
  }

  int learn(const History& history) {
    ReplayRequest request;
    request.what = "replay with the author's numbers";
    request.tell_labels = true;
    request.input = [&](const attribution::Input& input, const learn::Label& label) {
      inputs_.push_back(std::make_unique<learn::RecordedInput>(*pack_, input, label));
    };
    auto before = history.replay(request);
    if (!before.ok()) return fail(before.error());
    const abi::HistoryLaw law = learn::fit_history(*pack_, inputs_, split_ns_);
    for (auto& input : inputs_) input->set_history(law);
    print_note(common_, history_text(law));
    learn::TrainingSet plain(pack_);
    add_dossiers(nullptr, plain);
    learn::FitOptions options;
    options.threads = threads_;
    if (!pack_->incidents.empty()) options.suspect = pack_->incidents.front().suspect;
    // Shapes of graded counts change what a dossier says: dossiers are made again with them.
    const abi::Model shapes = learn::fit_graded(plain, plain.incidents().size());
    learn::TrainingSet shaped(pack_, &shapes);
    const bool shaped_kept = try_shapes(shapes, plain, shaped);
    const learn::TrainingSet& first = shaped_kept ? shaped : plain;
    // "Ailing for another reason" depends on all strengths of a node's faults: once more with them.
    abi::Model rough = shaped_kept ? shapes : abi::Model{};
    rough.edge_p =
        learn::fit_strengths(first, 0, first.incidents().size(), options.strengths).edge_p;
    rough.leak_per_hour = learn::fit_leaks(first, 0, first.incidents().size());
    rough.history = law;
    learn::TrainingSet second(pack_, &rough);
    add_dossiers(&rough, second);
    auto fitted = fit(second, options);
    if (!fitted.ok()) return fail(fitted.error());
    const learn::Fit best = std::move(fitted).value();
    const auto later_before = later(before.value(), split_ns_);
    const Comparison c{backtest::measure(later_before),
                       backtest::measure(judge_later(best.model, later_before))};
    report(best.report, c);
    return write(best.model, c);
  }

  Result<learn::Fit> fit(const learn::TrainingSet& set, const learn::FitOptions& options) {
    const auto began = std::chrono::steady_clock::now();
    auto fitted = learn::fit_model(set, options);
    print_note(
        common_,
        fmt::format(
            "fitted {} incidents in {:.1f} s", set.incidents().size(),
            std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count()));
    return fitted;
  }

  /// True: the labels are likelier with the shapes than without.
  bool try_shapes(const abi::Model& shapes, const learn::TrainingSet& plain,
                  learn::TrainingSet& shaped) {
    if (shapes.graded_extra.empty()) return false;
    add_dossiers(&shapes, shaped);
    const double before = likelihood_loss(plain);
    const double after = likelihood_loss(shaped);
    print_note(common_, fmt::format("shapes of graded counts: log-loss {:.4f} -> {:.4f}, {}",
                                    before, after, after < before ? "kept" : "not kept"));
    return after < before;
  }

  /// Few numbers, one shape a signal: the training time itself may judge them.
  double likelihood_loss(const learn::TrainingSet& set) const {
    const learn::Weights weights(set, nullptr);
    return learn::log_loss(set, weights, learn::no_calibration(*pack_), 0, set.incidents().size());
  }

  void report(const learn::FitReport& fit, const Comparison& c) {
    std::string text;
    if (common_.format == "json") {
      nlohmann::ordered_json j = to_json(c);
      j["incidents"] = fit.incidents;
      j["held_out"] = {{"incidents", fit.held_out.incidents},
                       {"author", fit.held_out.author},
                       {"strengths", fit.held_out.strengths},
                       {"calibrated", fit.held_out.calibrated}};
      j["kept"] = {{"strengths", fit.strengths_kept},
                   {"calibration", fit.calibration_kept},
                   {"levels", fit.levels_kept}};
      text = j.dump(1) + "\n";
    } else {
      text = learn::to_text(fit) + "\n" + to_text(c);
    }
    std::fwrite(text.data(), 1, text.size(), stdout);
  }

  int write(const abi::Model& model, const Comparison& c) {
    const bool measured = c.before.all.incidents > 0;
    if (!flags_.force && (!measured || !is_better(c))) {
      print_error(common_, measured ? "the model is not better on the later part of time; not "
                                      "written (--force writes it)"
                                    : "no labelled incident after the training time to compare on; "
                                      "not written (--force writes it)");
      return kFindings;
    }
    if (auto status = learn::save_model(flags_.output, model, *pack_); !status.ok()) {
      return fail(status.error());
    }
    print_note(common_, fmt::format("model written to {}", flags_.output));
    return kOk;
  }

  const LearnFlags& flags_;
  const CommonFlags& common_;
  std::shared_ptr<const abi::CompiledPack> pack_;
  std::unique_ptr<attribution::Graph> graph_;
  int64_t split_ns_ = 0;
  // Two even when the replay has one: what is done on them does not depend on their number.
  unsigned threads_ = std::max(2u, flags_.input.threads);
  learn::RecordedInputs inputs_;
};

}  // namespace

Command add_learn(CLI::App& app, const CommonFlags& common) {
  auto flags = std::make_shared<LearnFlags>();
  auto* sub = app.add_subcommand("learn", "fit a model file to labelled incidents");
  add_input_options(*sub, flags->input);
  sub->add_option("--labels", flags->labels, "labelled incidents (NDJSON)")->required();
  sub->add_option("--until-fraction", flags->until_fraction,
                  "learn on this first part of the labelled time, compare on the rest")
      ->check(CLI::Range(0.05, 1.0));
  sub->add_option("-o,--output", flags->output, "the model file to write")->required();
  sub->add_flag("--force", flags->force, "write the model even when it is not better");
  return [sub, flags, &common] {
    if (!sub->parsed()) return -1;
    put_heap_in_huge_pages();
    return Learner(*flags, common).run();
  };
}

}  // namespace reflex::app

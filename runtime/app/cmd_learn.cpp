// `reflex learn`: labelled history -> a model file, when it is better on the later part of time.
#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>

#include "runtime/app/commands.h"
#include "runtime/app/replay.h"
#include "runtime/attribution/attribution.h"
#include "runtime/learn/fit.h"
#include "runtime/learn/graded_fit.h"
#include "runtime/learn/model_file.h"

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
  return fmt::format("{:<28} {:>6}   F1 {:.3f} -> {:.3f}   AC@1 {:.3f} -> {:.3f}   ECE {:.3f} -> "
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

  /// A replay that also collects the dossiers of the training time.
  Result<std::vector<backtest::Case>> collect(const History& history, const std::string& what,
                                              std::shared_ptr<const abi::Model> model,
                                              int64_t until_ns, learn::TrainingSet& set) {
    ReplayRequest request;
    request.what = what;
    request.model = std::move(model);
    request.until_ns = until_ns;
    request.input = [&](const attribution::Input& input, const learn::Label& label) {
      if (label.ts_ns < split_ns_) set.add(graph_->dossier(input), label, label.ts_ns, &input);
    };
    auto cases = history.replay(request);
    set.sort_by_time();
    return cases;
  }

  int learn(const History& history) {
    learn::TrainingSet plain(pack_);
    auto before = collect(history, "replay with the author's numbers", nullptr, INT64_MAX, plain);
    if (!before.ok()) return fail(before.error());
    learn::FitOptions options;
    options.threads = std::max(2u, flags_.input.threads);
    if (!pack_->incidents.empty()) options.suspect = pack_->incidents.front().suspect;
    // Shapes of graded counts change what a dossier says: dossiers are made again with them.
    const auto shapes = std::make_shared<const abi::Model>(
        learn::fit_graded(plain, plain.incidents().size()));
    learn::TrainingSet shaped(pack_, shapes.get());
    bool shaped_kept = false;
    if (const int code = try_shapes(history, shapes, plain, shaped, shaped_kept); code != kOk) {
      return code;
    }
    auto fitted = fit(shaped_kept ? shaped : plain, options);
    if (!fitted.ok()) return fail(fitted.error());
    const learn::Fit best = std::move(fitted).value();

    auto model = std::make_shared<abi::Model>(best.model);
    ReplayRequest request;
    request.what = "replay with the model";
    request.model = model;
    auto after = history.replay(request);
    if (!after.ok()) return fail(after.error());
    Comparison c{backtest::measure(later(before.value(), split_ns_)),
                 backtest::measure(later(after.value(), split_ns_))};
    report(best.report, c);
    return write(best.model, c);
  }

  Result<learn::Fit> fit(const learn::TrainingSet& set, const learn::FitOptions& options) {
    const auto began = std::chrono::steady_clock::now();
    auto fitted = learn::fit_model(set, options);
    print_note(common_, fmt::format("fitted {} incidents in {:.1f} s", set.incidents().size(),
                                    std::chrono::duration<double>(
                                        std::chrono::steady_clock::now() - began)
                                        .count()));
    return fitted;
  }

  /// `kept`: the labels are likelier with the shapes than without.
  int try_shapes(const History& history, const std::shared_ptr<const abi::Model>& shapes,
                 const learn::TrainingSet& plain, learn::TrainingSet& shaped, bool& kept) {
    if (shapes->graded_extra.empty()) return kOk;
    auto cases = collect(history, "replay with learned shapes", shapes, split_ns_, shaped);
    if (!cases.ok()) return fail(cases.error());
    const double before = likelihood_loss(plain);
    const double after = likelihood_loss(shaped);
    kept = after < before;
    print_note(common_, fmt::format("shapes of graded counts: log-loss {:.4f} -> {:.4f}, {}", before,
                                    after, kept ? "kept" : "not kept"));
    return kOk;
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
  return [sub, flags, &common] { return sub->parsed() ? Learner(*flags, common).run() : -1; };
}

}  // namespace reflex::app

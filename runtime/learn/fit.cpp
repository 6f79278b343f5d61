// Folds, choice of layers and the finished model; see fit.h.
#include "runtime/learn/fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "runtime/learn/levels.h"
#include "runtime/learn/model_file.h"

namespace reflex::learn {
namespace {

constexpr double kUnset = std::numeric_limits<double>::quiet_NaN();
constexpr size_t kBlocks = 4;  // train on 1..k, measure on k+1
// From a strong pull to a weak one; each starts where the one before ended.
constexpr std::array<double, 4> kPulls = {100, 25, 8, 2.5};
// Why: an improvement below this is noise of the folds.
constexpr double kGainMin = 1e-4;
constexpr size_t kChangesShown = 12;

/// Six digits: what a reviewer reads in a diff, and more than the data supports.
double rounded(double value) {
  if (value == 0 || !std::isfinite(value)) return value;
  const double scale = std::pow(10.0, 5 - std::floor(std::log10(std::abs(value))));
  return std::round(value * scale) / scale;
}

class ModelFitter {
 public:
  ModelFitter(const TrainingSet& set, const FitOptions& options)
      : set_(set), pack_(set.pack()), options_(options), count_(set.incidents().size()) {}

  Fit run() {
    describe();
    fold_losses();
    choose();
    Fit fit;
    if (set_.model()) fit.model = *set_.model();  // what the dossiers were made with stays,
    fit.model.edge_p.clear();                     // but for what is fitted here
    fit_all(fit.model);
    fit_levels_from_folds(fit.model);
    fit.model.pack_sha256 = pack_.set_sha256;
    fit.model.incidents = count_;
    fit.model.from_ns = set_.incidents().front().opened_ns;
    fit.model.to_ns = set_.incidents().back().opened_ns;
    list_changes(fit.model);
    fit.report = std::move(report_);
    return fit;
  }

 private:
  struct Fold {
    size_t train_end = 0;
    size_t end = 0;
    Strengths strengths;
    std::vector<Calibration> with_strengths;  // [pull]
    std::vector<Calibration> author_only;
  };

  void describe() {
    report_.incidents = count_;
    for (const auto& incident : set_.incidents()) {
      const bool reachable = !incident.truth_is_node ||
                             std::any_of(incident.hypotheses.begin(), incident.hypotheses.end(),
                                         [](const auto& h) { return h.truth > 0; });
      report_.unreachable += reachable ? 0 : 1;
    }
  }

  CalibrationOptions calibration_options(double pull) const {
    CalibrationOptions o;
    o.l2 = pull;
    o.threads = options_.threads;
    return o;
  }

  std::vector<Calibration> path(const Weights& weights, size_t end) const {
    std::vector<Calibration> out;
    Calibration start = no_calibration(pack_);
    for (const double pull : kPulls) {
      start = fit_calibration(set_, weights, 0, end, start, calibration_options(pull));
      out.push_back(start);
    }
    return out;
  }

  void fold_losses() {
    const Calibration none = no_calibration(pack_);
    const Weights author(set_, nullptr);
    calibrated_.fill(0);
    calibrated_author_.fill(0);
    for (size_t k = 1; k < kBlocks; ++k) {
      Fold fold;
      fold.train_end = count_ * k / kBlocks;
      fold.end = count_ * (k + 1) / kBlocks;
      fold.strengths = fit_strengths(set_, 0, fold.train_end, options_.strengths);
      const Weights learned(set_, &fold.strengths);
      fold.with_strengths = path(learned, fold.train_end);
      const auto n = static_cast<double>(fold.end - fold.train_end);
      const auto loss = [&](const Weights& weights, const Calibration& c) {
        return n * log_loss(set_, weights, c, fold.train_end, fold.end);
      };
      report_.held_out.incidents += fold.end - fold.train_end;
      report_.held_out.author += loss(author, none);
      report_.held_out.strengths += loss(learned, none);
      for (size_t p = 0; p < kPulls.size(); ++p) {
        calibrated_[p] += loss(learned, fold.with_strengths[p]);
      }
      folds_.push_back(std::move(fold));
    }
    // The calibration of the author's own numbers matters only when the strengths are not kept.
    if (report_.held_out.strengths < report_.held_out.author) return;
    for (Fold& fold : folds_) {
      fold.author_only = path(author, fold.train_end);
      const auto n = static_cast<double>(fold.end - fold.train_end);
      for (size_t p = 0; p < kPulls.size(); ++p) {
        calibrated_author_[p] +=
            n * log_loss(set_, author, fold.author_only[p], fold.train_end, fold.end);
      }
    }
  }

  void choose() {
    HeldOut& h = report_.held_out;
    const auto n = static_cast<double>(h.incidents);
    const double best_learned = *std::min_element(calibrated_.begin(), calibrated_.end());
    report_.strengths_kept = h.strengths < h.author - kGainMin * n;
    if (!report_.strengths_kept && !folds_.front().author_only.empty()) {
      // Strengths that only help once calibrated are worth keeping too.
      const double best_author =
          *std::min_element(calibrated_author_.begin(), calibrated_author_.end());
      const double floor = std::min(best_author, h.author);
      report_.strengths_kept = best_learned < floor - kGainMin * n;
    }
    const auto& losses = report_.strengths_kept ? calibrated_ : calibrated_author_;
    if (report_.strengths_kept || !folds_.front().author_only.empty()) {
      pull_ = static_cast<size_t>(std::min_element(losses.begin(), losses.end()) - losses.begin());
      h.calibrated = losses[pull_];
      h.l2 = kPulls[pull_];
      const double without = report_.strengths_kept ? h.strengths : h.author;
      report_.calibration_kept = h.calibrated < without - kGainMin * n;
    }
    for (double* loss : {&h.author, &h.strengths, &h.calibrated}) *loss /= n;
  }

  void fit_all(abi::Model& model) {
    Strengths strengths;
    if (report_.strengths_kept) {
      strengths = fit_strengths(set_, 0, count_, options_.strengths);
      put_strengths(strengths, model);
    }
    if (!report_.calibration_kept) return;
    const Weights weights(set_, report_.strengths_kept ? &strengths : nullptr);
    // The same path of pulls as in the folds, down to the chosen one.
    Calibration c = no_calibration(pack_);
    for (size_t p = 0; p <= pull_; ++p) {
      c = fit_calibration(set_, weights, 0, count_, c, calibration_options(kPulls[p]));
    }
    model.temperature = rounded(c.temperature);
    model.none_shift_nats = rounded(c.none_shift_nats);
    model.ailing_multiplier = rounded(c.multiplier[ailing_at(pack_)]);
    model.agreement_multiplier = rounded(c.multiplier[agreement_at(pack_)]);
    model.history_multiplier = rounded(c.multiplier[history_at(pack_)]);
    for (size_t s = 0; s < pack_.signals.size(); ++s) {
      model.signal_multiplier.push_back(rounded(c.multiplier[s]));
      // What no incident spoke of stays the author's and out of the file.
      if (std::abs(c.multiplier[s] - 1) < 1e-9) model.signal_multiplier[s] = kUnset;
    }
    for (const double nats : c.synergy) model.synergy_nats.push_back(rounded(nats));
    // A shift of a cause is a factor of its prior.
    if (model.cause_prior.empty()) model.cause_prior.assign(pack_.causes.size(), kUnset);
    for (size_t i = 0; i < pack_.causes.size(); ++i) {
      if (std::abs(c.cause_shift[i]) < 1e-9) continue;
      const double before =
          std::isnan(model.cause_prior[i]) ? pack_.causes[i].prior : model.cause_prior[i];
      model.cause_prior[i] = rounded(before * std::exp(c.cause_shift[i]));
    }
  }

  void put_strengths(const Strengths& s, abi::Model& model) const {
    for (size_t e = 0; e < s.edge_p.size(); ++e) model.edge_p.push_back(rounded(s.edge_p[e]));
    model.cause_prior.assign(pack_.causes.size(), kUnset);
    model.cause_class_scale.assign(pack_.causes.size(),
                                   std::vector<double>(pack_.classes.size(), kUnset));
    for (size_t c = 0; c < pack_.causes.size(); ++c) {
      model.cause_prior[c] = rounded(pack_.causes[c].prior * s.prior_scale[c]);
      const auto& author = pack_.causes[c].class_prior_scale;
      for (size_t k = 0; k < pack_.classes.size(); ++k) {
        const double before = author.empty() ? 1 : author[k];
        if (s.class_scale[c][k] != 1) {
          model.cause_class_scale[c][k] = rounded(before * s.class_scale[c][k]);
        }
      }
    }
  }

  void fit_levels_from_folds(abi::Model& model) {
    std::vector<Prediction> predictions;
    size_t missed = 0;
    const Calibration none = no_calibration(pack_);
    for (const Fold& fold : folds_) {
      const Weights weights(set_, report_.strengths_kept ? &fold.strengths : nullptr);
      const Calibration& c = !report_.calibration_kept ? none
                             : report_.strengths_kept  ? fold.with_strengths[pull_]
                                                       : fold.author_only[pull_];
      for (size_t i = fold.train_end; i < fold.end; ++i) {
        const auto& incident = set_.incidents()[i];
        const auto p = node_posterior(set_, weights, c, incident);
        for (size_t n = 0; n < p.size(); ++n) {
          predictions.push_back({incident.nodes[n].hw_class, p[n], incident.nodes[n].culprit});
        }
        missed += incident.unseen_culprits.size();
      }
    }
    const Levels levels = fit_levels(predictions, missed, pack_.classes.size(), options_.suspect);
    report_.level_f1_before = levels.f1_before;
    report_.level_f1_after = levels.f1_after;
    // Why 0.002: a level is fitted on the very predictions that it is measured on. Why 0.01: a
    // standard error at a thousand incidents; then levels that evict fewer healthy nodes are kept.
    const double gain = levels.f1_after - levels.f1_before;
    report_.levels_kept =
        gain > 0.002 || (gain > -0.01 && levels.wrong_after < levels.wrong_before);
    if (!report_.levels_kept) return;
    model.levels.suspect = levels.fleet;
    model.class_levels.assign(pack_.classes.size(), {});
    for (size_t k = 0; k < pack_.classes.size(); ++k) {
      model.class_levels[k].suspect = levels.by_class[k];
    }
  }

  void list_changes(const abi::Model& model) {
    struct Change {
      double size;
      std::string text;
    };
    std::vector<Change> changes;
    const auto names = edge_names(pack_);
    for (size_t e = 0; e < model.edge_p.size(); ++e) {
      if (std::isnan(model.edge_p[e])) continue;
      const double a = pack_.edges[e].p;
      const double b = model.edge_p[e];
      changes.push_back({std::abs(std::log(b / (1 - b)) - std::log(a / (1 - a))),
                         fmt::format("{}: p {:.3f} -> {:.3f}", names[e], a, b)});
    }
    for (size_t c = 0; c < model.cause_prior.size(); ++c) {
      const double a = pack_.causes[c].prior;
      const double b = model.cause_prior[c];
      if (a <= 0 || b <= 0) continue;
      changes.push_back({std::abs(std::log(b / a)),
                         fmt::format("prior of {}: {:.2g} -> {:.2g}", pack_.causes[c].name, a, b)});
    }
    for (size_t s = 0; s < model.signal_multiplier.size(); ++s) {
      const double m = model.signal_multiplier[s];
      if (std::isnan(m)) continue;
      changes.push_back({std::abs(std::log(std::max(m, 1e-3))),
                         fmt::format("weight of {}: x {:.2f}", pack_.signals[s].name, m)});
    }
    std::sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) {
      return a.size != b.size ? a.size > b.size : a.text < b.text;
    });
    for (size_t i = 0; i < std::min(changes.size(), kChangesShown); ++i) {
      report_.changes.push_back(changes[i].text);
    }
  }

  const TrainingSet& set_;
  const abi::CompiledPack& pack_;
  const FitOptions& options_;
  size_t count_;
  std::vector<Fold> folds_;
  std::array<double, kPulls.size()> calibrated_{};
  std::array<double, kPulls.size()> calibrated_author_{};
  size_t pull_ = 0;
  FitReport report_;
};

}  // namespace

Result<Fit> fit_model(const TrainingSet& set, const FitOptions& options) {
  if (set.incidents().size() < options.incidents_min) {
    return Error{fmt::format("{} labelled incidents in the training time; at least {} are needed",
                             set.incidents().size(), options.incidents_min)};
  }
  return ModelFitter(set, options).run();
}

std::string to_text(const FitReport& r) {
  const auto kept = [](bool yes) { return yes ? "kept" : "not kept"; };
  std::string text = fmt::format("{} labelled incidents", r.incidents);
  if (r.unreachable > 0) {
    text += fmt::format(" ({} name a culprit that is no candidate)", r.unreachable);
  }
  text += fmt::format(
      "\nheld-out log-loss over {} later incidents, nats each:\n"
      "  author's numbers       {:.4f}\n"
      "  strengths and priors   {:.4f}  {}\n"
      "  calibration (L2 {:g})  {:.4f}  {}\n"
      "held-out F1 by level     {:.4f} -> {:.4f}  {}\n",
      r.held_out.incidents, r.held_out.author, r.held_out.strengths, kept(r.strengths_kept),
      r.held_out.l2, r.held_out.calibrated, kept(r.calibration_kept), r.level_f1_before,
      r.level_f1_after,
      r.levels_kept && r.level_f1_after <= r.level_f1_before
          ? "kept: as good, and fewer healthy nodes are named"
          : kept(r.levels_kept));
  if (!r.changes.empty()) text += "largest changes:\n";
  for (const auto& change : r.changes) text += "  " + change + "\n";
  return text;
}

}  // namespace reflex::learn

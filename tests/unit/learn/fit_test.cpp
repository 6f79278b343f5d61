// EM, calibration, levels and the choice between them, on worlds whose truth is known.
#include "runtime/learn/fit.h"

#include <gtest/gtest.h>

#include <cmath>

#include "runtime/learn/lbfgs.h"
#include "runtime/learn/levels.h"
#include "runtime/learn/model_file.h"
#include "tests/unit/learn/learn_world.h"

namespace reflex::learn {
namespace {

TEST(Strengths, RecoverWhatTheWorldWasMadeWith) {
  const LearnWorld w = LearnWorld::two_faults();
  const TrainingSet set = w.incidents(3000, 1);
  const Strengths s = fit_strengths(set, 0, set.incidents().size(), {});
  for (size_t e = 0; e < w.true_p.size(); ++e) {
    EXPECT_NEAR(s.edge_p[e], w.true_p[e], 0.05) << edge_names(*w.pack)[e];
  }
  // gpu_lost is true in 45 % of incidents, nic_down in 25 %.
  EXPECT_NEAR(s.cause_weight[0] / 3000, 0.45, 0.04);
  EXPECT_NEAR(s.cause_weight[1] / 3000, 0.25, 0.04);
  EXPECT_GT(s.prior_scale[0], s.prior_scale[1]);
}

TEST(Strengths, FewIncidentsStayNearTheAuthor) {
  const LearnWorld w = LearnWorld::two_faults();
  const TrainingSet set = w.incidents(4, 2);
  const Strengths s = fit_strengths(set, 0, set.incidents().size(), {});
  for (size_t e = 0; e < w.true_p.size(); ++e) EXPECT_NEAR(s.edge_p[e], 0.5, 0.2);
}

TEST(Strengths, AuthorsWeightsAndProfileStrengthsAreLeftAlone) {
  LearnWorld w = LearnWorld::two_faults();
  w.pack->edges[0].has_weight = true;
  w.pack->edges[1].class_p = {0.5, 0.5};
  const TrainingSet set = w.incidents(200, 3);
  const Strengths s = fit_strengths(set, 0, set.incidents().size(), {});
  EXPECT_TRUE(std::isnan(s.edge_p[0]));
  EXPECT_TRUE(std::isnan(s.edge_p[1]));
  EXPECT_FALSE(std::isnan(s.edge_p[2]));
}

TEST(Strengths, CategoriesTellFaultsApartThatLookAlike) {
  // The two faults have one signal in common and nothing else: only the words differ.
  LearnWorld w;
  const auto seen = w.signal("seen", 0.02);
  w.edge(w.fault("a", 0.02, 0.3), seen, 0.5, 0.95);
  w.edge(w.fault("b", 0.02, 0.3), seen, 0.6, 0.25);
  std::mt19937_64 random(4);
  TrainingSet set(w.pack);
  for (int i = 0; i < 1500; ++i) {
    TrainingSet one(w.pack);
    w.draw(i, random, one);
    // The words go with what was seen, as a site's categories do.
    attribution::Dossier dossier;
    Label label = one.incidents()[0].label;
    bool shown = false;
    for (const auto& h : one.incidents()[0].hypotheses) {
      if (h.truth > 0 && h.terms > 0) shown = true;
    }
    label.category = shown ? "loud" : "quiet";
    std::vector<bool> fired(1, false);
    for (uint32_t n = 0; n < one.incidents()[0].nodes.size(); ++n) {
      for (const auto& h : one.incidents()[0].hypotheses) {
        if (h.node == n) fired[0] = h.terms > 0;
      }
      w.add_hypotheses(static_cast<int>(n), fired, dossier);
    }
    set.add(dossier, label, label.ts_ns);
  }
  const Strengths s = fit_strengths(set, 0, set.incidents().size(), {});
  EXPECT_GT(std::abs(s.edge_p[0] - s.edge_p[1]), 0.5);
}

TEST(Calibration, NeverWorseOnWhatItIsFittedOnAndKeepsOneWithoutData) {
  const LearnWorld w = LearnWorld::two_faults();
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    const TrainingSet set = w.incidents(120, seed);
    const Weights weights(set, nullptr);
    const Calibration none = no_calibration(*w.pack);
    const Calibration c = fit_calibration(set, weights, 0, 120, none, {});
    EXPECT_LE(log_loss(set, weights, c, 0, 120), log_loss(set, weights, none, 0, 120) + 1e-12);
    for (const double m : c.multiplier) EXPECT_GE(m, 0);
  }
  LearnWorld idle = LearnWorld::two_faults();
  idle.signal("never_seen", 0.1);
  const TrainingSet set = idle.incidents(60, 9);
  const Calibration c =
      fit_calibration(set, Weights(set, nullptr), 0, 60, no_calibration(*idle.pack), {});
  EXPECT_DOUBLE_EQ(c.multiplier.back(), 1);
}

TEST(Calibration, ThreadsDoNotChangeABit) {
  const LearnWorld w = LearnWorld::two_faults();
  const TrainingSet set = w.incidents(150, 6);
  const Weights weights(set, nullptr);
  CalibrationOptions one, three;
  one.threads = 1;
  three.threads = 3;
  const Calibration a = fit_calibration(set, weights, 0, 150, no_calibration(*w.pack), one);
  const Calibration b = fit_calibration(set, weights, 0, 150, no_calibration(*w.pack), three);
  EXPECT_EQ(a.multiplier, b.multiplier);
  EXPECT_EQ(a.temperature, b.temperature);
}

TEST(Calibration, GradientIsTheSlopeOfTheLoss) {
  // L-BFGS with a wrong gradient stops early: from far away it must reach the same minimum.
  const LearnWorld w = LearnWorld::two_faults();
  const TrainingSet set = w.incidents(200, 8);
  const Weights weights(set, nullptr);
  CalibrationOptions long_run;
  long_run.iterations = 300;
  Calibration far = no_calibration(*w.pack);
  for (double& m : far.multiplier) m = 2.5;
  far.temperature = 2;
  far.none_shift_nats = 1;
  const Calibration a = fit_calibration(set, weights, 0, 200, no_calibration(*w.pack), long_run);
  const Calibration b = fit_calibration(set, weights, 0, 200, far, long_run);
  for (size_t s = 0; s < a.multiplier.size(); ++s) {
    EXPECT_NEAR(a.multiplier[s], b.multiplier[s], 0.02);
  }
  EXPECT_NEAR(a.temperature, b.temperature, 0.02);
}

TEST(Lbfgs, FindsTheMinimumOfRosenbrock) {
  const Objective f = [](const Eigen::VectorXd& x, Eigen::VectorXd& g) {
    const double a = 1 - x[0];
    const double b = x[1] - x[0] * x[0];
    g[0] = -2 * a - 400 * x[0] * b;
    g[1] = 200 * b;
    return a * a + 100 * b * b;
  };
  MinimizeOptions options;
  options.iterations = 500;
  options.tolerance = 1e-16;
  const Eigen::VectorXd x = minimize(f, Eigen::Vector2d(-1.2, 1.0), options);
  EXPECT_NEAR(x[0], 1, 1e-4);
  EXPECT_NEAR(x[1], 1, 1e-4);
}

TEST(Levels, HandMadeCurve) {
  // Culprits at 0.6 and above, others below 0.4: anything in between is right; the
  // highest is taken.
  std::vector<Prediction> all;
  for (int i = 0; i < 50; ++i) all.push_back({0, 0.6 + 0.005 * i, true});
  for (int i = 0; i < 50; ++i) all.push_back({0, 0.4 - 0.005 * i, false});
  const Levels levels = fit_levels(all, 0, 2, 0.9);
  EXPECT_NEAR(levels.fleet, 0.6, 0.01);
  EXPECT_DOUBLE_EQ(levels.f1_after, 1);
  EXPECT_LT(levels.f1_before, 0.2);
  EXPECT_EQ(levels.by_class[1], 0);  // no culprit of that class
}

TEST(Levels, WhereF1DoesNotDecideFewerHealthyNodesAreEvicted) {
  // 400 sure culprits and 15 at 0.5 among 30 healthy: at 0.45 F1 is best by less than its error.
  std::vector<Prediction> all;
  for (int i = 0; i < 400; ++i) all.push_back({0, 0.95, true});
  for (int i = 0; i < 15; ++i) all.push_back({0, 0.5, true});
  for (int i = 0; i < 30; ++i) all.push_back({0, i < 15 ? 0.5 : 0.4, false});
  const Levels levels = fit_levels(all, 0, 1, 0.45);
  EXPECT_GT(levels.fleet, 0.5);
  EXPECT_LT(levels.f1_after, levels.f1_before);
  EXPECT_GT(levels.f1_after, levels.f1_before - 0.012);
  EXPECT_EQ(levels.wrong_before, 15u);
  EXPECT_EQ(levels.wrong_after, 0u);
}

TEST(Levels, AClassWithFewCasesStaysWithTheFleet) {
  std::vector<Prediction> all;
  for (int i = 0; i < 400; ++i) {
    all.push_back({0, 0.55, true});
    all.push_back({0, 0.45, false});
  }
  for (int i = 0; i < 3; ++i) all.push_back({1, 0.85, true});
  for (int i = 0; i < 3; ++i) all.push_back({1, 0.80, false});
  const Levels levels = fit_levels(all, 0, 2, 0.5);
  EXPECT_NEAR(levels.by_class[1], levels.fleet, 0.02);
}

TEST(Fit, ImprovesOnLaterIncidentsAndIsDeterministic) {
  const LearnWorld w = LearnWorld::two_faults();
  const TrainingSet set = w.incidents(400, 11);
  const auto a = fit_model(set, {});
  ASSERT_TRUE(a.ok());
  const auto& r = a.value().report;
  EXPECT_TRUE(r.strengths_kept);
  EXPECT_LT(r.held_out.strengths, r.held_out.author);
  EXPECT_LE(r.calibration_kept ? r.held_out.calibrated : 0, r.held_out.strengths);
  const auto b = fit_model(w.incidents(400, 11), {});
  EXPECT_EQ(to_json(a.value().model, *w.pack), to_json(b.value().model, *w.pack));
  EXPECT_EQ(a.value().model.incidents, 400u);
}

TEST(Fit, WorksWithFiftyIncidentsAndSaysWhenThereAreTooFew) {
  const LearnWorld w = LearnWorld::two_faults();
  EXPECT_TRUE(fit_model(w.incidents(50, 12), {}).ok());
  const auto few = fit_model(w.incidents(10, 12), {});
  ASSERT_FALSE(few.ok());
  EXPECT_NE(few.error().message.find("10 labelled incidents"), std::string::npos);
}

TEST(Fit, AuthorsRightNumbersAreKept) {
  LearnWorld w = LearnWorld::two_faults();
  for (size_t e = 0; e < w.true_p.size(); ++e) w.pack->edges[e].p = w.true_p[e];
  w.pack->causes[0].prior = 0.45 / 6 / 0.30;
  w.pack->causes[1].prior = 0.25 / 6 / 0.30;
  const auto fit = fit_model(w.incidents(200, 13), {});
  ASSERT_TRUE(fit.ok());
  const auto& r = fit.value().report;
  // Nothing to gain: whatever is kept may not have cost anything on later incidents.
  const double kept = r.calibration_kept ? r.held_out.calibrated
                      : r.strengths_kept ? r.held_out.strengths
                                         : r.held_out.author;
  EXPECT_LE(kept, r.held_out.author);
}

TEST(TrainingSet, AlikeNodesShareTheTruth) {
  const LearnWorld w = LearnWorld::two_faults();
  attribution::Dossier dossier;
  w.add_hypotheses(0, std::vector<bool>(5, false), dossier);
  for (auto& h : dossier.hypotheses) h.alike = 3;
  Label label;
  label.incident = "a";
  label.culprits = {"n9"};  // one of the four that look alike
  TrainingSet set(w.pack);
  set.add(dossier, label, 0);
  ASSERT_EQ(set.incidents().size(), 1u);
  for (const auto& h : set.incidents()[0].hypotheses) EXPECT_FLOAT_EQ(h.truth, 0.25f);
  EXPECT_EQ(set.incidents()[0].unseen_culprits, std::vector<std::string>{"n9"});
}

}  // namespace
}  // namespace reflex::learn

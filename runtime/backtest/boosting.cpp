// Gradient boosting through libxgboost's C interface, when the build found it; see baselines.h.
#include "runtime/backtest/baselines.h"

#ifdef REFLEX_HAVE_XGBOOST
#include <xgboost/c_api.h>

#include <limits>
#include <utility>
#endif

namespace reflex::backtest {

#ifdef REFLEX_HAVE_XGBOOST

namespace {

constexpr int kRounds = 120;

/// Handles that are freed on every way out.
struct Handles {
  DMatrixHandle train = nullptr;
  DMatrixHandle test = nullptr;
  BoosterHandle booster = nullptr;
  ~Handles() {
    if (booster) XGBoosterFree(booster);
    if (train) XGDMatrixFree(train);
    if (test) XGDMatrixFree(test);
  }
};

bool make_matrix(const std::vector<float>& rows, size_t columns, DMatrixHandle* out) {
  return XGDMatrixCreateFromMat(rows.data(), rows.size() / columns, columns,
                                std::numeric_limits<float>::quiet_NaN(), out) == 0;
}

}  // namespace

bool has_boosting() { return true; }

std::vector<float> boosted_probabilities(const std::vector<float>& train, size_t columns,
                                         const std::vector<float>& truth,
                                         const std::vector<float>& test) {
  if (columns == 0 || train.empty() || test.empty()) return {};
  Handles h;
  if (!make_matrix(train, columns, &h.train) || !make_matrix(test, columns, &h.test)) return {};
  if (XGDMatrixSetFloatInfo(h.train, "label", truth.data(), truth.size()) != 0) return {};
  if (XGBoosterCreate(&h.train, 1, &h.booster) != 0) return {};
  // One thread and a fixed seed: the same trees in every run.
  const std::pair<const char*, const char*> parameters[] = {{"objective", "binary:logistic"},
                                                            {"max_depth", "5"},
                                                            {"eta", "0.12"},
                                                            {"subsample", "1"},
                                                            {"min_child_weight", "4"},
                                                            {"tree_method", "hist"},
                                                            {"nthread", "1"},
                                                            {"seed", "1"},
                                                            {"verbosity", "0"}};
  for (const auto& [name, value] : parameters) {
    if (XGBoosterSetParam(h.booster, name, value) != 0) return {};
  }
  for (int round = 0; round < kRounds; ++round) {
    if (XGBoosterUpdateOneIter(h.booster, round, h.train) != 0) return {};
  }
  bst_ulong count = 0;
  const float* p = nullptr;
  if (XGBoosterPredict(h.booster, h.test, 0, 0, 0, &count, &p) != 0) return {};
  return std::vector<float>(p, p + count);
}

#else

bool has_boosting() { return false; }

std::vector<float> boosted_probabilities(const std::vector<float>&, size_t,
                                         const std::vector<float>&, const std::vector<float>&) {
  return {};
}

#endif

}  // namespace reflex::backtest

// One pass of labelled history through a fresh engine, for `learn` and `backtest`.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/app/input_options.h"
#include "runtime/backtest/metrics.h"
#include "runtime/engine/engine.h"
#include "runtime/learn/labels.h"

namespace reflex::app {

struct ReplayRequest {
  std::string what;  // for the progress line: "replay 1/3, author's numbers"
  std::shared_ptr<const abi::Model> model;
  engine::Ablation ablate;
  std::shared_ptr<const std::vector<engine::KnownIncident>> known;
  bool tell_labels = false;  // a note on labels that match no incident, or the same one
  bool finals_only = true;  // one look an incident: quicker; false: as in operation
  int64_t until_ns = INT64_MAX;
  /// May be empty. Called at the final revision of each labelled incident.
  std::function<void(const attribution::Input&, const learn::Label&)> input;
  /// May be empty. Called with each final verdict of a labelled incident.
  std::function<void(const abi::Verdict&)> verdict;
};

/// A labelled history: read once, replayed several times.
class History {
 public:
  History(std::shared_ptr<const abi::CompiledPack> pack, const InputFlags& flags,
          const CommonFlags& common)
      : pack_(std::move(pack)), flags_(flags), common_(common) {}

  Status read_labels(const std::string& path);
  /// The labels whose truth is known, by time.
  [[nodiscard]] const std::vector<learn::Label>& labels() const { return labels_; }
  [[nodiscard]] size_t bad_lines() const { return bad_lines_; }
  /// The time that leaves `fraction` of the labelled span before it.
  [[nodiscard]] int64_t split_ns(double fraction) const;

  /// One case for each label, by time; those without verdict too.
  Result<std::vector<backtest::Case>> replay(const ReplayRequest& request) const;

 private:
  std::shared_ptr<const abi::CompiledPack> pack_;
  const InputFlags& flags_;
  const CommonFlags& common_;
  std::vector<learn::Label> labels_;
  size_t bad_lines_ = 0;
};

/// Cases from `from_ns` on.
std::vector<backtest::Case> later(const std::vector<backtest::Case>& cases, int64_t from_ns);

}  // namespace reflex::app

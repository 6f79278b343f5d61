// Labelled history: what turned out to be true of an incident, one JSON object a line.
//
// Fields: incident, job, ts (epoch milliseconds or RFC 3339), culprits (empty: no faulty node),
// external, fault (a cause of the pack, when known), category (the site's own word), type
// (explicit | implicit | none), and from `reflex feedback` also verdict and outcome. A line that
// cannot be read is counted and skipped. `truth_known` false: only "that verdict was wrong".
// Not here: matching of nodes to hypotheses (training_set), scoring (runtime/backtest).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/base/time.h"

namespace reflex::learn {

struct Label {
  std::string incident;
  std::string job;
  int64_t ts_ns = kNoTimeNs;
  std::vector<std::string> culprits;
  std::string external;
  std::string fault;
  std::string category;
  std::string type;
  std::string verdict;  // feedback: the id of the verdict that it judges
  std::string outcome;  // feedback: confirmed | wrong
  bool truth_known = true;
  friend bool operator==(const Label&, const Label&) = default;
};

struct LabelFile {
  std::vector<Label> labels;         // by (ts, incident); one for each incident, the last line wins
  size_t bad_lines = 0;              // skipped
  size_t replaced = 0;               // lines that a later line of the same incident replaced
  std::vector<std::string> samples;  // "FILE:LINE: reason" of the first bad lines
};

Result<LabelFile> read_labels(const std::string& path);
LabelFile parse_labels(std::string_view text, const std::string& name);

/// One line without its newline; what parse_labels reads.
std::string to_json_line(const Label& label);

/// Appends one line with a single write and waits until it is on disk. Creates the file.
Status append_label(const std::string& path, const Label& label);

/// Finds the label of an incident: by its id, else by job and time.
class LabelIndex {
 public:
  explicit LabelIndex(const std::vector<Label>& labels);
  /// Null: not labelled. Ids that the engine made are matched by job and time (within 30 min).
  [[nodiscard]] const Label* find(std::string_view incident, std::string_view job,
                                  int64_t opened_ns) const;

 private:
  std::map<std::string, const Label*, std::less<>> by_incident_;
  std::map<std::string, std::vector<const Label*>, std::less<>> by_job_;  // by time
};

}  // namespace reflex::learn

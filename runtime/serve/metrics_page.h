// The /metrics page: Prometheus text format 0.0.4 (names of language.md B7).
//
// Contract: each family has HELP and TYPE once and its samples together; label values are escaped;
// no label has more than kLabelsMax values (the rest is summed under "other"); no node, gpu or job
// is a label. Families of which the daemon knows nothing are left out.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "runtime/serve/port.h"

namespace reflex::serve {

// Why 500: more series of one family than packs have signals say nothing to a reader, and names
// that clients choose (sources) must not fill a Prometheus.
inline constexpr size_t kLabelsMax = 500;

struct MetricsInput {
  Status status;
  std::vector<std::pair<double, uint64_t>> latency;  // cumulative; bounds in seconds
  std::map<std::pair<std::string, int>, uint64_t> requests;
  std::map<std::pair<std::string, std::string>, uint64_t> verdicts;  // by fault, level
  uint64_t revisions = 0;
  unsigned followers = 0;
  uint64_t store_file_bytes = 0;
  std::string version, commit;
  /// reflex_threshold: (profile, parameter, origin) and the value in force.
  struct Threshold {
    std::string profile, parameter, origin;
    double value = 0;
  };
  std::vector<Threshold> thresholds;
};

std::string metrics_page(const MetricsInput& input);

}  // namespace reflex::serve

// The rule sets of the throughput workload: nested sets of n rules in five shapes (a..e).
//
// One source of truth for three readers: our packs (.rfx), the hand-written table engine (JSON)
// and the hand-written compiled-in engine (C++). The sets are those of the reference script, so
// that the counts in tests/data/bench/expected_*.tsv hold: the numbers come from CPython's
// `random.Random(7)`, which is reproduced here (Source: CPython 3.11 Lib/random.py,
// Modules/_randommodule.c). The first 10 rules of a set of 100 are the set of 10.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace reflex::bench {

inline constexpr size_t kKindCount = 40;
/// Event kinds of the workload, most frequent first.
extern const std::array<std::string_view, kKindCount> kKinds;

/// One predicate: kind, code range, least severity.
struct RuleLeaf {
  uint32_t kind = 0;
  uint32_t code_lo = 0;
  uint32_t code_hi = 0;
  uint32_t severity = 0;
};

/// Shapes: a threshold, b count in 60 s, c A then B, d A without B, e against a rolling mean.
struct WorkloadRule {
  uint32_t id = 0;
  char shape = 'a';
  RuleLeaf a;
  RuleLeaf b;                // c and d
  double value = 0;          // a
  uint32_t count = 0;        // b
  uint32_t window_ms = 0;    // b, c, d
  uint32_t samples = 0;      // e
  uint32_t samples_min = 4;  // e
  double factor = 0;         // e
};

std::vector<WorkloadRule> make_rules(uint32_t count);

/// The whole pack: head, event kinds and one signal a rule (r0, r1, ...).
std::string to_rfx(const std::vector<WorkloadRule>& rules);
/// The rule file that the table engine reads.
std::string to_json(const std::vector<WorkloadRule>& rules);
/// The source of the compiled-in engine.
std::string to_cpp(const std::vector<WorkloadRule>& rules);

}  // namespace reflex::bench

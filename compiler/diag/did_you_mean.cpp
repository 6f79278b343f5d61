// did_you_mean: nearest candidate by edit distance with transpositions (optimal string alignment).
#include <algorithm>

#include "compiler/diag/diagnostic.h"

namespace reflex::diag {
namespace {

// Why: longer names are compared by nobody's eye; bounds the cost of a lookup.
constexpr size_t kNameSizeMax = 128;

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

/// Cost: O(a * b). Three rows are enough for transpositions.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> two_back(b.size() + 1), back(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) {
    back[j] = j;
  }
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const bool same = lower(a[i - 1]) == lower(b[j - 1]);
      row[j] = std::min({back[j] + 1, row[j - 1] + 1, back[j - 1] + (same ? 0u : 1u)});
      if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) &&
          lower(a[i - 2]) == lower(b[j - 1])) {
        row[j] = std::min(row[j], two_back[j - 2] + 1);
      }
    }
    std::swap(two_back, back);
    std::swap(back, row);
  }
  return back[b.size()];
}

}  // namespace

std::optional<std::string> did_you_mean(std::string_view wrong,
                                        const std::vector<std::string>& candidates) {
  if (wrong.empty() || wrong.size() > kNameSizeMax) {
    return std::nullopt;
  }
  // Why: one slip in a short word, about one in three letters of a long one; more is another word.
  const size_t limit = wrong.size() <= 2 ? 1 : std::max<size_t>(1, wrong.size() / 3);
  std::optional<std::string> best;
  size_t best_distance = limit + 1;
  for (const std::string& candidate : candidates) {
    if (candidate == wrong || candidate.size() > kNameSizeMax) {
      continue;
    }
    const size_t distance = edit_distance(wrong, candidate);
    // A distance as large as the word shares no letter with it.
    if (distance >= wrong.size()) {
      continue;
    }
    if (distance < best_distance || (distance == best_distance && best && candidate < *best)) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

}  // namespace reflex::diag

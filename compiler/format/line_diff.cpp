// Unified difference of two texts by lines: Myers' greedy algorithm, O((n + m) d).
//
// Source: E. Myers, "An O(ND) Difference Algorithm and Its Variations", Algorithmica 1, 1986.
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/format/format.h"

namespace reflex::format {
namespace {

constexpr size_t kContext = 3;
// Why: the trace takes d^2 memory; texts further apart are shown as removed and added in whole.
constexpr int64_t kEditsMax = 4000;

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

struct Edit {
  char mark;  // ' ' both, '-' only before, '+' only after
  std::string_view line;
};

class Myers {
 public:
  Myers(std::vector<std::string_view> a, std::vector<std::string_view> b)
      : a_(std::move(a)),
        b_(std::move(b)),
        n_(static_cast<int64_t>(a_.size())),
        m_(static_cast<int64_t>(b_.size())) {}

  std::vector<Edit> run() {
    std::vector<std::vector<int64_t>> trace;
    std::vector<int64_t> furthest{0, 0, 0};  // of the diagonals -1 .. 1
    for (int64_t d = 0; d <= std::min(n_ + m_, kEditsMax); ++d) {
      std::vector<int64_t> next(static_cast<size_t>(2 * d + 3), 0);
      for (int64_t k = -d; k <= d; k += 2) {
        int64_t x = d == 0 ? 0 : step(furthest, d, k);
        while (x < n_ && x - k < m_ && a_[at(x)] == b_[at(x - k)]) ++x;
        next[at(k + d + 1)] = x;
        if (x < n_ || x - k < m_) continue;
        trace.push_back(std::move(next));
        return backtrack(trace, d, k);
      }
      trace.push_back(next);
      furthest = std::move(next);
    }
    std::vector<Edit> all;
    for (const auto line : a_) all.push_back({'-', line});
    for (const auto line : b_) all.push_back({'+', line});
    return all;
  }

 private:
  static size_t at(int64_t i) { return static_cast<size_t>(i); }
  /// Furthest x on diagonal k after d edits, from the diagonals of d - 1 edits (index k + d).
  static int64_t step(const std::vector<int64_t>& before, int64_t d, int64_t k) {
    const int64_t from_above = k + 1 <= d - 1 ? before[at(k + 1 + d)] : -1;
    const int64_t from_left = k - 1 >= -(d - 1) ? before[at(k - 1 + d)] + 1 : -1;
    return std::max(from_above, from_left);
  }

  std::vector<Edit> backtrack(const std::vector<std::vector<int64_t>>& trace, int64_t d,
                              int64_t k) const {
    std::vector<Edit> edits;
    int64_t x = n_;
    for (; d > 0; --d) {
      const auto& before = trace[at(d - 1)];
      const int64_t from_above = k + 1 <= d - 1 ? before[at(k + 1 + d)] : -1;
      const int64_t from_left = k - 1 >= -(d - 1) ? before[at(k - 1 + d)] + 1 : -1;
      const bool added = from_above >= from_left;
      const int64_t begin = std::max(from_above, from_left);
      for (; x > begin; --x) edits.push_back({' ', a_[at(x - 1)]});
      if (added) {
        edits.push_back({'+', b_[at(x - k - 1)]});
        k += 1;
      } else {
        edits.push_back({'-', a_[at(x - 1)]});
        --x;
        k -= 1;
      }
    }
    for (; x > 0; --x) edits.push_back({' ', a_[at(x - 1)]});
    std::reverse(edits.begin(), edits.end());
    return edits;
  }

  std::vector<std::string_view> a_;
  std::vector<std::string_view> b_;
  int64_t n_;
  int64_t m_;
};

std::string range_text(size_t first, size_t count) {
  std::string out = std::to_string(count == 0 ? first : first + 1);
  return count == 1 ? out : out + "," + std::to_string(count);
}

}  // namespace

std::string unified_diff(const std::string& name, const std::string& before,
                         const std::string& after) {
  if (before == after) return {};
  const std::vector<Edit> edits = Myers(lines_of(before), lines_of(after)).run();
  std::string out = "--- " + name + "\n+++ " + name + " (formatted)\n";
  size_t line_a = 0;  // lines of each side before edits[i]
  size_t line_b = 0;
  for (size_t i = 0; i < edits.size();) {
    if (edits[i].mark == ' ') {
      ++line_a, ++line_b, ++i;
      continue;
    }
    const size_t lead = std::min(i, kContext);
    size_t end = i;
    size_t last = i;  // the last change of the hunk
    while (end < edits.size() && end - last <= 2 * kContext) {
      if (edits[end].mark != ' ') last = end;
      ++end;
    }
    end = std::min(last + kContext + 1, edits.size());
    size_t begin = i;
    while (begin > i - lead && edits[begin - 1].mark == ' ') --begin;
    size_t count_a = 0;
    size_t count_b = 0;
    std::string body;
    for (size_t k = begin; k < end; ++k) {
      count_a += edits[k].mark != '+' ? 1 : 0;
      count_b += edits[k].mark != '-' ? 1 : 0;
      body += edits[k].mark + std::string(edits[k].line) + "\n";
    }
    out += "@@ -" + range_text(line_a - (i - begin), count_a) + " +" +
           range_text(line_b - (i - begin), count_b) + " @@\n" + body;
    for (; i < end; ++i) {
      line_a += edits[i].mark != '+' ? 1 : 0;
      line_b += edits[i].mark != '-' ? 1 : 0;
    }
  }
  return out;
}

}  // namespace reflex::format

// The timeline: when each signal began, one row for each entity, relative to the opening.
//
// The axis is x = asinh(seconds / 10): linear within some ten seconds of the opening, where order
// decides, logarithmic further out, where days of slow degradation stand.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <vector>

#include "runtime/base/time.h"
#include "runtime/explain/escape.h"
#include "runtime/explain/html_parts.h"
#include "runtime/explain/story.h"
#include "runtime/explain/verdict_words.h"

namespace reflex::explain {
namespace {

constexpr double kLeft = 190;
constexpr double kWidth = 1010;
constexpr double kRowStep = 28;
constexpr size_t kRowsMax = 24;  // Why: a screen; the table below the drawing holds all
constexpr double kLabelWidth = 120;

struct Mark {
  int64_t ts_ns;
  std::string entity;
  std::string signal;
  bool counts;  // false: a raw event behind a signal
  friend auto operator<=>(const Mark&, const Mark&) = default;
};

std::set<Mark> marks_of(const abi::Verdict& v) {
  std::set<Mark> out;
  for (const auto& h : v.hypotheses) {
    for (const auto& c : h.contributions) {
      if (c.onset_ns == kNoTimeNs) continue;
      out.insert({c.onset_ns, c.entity, c.signal, true});
      for (const auto& e : c.events) {
        if (e.ts_ns != kNoTimeNs) out.insert({e.ts_ns, c.entity, c.signal, false});
      }
    }
  }
  return out;
}

double scaled(int64_t ns) { return std::asinh(static_cast<double>(ns) / 1e9 / 10); }

class Axis {
 public:
  Axis(int64_t from_ns, int64_t to_ns) : lo_(scaled(from_ns)), hi_(scaled(to_ns)) {
    if (hi_ - lo_ < 0.1) hi_ = lo_ + 0.1;
  }
  [[nodiscard]] double x(int64_t offset_ns) const {
    return kLeft + (scaled(offset_ns) - lo_) / (hi_ - lo_) * (kWidth - kLeft - kLabelWidth);
  }

 private:
  double lo_;
  double hi_;
};

std::string ticks(const Axis& axis, int64_t from_ns, int64_t to_ns, double height) {
  static constexpr int64_t kSteps[] = {
      0,          10 * kNsPerSecond, kNsPerMinute, 10 * kNsPerMinute,
      kNsPerHour, 6 * kNsPerHour,    kNsPerDay,    7 * kNsPerDay};
  std::string out;
  for (const int64_t step : kSteps) {
    for (const int64_t at : {-step, step}) {
      if (at < from_ns || at > to_ns || (step == 0 && at != 0)) continue;
      const std::string x = px(axis.x(at));
      out += std::string("<line class=\"") + (at == 0 ? "opening" : "axis") + "\" x1=\"" + x +
             "\" x2=\"" + x + "\" y1=\"22\" y2=\"" + px(height) + "\"/><text class=\"soft\" x=\"" +
             x + "\" y=\"14\" text-anchor=\"middle\">" +
             (at == 0 ? "opened" : html(offset_text(at, 0))) + "</text>\n";
      if (step == 0) break;
    }
  }
  return out;
}

/// Rows: entities of the marks, the probable nodes first, then by the first mark.
std::vector<std::string> rows_of(const abi::Verdict& v, const std::set<Mark>& marks) {
  std::vector<std::string> out;
  std::set<std::string> known;
  const auto add = [&](const std::string& entity) {
    if (!entity.empty() && known.insert(entity).second) out.push_back(entity);
  };
  for (const auto& n : v.nodes) {
    if (n.level.empty()) continue;
    bool any = false;
    for (const Mark& m : marks) {
      if (m.entity == n.node || m.entity.rfind(n.node + "/", 0) == 0) add(m.entity), any = true;
    }
    if (!any) add(n.node);  // a named node without an onset is worth seeing, too
  }
  for (const Mark& m : marks) add(m.entity);
  for (const auto& n : v.nodes) {
    if (known.size() < kRowsMax) add(n.node);
  }
  if (out.size() > kRowsMax) out.resize(kRowsMax);
  return out;
}

std::string row_svg(const std::string& entity, double y, const std::set<Mark>& marks,
                    const Axis& axis, int64_t opened_ns) {
  std::string out = "<line class=\"axis\" x1=\"" + px(kLeft) + "\" x2=\"" + px(kWidth) +
                    "\" y1=\"" + px(y) + "\" y2=\"" + px(y) + "\"/><text x=\"4\" y=\"" + px(y + 4) +
                    "\"><title>" + html(entity) + "</title>" + html(shortened(entity, 26)) +
                    "</text>\n";
  double free_from = 0;  // labels that would overlap are left to the title of their mark
  for (const Mark& m : marks) {
    if (m.entity != entity) continue;
    const double x = axis.x(m.ts_ns - opened_ns);
    out += "<circle class=\"fill-for\" cx=\"" + px(x) + "\" cy=\"" + px(y) + "\" r=\"" +
           (m.counts ? "5" : "2") + "\"><title>" +
           html(m.signal + " on " + entity + " at " + offset_text(m.ts_ns, opened_ns)) +
           "</title></circle>";
    if (!m.counts || x < free_from) continue;
    out += "<text x=\"" + px(x + 8) + "\" y=\"" + px(y - 4) + "\">" +
           html(shortened(short_name(m.signal), 17)) + "</text>\n";
    free_from = x + kLabelWidth;
  }
  return out;
}

std::string table(const std::set<Mark>& marks, int64_t opened_ns) {
  std::string out =
      "<details><summary>The timeline as a table</summary><div class=\"scroll\"><table><thead><tr>"
      "<th scope=\"col\">time</th><th scope=\"col\" class=\"n\">from the opening</th><th "
      "scope=\"col\">"
      "entity</th><th scope=\"col\">signal</th></tr></thead><tbody>\n";
  for (const Mark& m : marks) {
    out += "<tr><td>" + html(to_rfc3339(EventTime{m.ts_ns})) + "</td><td class=\"n\">" +
           html(offset_text(m.ts_ns, opened_ns)) + "</td><td>" + html(m.entity) + "</td><td>" +
           html(m.signal) + (m.counts ? " began" : ", an event behind it") + "</td></tr>\n";
  }
  return out + "</tbody></table></div></details>\n";
}

}  // namespace

std::string timeline(const abi::Verdict& v) {
  const std::set<Mark> marks = marks_of(v);
  if (marks.empty()) return "<p>No signal fired.</p>\n";
  const int64_t opened = v.opened_ns;
  const int64_t from = std::min<int64_t>(marks.begin()->ts_ns - opened, -kNsPerSecond);
  int64_t to = std::max<int64_t>(marks.rbegin()->ts_ns - opened, kNsPerSecond);
  if (v.ts_ns != kNoTimeNs) to = std::max(to, v.ts_ns - opened);
  const Axis axis(from, to);
  const std::vector<std::string> rows = rows_of(v, marks);
  const double height = 34 + static_cast<double>(rows.size()) * kRowStep;
  std::string out =
      "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"timeline\">\n<svg "
      "role=\"img\" aria-labelledby=\"time-t time-d\" width=\"" +
      px(kWidth) + "\" height=\"" + px(height) + "\" viewBox=\"0 0 " + px(kWidth) + " " +
      px(height) + "\">\n<title id=\"time-t\">Timeline</title><desc id=\"time-d\">" +
      std::to_string(marks.size()) + " marks on " + std::to_string(rows.size()) +
      " rows; the table below has them as text.</desc>\n" + ticks(axis, from, to, height);
  double y = 44;
  for (const std::string& entity : rows) {
    out += row_svg(entity, y, marks, axis, opened);
    y += kRowStep;
  }
  return out +
         "</svg></div>\n<p class=\"soft\">Large marks: a signal began. Small: an event behind it. "
         "The "
         "axis is linear near the opening and logarithmic further out.</p>\n" +
         table(marks, opened);
}

}  // namespace reflex::explain

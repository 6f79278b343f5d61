// One hypothesis on the page: the prior and every contribution as a bar, then what did not count.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "runtime/base/time.h"
#include "runtime/explain/escape.h"
#include "runtime/explain/html_parts.h"
#include "runtime/explain/story.h"
#include "runtime/explain/verdict_words.h"

namespace reflex::explain {
namespace {

constexpr double kBarWidth = 176;

/// A bar from the middle: right = for the hypothesis, left = against it. The number stands in the
/// cell before, so the drawing is hidden from screen readers.
std::string bar(double nats, double scale, const char* fill) {
  const double half = kBarWidth / 2;
  const double length = scale > 0 ? std::min(std::abs(nats) / scale, 1.0) * (half - 2) : 0;
  const double x = nats < 0 ? half - length : half;
  return "<svg aria-hidden=\"true\" width=\"" + px(kBarWidth) +
         "\" height=\"14\"><line class=\"axis\"" + " x1=\"" + px(half) + "\" x2=\"" + px(half) +
         "\" y1=\"0\" y2=\"14\"/><rect class=\"" + fill + "\" x=\"" + px(x) +
         "\" y=\"2\" width=\"" + px(std::max(length, 0.5)) + "\" height=\"10\"/></svg>";
}

std::string exact_time(int64_t ts_ns) {
  return ts_ns == kNoTimeNs ? "" : to_rfc3339(EventTime{ts_ns});
}

std::string events_cell(const abi::Contribution& c) {
  std::string out;
  for (const auto& e : c.events) {
    if (!out.empty()) out += "<br>";
    out += "<code title=\"" + html(e.source + " " + exact_time(e.ts_ns)) + "\">" +
           html(event_text(e)) + "</code>";
  }
  return out;
}

std::string threshold_cell(const abi::Contribution& c) {
  std::string out = html(value_text(c));
  if (out.empty() && c.limit) {
    out = "limit " + html(number_text(*c.limit));
    if (!c.limit_origin.empty()) out += " (" + html(c.limit_origin) + ")";
  } else if (out.empty() && !c.limit_origin.empty()) {
    out = "limit of " + html(c.limit_origin);
  }
  return out;
}

std::string state_cell(const abi::Contribution& c) {
  std::string out(word(c.state));
  if (c.entity_count > 1) {
    out += ", " + std::to_string(c.fired_count) + " of " + std::to_string(c.entity_count);
  }
  if (c.firings > 1) out += ", " + std::to_string(c.firings) + " times";
  return out;
}

std::string row(const abi::Contribution& c, int64_t opened_ns, double scale) {
  std::string rule = "<code>" + html(place(c.rule)) + "</code>";
  if (!c.signal_where.file.empty()) {
    rule += "<br>signal <code>" + html(place(c.signal_where)) + "</code>";
  }
  return "<tr><td class=\"n\">" + nats_text(c.nats) + "</td><td class=\"bar\">" +
         bar(c.nats, scale, c.nats < 0 ? "fill-against" : "fill-for") + "</td><td>" +
         html(c.signal) + "</td><td>" + html(c.entity) + "<br><span class=\"soft\">" +
         html(c.scope) + "</span></td><td>" + state_cell(c) +
         "</td><td class=\"n\"><span title=\"" + html(exact_time(c.onset_ns)) + "\">" +
         html(offset_text(c.onset_ns, opened_ns)) + "</span></td><td>" + threshold_cell(c) +
         "</td><td>" + html(numbers(c)) + "</td><td>" + rule + "</td><td>" + events_cell(c) +
         "</td></tr>\n";
}

std::string item(const std::string& what, const std::string& signal, const std::string& entity,
                 const std::string& by, double lost) {
  return "<li>" + what + ": " + html(signal + " on " + entity) + ", " + html(by) + " (" +
         nats_text(-lost) + " nats)</li>\n";
}

std::string not_counted(const abi::Hypothesis& h) {
  std::string out;
  for (const auto& e : h.explained_away) {
    out += item("explained away", e.signal, e.entity, "by " + e.by, e.nats_lost);
  }
  for (const auto& e : h.suppressed)
    out += item("suppressed", e.signal, e.entity, e.by, e.nats_lost);
  for (const auto& u : h.unobserved) {
    out +=
        "<li>unobserved: " + html(u.signal + " on " + u.entity) + ", " + html(u.reason) + "</li>\n";
  }
  return out.empty() ? "" : "<h3>What did not count</h3>\n<ul>\n" + out + "</ul>\n";
}

}  // namespace

std::string px(double v) {
  char buffer[40];
  std::snprintf(buffer, sizeof buffer, "%.2f", std::isfinite(v) ? v : 0.0);
  return buffer;
}

std::string contribution_section(const abi::Hypothesis& h, int64_t opened_ns) {
  double scale = std::abs(h.prior_nats);
  for (const auto& c : h.contributions) scale = std::max(scale, std::abs(c.nats));
  std::string prior = "prior odds against \"no faulty node\"";
  if (!h.hazard_origin.empty()) {
    prior += ", history x" + number_text(h.hazard) + ": " + h.hazard_origin;
  }
  std::string out =
      "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"" +
      html("contributions of " + title(h)) + "\"><table>\n<caption>Weights of evidence in nats (" +
      html(title(h)) +
      "): prior plus contributions is the log-odds. To the right: for it; to the left: "
      "against it.</caption>\n<thead><tr>";
  for (const char* head : {"nats", "", "signal", "entity", "state", "onset", "value against limit",
                           "strength and leak", "rule", "events"}) {
    out += std::string("<th scope=\"col\"") +
           (head[0] == 'n' || head[0] == 'o' ? " class=\"n\">" : ">") +
           (head[0] == '\0' ? "bar" : head) + "</th>";
  }
  out += "</tr></thead>\n<tbody>\n<tr><td class=\"n\">" + nats_text(h.prior_nats) +
         "</td><td class=\"bar\">" + bar(h.prior_nats, scale, "fill-prior") +
         "</td><td colspan=\"8\">" + html(prior) + "</td></tr>\n";
  for (const auto& c : h.contributions) out += row(c, opened_ns, scale);
  out += "</tbody>\n<tfoot><tr><td class=\"n\"><strong>" + nats_text(h.log_odds_nats) +
         "</strong></td><td></td><td colspan=\"8\">log-odds; probability beside its rivals " +
         percent(h.p) + "</td></tr></tfoot></table></div>\n";
  return out + not_counted(h);
}

}  // namespace reflex::explain

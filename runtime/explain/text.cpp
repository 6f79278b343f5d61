// A verdict for a terminal: the answer, the nodes, and a contribution table for each hypothesis.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "runtime/explain/escape.h"
#include "runtime/explain/explain.h"
#include "runtime/explain/story.h"
#include "runtime/explain/verdict_words.h"

namespace reflex::explain {
namespace {

// Why: 12 cells show a factor of e a cell; more nats than this are all "certain".
constexpr double kBarCells = 12;

class Paint {
 public:
  explicit Paint(bool on) : on_(on) {}
  std::string bold(const std::string& s) const { return wrap("1", s); }
  std::string red(const std::string& s) const { return wrap("31", s); }
  std::string green(const std::string& s) const { return wrap("32", s); }
  std::string dim(const std::string& s) const { return wrap("2", s); }

 private:
  std::string wrap(const char* code, const std::string& s) const {
    return on_ ? "\x1b[" + std::string(code) + "m" + s + "\x1b[0m" : s;
  }
  bool on_;
};

std::string padded(std::string s, size_t width, bool right = false) {
  size_t shown = 0;  // code points
  for (char c : s) shown += (static_cast<unsigned char>(c) & 0xC0) != 0x80 ? 1 : 0;
  if (shown >= width) return s;
  const std::string fill(width - shown, ' ');
  return right ? fill + s : s + fill;
}

std::string bar(double nats) {
  const auto cells = static_cast<size_t>(std::clamp(std::round(std::abs(nats)), 0.0, kBarCells));
  return std::string(cells, nats < 0 ? '-' : '#');
}

// Why: a row must fit a screen; the JSON form holds all of them.
constexpr size_t kEventsShownMax = 3;
// Why: below it a row tells a reader nothing; 0.1 nats move a probability by at most 2.5 %.
constexpr double kShownNatsMin = 0.1;

bool is_small(const abi::Contribution& c) {
  return c.state == abi::SignalState::kSilent && std::abs(c.nats) < kShownNatsMin;
}

std::string events_text(const abi::Contribution& c) {
  std::string out;
  for (size_t i = 0; i < std::min(c.events.size(), kEventsShownMax); ++i) {
    out += (out.empty() ? "" : " ") + event_text(c.events[i]);
  }
  if (c.events.size() > kEventsShownMax) {
    out += " and " + std::to_string(c.events.size() - kEventsShownMax) + " more";
  }
  return out;
}

/// The many silent signals that hardly matter, as one line; they stay in the JSON form.
std::string small_ones_text(size_t count, double nats) {
  return "    " + padded(nats_text(nats), 8, true) + "  " + padded("", 12) + "  " +
         std::to_string(count) + " further signals below " + nats_text(kShownNatsMin) +
         " nats each\n";
}

std::string contribution_table(const abi::Hypothesis& h, int64_t opened_ns, const Paint& paint) {
  size_t signal = 6, entity = 6, onset = 5;
  for (const auto& c : h.contributions) {
    if (is_small(c)) continue;
    signal = std::max(signal, short_name(c.signal).size());
    entity = std::max(entity, c.entity.size());
    onset = std::max(onset, offset_text(c.onset_ns, opened_ns).size());
  }
  std::string out = paint.dim("    " + padded("nats", 8, true) + "  " + padded("", 12) + "  " +
                              padded("signal", signal) + "  " + padded("entity", entity) +
                              "  state   " + padded("onset", onset, true) + "  why\n");
  size_t small_count = 0;
  double small_nats = 0;
  for (const auto& c : h.contributions) {
    if (is_small(c)) {
      ++small_count;
      small_nats += c.nats;
      continue;
    }
    const std::string weight = padded(nats_text(c.nats), 8, true) + "  " + padded(bar(c.nats), 12);
    out += "    " + (c.nats < 0 ? paint.green(weight) : paint.red(weight)) + "  " +
           padded(short_name(c.signal), signal) + "  " + padded(c.entity, entity) + "  " +
           padded(std::string(word(c.state)), 6) + "  " +
           padded(offset_text(c.onset_ns, opened_ns), onset, true) + "  ";
    std::string why = value_text(c);
    if (c.firings > 1) why += (why.empty() ? "x" : ", x") + std::to_string(c.firings);
    why += (why.empty() ? "" : ", ") + numbers(c);
    if (const std::string at = place(c.rule); !at.empty()) why += ", " + at;
    if (const std::string ids = events_text(c); !ids.empty()) why += ", events " + ids;
    out += why + "\n";
  }
  if (small_count > 0) out += small_ones_text(small_count, small_nats);
  return out;
}

std::string hypothesis_text(const abi::Hypothesis& h, size_t rank, int64_t opened_ns,
                            const Paint& paint) {
  std::string out =
      "\n  " + std::to_string(rank) + ". " + paint.bold(title(h)) + "  " + percent(h.p);
  if (!h.hw_class.empty()) out += "  class " + h.hw_class;
  if (!h.severity.empty()) out += "  severity " + h.severity;
  if (!h.remedy.empty()) out += "  remedy " + h.remedy;
  out += "\n";
  if (h.what == abi::Hypothesis::What::kNone) return out;
  out += "     prior " + nats_text(h.prior_nats) + "  evidence " +
         nats_text(h.log_odds_nats - h.prior_nats) + "  log-odds " + nats_text(h.log_odds_nats) +
         " nats  began " + offset_text(h.onset_ns, opened_ns) + "\n";
  if (!h.hazard_origin.empty()) {
    out += "     history x" + number_text(h.hazard) + " in the prior: " + h.hazard_origin + "\n";
  }
  if (!h.contributions.empty()) out += contribution_table(h, opened_ns, paint);
  for (const auto& e : h.explained_away) {
    out += "     explained away: " + e.signal + " on " + e.entity + " by " + e.by + " (" +
           nats_text(-e.nats_lost) + " nats)\n";
  }
  for (const auto& x : h.suppressed) {
    out += "     suppressed: " + x.signal + " on " + x.entity + " by " + x.by + " (" +
           nats_text(-x.nats_lost) + " nats)\n";
  }
  for (const auto& u : h.unobserved) {
    out += "     unobserved: " + u.signal + " on " + u.entity + " (" + u.reason + ")\n";
  }
  return out;
}

std::string provenance(const abi::Verdict& v) {
  std::string out;
  if (v.late_events > 0) out += "  late events: " + std::to_string(v.late_events) + "\n";
  for (const std::string& p : v.pack_names) out += "  pack " + p + "\n";
  if (!v.model_sha256.empty()) out += "  model " + v.model_sha256 + "\n";
  if (v.table_version > 0) out += "  thresholds of table " + std::to_string(v.table_version) + "\n";
  for (const std::string& s : v.baseline_shifts) out += "  baseline moved: " + s + "\n";
  if (!v.engine.empty()) out += "  engine " + v.engine + "\n";
  return out;
}

// Why: a person who is woken up reads a screen, not a table; the rest is in --as full.
constexpr size_t kWhyLinesMax = 8;

/// The headline's probability is that of the node, with whichever fault.
std::string of_all_faults(const abi::Verdict& v, const abi::Hypothesis& h) {
  for (const auto& node : v.nodes) {
    if (h.node.empty() || node.node != h.node || percent(node.p) == percent(h.p)) continue;
    return ", " + percent(node.p) + " with all faults of " + h.node;
  }
  return "";
}

/// The reasons of the answer, strongest first; what is left over is summed up in one line.
std::vector<std::string> why_lines(const abi::Verdict& v, const abi::Hypothesis& h,
                                   const Paint& paint) {
  std::vector<const abi::Contribution*> by_weight;
  for (const auto& c : h.contributions) by_weight.push_back(&c);
  std::stable_sort(by_weight.begin(), by_weight.end(), [](const auto* a, const auto* b) {
    return std::abs(a->nats) > std::abs(b->nats);
  });
  std::vector<std::string> notes;
  for (const auto& e : h.explained_away) {
    notes.push_back(short_name(e.signal) + " on " + e.entity + " is explained by " + e.by);
  }
  for (const auto& s : h.suppressed) {
    notes.push_back(short_name(s.signal) + " on " + s.entity + " does not count: " + s.by);
  }
  if (!h.unobserved.empty()) {
    notes.push_back(std::to_string(h.unobserved.size()) + " signals could not be seen: " +
                    short_name(h.unobserved.front().signal) + " on " + h.unobserved.front().entity +
                    " (" + h.unobserved.front().reason + ")");
  }
  std::vector<std::string> out;
  out.push_back(padded(nats_text(h.prior_nats), 8, true) + "  prior" +
                (h.hazard_origin.empty()
                     ? ""
                     : ", history x" + number_text(h.hazard) + ": " + h.hazard_origin));
  const size_t kept_for_notes = std::min<size_t>(notes.size(), 2);
  size_t room = kWhyLinesMax - 2 - kept_for_notes;  // the prior above, the sum below
  if (by_weight.size() > room) --room;              // a line for the rest
  double rest = 0;
  size_t rest_count = 0;
  for (const auto* c : by_weight) {
    if (room > 0) {
      --room;
      const std::string nats = padded(nats_text(c->nats), 8, true);
      const std::string at = place(c->rule);
      out.push_back((c->nats < 0 ? paint.green(nats) : paint.red(nats)) + "  " +
                    reason(*c, v.opened_ns) + (at.empty() ? "" : paint.dim("  " + at)));
    } else {
      rest += c->nats;
      ++rest_count;
    }
  }
  if (rest_count > 0) {
    out.push_back(padded(nats_text(rest), 8, true) + "  " + std::to_string(rest_count) +
                  " smaller ones together");
  }
  out.push_back(padded(nats_text(h.log_odds_nats), 8, true) + "  sum: log-odds against \"no " +
                "faulty node\", " + percent(h.p) + " beside its rivals" + of_all_faults(v, h));
  for (size_t i = 0; i < kept_for_notes; ++i) out.push_back(padded("", 8) + "  " + notes[i]);
  return out;
}

/// An answer without contributions: what the runner-up lacked is the reason.
std::vector<std::string> why_none(const abi::Verdict& v, const Paint& paint) {
  for (const auto& h : v.hypotheses) {
    if (h.what == abi::Hypothesis::What::kNone) continue;
    std::vector<std::string> out{"the best candidate, " + title(h) + ", only has " + percent(h.p) +
                                 ":"};
    for (std::string& line : why_lines(v, h, paint)) {
      if (out.size() < kWhyLinesMax) out.push_back(std::move(line));
    }
    return out;
  }
  return {"no hypothesis has any evidence"};
}

}  // namespace

std::string to_brief(const abi::Verdict& verdict, bool color) {
  const abi::Verdict v = printable(verdict);
  const Paint paint(color);
  const std::string answer = headline(v);
  const bool bad = v.answer == abi::Answer::kNodes;
  std::string out = paint.bold(bad ? paint.red(answer) : paint.green(answer)) + "\n";
  out += "  " + sentence(v) + "\n";
  out += "  incident " + (v.incident.empty() ? v.incident_type : v.incident) + "  job " + v.job +
         " (" + std::to_string(v.job_node_count) + " nodes)";
  if (!v.symptom.empty()) out += "  symptom " + v.symptom;
  out += "\n  opened " + to_rfc3339(EventTime{v.opened_ns});
  if (!v.opened_by.empty()) out += " by " + v.opened_by;
  out += "  revision " + std::to_string(v.revision) + (v.final_revision ? " (final)" : "") + "\n";
  const abi::Hypothesis* h = lead(v);
  out += paint.bold("Why") + "\n";
  const bool none = !h || h->what == abi::Hypothesis::What::kNone;
  for (const std::string& line : none ? why_none(v, paint) : why_lines(v, *h, paint)) {
    out += "  " + line + "\n";
  }
  out += paint.bold("What to do") + "\n";
  for (const std::string& step : next_steps(v)) out += "  " + step + "\n";
  const auto other = changes(v);
  if (!other.empty()) out += paint.bold("What would change the answer") + "\n";
  for (const std::string& line : other) out += "  " + line + "\n";
  return out;
}

std::string to_text(const abi::Verdict& verdict, bool color) {
  const abi::Verdict v = printable(verdict);
  const Paint paint(color);
  std::string out = to_brief(v, color);
  if (!v.nodes.empty()) out += paint.bold("Nodes") + "\n";
  for (const auto& n : v.nodes) {
    out += "  " + padded(percent(n.p), 7, true) + "  " + n.node + "  " + short_name(n.top_cause);
    if (n.top_entity != n.node) out += " on " + n.top_entity;
    if (!n.level.empty()) out += "  " + paint.bold(n.level);
    out += "\n";
  }
  out += paint.bold("Hypotheses") + "\n";
  size_t rank = 0;
  for (const auto& h : v.hypotheses) out += hypothesis_text(h, ++rank, v.opened_ns, paint);
  out += provenance(v);
  return out;
}

std::string table_header(bool color) {
  return Paint(color).bold(padded("TIME", 24) + "  " + padded("JOB", 12) + "  " +
                           padded("INCIDENT", 12) + "  " + padded("REV", 5) + "  " +
                           padded("ANSWER", 28) + "  " + padded("P", 7, true) + "  BECAUSE");
}

std::string to_table_row(const abi::Verdict& verdict, bool color) {
  const abi::Verdict v = printable(verdict);
  const Paint paint(color);
  const bool bad = v.answer == abi::Answer::kNodes;
  double p = 0;
  std::string because;
  const auto fits = [&](const abi::Hypothesis& h) {
    using What = abi::Hypothesis::What;
    if (v.answer == abi::Answer::kNone) return h.what == What::kNone;
    if (v.answer == abi::Answer::kExternal) return h.what == What::kExternal;
    if (bad) return h.what == What::kNode && h.node == v.culprits.front();
    return true;
  };
  for (const auto& h : v.hypotheses) {
    if (!fits(h)) continue;
    p = h.p;
    because = short_name(h.cause);
    for (const auto& c : h.contributions) {
      if (c.state != abi::SignalState::kFired || c.nats <= 0) continue;
      because += ": " + short_name(c.signal) + " on " + c.entity;
      break;
    }
    break;
  }
  for (const auto& n : v.nodes) {
    if (bad && n.node == v.culprits.front()) p = n.p;
  }
  const std::string answer = padded(headline(v), 28);
  const std::string rev = std::to_string(v.revision) + (v.final_revision ? "f" : "");
  return padded(to_rfc3339(EventTime{v.ts_ns / kNsPerMs * kNsPerMs}), 24) + "  " +
         padded(v.job, 12) + "  " + padded(short_name(v.incident_type), 12) + "  " +
         padded(rev, 5) + "  " + (bad ? paint.red(answer) : paint.green(answer)) + "  " +
         padded(percent(p), 7, true) + "  " + because;
}

}  // namespace reflex::explain

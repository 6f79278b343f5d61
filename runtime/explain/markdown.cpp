// A verdict as Markdown for a ticket.
#include <cstdio>
#include <string_view>

#include "runtime/explain/explain.h"
#include "runtime/explain/story.h"
#include "runtime/explain/verdict_words.h"

namespace reflex::explain {
namespace {

// Names come from logs: a pipe or a line break must not break the table.
std::string cell(const std::string& s) {
  std::string out;
  for (char c : s) {
    // Brackets too: a name must not load a picture or lead anywhere.
    if (std::string_view("|\\`<*_[]!").find(c) != std::string_view::npos) out += '\\';
    out += c == '\n' || c == '\r' ? ' ' : c;
  }
  return out;
}

std::string fixed(double v, const char* format) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, format, v);
  return buffer;
}

void hypothesis(const abi::Hypothesis& h, size_t rank, int64_t opened_ns, std::string& out) {
  out += "\n### " + std::to_string(rank) + ". " + cell(title(h)) + ": " +
         fixed(h.p * 100, "%.2f %%") + "\n\n";
  if (h.what == abi::Hypothesis::What::kNone) return;
  out += "Prior " + fixed(h.prior_nats, "%+.2f") + ", log-odds " + fixed(h.log_odds_nats, "%+.2f") +
         " nats";
  if (!h.remedy.empty()) out += ", remedy " + cell(h.remedy);
  if (!h.hazard_origin.empty()) {
    out +=
        ", history x" + fixed(h.hazard, "%.3g") + " in the prior (" + cell(h.hazard_origin) + ")";
  }
  out += ".\n\n";
  if (!h.contributions.empty()) {
    out += "| nats | signal | entity | state | onset | value | numbers | rule |\n";
    out += "| ---: | --- | --- | --- | ---: | --- | --- | --- |\n";
  }
  for (const auto& c : h.contributions) {
    out += "| " + fixed(c.nats, "%+.2f") + " | " + cell(c.signal) + " | " + cell(c.entity) + " | " +
           std::string(word(c.state)) + " | " + offset_text(c.onset_ns, opened_ns) + " | " +
           cell(value_text(c)) + " | " + cell(numbers(c)) + " | " + cell(place(c.rule)) + " |\n";
  }
  for (const auto& e : h.explained_away) {
    out += "\n- explained away: " + cell(e.signal + " on " + e.entity + " by " + e.by) + " (" +
           fixed(-e.nats_lost, "%+.2f") + " nats)";
  }
  for (const auto& x : h.suppressed) {
    out += "\n- suppressed: " + cell(x.signal + " on " + x.entity + ": " + x.by) + " (" +
           fixed(-x.nats_lost, "%+.2f") + " nats)";
  }
  for (const auto& u : h.unobserved) {
    out += "\n- unobserved: " + cell(u.signal + " on " + u.entity) + " (" + cell(u.reason) + ")";
  }
  if (!h.explained_away.empty() || !h.suppressed.empty() || !h.unobserved.empty()) out += "\n";
}

}  // namespace

std::string to_markdown(const abi::Verdict& v) {
  std::string out = "## " + cell(headline(v)) + "\n\n" + cell(sentence(v)) + "\n\n";
  for (const std::string& step : next_steps(v)) out += "- **next:** " + cell(step) + "\n";
  out += "- job: " + cell(v.job) + " (" + std::to_string(v.job_node_count) + " nodes)\n";
  out += "- incident: " + cell(v.incident.empty() ? v.incident_type : v.incident) + ", revision " +
         std::to_string(v.revision) + (v.final_revision ? " (final)" : "") + "\n";
  out += "- opened: " + to_rfc3339(EventTime{v.opened_ns}) +
         (v.opened_by.empty() ? "" : " by " + cell(v.opened_by)) + "\n";
  for (const auto& n : v.nodes) {
    if (n.level.empty()) continue;
    out += "- " + n.level + ": " + cell(n.node) + " (" + fixed(n.p * 100, "%.2f %%") + "), " +
           cell(n.top_cause) + " on " + cell(n.top_entity) + "\n";
  }
  size_t rank = 0;
  for (const auto& h : v.hypotheses) hypothesis(h, ++rank, v.opened_ns, out);
  if (!v.counterfactual.empty()) out += "\n### What would change the answer\n\n";
  for (const std::string& line : changes(v)) out += "- " + cell(line) + "\n";
  out += "\n";
  for (const std::string& p : v.pack_names) out += "pack " + cell(p) + "  \n";
  if (!v.pack_sha256.empty()) out += "pack set sha256 " + v.pack_sha256 + "  \n";
  if (!v.model_sha256.empty()) out += "model sha256 " + cell(v.model_sha256) + "  \n";
  if (v.table_version > 0) out += "table version " + std::to_string(v.table_version) + "  \n";
  for (const std::string& s : v.baseline_shifts) out += "baseline moved: " + cell(s) + "  \n";
  if (!v.engine.empty()) out += "engine " + cell(v.engine) + "\n";
  return out;
}

}  // namespace reflex::explain

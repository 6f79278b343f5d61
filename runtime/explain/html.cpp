// The page: the answer first, then the evidence drawn, then every number.
#include <algorithm>

#include "runtime/base/time.h"
#include "runtime/explain/escape.h"
#include "runtime/explain/explain.h"
#include "runtime/explain/html_parts.h"
#include "runtime/explain/story.h"
#include "runtime/explain/verdict_words.h"

namespace reflex::explain {
namespace {

std::string fact(const char* name, const std::string& value) {
  if (value.empty()) return "";
  return std::string("<dt>") + name + "</dt><dd>" + html(value) + "</dd>\n";
}

std::string list(const std::vector<std::string>& lines) {
  std::string out = "<ul>\n";
  for (const std::string& line : lines) out += "<li>" + html(line) + "</li>\n";
  return out + "</ul>\n";
}

/// `default-src 'none'`: even a hostile name that found a way through could load and run nothing.
std::string head(const abi::Verdict& v) {
  return "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
         "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
         "'unsafe-inline'\">\n<meta name=\"viewport\" content=\"width=device-width, "
         "initial-scale=1\">\n<meta name=\"referrer\" content=\"no-referrer\">\n<title>" +
         html(headline(v) + " - Reflex") + "</title>\n<style>" + std::string(page_style()) +
         "</style>\n</head>\n<body>\n<a class=\"skip\" href=\"#main\">Skip to the answer</a>\n";
}

std::string answer_part(const abi::Verdict& v) {
  std::string out = "<main id=\"main\">\n<h1>" + html(headline(v)) + "</h1>\n<p class=\"answer" +
                    std::string(v.answer == abi::Answer::kNodes ? " bad" : "") + "\">" +
                    html(sentence(v)) + "</p>\n<h2>What to do</h2>\n" + list(next_steps(v));
  if (const auto other = changes(v); !other.empty()) {
    out += "<h2>What would change the answer</h2>\n" + list(other);
  }
  return out;
}

std::string facts(const abi::Verdict& v) {
  std::string out = "<h2>Incident</h2>\n<dl class=\"facts\">\n";
  out += fact("incident",
              v.incident.empty() ? v.incident_type : v.incident + " (" + v.incident_type + ")");
  out +=
      fact("job", v.job.empty() ? "" : v.job + ", " + std::to_string(v.job_node_count) + " nodes");
  out += fact("symptom", v.symptom);
  out += fact("opened", to_rfc3339(EventTime{v.opened_ns}) +
                            (v.opened_by.empty() ? "" : " by " + v.opened_by));
  out +=
      fact("this revision", std::to_string(v.revision) + (v.final_revision ? " (final), " : ", ") +
                                to_rfc3339(EventTime{v.ts_ns}));
  out += fact("late events", v.late_events > 0 ? std::to_string(v.late_events) : "");
  return out + "</dl>\n";
}

std::string nodes_table(const abi::Verdict& v) {
  if (v.nodes.empty()) return "";
  std::string out =
      "<h2>Nodes</h2>\n<div class=\"scroll\"><table>\n<caption>Probability that the node is at "
      "fault</caption>\n<thead><tr><th scope=\"col\">node</th><th scope=\"col\" class=\"n\">"
      "probability</th><th scope=\"col\">level</th><th scope=\"col\">most likely fault</th></tr>"
      "</thead>\n<tbody>\n";
  for (const auto& n : v.nodes) {
    out += "<tr><th scope=\"row\">" + html(n.node) + "</th><td class=\"n\">" + percent(n.p) +
           "</td><td>" + html(n.level.empty() ? "not listed" : n.level) + "</td><td>" +
           html(n.top_cause + (n.top_entity.empty() ? "" : " on " + n.top_entity)) + "</td></tr>\n";
  }
  return out + "</tbody></table></div>\n";
}

std::string hypotheses(const abi::Verdict& v) {
  std::string out = "<h2>Hypotheses, best first</h2>\n";
  const abi::Hypothesis* first = lead(v);
  size_t rank = 0;
  for (const auto& h : v.hypotheses) {
    std::string line = std::to_string(++rank) + ". " + title(h) + ", " + percent(h.p);
    if (h.what == abi::Hypothesis::What::kNone) {
      out += "<p>" + html(line) + " (the reference: 0 nats)</p>\n";
      continue;
    }
    if (!h.hw_class.empty()) line += ", class " + h.hw_class;
    if (!h.severity.empty()) line += ", " + h.severity;
    if (!h.remedy.empty()) line += ", remedy " + h.remedy;
    out += std::string("<details") + (&h == first || rank == 1 ? " open" : "") + "><summary>" +
           html(line) + "</summary>\n" + contribution_section(h, v.opened_ns) + "</details>\n";
  }
  return out;
}

std::string provenance(const abi::Verdict& v) {
  std::string out = "<h2>Made from</h2>\n<dl class=\"facts\">\n";
  for (const std::string& p : v.pack_names) out += fact("pack", p);
  out += fact("pack set sha256", v.pack_sha256);
  out +=
      fact("model sha256", v.model_sha256.empty() ? "none: the authors' numbers" : v.model_sha256);
  out += fact("threshold table",
              v.table_version == 0 ? "0: the authors' defaults" : std::to_string(v.table_version));
  for (const std::string& s : v.baseline_shifts) out += fact("baseline moved", s);
  out += fact("engine", v.engine);
  out += fact("verdict id", v.id);
  return out + "</dl>\n";
}

}  // namespace

std::string to_html(const abi::Verdict& v) {
  std::string out = head(v) + answer_part(v) + facts(v);
  out += "<h2>Evidence graph</h2>\n" + evidence_graph(v);
  out += "<h2>Timeline</h2>\n" + timeline(v);
  out += nodes_table(v) + hypotheses(v) + provenance(v);
  return out + "</main>\n</body>\n</html>\n";
}

}  // namespace reflex::explain

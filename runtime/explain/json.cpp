// to_json: one verdict as one NDJSON object (language.md B8, runtime/verdict.schema.json).
//
// snake_case, instants RFC 3339, durations in seconds (`_s`), unknown as null, fixed member order.
#include <cmath>
#include <nlohmann/json.hpp>

#include "runtime/explain/explain.h"
#include "runtime/explain/verdict_words.h"

namespace reflex::explain {
namespace {

using Json = nlohmann::ordered_json;

Json instant(int64_t ts_ns) {
  return ts_ns == kNoTimeNs ? Json() : Json(to_rfc3339(EventTime{ts_ns}));
}
Json number(double v) { return std::isfinite(v) ? Json(v) : Json(); }
Json number(const std::optional<double>& v) { return v ? number(*v) : Json(); }
Json text(const std::string& s) { return s.empty() ? Json() : Json(s); }

Json place(const abi::SourceRef& where) {
  if (where.file.empty()) return Json();
  return Json{{"file", where.file}, {"line", where.line}, {"column", where.column}};
}

Json event(const abi::EventRefText& e) {
  return Json{{"source", e.source}, {"seq", e.seq}, {"ts", instant(e.ts_ns)}, {"id", text(e.id)}};
}

Json contribution(const abi::Contribution& c, int64_t opened_ns) {
  Json j;
  j["signal"] = c.signal;
  j["entity"] = c.entity;
  j["scope"] = c.scope;
  j["state"] = word(c.state);
  j["nats"] = number(c.nats);
  j["entity_count"] = c.entity_count;
  j["fired_count"] = c.fired_count;
  j["onset"] = instant(c.onset_ns);
  j["onset_offset_s"] =
      c.onset_ns == kNoTimeNs ? Json() : Json(static_cast<double>(c.onset_ns - opened_ns) / 1e9);
  j["firings"] = c.firings;
  j["value"] = number(c.value);
  j["limit"] = c.limit || !c.limit_origin.empty()
                   ? Json{{"value", number(c.limit)}, {"origin", text(c.limit_origin)}}
                   : Json();
  j["p"] = number(c.p);
  j["leak"] = number(c.leak);
  j["leak_origin"] = text(c.leak_origin);
  j["multiplier"] = number(c.multiplier);
  j["rule"] = place(c.rule);
  j["signal_rule"] = place(c.signal_where);
  j["events"] = Json::array();
  for (const auto& e : c.events) j["events"].push_back(event(e));
  return j;
}

Json hypothesis(const abi::Hypothesis& h, int64_t opened_ns) {
  Json j;
  j["what"] = word(h.what);
  j["node"] = text(h.node);
  j["entity"] = text(h.entity);
  j["fault"] = text(h.cause);
  j["hw_class"] = text(h.hw_class);
  j["severity"] = text(h.severity);
  j["remedy"] = text(h.remedy);
  j["p"] = number(h.p);
  j["prior_nats"] = number(h.prior_nats);
  j["log_odds_nats"] = number(h.log_odds_nats);
  j["onset"] = instant(h.onset_ns);
  j["hazard"] = number(h.hazard);
  j["hazard_origin"] = text(h.hazard_origin);
  j["contributions"] = Json::array();
  for (const auto& c : h.contributions) j["contributions"].push_back(contribution(c, opened_ns));
  j["explained_away"] = Json::array();
  for (const auto& e : h.explained_away) {
    j["explained_away"].push_back(Json{{"signal", e.signal},
                                       {"entity", e.entity},
                                       {"by", e.by},
                                       {"nats_lost", number(e.nats_lost)}});
  }
  j["unobserved"] = Json::array();
  for (const auto& u : h.unobserved) {
    j["unobserved"].push_back(
        Json{{"signal", u.signal}, {"entity", u.entity}, {"reason", u.reason}});
  }
  j["suppressed"] = Json::array();
  for (const auto& s : h.suppressed) {
    j["suppressed"].push_back(Json{{"signal", s.signal},
                                   {"entity", s.entity},
                                   {"by", s.by},
                                   {"nats_lost", number(s.nats_lost)}});
  }
  return j;
}

Json packs(const abi::Verdict& v) {
  Json list = Json::array();
  for (const std::string& name : v.pack_names) {  // "std.nvidia 1.0.0"
    const size_t space = name.rfind(' ');
    const bool versioned = space != std::string::npos;
    list.push_back(Json{{"name", name.substr(0, space)},
                        {"version", versioned ? Json(name.substr(space + 1)) : Json()}});
  }
  return Json{{"packs", list}, {"sha256", text(v.pack_sha256)}};
}

}  // namespace

std::string to_json(const abi::Verdict& v, bool with_timing) {
  Json j;
  j["schema"] = "reflex.verdict/1";
  j["id"] = v.id;
  j["incident"] = v.incident;
  j["incident_type"] = v.incident_type;
  j["job"] = text(v.job);
  j["symptom"] = text(v.symptom);
  j["revision"] = v.revision;
  j["final"] = v.final_revision;
  j["ts"] = instant(v.ts_ns);
  j["opened"] = instant(v.opened_ns);
  j["opened_by"] = text(v.opened_by);
  j["pack"] = packs(v);
  j["model"] = text(v.model_sha256);
  j["table_version"] = v.table_version;
  j["baseline_shifts"] = v.baseline_shifts;
  j["engine"] = text(v.engine);
  j["answer"] = word(v.answer);
  j["level"] = v.level;
  j["culprits"] = v.culprits;
  j["external"] = text(v.external);
  j["job_node_count"] = v.job_node_count;
  j["late_events"] = v.late_events;
  j["nodes"] = Json::array();
  for (const auto& n : v.nodes) {
    j["nodes"].push_back(Json{{"node", n.node},
                              {"p", number(n.p)},
                              {"level", text(n.level)},
                              {"fault", text(n.top_cause)},
                              {"entity", text(n.top_entity)}});
  }
  j["hypotheses"] = Json::array();
  for (const auto& h : v.hypotheses) j["hypotheses"].push_back(hypothesis(h, v.opened_ns));
  j["counterfactual"] = Json::array();
  for (const auto& c : v.counterfactual) {
    j["counterfactual"].push_back(
        Json{{"without", c.without}, {"answer", c.answer}, {"exact", c.exact}});
  }
  if (with_timing) j["timing"] = Json{{"latency_ms", number(v.latency_ms)}};
  return j.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace reflex::explain

// from_json: reads back what to_json wrote (input of `reflex explain`).
//
// Lenient about members that are missing or null (additive schema), strict about what is there.
#include <nlohmann/json.hpp>

#include "runtime/explain/explain.h"
#include "runtime/explain/verdict_words.h"

namespace reflex::explain {
namespace {

using Json = nlohmann::json;

// A member of the wrong type; caught in from_json, never leaves this file.
struct Malformed {
  std::string message;
};

const Json* member(const Json& j, const char* name) {
  if (!j.is_object()) throw Malformed{std::string("no object around ") + name};
  const auto it = j.find(name);
  return it == j.end() || it->is_null() ? nullptr : &*it;
}

std::string text(const Json& j, const char* name) {
  const Json* m = member(j, name);
  if (!m) return "";
  if (!m->is_string()) throw Malformed{std::string(name) + " is not a string"};
  return m->get<std::string>();
}

std::optional<double> maybe_number(const Json& j, const char* name) {
  const Json* m = member(j, name);
  if (!m) return std::nullopt;
  if (!m->is_number()) throw Malformed{std::string(name) + " is not a number"};
  return m->get<double>();
}
double number(const Json& j, const char* name, double missing = 0) {
  return maybe_number(j, name).value_or(missing);
}

bool flag(const Json& j, const char* name, bool missing) {
  const Json* m = member(j, name);
  if (!m) return missing;
  if (!m->is_boolean()) throw Malformed{std::string(name) + " is not a boolean"};
  return m->get<bool>();
}

template <typename T>
T count(const Json& j, const char* name) {
  const Json* m = member(j, name);
  if (!m) return 0;
  if (!m->is_number_unsigned()) throw Malformed{std::string(name) + " is not a count"};
  return m->get<T>();
}

int64_t instant(const Json& j, const char* name) {
  const std::string s = text(j, name);
  if (s.empty()) return kNoTimeNs;
  const auto t = parse_rfc3339(s);
  if (!t) throw Malformed{std::string(name) + " is not an RFC 3339 time"};
  return t->ns;
}

const Json& list(const Json& j, const char* name) {
  static const Json kEmpty = Json::array();
  const Json* m = member(j, name);
  if (!m) return kEmpty;
  if (!m->is_array()) throw Malformed{std::string(name) + " is not a list"};
  return *m;
}

std::vector<std::string> texts(const Json& j, const char* name) {
  std::vector<std::string> out;
  for (const Json& item : list(j, name)) {
    if (!item.is_string())
      throw Malformed{std::string(name) + " holds something that is no string"};
    out.push_back(item.get<std::string>());
  }
  return out;
}

abi::SourceRef place(const Json& j, const char* name) {
  abi::SourceRef r;
  if (const Json* m = member(j, name)) {
    r.file = text(*m, "file");
    r.line = count<uint32_t>(*m, "line");
    r.column = count<uint32_t>(*m, "column");
  }
  return r;
}

abi::Contribution contribution(const Json& j) {
  abi::Contribution c;
  c.signal = text(j, "signal");
  c.entity = text(j, "entity");
  c.scope = text(j, "scope");
  const auto state = signal_state(text(j, "state"));
  if (!state) throw Malformed{"unknown state of a contribution"};
  c.state = *state;
  c.nats = number(j, "nats");
  c.entity_count = count<uint32_t>(j, "entity_count");
  c.fired_count = count<uint32_t>(j, "fired_count");
  c.onset_ns = instant(j, "onset");
  c.firings = count<uint32_t>(j, "firings");
  c.value = maybe_number(j, "value");
  if (const Json* limit = member(j, "limit")) {
    c.limit = maybe_number(*limit, "value");
    c.limit_origin = text(*limit, "origin");
  }
  c.p = number(j, "p");
  c.leak = number(j, "leak");
  c.leak_origin = text(j, "leak_origin");
  c.multiplier = number(j, "multiplier", 1);
  c.rule = place(j, "rule");
  c.signal_where = place(j, "signal_rule");
  for (const Json& e : list(j, "events")) {
    c.events.push_back(
        {text(e, "source"), count<uint64_t>(e, "seq"), instant(e, "ts"), text(e, "id")});
  }
  return c;
}

abi::Hypothesis hypothesis(const Json& j) {
  abi::Hypothesis h;
  const auto kind = what(text(j, "what"));
  if (!kind) throw Malformed{"unknown kind of hypothesis"};
  h.what = *kind;
  h.node = text(j, "node");
  h.entity = text(j, "entity");
  h.cause = text(j, "fault");
  h.hw_class = text(j, "hw_class");
  h.severity = text(j, "severity");
  h.remedy = text(j, "remedy");
  h.p = number(j, "p");
  h.prior_nats = number(j, "prior_nats");
  h.log_odds_nats = number(j, "log_odds_nats");
  h.onset_ns = instant(j, "onset");
  h.hazard = number(j, "hazard", 1);
  h.hazard_origin = text(j, "hazard_origin");
  for (const Json& c : list(j, "contributions")) h.contributions.push_back(contribution(c));
  for (const Json& e : list(j, "explained_away")) {
    h.explained_away.push_back(
        {text(e, "signal"), text(e, "entity"), text(e, "by"), number(e, "nats_lost")});
  }
  for (const Json& s : list(j, "suppressed")) {
    h.suppressed.push_back(
        {text(s, "signal"), text(s, "entity"), text(s, "by"), number(s, "nats_lost")});
  }
  for (const Json& u : list(j, "unobserved")) {
    h.unobserved.push_back({text(u, "signal"), text(u, "entity"), text(u, "reason")});
  }
  return h;
}

void read_identity(const Json& j, abi::Verdict& v) {
  v.id = text(j, "id");
  v.incident = text(j, "incident");
  v.incident_type = text(j, "incident_type");
  v.job = text(j, "job");
  v.symptom = text(j, "symptom");
  v.revision = count<uint32_t>(j, "revision");
  v.final_revision = flag(j, "final", false);
  v.ts_ns = instant(j, "ts");
  v.opened_ns = instant(j, "opened");
  v.opened_by = text(j, "opened_by");
  if (const Json* pack = member(j, "pack")) {
    v.pack_sha256 = text(*pack, "sha256");
    for (const Json& p : list(*pack, "packs")) {
      const std::string version = text(p, "version");
      v.pack_names.push_back(text(p, "name") + (version.empty() ? "" : " " + version));
    }
  }
  v.model_sha256 = text(j, "model");
  v.table_version = count<uint64_t>(j, "table_version");
  v.baseline_shifts = texts(j, "baseline_shifts");
  v.engine = text(j, "engine");
}

abi::Verdict verdict(const Json& j) {
  abi::Verdict v;
  read_identity(j, v);
  const auto a = answer(text(j, "answer"));
  if (!a) throw Malformed{"unknown answer"};
  v.answer = *a;
  v.level = text(j, "level");
  v.culprits = texts(j, "culprits");
  v.external = text(j, "external");
  v.job_node_count = count<uint32_t>(j, "job_node_count");
  v.late_events = count<uint32_t>(j, "late_events");
  for (const Json& n : list(j, "nodes")) {
    v.nodes.push_back(
        {text(n, "node"), number(n, "p"), text(n, "level"), text(n, "fault"), text(n, "entity")});
  }
  for (const Json& h : list(j, "hypotheses")) v.hypotheses.push_back(hypothesis(h));
  for (const Json& c : list(j, "counterfactual")) {
    abi::Counterfactual x;
    x.without = texts(c, "without");
    x.answer = text(c, "answer");
    x.exact = flag(c, "exact", true);
    v.counterfactual.push_back(std::move(x));
  }
  if (const Json* timing = member(j, "timing")) v.latency_ms = number(*timing, "latency_ms");
  return v;
}

}  // namespace

Result<abi::Verdict> from_json(std::string_view line) {
  const Json j = Json::parse(line, nullptr, false);
  if (j.is_discarded()) return Error{"the verdict is not JSON"};
  if (!j.is_object()) return Error{"the verdict is not a JSON object"};
  try {
    const std::string schema = text(j, "schema");
    if (schema != "reflex.verdict/1") {
      return Error{"not a verdict of schema reflex.verdict/1 (schema: " +
                   (schema.empty() ? std::string("none") : schema) + ")"};
    }
    return verdict(j);
  } catch (const Malformed& m) {
    return Error{"malformed verdict: " + m.message};
  } catch (const Json::exception&) {
    return Error{"malformed verdict: a member has the wrong type"};
  }
}

}  // namespace reflex::explain

// to_json: one verdict as one NDJSON object (language.md B8, runtime/verdict.schema.json).
//
// snake_case, instants RFC 3339, durations in seconds (`_s`), unknown as null, fixed member order.
// Written straight into one text: a tree of JSON values costs ten times as much, and a replay writes
// 100 kB a verdict. Numbers and unusual texts are written by nlohmann::json.
#include <array>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "runtime/explain/explain.h"
#include "runtime/explain/verdict_words.h"

namespace reflex::explain {
namespace {

bool is_plain(std::string_view s) {
  for (const char c : s) {
    if (c < 0x20 || c > 0x7e || c == '"' || c == '\\') return false;
  }
  return true;
}

/// Objects and arrays are closed by whoever opened them; commas come by themselves.
class Writer {
 public:
  std::string take() { return std::move(out_); }

  void open(char bracket) {
    comma();
    out_ += bracket;
    first_ = true;
  }
  void close(char bracket) {
    out_ += bracket;
    first_ = false;
  }
  Writer& key(std::string_view name) {  // our own names: nothing to escape
    comma();
    out_ += '"';
    out_ += name;
    out_ += "\":";
    first_ = true;
    return *this;
  }
  void null() { raw("null"); }
  void boolean(bool b) { raw(b ? "true" : "false"); }
  void integer(uint64_t v) {
    std::array<char, 24> buffer;
    const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), v);
    raw({buffer.data(), static_cast<size_t>(end.ptr - buffer.data())});
  }
  void number(double v) {
    if (!std::isfinite(v)) return null();
    std::array<char, 64> buffer;
    const char* end =
        nlohmann::detail::to_chars(buffer.data(), buffer.data() + buffer.size(), v);
    raw({buffer.data(), static_cast<size_t>(end - buffer.data())});
  }
  void number(const std::optional<double>& v) { v ? number(*v) : null(); }
  /// Also when it is empty.
  void string(std::string_view s) {
    if (!is_plain(s)) {
      raw(nlohmann::json(s).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
      return;
    }
    comma();
    out_ += '"';
    out_ += s;
    out_ += '"';
  }
  void text(std::string_view s) { s.empty() ? null() : string(s); }
  void instant(int64_t ts_ns) {
    ts_ns == kNoTimeNs ? null() : string(to_rfc3339(EventTime{ts_ns}));
  }
  void strings(const std::vector<std::string>& list) {
    open('[');
    for (const std::string& s : list) string(s);
    close(']');
  }

 private:
  void comma() {
    if (!first_) out_ += ',';
    first_ = false;
  }
  void raw(std::string_view s) {
    comma();
    out_ += s;
  }

  std::string out_;
  bool first_ = true;
};

void place(Writer& w, const abi::SourceRef& where) {
  if (where.file.empty()) return w.null();
  w.open('{');
  w.key("file").string(where.file);
  w.key("line").integer(where.line);
  w.key("column").integer(where.column);
  w.close('}');
}

void event(Writer& w, const abi::EventRefText& e) {
  w.open('{');
  w.key("source").string(e.source);
  w.key("seq").integer(e.seq);
  w.key("ts").instant(e.ts_ns);
  w.key("id").text(e.id);
  w.close('}');
}

void limit(Writer& w, const abi::Contribution& c) {
  if (!c.limit && c.limit_origin.empty()) return w.null();
  w.open('{');
  w.key("value").number(c.limit);
  w.key("origin").text(c.limit_origin);
  w.close('}');
}

void contribution(Writer& w, const abi::Contribution& c, int64_t opened_ns) {
  w.open('{');
  w.key("signal").string(c.signal);
  w.key("entity").string(c.entity);
  w.key("scope").string(c.scope);
  w.key("state").string(word(c.state));
  w.key("nats").number(c.nats);
  w.key("entity_count").integer(c.entity_count);
  w.key("fired_count").integer(c.fired_count);
  w.key("onset").instant(c.onset_ns);
  w.key("onset_offset_s");
  if (c.onset_ns == kNoTimeNs)
    w.null();
  else
    w.number(static_cast<double>(c.onset_ns - opened_ns) / 1e9);
  w.key("firings").integer(c.firings);
  w.key("value").number(c.value);
  limit(w.key("limit"), c);
  w.key("p").number(c.p);
  w.key("leak").number(c.leak);
  w.key("leak_origin").text(c.leak_origin);
  w.key("multiplier").number(c.multiplier);
  place(w.key("rule"), c.rule);
  place(w.key("signal_rule"), c.signal_where);
  w.key("events").open('[');
  for (const auto& e : c.events) event(w, e);
  w.close(']');
  w.close('}');
}

template <typename Lost>  // ExplainedAway, Suppressed
void lost(Writer& w, std::string_view name, const std::vector<Lost>& list) {
  w.key(name).open('[');
  for (const Lost& e : list) {
    w.open('{');
    w.key("signal").string(e.signal);
    w.key("entity").string(e.entity);
    w.key("by").string(e.by);
    w.key("nats_lost").number(e.nats_lost);
    w.close('}');
  }
  w.close(']');
}

void hypothesis(Writer& w, const abi::Hypothesis& h, int64_t opened_ns) {
  w.open('{');
  w.key("what").string(word(h.what));
  w.key("node").text(h.node);
  w.key("entity").text(h.entity);
  w.key("fault").text(h.cause);
  w.key("hw_class").text(h.hw_class);
  w.key("severity").text(h.severity);
  w.key("remedy").text(h.remedy);
  w.key("p").number(h.p);
  w.key("prior_nats").number(h.prior_nats);
  w.key("log_odds_nats").number(h.log_odds_nats);
  w.key("onset").instant(h.onset_ns);
  w.key("hazard").number(h.hazard);
  w.key("hazard_origin").text(h.hazard_origin);
  w.key("contributions").open('[');
  for (const auto& c : h.contributions) contribution(w, c, opened_ns);
  w.close(']');
  lost(w, "explained_away", h.explained_away);
  w.key("unobserved").open('[');
  for (const auto& u : h.unobserved) {
    w.open('{');
    w.key("signal").string(u.signal);
    w.key("entity").string(u.entity);
    w.key("reason").string(u.reason);
    w.close('}');
  }
  w.close(']');
  lost(w, "suppressed", h.suppressed);
  w.close('}');
}

void packs(Writer& w, const abi::Verdict& v) {
  w.open('{');
  w.key("packs").open('[');
  for (const std::string& name : v.pack_names) {  // "std.nvidia 1.0.0"
    const size_t space = name.rfind(' ');
    w.open('{');
    w.key("name").string(std::string_view(name).substr(0, space));
    w.key("version");
    if (space == std::string::npos)
      w.null();
    else
      w.string(std::string_view(name).substr(space + 1));
    w.close('}');
  }
  w.close(']');
  w.key("sha256").text(v.pack_sha256);
  w.close('}');
}

void identity(Writer& w, const abi::Verdict& v) {
  w.key("schema").string("reflex.verdict/1");
  w.key("id").string(v.id);
  w.key("incident").string(v.incident);
  w.key("incident_type").string(v.incident_type);
  w.key("job").text(v.job);
  w.key("symptom").text(v.symptom);
  w.key("revision").integer(v.revision);
  w.key("final").boolean(v.final_revision);
  w.key("ts").instant(v.ts_ns);
  w.key("opened").instant(v.opened_ns);
  w.key("opened_by").text(v.opened_by);
  packs(w.key("pack"), v);
  w.key("model").text(v.model_sha256);
  w.key("table_version").integer(v.table_version);
  w.key("baseline_shifts").strings(v.baseline_shifts);
  w.key("engine").text(v.engine);
  w.key("answer").string(word(v.answer));
  w.key("level").string(v.level);
  w.key("culprits").strings(v.culprits);
  w.key("external").text(v.external);
  w.key("job_node_count").integer(v.job_node_count);
  w.key("late_events").integer(v.late_events);
}

void nodes(Writer& w, const abi::Verdict& v) {
  w.key("nodes").open('[');
  for (const auto& n : v.nodes) {
    w.open('{');
    w.key("node").string(n.node);
    w.key("p").number(n.p);
    w.key("level").text(n.level);
    w.key("fault").text(n.top_cause);
    w.key("entity").text(n.top_entity);
    w.close('}');
  }
  w.close(']');
}

}  // namespace

std::string to_json(const abi::Verdict& v, bool with_timing) {
  Writer w;
  w.open('{');
  identity(w, v);
  nodes(w, v);
  w.key("hypotheses").open('[');
  for (const auto& h : v.hypotheses) hypothesis(w, h, v.opened_ns);
  w.close(']');
  w.key("counterfactual").open('[');
  for (const auto& c : v.counterfactual) {
    w.open('{');
    w.key("without").strings(c.without);
    w.key("answer").string(c.answer);
    w.key("exact").boolean(c.exact);
    w.close('}');
  }
  w.close(']');
  if (with_timing) {
    w.key("timing").open('{');
    w.key("latency_ms").number(v.latency_ms);
    w.close('}');
  }
  w.close('}');
  return w.take();
}

}  // namespace reflex::explain

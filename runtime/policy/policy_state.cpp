// Alerts and meters as a saved state: rules and actions by name.
#include <fmt/format.h>

#include <algorithm>

#include "runtime/policy/policy.h"

namespace reflex::policy {
namespace {

int64_t after(int64_t ts_ns, int64_t span_ns) {
  int64_t sum;
  return span_ns <= 0 || __builtin_add_overflow(ts_ns, span_ns, &sum) ? INT64_MAX : sum;
}

void save_named(StateWriter& writer, const Named& named) {
  writer.u64(named.size());
  for (const auto& [name, value] : named) {
    writer.text(name);
    writer.text(value);
  }
}

Named load_named(StateReader& reader) {
  Named named;
  for (size_t left = reader.count(2); left > 0 && !reader.failed(); --left) {
    std::string name(reader.text());
    named.emplace_back(std::move(name), reader.text());
  }
  return named;
}

void save_alert(StateWriter& writer, const Alert& alert) {
  for (const std::string* text : {&alert.id, &alert.rule, &alert.state, &alert.reason,
                                  &alert.incident, &alert.job, &alert.node, &alert.verdict,
                                  &alert.severity}) {
    writer.text(*text);
  }
  writer.u64(alert.revision);
  writer.i64(alert.ts_ns);
  writer.i64(alert.since_ns);
  save_named(writer, alert.labels);
  save_named(writer, alert.annotations);
}

Alert load_alert(StateReader& reader) {
  Alert alert;
  for (std::string* text : {&alert.id, &alert.rule, &alert.state, &alert.reason, &alert.incident,
                            &alert.job, &alert.node, &alert.verdict, &alert.severity}) {
    *text = reader.text();
  }
  alert.revision = static_cast<uint32_t>(reader.bounded(UINT32_MAX));
  alert.ts_ns = reader.i64();
  alert.since_ns = reader.i64();
  alert.labels = load_named(reader);
  alert.annotations = load_named(reader);
  return alert;
}

}  // namespace

void Policy::save_meters(StateWriter& writer) const {
  writer.u64(meters_.size());
  size_t next = 0;
  for (const auto& rule : pack_->rules) {
    for (size_t i = 0; i < rule.actions.size(); ++i) {
      if (next == meters_.size() || meters_[next].plan != &rule.actions[i]) continue;
      writer.text(rule.name);
      writer.u64(i);
      writer.text(rule.actions[i].name);
      const auto& done = meters_[next++].done;
      writer.u64(done.size());
      for (const auto& [ts_ns, group] : done) {
        writer.i64(ts_ns);
        writer.text(group);
      }
    }
  }
}

void Policy::load_meters(StateReader& reader) {
  for (size_t left = reader.count(4); left > 0 && !reader.failed(); --left) {
    const std::string_view name = reader.text();
    const uint64_t index = reader.u64();
    const std::string_view action = reader.text();
    const abi::ActionPlan* plan = nullptr;
    for (const auto& rule : pack_->rules) {
      const bool same = rule.name == name && index < rule.actions.size();
      if (same && rule.actions[index].name == action) plan = &rule.actions[index];
    }
    const auto meter = std::find_if(meters_.begin(), meters_.end(),
                                    [&](const Meter& m) { return m.plan == plan; });
    for (size_t i = reader.count(2); i > 0 && !reader.failed(); --i) {
      const int64_t ts_ns = reader.i64();
      std::string group(reader.text());
      if (meter != meters_.end()) meter->done.emplace_back(ts_ns, std::move(group));
    }
  }
}

void Policy::save(StateWriter& writer) const {
  writer.begin("policy");
  writer.text(pack_->set_sha256);
  writer.u64(active_.size());
  for (const auto& [key, active] : active_) {
    save_alert(writer, active.alert);
    writer.i64(active.repeat_ns);
    writer.i64(active.resolve_ns);
    writer.text(active.record);
  }
  writer.u64(ended_.size());
  for (const auto& [key, reason] : ended_) {
    writer.text(key.first);
    writer.text(key.second);
  }
  save_meters(writer);
  writer.end();
}

bool Policy::still_holds(const abi::RulePlan& rule, std::string_view record, int64_t& ts_ns) {
  now_ = record_.decode(record);
  if (now_ == nullptr) return true;  // nothing is known: the next revision decides
  ts_ns = now_->ts_ns;
  uint64_t out = 0;
  return rule.where == abi::kNone32 || eval(rule.where, out) == abi::kTrue;
}

void Policy::load_active(StateReader& reader, bool same_set, std::vector<std::string>& notes) {
  for (size_t left = reader.count(16); left > 0 && !reader.failed(); --left) {
    Active active;
    active.alert = load_alert(reader);
    active.repeat_ns = reader.i64();
    active.resolve_ns = reader.i64();
    active.record = reader.text();
    if (reader.failed()) return;
    for (const auto& rule : pack_->rules) {
      if (rule.name == active.alert.rule) active.rule = &rule;
    }
    const Key key{active.alert.rule, active.alert.incident};
    int64_t ts_ns = active.alert.ts_ns;
    if (active.rule == nullptr) {
      ended_.emplace_back(key, "rule removed");
    } else if (!same_set && !still_holds(*active.rule, active.record, ts_ns)) {
      ended_.emplace_back(key, "rule changed");
    } else if (!same_set) {
      // When it is said again stands, but for a rule that says it sooner now, or never.
      const int64_t anew_ns = after(active.alert.ts_ns, active.rule->repeat_ns);
      active.repeat_ns =
          active.rule->repeat_ns > 0 ? std::min(active.repeat_ns, anew_ns) : anew_ns;
      active.resolve_ns = after(ts_ns, active.rule->resolve_ns);
    }
    if (!ended_.empty() && ended_.back().first == key) {
      notes.push_back(fmt::format("alert {} of {} ends: {}", key.first, key.second,
                                  ended_.back().second));
    }
    active_[key] = std::move(active);
  }
}

Status Policy::load(StateReader& reader, std::vector<std::string>& notes) {
  if (!reader.enter("policy")) return Error{"the state of the alerts is damaged"};
  const std::string_view sha = reader.text();
  const bool same_set = !sha.empty() && sha == pack_->set_sha256;
  load_active(reader, same_set, notes);
  for (size_t left = reader.count(2); left > 0 && !reader.failed(); --left) {
    const std::string rule(reader.text());
    const Key key{rule, std::string(reader.text())};
    const bool listed = std::any_of(ended_.begin(), ended_.end(),
                                    [&](const auto& entry) { return entry.first == key; });
    if (!listed && active_.contains(key)) ended_.emplace_back(key, "rule changed");
  }
  load_meters(reader);
  reader.leave();
  if (reader.failed()) return Error{"the state of the alerts is damaged"};
  return ok_status();
}

}  // namespace reflex::policy

// The life of alerts, and the limits of actions; see policy.h.
#include "runtime/policy/policy.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/topology/host_services.h"

namespace reflex::policy {
namespace {

uint64_t fnv1a(std::string_view text, uint64_t hash) {
  for (const char c : text) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001b3ULL;
  }
  return hash;
}

int64_t after(int64_t ts_ns, int64_t span_ns) {
  int64_t sum;
  return span_ns <= 0 || __builtin_add_overflow(ts_ns, span_ns, &sum) ? INT64_MAX : sum;
}

bool same_words(const Alert& a, const Alert& b) {
  return a.severity == b.severity && a.labels == b.labels && a.annotations == b.annotations;
}

}  // namespace

Policy::Policy(std::shared_ptr<const abi::CompiledPack> pack,
               std::shared_ptr<const topology::Topology> topology, PolicySinks sinks)
    : pack_(std::move(pack)),
      topology_(std::move(topology)),
      sinks_(std::move(sinks)),
      record_(pack_) {
  for (const auto& rule : pack_->rules) {
    for (const auto& action : rule.actions) {
      if (action.limit > 0) meters_.push_back({&action, {}});
    }
  }
}

abi::Truth Policy::eval(abi::ExprId expr, uint64_t& out) {
  topology::HostState host{topology_.get(), pack_->symbols.get(), nullptr, nullptr};
  abi::EvalContext context;
  context.now_ns = now_->ts_ns;
  context.host = &topology::host_services();
  context.host_state = &host;
  return static_cast<abi::Truth>(pack_->code->expr(expr, 0)(now_, &context, &out));
}

void Policy::on_verdict(const abi::Verdict& verdict) {
  if (pack_->rules.empty() && active_.empty()) return;
  advance(verdict.ts_ns);
  now_ = &record_.fill(verdict);
  for (const auto& rule : pack_->rules) {
    if (pack_->incidents[rule.incident].name == verdict.incident_type) apply(rule, verdict);
  }
}

void Policy::apply(const abi::RulePlan& rule, const abi::Verdict& verdict) {
  uint64_t out = 0;
  const bool holds = rule.where == abi::kNone32 || eval(rule.where, out) == abi::kTrue;
  const abi::Hypothesis* top = VerdictRecord::top(verdict);
  const std::string node = top == nullptr ? "" : top->node;
  const Key key{rule.name, verdict.incident};
  const auto it = active_.find(key);
  if (it != active_.end() && (!holds || it->second.alert.node != node)) {
    resolve(key, verdict.ts_ns, "revised");
  } else if (it != active_.end()) {
    return update(it->second, verdict);
  }
  if (holds) fire(rule, verdict, node);
}

void Policy::fire(const abi::RulePlan& rule, const abi::Verdict& verdict,
                  const std::string& node) {
  Active active;
  active.rule = &rule;
  Alert& alert = active.alert;
  const std::string identity =
      fmt::format("{}|{}|{}|{}", pack_->set_sha256, rule.name, verdict.incident, node);
  alert.id = fmt::format("a-{:016x}", fnv1a(identity, 0xcbf29ce484222325ULL));
  alert.rule = rule.name;
  alert.state = "firing";
  alert.reason = "new";
  alert.incident = verdict.incident;
  alert.job = verdict.job;
  alert.node = node;
  alert.since_ns = verdict.ts_ns;
  describe(rule, verdict, alert);
  active.repeat_ns = after(alert.ts_ns, rule.repeat_ns);
  active.resolve_ns = after(alert.ts_ns, rule.resolve_ns);
  active.record = record_.encode();
  sinks_.alert(alert);
  run_actions(rule, alert);
  active_[{rule.name, verdict.incident}] = std::move(active);
}

void Policy::update(Active& active, const abi::Verdict& verdict) {
  const Alert before = active.alert;
  describe(*active.rule, verdict, active.alert);
  active.resolve_ns = after(verdict.ts_ns, active.rule->resolve_ns);
  active.record = record_.encode();
  if (same_words(before, active.alert)) return;
  active.alert.reason = "updated";
  active.repeat_ns = after(verdict.ts_ns, active.rule->repeat_ns);
  sinks_.alert(active.alert);
}

void Policy::resolve(const Key& key, int64_t ts_ns, const char* reason) {
  const auto it = active_.find(key);
  Alert alert = std::move(it->second.alert);
  active_.erase(it);
  alert.state = "resolved";
  alert.reason = reason;
  alert.ts_ns = ts_ns;
  sinks_.alert(alert);
}

// In the order of time, then of the keys: what is due does not depend on when it is asked for.
void Policy::advance(int64_t to_ns) {
  for (const auto& [key, reason] : ended_) resolve(key, to_ns, reason);
  ended_.clear();
  for (;;) {
    const Key* next = nullptr;
    int64_t due = INT64_MAX;
    for (const auto& [key, active] : active_) {
      const int64_t at = std::min(active.repeat_ns, active.resolve_ns);
      if (at < due) {
        due = at;
        next = &key;
      }
    }
    if (next == nullptr || due > to_ns) return;
    Active& active = active_[*next];
    if (active.resolve_ns <= due) {
      resolve(Key(*next), due, "expired");
      continue;
    }
    active.alert.reason = "repeat";
    active.alert.ts_ns = due;
    active.repeat_ns = after(due, active.rule->repeat_ns);
    sinks_.alert(active.alert);
  }
}

void Policy::finish(int64_t end_ns) { advance(end_ns); }

void Policy::describe(const abi::RulePlan& rule, const abi::Verdict& verdict, Alert& out) {
  out.verdict = verdict.id;
  out.revision = verdict.revision;
  out.ts_ns = verdict.ts_ns;
  out.severity = rule.severity == abi::kNone32 ? "" : text_of(rule.severity);
  out.labels.clear();
  out.annotations.clear();
  for (const auto& label : rule.labels) out.labels.emplace_back(label.name, text_of(label.value));
  for (const auto& annotation : rule.annotations) {
    std::string text;
    for (const auto& part : annotation.parts) {
      if (part.expr == abi::kNone32) {
        text += part.text;
        continue;
      }
      const std::string value = text_of(part.expr, part.format);
      text += value.empty() ? "-" : value;
    }
    out.annotations.emplace_back(annotation.name, std::move(text));
  }
}

std::string Policy::limited_by(const abi::ActionPlan& plan, int64_t ts_ns) {
  for (Meter& meter : meters_) {
    if (meter.plan != &plan) continue;
    while (!meter.done.empty() && meter.done.front().first <= ts_ns - plan.window_ns) {
      meter.done.pop_front();
    }
    const std::string group =
        plan.per_value == abi::kNone32 ? std::string() : text_of(plan.per_value);
    const auto count = std::count_if(meter.done.begin(), meter.done.end(),
                                     [&](const auto& entry) { return entry.second == group; });
    if (count < plan.limit) return "";
    return fmt::format("limit of {}{} in {}", plan.limit,
                       plan.per.empty() ? "" : fmt::format(" per {} ({})", plan.per, group),
                       to_text(Duration{plan.window_ns}));
  }
  return "";
}

void Policy::count_action(const std::string& name, int64_t ts_ns) {
  for (Meter& meter : meters_) {
    if (meter.plan->name != name) continue;
    const std::string group =
        meter.plan->per_value == abi::kNone32 ? std::string() : text_of(meter.plan->per_value);
    meter.done.emplace_back(ts_ns, group);
  }
}

void Policy::run_actions(const abi::RulePlan& rule, const Alert& alert) {
  for (const auto& plan : rule.actions) {
    ActionRequest request;
    request.alert = alert.id;
    request.rule = rule.name;
    request.action = plan.name;
    request.mode = plan.live ? "live" : "dry_run";
    request.ts_ns = alert.ts_ns;
    bool known = true;
    for (const abi::ExprId arg : plan.args) {
      request.args.push_back(text_of(arg));
      known = known && !request.args.back().empty();
    }
    const std::string limit = limited_by(plan, alert.ts_ns);
    if (!known) {
      request.outcome = "skipped";
      request.reason = "an argument is not known";
    } else if (!limit.empty()) {
      request.outcome = "limited";
      request.reason = limit;
    } else {
      // A dry run counts too: it shows what the live one would do.
      request.outcome = plan.live ? "requested" : "dry_run";
      count_action(plan.name, alert.ts_ns);
    }
    sinks_.action(request);
  }
}

}  // namespace reflex::policy

// Incidents and their revisions: see incident_tracker.h.
#include "runtime/engine/incident_tracker.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>

#include "runtime/base/check.h"
#include "runtime/base/time.h"
#include "runtime/engine/engine_version.h"
#include "runtime/topology/host_services.h"

namespace reflex::engine {
namespace {

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
// Why: evidence comes in bursts, most of it at once. A look in the second after it came
// is as fast as a person reads.
constexpr int64_t kRevisionStepNs = kNsPerSecond;
// Why: a look passes over what is too old anyway, so trimming only bounds the memory; it visits every
// series of every node, and a quarter of the look-back is little to keep beyond it.
constexpr int64_t kTrimShare = 4;
constexpr int64_t kTrimEveryMinNs = 10 * kNsPerMinute;
constexpr int64_t kTrimEveryMaxNs = kNsPerDay;

std::vector<int64_t> lookbacks(const abi::CompiledPack& pack, const attribution::Graph& graph) {
  int64_t settle = 0;
  for (const auto& plan : pack.incidents) settle = std::max(settle, plan.settle_ns);
  std::vector<int64_t> result;
  result.reserve(pack.signals.size());
  for (abi::SignalId s = 0; s < pack.signals.size(); ++s) {
    result.push_back(graph.lookback_ns(s) + settle);
  }
  return result;
}

uint64_t fnv1a(std::string_view text, uint64_t hash) {
  for (const char c : text) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001b3ULL;
  }
  return hash;
}

// Names are looked up once each: the table of names has a lock.
void sort_by_name(std::vector<attribution::NodeView>& nodes, const SymbolTable& names) {
  std::vector<std::pair<std::string_view, size_t>> order;
  order.reserve(nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i) order.emplace_back(names.name(nodes[i].node), i);
  std::sort(order.begin(), order.end());
  std::vector<attribution::NodeView> sorted;
  sorted.reserve(nodes.size());
  for (const auto& [name, i] : order) sorted.push_back(std::move(nodes[i]));
  nodes = std::move(sorted);
}

}  // namespace

IncidentTracker::IncidentTracker(std::shared_ptr<const abi::CompiledPack> pack,
                                 std::shared_ptr<const attribution::Graph> graph,
                                 std::shared_ptr<const topology::Topology> topology,
                                 const Coverage& coverage, Adaptation& adaptation,
                                 const EngineOptions& options)
    : pack_(std::move(pack)),
      graph_(std::move(graph)),
      topology_(std::move(topology)),
      coverage_(coverage),
      log_(pack_, lookbacks(*pack_, *graph_)),
      opened_by_signal_(pack_->signals.size()),
      opened_by_kind_(pack_->kinds.size()),
      options_(options),
      adaptation_(adaptation),
      next_due_ns_(kNever) {
  int64_t longest = 0;
  for (const int64_t lookback : lookbacks(*pack_, *graph_)) longest = std::max(longest, lookback);
  trim_every_ns_ = std::clamp(longest / kTrimShare, kTrimEveryMinNs, kTrimEveryMaxNs);
  for (const auto& plan : pack_->incidents) {
    for (const abi::SignalId s : plan.open_signals) opened_by_signal_[s].push_back(&plan);
    for (size_t i = 0; i < plan.open_kinds.size(); ++i) {
      const abi::ExprId where =
          i < plan.open_predicates.size() ? plan.open_predicates[i] : abi::kNone32;
      opened_by_kind_[plan.open_kinds[i]].push_back({&plan, where});
    }
  }
  for (const auto& identity : pack_->packs) {
    pack_names_.push_back(identity.name + " " + identity.version);
  }
}

void IncidentTracker::process(const std::vector<abi::Firing>& firings,
                              const std::vector<const abi::Record*>& records, int64_t watermark_ns,
                              const EngineSinks& sinks) {
  size_t r = 0;
  const auto open_records_until = [&](int64_t ts_ns) {
    for (; r < records.size() && records[r]->ts_ns <= ts_ns; ++r) {
      run_due(records[r]->ts_ns - 1, sinks);
      on_record(*records[r], sinks);
    }
  };
  for (const auto& firing : firings) {
    open_records_until(firing.ts_ns);
    run_due(firing.ts_ns - 1, sinks);
    on_firing(firing, sinks);
  }
  open_records_until(watermark_ns);
  // Evaluations at the watermark itself wait: more firings of that instant may still come.
  if (watermark_ns > std::numeric_limits<int64_t>::min()) run_due(watermark_ns - 1, sinks);
  flush(sinks);
  if (last_trim_ns_ == kNoTimeNs || watermark_ns - last_trim_ns_ >= trim_every_ns_) {
    log_.trim(watermark_ns);
    last_trim_ns_ = watermark_ns;
  }
  forget_closed(watermark_ns);
}

void IncidentTracker::finish(const EngineSinks& sinks) {
  run_due(kNever - 1, sinks);
  flush(sinks);
}

SymbolId IncidentTracker::job_of_entity(const abi::EntityKey& entity, int64_t ts_ns) const {
  const auto& keys = pack_->entity_kinds[entity.kind].keys;
  for (size_t i = 0; i < keys.size(); ++i) {
    if (keys[i] == "job") return static_cast<SymbolId>(entity.values[i]);
  }
  if (!keys.empty() && keys[0] == "node") {
    return topology_->job_of(static_cast<SymbolId>(entity.values[0]), ts_ns);
  }
  return kNoSymbol;
}

void IncidentTracker::note_repair(const abi::Record& record) {
  if (options_.ablate.history) return;
  const auto node = [&record](unsigned slot) { return static_cast<SymbolId>(record.i64(slot)); };
  if (record.kind == abi::kNodeRepaired && record.has(0)) {
    log_.repaired(node(0), std::nullopt, record.ts_ns);
  }
  if (record.kind == abi::kGpuReplaced && record.has(0) && record.has(1)) {
    log_.repaired(node(0), record.i64(1), record.ts_ns);
  }
  for (const abi::RepairPlan& plan : pack_->repairs) {
    if (plan.kind != record.kind || !record.has(plan.node_slot)) continue;
    log_.repaired(node(plan.node_slot), std::nullopt, record.ts_ns);
  }
}

void IncidentTracker::on_record(const abi::Record& record, const EngineSinks& sinks) {
  note_repair(record);
  if (adaptation_.wants(record.kind)) {
    flush(sinks);
    adaptation_.on_record(record);
  }
  if (!opened_by_kind_[record.kind].empty()) on_open_record(record, sinks);
}

// Within an hour a firing changes no rate that is read, but that of a node that was never seen.
void IncidentTracker::tell_habits(const abi::Firing& firing, const EngineSinks& sinks) {
  if (!pending_.empty()) {
    const int64_t since_ns = pending_.front()->input.now_ns;
    const bool same_hour = firing.ts_ns / adapt::kEpochNs == since_ns / adapt::kEpochNs;
    const bool seen = adaptation_.knows(static_cast<SymbolId>(firing.entity.values[0]));
    if (same_hour && seen) {
      habits_waiting_.push_back(&firing);
      return;
    }
    flush(sinks);
  }
  adaptation_.on_firing(firing);
}

void IncidentTracker::on_firing(const abi::Firing& firing, const EngineSinks& sinks) {
  log_.add(firing);
  const auto& keys = pack_->entity_kinds[firing.entity.kind].keys;
  if (!keys.empty() && keys[0] == "node") {
    tell_habits(firing, sinks);
    const auto it = by_node_.find(static_cast<SymbolId>(firing.entity.values[0]));
    if (it != by_node_.end()) {
      for (Open* incident : it->second) mark_dirty(*incident, firing.ts_ns);
    }
  } else {
    for (auto& incident : incidents_) {
      if (keys.empty() || keys[0] != "job" || incident->job == firing.entity.values[0]) {
        mark_dirty(*incident, firing.ts_ns);
      }
    }
  }
  if (firing.change != abi::FiringChange::kStart) return;
  for (const abi::IncidentPlan* plan : opened_by_signal_[firing.signal]) {
    const SymbolId job = job_of_entity(firing.entity, firing.ts_ns);
    if (job == kNoSymbol) {
      ++unplaced_count_;
      continue;
    }
    open(*plan, job, firing.ts_ns, "", "", pack_->signals[firing.signal].name, sinks);
  }
}

void IncidentTracker::on_open_record(const abi::Record& record, const EngineSinks& sinks) {
  const auto& schema = pack_->kinds[record.kind];
  SymbolId job = kNoSymbol;
  SymbolId node = kNoSymbol;
  std::string id;
  std::string symptom;
  for (unsigned i = 0; i < schema.fields.size(); ++i) {
    if (!record.has(i)) continue;
    const auto& name = schema.fields[i].name;
    const auto symbol = static_cast<SymbolId>(record.i64(i));
    if (name == "job") job = symbol;
    if (name == "node") node = symbol;
    if (name == "incident") id = pack_->symbols->name(symbol);
    if (name == "symptom") symptom = pack_->symbols->name(symbol);
  }
  if (job == kNoSymbol && node != kNoSymbol) job = topology_->job_of(node, record.ts_ns);
  for (const KindTrigger& trigger : opened_by_kind_[record.kind]) {
    if (!holds(trigger.where, record)) continue;
    if (job == kNoSymbol) {
      ++unplaced_count_;
      continue;
    }
    open(*trigger.plan, job, record.ts_ns, id, symptom, schema.name, sinks);
  }
}

bool IncidentTracker::holds(abi::ExprId where, const abi::Record& record) const {
  if (where == abi::kNone32) return true;
  topology::HostState host{topology_.get(), pack_->symbols.get(), nullptr, nullptr};
  abi::EvalContext context;
  context.now_ns = record.ts_ns;
  context.host = &topology::host_services();
  context.host_state = &host;
  uint64_t out = 0;
  return pack_->code->expr(where, 0)(&record, &context, &out) == abi::kTrue;
}

void IncidentTracker::open(const abi::IncidentPlan& plan, SymbolId job, int64_t ts_ns,
                           std::string id, std::string symptom, std::string opened_by,
                           const EngineSinks& sinks) {
  for (auto& other : incidents_) {
    if (other->plan != &plan || other->job != job || ts_ns > other->merge_until_ns) continue;
    if (id.empty() || id == other->id) {
      mark_dirty(*other, ts_ns);
      return;
    }
    if (!other->closed && !other->asked) {
      flush(sinks);  // what is due of it goes by its old name
      adopt(*other, ts_ns, std::move(id), std::move(symptom));
      return;
    }
  }
  // What came before the opening is counted before its nodes are held, as on one thread.
  if (!habits_waiting_.empty()) flush(sinks);
  auto incident = std::make_unique<Open>();
  incident->plan = &plan;
  incident->job = job;
  incident->opened_ns = ts_ns;
  incident->final_ns = ts_ns + plan.settle_ns;
  incident->merge_until_ns = ts_ns + plan.merge_ns;
  incident->next_ns = options_.finals_only ? kNever : ts_ns;
  incident->asked = !id.empty();
  incident->symptom = std::move(symptom);
  incident->opened_by = std::move(opened_by);
  incident->id = !id.empty() ? std::move(id)
                             : fmt::format("{}/{}/{}", plan.name, pack_->symbols->name(job),
                                           to_rfc3339(EventTime{ts_ns}));
  fill_nodes(*incident);
  sort_by_name(incident->nodes, *pack_->symbols);
  for (const auto& view : incident->nodes) by_node_[view.node].push_back(incident.get());
  adaptation_.on_opened(incident->nodes, ts_ns, incident->final_ns);
  next_due_ns_ = std::min({next_due_ns_, incident->next_ns, incident->final_ns});
  incidents_.push_back(std::move(incident));
  ++opened_count_;
}

void IncidentTracker::adopt(Open& incident, int64_t ts_ns, std::string id, std::string symptom) {
  incident.asked = true;
  incident.id = std::move(id);
  if (!symptom.empty()) incident.symptom = std::move(symptom);
  incident.final_ns = std::max(incident.final_ns, ts_ns + incident.plan->settle_ns);
  incident.signature.clear();  // the next look is given out, under the new name
  mark_dirty(incident, ts_ns);
}

void IncidentTracker::fill_nodes(Open& incident) const {
  const int64_t at = incident.opened_ns;
  const SymbolId rack_key = pack_->symbols->intern("rack");
  const SymbolId tor_key = pack_->symbols->intern("tor");
  const SymbolId pod_key = pack_->symbols->intern("pod");
  const SymbolId zone_key = pack_->symbols->intern("zone");
  std::set<SymbolId> known;
  std::set<std::pair<SymbolId, SymbolId>> groups;
  const auto add = [&](SymbolId node, bool in_job) {
    if (!known.insert(node).second) return;
    attribution::NodeView view;
    view.node = node;
    view.hw_class = topology_->hw_class(node, at);
    view.rack = topology_->label(node, rack_key, at);
    view.tor = topology_->label(node, tor_key, at);
    view.pod = topology_->label(node, pod_key, at);
    view.zone = topology_->label(node, zone_key, at);
    if (!options_.ablate.history) view.repaired_ns = topology_->last_repair_ns(node, at);
    view.in_job = in_job;
    if (in_job && view.rack != kNoSymbol) groups.insert({rack_key, view.rack});
    if (in_job && view.tor != kNoSymbol) groups.insert({tor_key, view.tor});
    incident.nodes.push_back(view);
  };
  for (const SymbolId node : topology_->nodes_of(incident.job, at)) add(node, true);
  incident.job_node_count = static_cast<uint32_t>(incident.nodes.size());
  const bool needs_groups =
      std::any_of(pack_->edges.begin(), pack_->edges.end(), [](const abi::EdgePlan& e) {
        return e.scope == abi::Scope::kRack || e.scope == abi::Scope::kTor;
      });
  if (!needs_groups) return;
  const auto in_job_groups = groups;  // the loop below adds nodes, not groups of the job
  for (const auto& [key, value] : in_job_groups) {
    for (const SymbolId node : topology_->members(key, value, at)) add(node, false);
  }
}

void IncidentTracker::mark_dirty(Open& incident, int64_t ts_ns) {
  if (options_.finals_only || incident.closed || ts_ns > incident.final_ns) return;
  if (incident.next_ns != kNever) return;
  const int64_t since = ts_ns - incident.opened_ns;
  const int64_t step = (since / kRevisionStepNs + 1) * kRevisionStepNs;
  // At most eight looks: the wait for the next one doubles, from a 64th of the settle window.
  const int64_t looked =
      incident.looked_ns == kNoTimeNs ? 0 : incident.looked_ns - incident.opened_ns;
  const int64_t wait = std::max({kRevisionStepNs, incident.plan->settle_ns / 64, looked});
  const int64_t next = std::max(step, looked + wait);
  incident.next_ns = std::min(incident.opened_ns + next, incident.final_ns);
  next_due_ns_ = std::min(next_due_ns_, incident.next_ns);
}

void IncidentTracker::run_due(int64_t up_to_ns, const EngineSinks& sinks) {
  while (next_due_ns_ <= up_to_ns) {
    const int64_t at = next_due_ns_;
    for (auto& incident : incidents_) {
      if (incident->closed) continue;
      const int64_t due = std::min(incident->next_ns, incident->final_ns);
      if (due == at) evaluate(*incident, at, sinks);
    }
    next_due_ns_ = kNever;
    for (const auto& incident : incidents_) {
      if (incident->closed) continue;
      next_due_ns_ = std::min({next_due_ns_, incident->next_ns, incident->final_ns});
    }
  }
}

void IncidentTracker::collect_evidence(const Open& incident, int64_t at_ns,
                                       std::vector<attribution::Evidence>& out) {
  EvidenceLog::Look look{incident.opened_ns, at_ns, kNoTimeNs};
  for (const auto& view : incident.nodes) {
    look.since_ns = view.repaired_ns;
    log_.collect("node", view.node, look, out, spare_);
  }
  look.since_ns = kNoTimeNs;
  log_.collect("job", incident.job, look, out, spare_);
  log_.collect_others({"node", "job"}, look, out, spare_);
}

void IncidentTracker::identify(const Open& incident, abi::Verdict& verdict) const {
  verdict.incident = incident.id;
  verdict.incident_type = incident.plan->name;
  verdict.job = pack_->symbols->name(incident.job);
  verdict.symptom = incident.symptom;
  verdict.opened_ns = incident.opened_ns;
  verdict.opened_by = incident.opened_by;
  verdict.pack_names = pack_names_;
  verdict.pack_sha256 = pack_->set_sha256;
  verdict.engine = std::string(kEngineVersion);
  verdict.job_node_count = incident.job_node_count;
  verdict.late_events = incident.late_events;
  const std::string identity =
      fmt::format("{}|{}|{}|{}|{}|{}", pack_->set_sha256, incident.plan->name, incident.id,
                  verdict.job, incident.opened_ns, incident.revision);
  verdict.id = fmt::format("v-{:016x}{:016x}", fnv1a(identity, 0xcbf29ce484222325ULL),
                           fnv1a(identity, 0x84222325cbf29ce4ULL));
}

void IncidentTracker::forget_closed(int64_t watermark_ns) {
  const auto gone = std::stable_partition(
      incidents_.begin(), incidents_.end(), [&](const std::unique_ptr<Open>& incident) {
        return !(incident->closed && incident->merge_until_ns < watermark_ns);
      });
  if (gone == incidents_.end()) return;
  for (auto it = gone; it != incidents_.end(); ++it) {
    for (const auto& view : (*it)->nodes) {
      auto list = by_node_.find(view.node);
      if (list == by_node_.end()) continue;
      std::erase(list->second, it->get());
      if (list->second.empty()) by_node_.erase(list);
    }
  }
  incidents_.erase(gone, incidents_.end());
}

size_t IncidentTracker::open_count() const {
  return static_cast<size_t>(std::count_if(incidents_.begin(), incidents_.end(),
                                           [](const auto& incident) { return !incident->closed; }));
}

bool IncidentTracker::is_open(const std::string& id) const {
  return std::any_of(incidents_.begin(), incidents_.end(), [&](const auto& incident) {
    return !incident->closed && incident->id == id;
  });
}

void IncidentTracker::count_late(const abi::Record& record) {
  const auto& schema = pack_->kinds[record.kind];
  for (unsigned i = 0; i < schema.fields.size(); ++i) {
    if (schema.fields[i].name != "node" || !record.has(i)) continue;
    const auto it = by_node_.find(static_cast<SymbolId>(record.i64(i)));
    if (it == by_node_.end()) continue;
    for (Open* incident : it->second) {
      if (!incident->closed) ++incident->late_events;
    }
  }
}

}  // namespace reflex::engine

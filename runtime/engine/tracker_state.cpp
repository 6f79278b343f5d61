// The incident tracker as a saved state: its evidence, and the incidents in the order of opening.
//
// Closed ones are kept, too, for as long as a new trigger would join them.
#include <algorithm>
#include <limits>
#include <map>
#include <string_view>
#include <utility>

#include "runtime/engine/incident_tracker.h"

namespace reflex::engine {
namespace {

void save_node(StateWriter& writer, const attribution::NodeView& view) {
  writer.symbol(view.node);
  writer.u64(view.hw_class);
  for (const SymbolId group : {view.rack, view.tor, view.pod, view.zone}) writer.symbol(group);
  writer.flag(view.in_job);
  writer.i64(view.repaired_ns);
}

}  // namespace

void IncidentTracker::save_open(StateWriter& writer, const Open& incident) const {
  writer.u64(static_cast<uint64_t>(incident.plan - pack_->incidents.data()));
  writer.symbol(incident.job);
  writer.text(incident.id);
  writer.text(incident.symptom);
  writer.text(incident.opened_by);
  for (const int64_t ns : {incident.opened_ns, incident.final_ns, incident.merge_until_ns,
                           incident.looked_ns, incident.next_ns}) {
    writer.i64(ns);
  }
  writer.flag(incident.asked);
  writer.flag(incident.closed);
  writer.u64(incident.revision);
  writer.u64(incident.late_events);
  writer.text(incident.signature);
  writer.u64(incident.job_node_count);
  writer.u64(incident.nodes.size());
  for (const auto& view : incident.nodes) save_node(writer, view);
}

std::unique_ptr<IncidentTracker::Open> IncidentTracker::load_open(StateReader& reader,
                                                                  abi::LoadNames& names) {
  auto incident = std::make_unique<Open>();
  const uint32_t plan = names.incident(reader);
  incident->job = reader.symbol();
  incident->id = reader.text();
  incident->symptom = reader.text();
  incident->opened_by = reader.text();
  for (int64_t* ns : {&incident->opened_ns, &incident->final_ns, &incident->merge_until_ns,
                      &incident->looked_ns, &incident->next_ns}) {
    *ns = reader.i64();
  }
  incident->asked = reader.flag();
  incident->closed = reader.flag();
  incident->revision = static_cast<uint32_t>(reader.bounded(UINT32_MAX));
  incident->late_events = static_cast<uint32_t>(reader.bounded(UINT32_MAX));
  incident->signature = reader.text();
  incident->job_node_count = static_cast<uint32_t>(reader.bounded(UINT32_MAX));
  for (size_t left = reader.count(8); left > 0 && !reader.failed(); --left) {
    attribution::NodeView& view = incident->nodes.emplace_back();
    view.node = reader.symbol();
    const uint32_t hw_class = names.hw_class(reader);
    for (SymbolId* group : {&view.rack, &view.tor, &view.pod, &view.zone}) *group = reader.symbol();
    view.in_job = reader.flag();
    view.repaired_ns = reader.i64();
    view.hw_class = names.same_set() && hw_class != abi::LoadNames::kGone
                        ? static_cast<abi::ClassId>(hw_class)
                        : topology_->hw_class(view.node, incident->opened_ns);
  }
  const bool sound = incident->closed || (incident->next_ns >= incident->looked_ns &&
                                          incident->final_ns >= incident->opened_ns);
  if (!sound) reader.fail();
  if (reader.failed()) return nullptr;
  if (plan == abi::LoadNames::kGone) {
    if (!incident->closed) names.note("incident " + incident->id + " is forgotten: its type is gone");
    return nullptr;
  }
  incident->plan = &pack_->incidents[plan];
  return incident;
}

void IncidentTracker::save(StateWriter& writer) const {
  log_.save(writer);
  writer.begin("incidents");
  writer.u64(incidents_.size());
  for (const auto& incident : incidents_) save_open(writer, *incident);
  writer.i64(next_due_ns_);
  writer.i64(last_trim_ns_);
  writer.u64(opened_count_);
  writer.u64(unplaced_count_);
  writer.end();
}

void IncidentTracker::load(StateReader& reader, abi::LoadNames& names, int64_t now_ns) {
  log_.load(reader, names, now_ns);
  if (!reader.enter("incidents")) return;
  for (size_t left = reader.count(17); left > 0 && !reader.failed(); --left) {
    auto incident = load_open(reader, names);
    if (!incident) continue;
    for (const auto& view : incident->nodes) by_node_[view.node].push_back(incident.get());
    incidents_.push_back(std::move(incident));
  }
  next_due_ns_ = reader.i64();
  last_trim_ns_ = reader.i64();
  opened_count_ = reader.u64();
  unplaced_count_ = reader.u64();
  reader.leave();
  if (!reader.failed() && !names.same_set()) look_again(now_ns);
}

void IncidentTracker::take_over(IncidentTracker& old, abi::SetChange& change, int64_t now_ns) {
  log_.take_over(old.log_, change, now_ns);
  incidents_ = std::move(old.incidents_);
  for (const auto& incident : incidents_) {
    incident->plan = &pack_->incidents[static_cast<size_t>(incident->plan -
                                                           old.pack_->incidents.data())];
  }
  by_node_ = std::move(old.by_node_);
  spare_ = std::move(old.spare_);
  next_due_ns_ = old.next_due_ns_;
  last_trim_ns_ = old.last_trim_ns_;
  opened_count_ = old.opened_count_;
  unplaced_count_ = old.unplaced_count_;
  if (!change.same_set) look_again(now_ns);
}

// By the id under which verdicts are known and the time of opening: both have read the same events.
void IncidentTracker::follow(const IncidentTracker& said, int64_t now_ns) {
  std::map<std::pair<std::string_view, int64_t>, const Open*> heard;
  for (const auto& incident : said.incidents_) {
    heard[{incident->id, incident->opened_ns}] = incident.get();
  }
  next_due_ns_ = std::numeric_limits<int64_t>::max();
  for (const auto& incident : incidents_) {
    const auto found = heard.find({incident->id, incident->opened_ns});
    const bool known = found != heard.end();
    if (!known && incident->closed) continue;  // over, and no longer of interest
    const std::string signature = known ? found->second->signature : "";
    const bool differs = signature != incident->signature;
    incident->revision = known ? found->second->revision : 0;
    incident->signature = signature;
    // One that ended here and not there is ended again, to be heard.
    incident->closed = known && found->second->closed;
    if (incident->closed) continue;
    if (differs) mark_dirty(*incident, std::max(now_ns, incident->opened_ns));
    next_due_ns_ = std::min({next_due_ns_, incident->next_ns, incident->final_ns});
  }
}

void IncidentTracker::look_again(int64_t now_ns) {
  next_due_ns_ = std::numeric_limits<int64_t>::max();
  for (const auto& incident : incidents_) {
    if (incident->closed) continue;
    mark_dirty(*incident, std::max(now_ns, incident->opened_ns));
    next_due_ns_ = std::min({next_due_ns_, incident->next_ns, incident->final_ns});
  }
}

}  // namespace reflex::engine

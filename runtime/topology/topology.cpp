// Topology: per-node and per-job histories, each a vector sorted by time.
//
// Every answer is "the last entry at or before ts". Entries of equal time keep their order of
// arrival, the later one wins.
#include "runtime/topology/topology.h"

#include <algorithm>
#include <charconv>

#include "runtime/abi/gpu_address.h"
#include "runtime/base/time.h"
#include "runtime/topology/host_services.h"
#include "runtime/topology/topology_parts.h"

namespace reflex::topology {
namespace {

/// Slots of the fields that the builtin kinds carry, by name; -1 when absent.
int slot_of(const abi::KindSchema& kind, std::string_view name) {
  for (size_t i = 0; i < kind.fields.size(); ++i) {
    if (kind.fields[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

/// The value of a label, or kNoSymbol; `labels` are sorted by key.
SymbolId find_label(const Labels& labels, SymbolId key) {
  const auto at = std::lower_bound(labels.begin(), labels.end(), key,
                                   [](const auto& l, SymbolId k) { return l.first < k; });
  return at != labels.end() && at->first == key ? at->second : kNoSymbol;
}

}  // namespace

SymbolId Topology::State::symbol(const abi::Record& r, std::string_view field) const {
  const int slot = slot_of(pack->kinds[r.kind], field);
  if (slot < 0 || !r.has(static_cast<unsigned>(slot))) return kNoSymbol;
  return static_cast<SymbolId>(r.i64(static_cast<unsigned>(slot)));
}

std::vector<SymbolId> Topology::State::symbols(const abi::Record& r, std::string_view field) const {
  const int slot = slot_of(pack->kinds[r.kind], field);
  std::vector<SymbolId> out;
  if (slot < 0 || !r.has(static_cast<unsigned>(slot))) return out;
  const abi::IntArray* a = r.array(static_cast<unsigned>(slot));
  for (uint32_t i = 0; i < a->count; ++i) out.push_back(static_cast<SymbolId>(a->data()[i]));
  return out;
}

Topology::Topology(std::shared_ptr<const abi::CompiledPack> pack)
    : state_(std::make_shared<State>()) {
  state_->horizon_ns = pack->limits.horizon_ns;
  for (const char* key : {"rack", "tor", "pod", "zone"}) {
    state_->place_keys.push_back(pack->symbols->intern(key));
  }
  state_->pack = std::move(pack);
}

void Topology::apply(const abi::Record& record) {
  if (record.kind >= abi::kBuiltinKindCount || record.kind >= state_->pack->kinds.size()) return;
  const SymbolId node = state_->symbol(record, "node");
  const SymbolId job = state_->symbol(record, "job");
  switch (record.kind) {
    case abi::kNodeLabels: {
      const std::vector<SymbolId> flat = state_->symbols(record, "labels");
      Labels labels;
      for (size_t i = 0; i + 1 < flat.size(); i += 2) labels.emplace_back(flat[i], flat[i + 1]);
      set_labels(node, record.ts_ns, std::move(labels));
      break;
    }
    case abi::kJobStart:
      // A start that names no nodes says nothing of them: `job.nodes` may have, at the same instant.
      if (state_->symbols(record, "nodes").empty() && !nodes_of(job, record.ts_ns).empty()) {
        const auto placed = state_->jobs.find(job);
        const Job* now = placed == state_->jobs.end() ? nullptr : placed->second.at(record.ts_ns);
        if (now != nullptr && !now->ended) break;
      }
      start_job(job, record.ts_ns, state_->symbols(record, "nodes"));
      break;
    case abi::kJobNodes:
      start_job(job, record.ts_ns, state_->symbols(record, "nodes"));
      break;
    case abi::kJobEnd:
      end_job(job, record.ts_ns);
      break;
    case abi::kNodeRepaired:
      if (node != kNoSymbol) set_repaired(node, record.ts_ns);
      break;
    case abi::kMaintStart:
    case abi::kMaintEnd: {
      const bool on = record.kind == abi::kMaintStart;
      if (node != kNoSymbol) set_maintenance(node, record.ts_ns, on);
      for (const char* group : {"rack", "tor"}) {
        const SymbolId value = state_->symbol(record, group);
        if (value == kNoSymbol) continue;
        const SymbolId key = state_->pack->symbols->find(group);
        for (SymbolId member : members(key, value, record.ts_ns)) {
          set_maintenance(member, record.ts_ns, on);
        }
      }
      break;
    }
    default:
      break;
  }
}

void Topology::set_labels(SymbolId node, int64_t ts_ns, Labels labels) {
  if (node == kNoSymbol) return;
  State& s = *state_;
  std::stable_sort(labels.begin(), labels.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  s.note_places(node, labels);
  LabelVersion& version =
      s.nodes[node].labels.add(ts_ns, LabelVersion{std::move(labels), 0}, s.horizon_ns);
  s.classify(*this, node, ts_ns, version);
}

void Topology::State::note_places(SymbolId node, const Labels& labels) {
  for (const auto& [key, value] : labels) {
    if (!is_place(key)) continue;
    std::vector<SymbolId>& list = ever_at[uint64_t{key} << 32 | value];
    const auto at = std::lower_bound(list.begin(), list.end(), node);
    if (at == list.end() || *at != node) list.insert(at, node);
  }
}

void Topology::State::classify(const Topology& topology, SymbolId node, int64_t ts_ns,
                               LabelVersion& version) {
  abi::ClassId best = 0;
  bool found = false;
  bool is_ambiguous = false;
  // An operator (or a test) may name the class outright; no pattern is asked then.
  const SymbolId profile_key = pack->symbols->intern("reflex.profile");
  if (const SymbolId named = find_label(version.labels, profile_key); named != kNoSymbol) {
    for (size_t c = 0; c < pack->classes.size(); ++c) {
      if (pack->classes[c].name != pack->symbols->name(named)) continue;
      version.hw_class = static_cast<abi::ClassId>(c);
      return;
    }
  }
  for (const abi::ClassId id : topology.matching_classes(node, ts_ns)) {
    if (!found || is_ancestor(best, id)) {
      best = id;
    } else if (!is_ancestor(id, best)) {
      best = common_ancestor(best, id);
      is_ambiguous = true;
    }
    found = true;
  }
  version.hw_class = best;
  const std::string name(pack->symbols->name(node));
  auto at = std::lower_bound(ambiguous.begin(), ambiguous.end(), name);
  const bool listed = at != ambiguous.end() && *at == name;
  if (is_ambiguous && !listed) ambiguous.insert(at, name);
  if (!is_ambiguous && listed) ambiguous.erase(at);
}

std::vector<abi::ClassId> Topology::matching_classes(SymbolId node, int64_t ts_ns) const {
  const State& s = *state_;
  HostState host{this, s.pack->symbols.get(), nullptr, nullptr};
  abi::EvalContext context;
  context.host = &host_services();
  context.host_state = &host;
  context.now_ns = ts_ns;
  context.entity[0] = node;
  const abi::Record none{};
  std::vector<abi::ClassId> matches;
  for (size_t c = 0; c < s.pack->classes.size(); ++c) {
    const abi::ClassPlan& plan = s.pack->classes[c];
    if (plan.abstract_class || plan.matches == abi::kNone32) continue;
    uint64_t out = 0;
    if (s.pack->code->expr(plan.matches, 0)(&none, &context, &out) != abi::kTrue) continue;
    matches.push_back(static_cast<abi::ClassId>(c));
  }
  return matches;
}

void Topology::start_job(SymbolId job, int64_t ts_ns, std::vector<SymbolId> nodes) {
  if (job == kNoSymbol) return;
  State& s = *state_;
  // A job.nodes event replaces the placement: nodes that left it are free again.
  if (const Job* before = s.jobs[job].at(ts_ns); before != nullptr && !before->ended) {
    for (SymbolId node : before->nodes) {
      if (std::find(nodes.begin(), nodes.end(), node) == nodes.end() &&
          job_of(node, ts_ns) == job) {
        s.nodes[node].jobs.add(ts_ns, kNoSymbol, s.horizon_ns);
      }
    }
  }
  for (SymbolId node : nodes) {
    if (node != kNoSymbol) s.nodes[node].jobs.add(ts_ns, job, s.horizon_ns);
  }
  s.jobs[job].add(ts_ns, Job{std::move(nodes), false}, s.horizon_ns);
}

void Topology::end_job(SymbolId job, int64_t ts_ns) {
  State& s = *state_;
  const auto it = s.jobs.find(job);
  if (it == s.jobs.end()) return;
  const Job* before = it->second.at(ts_ns);
  if (before == nullptr) return;
  Job ended{before->nodes, true};
  for (SymbolId node : ended.nodes) {
    if (job_of(node, ts_ns) == job) s.nodes[node].jobs.add(ts_ns, kNoSymbol, s.horizon_ns);
  }
  it->second.add(ts_ns, std::move(ended), s.horizon_ns);
}

void Topology::set_repaired(SymbolId node, int64_t ts_ns) {
  auto& repairs = state_->nodes[node].repairs_ns;
  repairs.insert(std::upper_bound(repairs.begin(), repairs.end(), ts_ns), ts_ns);
}

void Topology::set_maintenance(SymbolId node, int64_t ts_ns, bool on) {
  if (node == kNoSymbol) return;
  auto& history = state_->nodes[node].maintenance;
  // What is later than a start is the grace of the maintenance before: the node is in again.
  while (on && !history.entries.empty() && history.entries.back().ts_ns > ts_ns) {
    history.entries.pop_back();
  }
  history.add(ts_ns, on, state_->horizon_ns);
}

SymbolId Topology::label(SymbolId node, SymbolId key, int64_t ts_ns) const {
  const auto it = state_->nodes.find(node);
  if (it == state_->nodes.end()) return kNoSymbol;
  const LabelVersion* version = it->second.labels.at(ts_ns);
  return version == nullptr ? kNoSymbol : find_label(version->labels, key);
}

abi::ClassId Topology::hw_class(SymbolId node, int64_t ts_ns) const {
  const auto it = state_->nodes.find(node);
  if (it == state_->nodes.end()) return 0;
  const LabelVersion* version = it->second.labels.at(ts_ns);
  return version == nullptr ? abi::ClassId{0} : version->hw_class;
}

SymbolId Topology::job_of(SymbolId node, int64_t ts_ns) const {
  const auto it = state_->nodes.find(node);
  if (it == state_->nodes.end()) return kNoSymbol;
  const SymbolId* job = it->second.jobs.at(ts_ns);
  return job == nullptr ? kNoSymbol : *job;
}

const std::vector<SymbolId>& Topology::nodes_of(SymbolId job, int64_t ts_ns) const {
  static const std::vector<SymbolId> kEmpty;
  const auto it = state_->jobs.find(job);
  if (it == state_->jobs.end()) return kEmpty;
  const Job* found = it->second.at(ts_ns);
  return found == nullptr ? kEmpty : found->nodes;
}

bool Topology::in_maintenance(SymbolId node, int64_t ts_ns) const {
  const auto it = state_->nodes.find(node);
  if (it == state_->nodes.end()) return false;
  const bool* on = it->second.maintenance.at(ts_ns);
  return on != nullptr && *on;
}

std::vector<SymbolId> Topology::nodes() const {
  std::vector<SymbolId> out;
  for (const auto& [id, node] : state_->nodes) out.push_back(id);
  const SymbolTable& names = *state_->pack->symbols;
  std::sort(out.begin(), out.end(),
            [&](SymbolId a, SymbolId b) { return names.name(a) < names.name(b); });
  return out;
}

std::vector<SymbolId> Topology::members(SymbolId key, SymbolId value, int64_t ts_ns) const {
  std::vector<SymbolId> out;
  if (key == kNoSymbol || value == kNoSymbol) return out;
  std::vector<std::pair<std::string_view, SymbolId>> found;
  const auto look_at = [&](SymbolId id) {
    if (label(id, key, ts_ns) == value) found.emplace_back(state_->pack->symbols->name(id), id);
  };
  if (!state_->is_place(key)) {
    for (const auto& [id, node] : state_->nodes) look_at(id);
  } else if (const auto at = state_->ever_at.find(uint64_t{key} << 32 | value);
             at != state_->ever_at.end()) {
    for (const SymbolId id : at->second) look_at(id);
  }
  std::sort(found.begin(), found.end());
  for (const auto& [name, id] : found) out.push_back(id);
  return out;
}

const std::vector<std::string>& Topology::ambiguous_nodes() const { return state_->ambiguous; }

std::optional<int64_t> Topology::gpu_index_at(SymbolId node, int64_t pci, int64_t ts_ns) const {
  const auto it = state_->nodes.find(node);
  if (it == state_->nodes.end()) return std::nullopt;
  const LabelVersion* version = it->second.labels.at(ts_ns);
  if (version == nullptr) return std::nullopt;
  constexpr std::string_view kPrefix = "pci.gpu";
  std::optional<int64_t> best;  // the lowest index, whatever the order of symbol ids
  for (const auto& [key, value] : version->labels) {
    const std::string_view name = state_->pack->symbols->name(key);
    if (!name.starts_with(kPrefix)) continue;
    int64_t index = 0;
    const char* end = name.data() + name.size();
    const auto parsed = std::from_chars(name.data() + kPrefix.size(), end, index);
    if (parsed.ec != std::errc{} || parsed.ptr != end) continue;
    if (abi::gpu_from_pci(state_->pack->symbols->name(value)) != pci) continue;
    if (!best || index < *best) best = index;
  }
  return best;
}

int64_t Topology::last_repair_ns(SymbolId node, int64_t ts_ns) const {
  const auto it = state_->nodes.find(node);
  if (it == state_->nodes.end()) return kNoTimeNs;
  const auto& repairs = it->second.repairs_ns;
  const auto at = std::upper_bound(repairs.begin(), repairs.end(), ts_ns);
  return at == repairs.begin() ? kNoTimeNs : *std::prev(at);
}

}  // namespace reflex::topology

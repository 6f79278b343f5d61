// Entries -> decoders -> order -> engine -> rules; see lane.h. State: lane_state.cpp.
#include "runtime/serve/lane.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "runtime/base/time.h"
#include "runtime/engine/inventory.h"
#include "runtime/serve/body_form.h"
#include "runtime/stream/line_source.h"

namespace reflex::serve {
namespace {

int year_of(int64_t ts_ns) {
  const int64_t days = ts_ns / kNsPerDay - (ts_ns % kNsPerDay < 0 ? 1 : 0);
  return static_cast<int>(civil_from_days(days).year);
}

/// What was counted before, and by this lane by id, under the names.
template <class Named>
std::map<std::string, uint64_t> by_name(std::map<std::string, uint64_t> sum,
                                        const std::vector<uint64_t>& counts,
                                        const std::vector<Named>& named) {
  for (size_t id = 0; id < counts.size(); ++id) {
    if (counts[id] > 0) sum[named[id].name] += counts[id];
  }
  return sum;
}

}  // namespace

Lane::Lane(std::shared_ptr<const abi::CompiledPack> pack, const LaneOptions& options,
           LaneSinks sinks)
    : pack_(std::move(pack)),
      options_(options),
      sinks_(std::move(sinks)),
      kind_counts_(pack_->kinds.size(), 0),
      signal_counts_(pack_->signals.size(), 0) {}

Result<std::unique_ptr<Lane>> Lane::create(std::shared_ptr<const abi::CompiledPack> pack,
                                           const LaneOptions& options, LaneSinks sinks) {
  std::unique_ptr<Lane> lane(new Lane(std::move(pack), options, std::move(sinks)));
  if (auto status = lane->prepare(); !status.ok()) return status.error();
  return lane;
}

reflex::Status Lane::prepare() {
  engine::EngineSinks sinks;
  sinks.verdict = [this](abi::Verdict&& verdict) {
    policy_->on_verdict(verdict);
    if (verdict.final_revision) {
      open_incidents_.erase(verdict.incident);
    } else {
      open_incidents_.insert(verdict.incident);
    }
    sinks_.verdict(std::move(verdict));
  };
  sinks.firing = [this](const abi::Firing& firing) {
    signal_counts_[firing.signal] += firing.change == abi::FiringChange::kStart;
  };
  auto created = engine::Engine::create(pack_, options_.engine, std::move(sinks));
  if (!created.ok()) return created.error();
  engine_ = std::move(created).value();
  make_policy();
  if (std::exchange(options_.engine.before, nullptr) == nullptr) {
    if (auto status = read_inventories(); !status.ok()) return status;
  }
  names_ = std::make_unique<engine::InventoryNames>(pack_, engine_->topology());
  engine_->coverage().rename_exceptions(*names_);
  stream::ReorderOptions order;
  order.lateness_ns = pack_->clock.lateness_ns;
  order.idle_after_ns = pack_->clock.idle_after_ns;
  order.future_skew_ns = pack_->clock.future_skew_ns;
  reorder_ = std::make_unique<stream::Reorder>(pack_, order, sinks_.rejected);
  feed_ = std::make_unique<engine::ReleasedFeed>(*engine_, engine::FeedOptions{});
  events_ = std::make_unique<stream::NdjsonDecoder>(pack_, sinks_.rejected);
  return ok_status();
}

/// Also of a set without rules: it ends the alerts of the set before it.
void Lane::make_policy() {
  policy::PolicySinks lines;
  lines.alert = [this](const policy::Alert& alert) { sinks_.alert(alert); };
  lines.action = [this](const policy::ActionRequest& action) { sinks_.action(action); };
  policy_ = std::make_unique<policy::Policy>(pack_, engine_->shared_topology(), std::move(lines));
}

reflex::Status Lane::read_inventories() {
  if (!options_.inventories) return ok_status();
  for (const auto& [path, text] : *options_.inventories) {
    auto read = engine::load_inventory_text(text, *pack_->symbols, engine_->topology());
    if (!read.ok()) return Error(read.error()).in(path);
  }
  return ok_status();
}

void Lane::start_at(uint64_t position) {
  position_ = position;
  options_.inventories.reset();
}

void Lane::apply(const Entry& entry) {
  position_ = entry.next;
  wall_ns_ = entry.wall_ns;
  switch (entry.type) {
    case EntryType::kEvents:
    case EntryType::kLog:
    case EntryType::kSourceEnd:
      if (const auto body = read_body(entry.payload)) take_body(entry, *body);
      break;
    case EntryType::kTick:
      reorder_->tick(entry.wall_ns);
      break;
    case EntryType::kFeedback:
      take_feedback(entry);
      break;
    case EntryType::kSuppression:
      if (const auto order = read_suppression(entry.payload)) take_suppression(*order);
      break;
    case EntryType::kSet:
      break;  // whoever runs the lane puts another one in its place
  }
}

void Lane::take_body(const Entry& entry, const BodyView& body) {
  Source& source = source_of(body.source);
  if (entry.type == EntryType::kSourceEnd) {
    reorder_->finish_source(source.symbol);
    return;
  }
  book_.apply(entry.type, body);
  stream::RecordBatch batch;
  batch.slab = slab();
  batch.input = source.symbol;
  const uint64_t first_line = source.lines + 1;
  source.lines += stream::count_newlines(body.text);
  if (!body.text.empty() && body.text.back() != '\n') ++source.lines;
  if (entry.type == EntryType::kEvents) {
    const uint64_t before = events_->counters().rejected_total();
    events_->decode(body.text, source.symbol, first_line, batch);
    source.rejected += events_->counters().rejected_total() - before;
  } else {
    if (!source.log) {
      source.node = body.node;
      source.base_ns = entry.wall_ns;
      open_log(source, std::string(body.source));
    }
    source.log->decode(body.text, first_line, batch);
  }
  names_->rename(batch);
  for (const abi::Record* record : batch.records) {
    source.newest_ns = std::max(source.newest_ns, record->ts_ns);
    ++source.kinds[record->kind];
  }
  reorder_->push(std::move(batch));
}

void Lane::take_feedback(const Entry& entry) {
  const auto feedback = read_feedback(entry.payload);
  if (!feedback) return;
  engine::KnownIncident known;
  known.incident = feedback->incident;
  known.ts_ns = entry.wall_ns;
  known.culprits = feedback->culprits;
  known.fault = feedback->fault;
  engine_->learn(known);
}

void Lane::take_suppression(const SuppressionOrder& order) {
  if (order.lifted) {
    orders_.erase(order.id);
  } else {
    orders_[order.id] = order;
  }
  engine_->suppress(
      {order.id, order.node, order.signal, order.from_ns, order.until_ns, order.reason});
}

Lane::Source& Lane::source_of(std::string_view name) {
  auto it = sources_.find(name);
  if (it == sources_.end()) {
    it = sources_.emplace(std::string(name), Source{}).first;
    it->second.symbol = pack_->symbols->intern(name);
    it->second.kinds.resize(pack_->kinds.size(), 0);
  }
  return it->second;
}

void Lane::open_log(Source& source, const std::string& name) {
  if (!line_patterns_) line_patterns_ = stream::compile_line_patterns(*pack_);
  stream::LogOptions log;
  log.base_ns = source.base_ns;
  log.year = year_of(source.base_ns);
  const auto zone = options_.utc_offsets_ns.find(name);
  if (zone != options_.utc_offsets_ns.end()) log.utc_offset_ns = zone->second;
  const SymbolId node = names_->node(pack_->symbols->intern(source.node));
  source.log = std::make_unique<stream::LogDecoder>(pack_, node, source.symbol, log,
                                                    sinks_.rejected, line_patterns_);
  reorder_->add_source(source.symbol, /*is_log=*/true);
  engine_->coverage().add_log(node);
  engine_->mark_log_source(source.symbol);
}

/// Bodies share memory: one of a few events must not hold a block of its own until it is released.
const std::shared_ptr<stream::Slab>& Lane::slab() {
  if (!slab_ || slab_->bytes() > stream::BlockPool::kBlockBytes) {
    slab_ = std::make_shared<stream::Slab>(memory_);
  }
  return slab_;
}

void Lane::step() {
  reorder_->release(released_);
  count(released_);
  feed_->evaluate(released_);
  if (released_.watermark_ns > 0) policy_->advance(released_.watermark_ns - 1);
}

void Lane::count(const stream::Released& released) {
  for (const abi::Record* record : released.records) ++kind_counts_[record->kind];
  late_ += released.late.size();
}

stream::IngestCounters Lane::counters() const {
  stream::IngestCounters sum = earlier_;
  sum.add(events_->counters());
  sum.add(reorder_->counters());
  for (const auto& [name, source] : sources_) {
    if (source.log) sum.add(source.log->counters());
  }
  return sum;
}

std::map<std::string, uint64_t> Lane::firings() const {
  return by_name(earlier_firings_, signal_counts_, pack_->signals);
}

std::map<std::string, uint64_t> Lane::kinds() const {
  return by_name(earlier_kinds_, kind_counts_, pack_->kinds);
}

std::map<std::string, uint64_t> Lane::kinds_of(const Source& source) const {
  return by_name(source.earlier_kinds, source.kinds, pack_->kinds);
}

uint64_t Lane::rejected_of(const Source& source) {
  return source.rejected + (source.log ? source.log->counters().rejected_total() : 0);
}

LaneStatus Lane::status() const {
  LaneStatus status;
  status.set_sha256 = pack_->set_sha256;
  status.packs = pack_->packs;
  status.watermark_ns = released_.watermark_ns;
  status.position = position_;
  const stream::IngestCounters sum = counters();
  status.late = late_;
  status.deduplicated = sum.deduplicated;
  for (size_t i = 0; i < sum.rejected.size(); ++i) {
    if (sum.rejected[i] == 0) continue;
    status.rejected_by_reason.emplace_back(stream::to_text(static_cast<stream::Reject>(i)),
                                           sum.rejected[i]);
  }
  const auto by_kind = kinds();
  status.events_by_kind.assign(by_kind.begin(), by_kind.end());
  for (const auto& [kind, count] : by_kind) status.events += count;
  const auto by_signal = firings();
  status.firings_by_signal.assign(by_signal.begin(), by_signal.end());
  status.incidents_open = open_incidents_.size();
  const eval::Counters counters = engine_->counters();
  status.keys = counters.keys;
  status.state_bytes = counters.state_bytes;
  status.evictions = counters.evictions + counters.state_evictions;
  status.partials_dropped = counters.partials_dropped;
  fill_metrics(status);
  return status;
}

void Lane::fill_metrics(LaneStatus& status) const {
  for (const auto& [name, source] : sources_) {
    for (const auto& [kind, count] : kinds_of(source)) {
      status.events_by_source_kind.push_back({name, kind, count});
    }
  }
  for (const auto& state : reorder_->sources()) {
    if (state.late == 0) continue;
    status.late_by_source.push_back(
        {std::string(pack_->symbols->name(state.source)), "", state.late});
  }
  const eval::Counters counters = engine_->counters();
  status.evictions_by_reason.push_back({"keys", "", counters.evictions});
  status.evictions_by_reason.push_back({"state", "", counters.state_evictions});
  const std::vector<uint64_t> partials = engine_->signals().partials_by_signal();
  for (size_t s = 0; s < partials.size(); ++s) {
    if (partials[s] > 0)
      status.partials_by_signal.push_back({pack_->signals[s].name, "", partials[s]});
  }
  const std::vector<uint64_t> keys = engine_->signals().keys_by_kind();
  for (size_t kind = 0; kind < keys.size(); ++kind) {
    if (keys[kind] == 0) continue;
    const auto name = fmt::format("{}", fmt::join(pack_->entity_kinds[kind].keys, "+"));
    status.keys_by_entity.push_back({name, "", keys[kind]});
  }
  status.ambiguous_nodes = engine_->topology().ambiguous_nodes().size();
}

std::vector<SourceStatus> Lane::sources() const {
  std::map<SymbolId, const stream::SourceState*> clocks;
  const std::vector<stream::SourceState> states = reorder_->sources();
  for (const auto& state : states) clocks[state.source] = &state;
  std::vector<SourceStatus> out;
  for (const auto& [name, source] : sources_) {
    SourceStatus status;
    status.name = name;
    status.lines = source.lines;
    status.newest_ns = source.newest_ns;
    status.rejected = rejected_of(source);
    if (const auto clock = clocks.find(source.symbol); clock != clocks.end()) {
      status.idle = clock->second->idle;
    }
    if (const auto read = book_.sources().find(name); read != book_.sources().end()) {
      status.bodies = read->second.bodies;
      status.bytes = read->second.bytes;
    }
    out.push_back(std::move(status));
  }
  return out;
}

}  // namespace reflex::serve

// Messages as bytes: see messages.h.
#include "runtime/cluster/messages.h"

#include <fmt/format.h>

#include <algorithm>

namespace reflex::cluster {
namespace {

Error damaged(std::string_view what) { return Error{fmt::format("{}: damaged message", what)}; }

void write_symbols(StateWriter& out, const std::vector<SymbolId>& symbols) {
  out.u64(symbols.size());
  for (const SymbolId symbol : symbols) out.symbol(symbol);
}

void read_symbols(StateReader& in, std::vector<SymbolId>& symbols) {
  symbols.resize(in.count());
  for (SymbolId& symbol : symbols) symbol = in.symbol();
}

}  // namespace

void write_samples(StateWriter& out, const std::vector<engine::FeatureSample>& samples) {
  out.u64(samples.size());
  for (const auto& s : samples) {
    out.u64(s.feature);
    out.symbol(s.node);
    out.u64(s.hw_class);
    out.f64(s.x);
  }
}

void read_samples(StateReader& in, std::vector<engine::FeatureSample>& samples,
                  const abi::CompiledPack& pack) {
  samples.resize(in.count(11));
  for (auto& s : samples) {
    s.feature = static_cast<abi::FeatureId>(
        in.bounded(pack.features.empty() ? 0 : pack.features.size() - 1));
    s.node = in.symbol();
    s.hw_class =
        static_cast<abi::ClassId>(in.bounded(pack.classes.empty() ? 0 : pack.classes.size() - 1));
    s.x = in.f64();
  }
}

MessageCodec::MessageCodec(std::shared_ptr<const abi::CompiledPack> pack)
    : pack_(pack), records_(std::move(pack)) {}

StateWriter MessageCodec::start(std::string_view what) const {
  StateWriter out(*pack_->symbols);
  out.text(what);
  out.text(pack_->set_sha256);
  return out;
}

Status MessageCodec::enter(StateReader& in, std::string_view what) const {
  if (in.text() != what) return damaged(what);
  const std::string_view sha = in.text();
  if (in.failed()) return damaged(what);
  if (sha == pack_->set_sha256) return ok_status();
  return Error{
      fmt::format("{}: made by pack set {}, this worker has {}: start all workers with the "
                  "same packs",
                  what, sha.substr(0, 12), pack_->set_sha256.substr(0, 12))};
}

std::string MessageCodec::encode(const EventBatch& batch) const {
  StateWriter out = start("events");
  out.u64(batch.number);
  out.symbol(batch.records.input);
  out.u64(batch.records.records.size());
  for (const abi::Record* record : batch.records.records) records_.write(out, *record);
  out.u64(batch.declared.size());
  for (const auto& d : batch.declared) {
    out.symbol(d.source);
    out.flag(d.is_log);
    out.symbol(d.node);
  }
  out.u64(batch.progress.size());
  for (const auto& p : batch.progress) {
    out.symbol(p.source);
    out.i64(p.newest_ns);
  }
  write_symbols(out, batch.finished);
  out.i64(batch.tick_wall_ns);
  out.i64(batch.end_ns);
  return out.take();
}

Result<EventBatch> MessageCodec::event_batch(std::string_view bytes) const {
  StateReader in(bytes, *pack_->symbols);
  if (auto status = enter(in, "events"); !status.ok()) return status.error();
  EventBatch batch;
  batch.number = in.u64();
  batch.records.input = in.symbol();
  for (size_t n = in.count(8); n > 0 && !in.failed(); --n) {
    batch.records.records.push_back(records_.read(in, *batch.records.slab));
  }
  batch.declared.resize(in.count(3));
  for (auto& d : batch.declared) {
    d.source = in.symbol();
    d.is_log = in.flag();
    d.node = in.symbol();
  }
  batch.progress.resize(in.count(2));
  for (auto& p : batch.progress) {
    p.source = in.symbol();
    p.newest_ns = in.i64();
  }
  read_symbols(in, batch.finished);
  batch.tick_wall_ns = in.i64();
  batch.end_ns = in.i64();
  if (in.failed()) return damaged("events");
  return batch;
}

std::string MessageCodec::encode(const SignalBatch& batch) const {
  StateWriter out = start("signals");
  out.u64(batch.partition);
  out.u64(batch.number);
  out.i64(batch.watermark_ns);
  out.u64(batch.records.size());
  for (const abi::Record* record : batch.records) records_.write(out, *record);
  out.u64(batch.event_firings.size());
  for (const auto& [record, firing] : batch.event_firings) {
    out.u64(record);
    records_.write(out, firing);
  }
  out.u64(batch.timer_firings.size());
  for (const auto& firing : batch.timer_firings) records_.write(out, firing);
  out.u64(batch.late.size());
  for (size_t i = 0; i < batch.late.size(); ++i) {
    records_.write(out, *batch.late[i]);
    out.i64(batch.late_after_ns[i]);
  }
  out.u64(batch.seen_kinds.size());
  for (const auto& [kind, since_ns] : batch.seen_kinds) {
    out.u64(kind);
    out.i64(since_ns);
  }
  write_symbols(out, batch.logged_nodes);
  write_symbols(out, batch.log_sources);
  out.i64(batch.first_hour_ns);
  out.i64(batch.hour_ns);
  write_samples(out, batch.samples);
  out.i64(batch.end_ns);
  return out.take();
}

Result<SignalBatch> MessageCodec::signal_batch(std::string_view bytes) const {
  StateReader in(bytes, *pack_->symbols);
  if (auto status = enter(in, "signals"); !status.ok()) return status.error();
  SignalBatch batch;
  batch.partition = static_cast<uint32_t>(in.bounded(UINT32_MAX));
  batch.number = in.u64();
  batch.watermark_ns = in.i64();
  for (size_t n = in.count(8); n > 0 && !in.failed(); --n) {
    batch.records.push_back(records_.read(in, *batch.slab));
  }
  for (size_t n = in.count(8); n > 0 && !in.failed(); --n) {
    const auto record = in.bounded(batch.records.empty() ? 0 : batch.records.size() - 1);
    if (batch.records.empty()) in.fail();
    batch.event_firings.emplace_back(static_cast<uint32_t>(record), records_.read_firing(in));
  }
  for (size_t n = in.count(8); n > 0 && !in.failed(); --n) {
    batch.timer_firings.push_back(records_.read_firing(in));
  }
  for (size_t n = in.count(8); n > 0 && !in.failed(); --n) {
    batch.late.push_back(records_.read(in, *batch.slab));
    batch.late_after_ns.push_back(in.i64());
  }
  batch.seen_kinds.resize(in.count(2));
  for (auto& [kind, since_ns] : batch.seen_kinds) {
    kind = static_cast<abi::KindId>(in.bounded(pack_->kinds.size() - 1));
    since_ns = in.i64();
  }
  read_symbols(in, batch.logged_nodes);
  read_symbols(in, batch.log_sources);
  batch.first_hour_ns = in.i64();
  batch.hour_ns = in.i64();
  read_samples(in, batch.samples, *pack_);
  batch.end_ns = in.i64();
  if (in.failed()) return damaged("signals");
  return batch;
}

void MessageCodec::write_row(StateWriter& out, const adapt::ThresholdRows::Row& row) const {
  out.u64(row.values.size());
  for (const abi::Value& value : row.values) {
    out.flag(value.known != 0);
    out.u64(value.bits);
  }
  out.u64(row.origins.size());
  for (const abi::TableOrigin& o : row.origins) {
    out.u64(static_cast<uint64_t>(o.from));
    out.f64(o.quantile);
    out.u64(o.samples);
    out.flag(o.from_tail);
    out.flag(o.clamped);
    out.i64(o.shifted_ns);
  }
}

adapt::ThresholdRows::Row MessageCodec::read_row(StateReader& in) const {
  adapt::ThresholdRows::Row row;
  row.values.resize(in.count(2));
  for (abi::Value& value : row.values) {
    value.known = in.flag() ? 1 : 0;
    value.bits = in.u64();
  }
  row.origins.resize(in.count(12));
  for (abi::TableOrigin& o : row.origins) {
    o.from = static_cast<abi::TableOrigin::From>(
        in.bounded(static_cast<uint64_t>(abi::TableOrigin::From::kFleet)));
    o.quantile = in.f64();
    o.samples = in.u64();
    o.from_tail = in.flag();
    o.clamped = in.flag();
    o.shifted_ns = in.i64();
  }
  // Evaluators read a value for each adaptive parameter without a look at the size.
  if (row.values.size() < pack_->adaptives.size()) in.fail();
  return row;
}

std::string MessageCodec::encode(const LimitTable& table) const {
  StateWriter out = start("limits");
  out.i64(table.hour_ns);
  out.u64(table.rows->classes.size());
  for (const auto& row : table.rows->classes) write_row(out, row);
  out.u64(table.rows->special.size());
  for (const auto& row : table.rows->special) write_row(out, row);
  std::vector<std::pair<std::string_view, SymbolId>> nodes;  // by name: equal tables, equal bytes
  for (const auto& [node, index] : table.rows->special_of) {
    nodes.emplace_back(pack_->symbols->name(node), node);
  }
  std::sort(nodes.begin(), nodes.end());
  out.u64(nodes.size());
  for (const auto& [name, node] : nodes) {
    out.symbol(node);
    out.u64(table.rows->special_of.at(node));
  }
  return out.take();
}

Result<LimitTable> MessageCodec::limit_table(std::string_view bytes) const {
  StateReader in(bytes, *pack_->symbols);
  if (auto status = enter(in, "limits"); !status.ok()) return status.error();
  LimitTable table;
  table.hour_ns = in.i64();
  auto rows = std::make_shared<adapt::ThresholdRows>();
  for (size_t n = in.count(2); n > 0 && !in.failed(); --n) rows->classes.push_back(read_row(in));
  for (size_t n = in.count(2); n > 0 && !in.failed(); --n) rows->special.push_back(read_row(in));
  for (size_t n = in.count(2); n > 0 && !in.failed(); --n) {
    const SymbolId node = in.symbol();
    const uint64_t index = in.u64();
    if (index >= rows->special.size()) in.fail();
    rows->special_of[node] = static_cast<uint32_t>(index);
  }
  if (rows->classes.size() < std::max<size_t>(pack_->classes.size(), 1)) in.fail();
  if (in.failed()) return damaged("limits");
  table.rows = std::move(rows);
  return table;
}

std::string MessageCodec::encode(const OutcomeNotice& notice) const {
  StateWriter out = start("outcome");
  out.text(notice.incident_key);
  out.text(notice.outcome.incident);
  out.flag(notice.outcome.no_node);
  out.u64(notice.outcome.blamed.size());
  for (const auto& blamed : notice.outcome.blamed) {
    out.text(blamed.node);
    out.text(blamed.cause);
    out.f64(blamed.p);
    out.flag(blamed.confirmed);
  }
  return out.take();
}

Result<OutcomeNotice> MessageCodec::outcome(std::string_view bytes) const {
  StateReader in(bytes, *pack_->symbols);
  if (auto status = enter(in, "outcome"); !status.ok()) return status.error();
  OutcomeNotice notice;
  notice.incident_key = in.text();
  notice.outcome.incident = in.text();
  notice.outcome.no_node = in.flag();
  notice.outcome.blamed.resize(in.count(11));
  for (auto& blamed : notice.outcome.blamed) {
    blamed.node = in.text();
    blamed.cause = in.text();
    blamed.p = in.f64();
    blamed.confirmed = in.flag();
  }
  if (in.failed()) return damaged("outcome");
  return notice;
}

}  // namespace reflex::cluster

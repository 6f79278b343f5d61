// The state of a lane: see lane.h. Sections in a fixed order; what a newer engine adds goes to the
// end of one.
#include <fmt/format.h>

#include "runtime/base/check.h"
#include "runtime/serve/lane.h"

namespace reflex::serve {
namespace {

void save_map(StateWriter& out, const std::map<std::string, uint64_t>& counts) {
  out.u64(counts.size());
  for (const auto& [name, count] : counts) {
    out.text(name);
    out.u64(count);
  }
}

void load_map(StateReader& in, std::map<std::string, uint64_t>& counts) {
  for (size_t left = in.count(2); left > 0; --left) {
    const std::string name(in.text());
    counts[name] = in.u64();
  }
}

}  // namespace

void Lane::save(StateWriter& out) const {
  out.begin("lane");
  out.u64(position_);
  out.i64(wall_ns_);
  out.u64(feed_->events());
  out.i64(feed_->first_ts_ns());
  out.i64(feed_->last_ts_ns());
  out.i64(released_.watermark_ns);
  out.end();
  out.begin("book");
  book_.save(out);
  out.end();
  save_counts(out);
  out.begin("names");
  names_->save(out);
  out.end();
  out.begin("engine");
  engine_->save(out);
  out.end();
  out.begin("reorder");
  reorder_->save(out);
  out.end();
  save_sources(out);
  out.begin("policy");
  out.flag(true);
  policy_->save(out);
  out.end();
  // The engine does not keep them: who loads a state gives them again.
  out.begin("orders");
  out.u64(orders_.size());
  for (const auto& [id, order] : orders_) out.text(suppression_payload(order));
  out.end();
}

reflex::Status Lane::load(StateReader& in, LoadReport& report) {
  const Error bad{"the state is damaged or of another form"};
  if (!in.enter("lane")) return bad;
  position_ = in.u64();
  wall_ns_ = in.i64();
  const uint64_t events = in.u64();
  const int64_t first_ns = in.i64();
  feed_->resume(events, first_ns, in.i64());
  released_.watermark_ns = in.i64();
  in.leave();
  if (!in.enter("book") || !book_.load(in)) return bad;
  in.leave();
  load_counts(in);
  if (in.failed() || !in.enter("names") || !names_->load(in)) return bad;
  in.leave();
  if (!in.enter("engine")) return bad;
  auto loaded = engine_->load(in);
  if (!loaded.ok()) return loaded.error();
  report = std::move(loaded).value();
  in.leave();
  engine_->coverage().rename_exceptions(*names_);
  if (!in.enter("reorder")) return bad;
  if (auto status = reorder_->load(in, report.notes); !status.ok()) return status;
  in.leave();
  if (!in.enter("sources") || !load_sources(in)) return bad;
  in.leave();
  if (!in.enter("policy")) return bad;
  if (in.flag()) {
    if (auto status = policy_->load(in, report.notes); !status.ok()) return status;
  }
  in.leave();
  if (!in.enter("orders")) return bad;
  for (size_t left = in.count(8); left > 0; --left) {
    if (const auto order = read_suppression(in.text())) take_suppression(*order);
  }
  in.leave();
  if (in.failed()) return bad;
  // The inventory may have changed since.
  if (options_.inventories && !options_.inventories->empty()) {
    if (auto status = read_inventories(); !status.ok()) return status;
    engine_->see_inventory();
  }
  options_.inventories.reset();
  return ok_status();
}

std::string Lane::cannot_take_over(const Lane& old) const {
  return engine_->cannot_take_over(*old.engine_);
}

void Lane::take_over(Lane& old, LoadReport& report) {
  position_ = old.position_;
  wall_ns_ = old.wall_ns_;
  feed_->resume(old.feed_->events(), old.feed_->first_ts_ns(), old.feed_->last_ts_ns());
  released_.watermark_ns = old.released_.watermark_ns;
  book_ = std::move(old.book_);
  // The counts of the order and of logs come along; only the decoder of events is a new one.
  earlier_ = old.earlier_;
  earlier_.add(old.events_->counters());
  late_ = old.late_;
  kind_counts_ = std::move(old.kind_counts_);
  earlier_kinds_ = std::move(old.earlier_kinds_);
  signal_counts_ = std::move(old.signal_counts_);
  earlier_firings_ = std::move(old.earlier_firings_);
  open_incidents_ = std::move(old.open_incidents_);
  orders_ = std::move(old.orders_);
  names_->take_over(*old.names_);
  engine_->take_over(*old.engine_, report);
  engine_->coverage().rename_exceptions(*names_);
  reorder_->take_over(*old.reorder_);
  line_patterns_ = std::move(old.line_patterns_);
  sources_ = std::move(old.sources_);
  for (auto& [name, source] : sources_) {
    if (source.log) source.log->use(pack_, sinks_.rejected);
  }
  load_alerts_of(old, report.notes);
  options_.inventories.reset();
}

/// By bytes: they are few, and rules on verdicts may say something else.
void Lane::load_alerts_of(const Lane& other, std::vector<std::string>& notes) {
  StateWriter alerts(*other.pack_->symbols);
  other.policy_->save(alerts);
  const std::string bytes = alerts.take();
  StateReader reader(bytes, *pack_->symbols);
  RFX_CHECK(policy_->load(reader, notes).ok());
}

void Lane::follow(const Lane& said) {
  engine_->follow(*said.engine_);
  open_incidents_ = said.open_incidents_;
  make_policy();
  std::vector<std::string> known;  // the report of load() has them
  load_alerts_of(said, known);
}

void Lane::save_counts(StateWriter& out) const {
  out.begin("counts");
  const stream::IngestCounters sum = counters();
  for (const uint64_t count : {sum.lines, sum.bytes, sum.events, sum.unmatched_lines,
                               sum.unknown_fields, sum.bad_fields, sum.deduplicated, late_}) {
    out.u64(count);
  }
  out.u64(sum.rejected.size());
  for (size_t i = 0; i < sum.rejected.size(); ++i) {
    out.text(stream::to_text(static_cast<stream::Reject>(i)));
    out.u64(sum.rejected[i]);
  }
  save_map(out, kinds());
  save_map(out, firings());
  out.u64(open_incidents_.size());
  for (const auto& incident : open_incidents_) out.text(incident);
  out.end();
}

void Lane::load_counts(StateReader& in) {
  if (!in.enter("counts")) return;
  for (uint64_t* count :
       {&earlier_.lines, &earlier_.bytes, &earlier_.events, &earlier_.unmatched_lines,
        &earlier_.unknown_fields, &earlier_.bad_fields, &earlier_.deduplicated, &late_}) {
    *count = in.u64();
  }
  for (size_t left = in.count(2); left > 0; --left) {
    const std::string_view reason = in.text();
    const uint64_t count = in.u64();
    for (size_t i = 0; i < earlier_.rejected.size(); ++i) {
      if (stream::to_text(static_cast<stream::Reject>(i)) == reason) earlier_.rejected[i] = count;
    }
  }
  load_map(in, earlier_kinds_);
  load_map(in, earlier_firings_);
  for (size_t left = in.count(1); left > 0; --left) open_incidents_.emplace(in.text());
  in.leave();
}

void Lane::save_sources(StateWriter& out) const {
  out.begin("sources");
  out.u64(sources_.size());
  for (const auto& [name, source] : sources_) {
    out.text(name);
    out.u64(source.lines);
    out.i64(source.newest_ns);
    out.i64(source.base_ns);
    out.flag(source.log != nullptr);
    if (!source.log) continue;
    out.text(source.node);
    source.log->save(out);
  }
  for (const auto& [name, source] : sources_) {
    out.u64(rejected_of(source));
    save_map(out, kinds_of(source));
  }
  out.end();
}

bool Lane::load_sources(StateReader& in) {
  std::vector<Source*> loaded;
  for (size_t left = in.count(5); left > 0 && !in.failed(); --left) {
    const std::string name(in.text());
    Source& source = source_of(name);
    loaded.push_back(&source);
    source.lines = in.u64();
    source.newest_ns = in.i64();
    source.base_ns = in.i64();
    if (!in.flag()) continue;
    source.node = in.text();
    open_log(source, name);
    if (!source.log->load(in).ok()) return false;
  }
  if (in.at_end()) return !in.failed();  // engines before 2026-12-01 kept no counts of sources
  for (Source* source : loaded) {
    source->rejected = in.u64();
    load_map(in, source->earlier_kinds);
  }
  return !in.failed();
}

}  // namespace reflex::serve

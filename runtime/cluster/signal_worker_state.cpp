// The state of a signal worker between two batches: see signal_worker.h.
#include <algorithm>

#include "runtime/abi/load_names.h"
#include "runtime/adapt/live_table.h"
#include "runtime/base/check.h"
#include "runtime/cluster/signal_worker.h"

namespace reflex::cluster {

bool SignalWorker::is_settled() const {
  if (ended_) return true;
  const bool idle = !busy_ && !fresh_ && waits_for_ns_ == kNoTimeNs;
  return idle && batch_.records.empty() && batch_.timer_firings.empty() && batch_.late.empty() &&
         batch_.seen_kinds.empty() && batch_.samples.empty();
}

void SignalWorker::save(StateWriter& out) const {
  RFX_CHECK(is_settled());
  out.begin("partition");
  out.u64(events_number_);
  out.u64(number_);
  out.i64(first_hour_ns_);
  out.i64(next_hour_ns_);
  out.i64(watermark_ns_);
  out.i64(end_ns_);
  out.flag(ended_);
  abi::save_names(out, *pack_);
  out.u64(seen_ns_.size());
  for (const int64_t seen : seen_ns_) out.i64(seen);
  std::vector<std::string_view> logs;
  for (SymbolId id = 0; id < is_log_.size(); ++id) {
    if (is_log_[id]) logs.push_back(pack_->symbols->name(id));
  }
  std::sort(logs.begin(), logs.end());
  out.u64(logs.size());
  for (const std::string_view log : logs) out.text(log);
  for (const auto* untold : {&logged_nodes_, &log_sources_}) {
    out.u64(untold->size());
    for (const SymbolId id : *untold) out.symbol(id);
  }
  out.flag(limits_.rows != nullptr);
  if (limits_.rows) out.text(MessageCodec(pack_).encode(limits_));
  topology_->save(out);
  StateWriter own(*pack_->symbols);
  signals_->save(own);
  out.text(own.take());
  reorder_.save(out);
  out.end();
}

Status SignalWorker::load(StateReader& in) {
  const Error bad{"the state of a signal worker is damaged or of another form"};
  abi::LoadNames names;
  if (!in.enter("partition")) return bad;
  events_number_ = in.u64();
  number_ = in.u64();
  first_hour_ns_ = in.i64();
  next_hour_ns_ = in.i64();
  watermark_ns_ = in.i64();
  end_ns_ = in.i64();
  ended_ = in.flag();
  if (!names.load(in, *pack_) || !names.same_set()) return bad;
  if (in.count() != seen_ns_.size()) return bad;
  for (int64_t& seen : seen_ns_) seen = in.i64();
  for (size_t left = in.count(); left > 0; --left) {
    const SymbolId source = pack_->symbols->intern(in.text());
    if (source >= is_log_.size()) is_log_.resize(size_t{source} + 1);
    is_log_[source] = true;
  }
  for (auto* untold : {&logged_nodes_, &log_sources_}) {
    for (size_t left = in.count(); left > 0; --left) untold->push_back(in.symbol());
  }
  if (in.flag()) {
    auto table = MessageCodec(pack_).limit_table(in.text());
    if (!table.ok()) return table.error();
    limits_ = std::move(table).value();
  }
  topology_->load(in, names);
  StateReader own(in.text(), *pack_->symbols);
  if (in.failed() || !signals_->load(own, nullptr)) return bad;
  if (limits_.rows) signals_->set_tables(adapt::live(nullptr, limits_.rows));
  std::vector<std::string> notes;
  if (auto status = reorder_.load(in, notes); !status.ok()) return status;
  in.leave();
  return in.failed() ? Status(bad) : ok_status();
}

}  // namespace reflex::cluster

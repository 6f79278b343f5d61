// The state of an attribution worker between two calls of advance(): see attribution_worker.h.
#include "runtime/base/check.h"
#include "runtime/cluster/attribution_worker.h"
#include "runtime/cluster/record_codec.h"

namespace reflex::cluster {

void AttributionWorker::save(StateWriter& out) const {
  const RecordCodec codec(pack_);
  out.begin("attribution");
  out.text(pack_->set_sha256);
  out.i64(watermark_ns_);
  out.u64(order_count_);
  out.flag(ended_);
  order_.save(out);
  out.u64(partitions_.size());
  for (const Partition& p : partitions_) {
    out.u64(p.number);
    for (const int64_t at : {p.watermark_ns, p.first_hour_ns, p.waits_ns, p.end_ns}) out.i64(at);
    out.u64(p.pending.size());
    for (const Pending& pending : p.pending) {
      codec.write(out, *pending.record);
      out.u64(pending.firings.size());
      for (const abi::Firing& firing : pending.firings) codec.write(out, firing);
    }
    write_samples(out, p.samples);
  }
  out.u64(late_.size());
  for (const Late& late : late_) {
    codec.write(out, *late.record);
    out.i64(late.after_ns);
  }
  signals_->save(out, codec);
  StateWriter own(*pack_->symbols);
  engine_->save(own);
  out.text(own.take());
  out.end();
}

Status AttributionWorker::load(StateReader& in) {
  const Error bad{"the state of an attribution worker is damaged or of another form"};
  const RecordCodec codec(pack_);
  const auto slab = std::make_shared<stream::Slab>();
  if (!in.enter("attribution") || in.text() != pack_->set_sha256) return bad;
  watermark_ns_ = in.i64();
  order_count_ = in.u64();
  ended_ = in.flag();
  order_.load(in);
  if (in.count() != partitions_.size()) return bad;
  for (Partition& p : partitions_) {
    p.number = in.u64();
    for (int64_t* at : {&p.watermark_ns, &p.first_hour_ns, &p.waits_ns, &p.end_ns}) *at = in.i64();
    for (size_t left = in.count(); left > 0 && !in.failed(); --left) {
      Pending pending{codec.read(in, *slab), slab, {}};
      if (pending.record == nullptr) return bad;
      for (size_t firings = in.count(); firings > 0 && !in.failed(); --firings) {
        pending.firings.push_back(codec.read_firing(in));
      }
      p.pending.push_back(std::move(pending));
    }
    read_samples(in, p.samples, *pack_);
  }
  for (size_t left = in.count(); left > 0 && !in.failed(); --left) {
    abi::Record* record = codec.read(in, *slab);
    if (record == nullptr) return bad;
    late_.push_back({record, slab, in.i64()});
  }
  signals_->load(in, codec);
  StateReader own(in.text(), *pack_->symbols);
  if (in.failed()) return bad;
  if (auto loaded = engine_->load(own); !loaded.ok()) return loaded.error();
  in.leave();
  return in.failed() ? Status(bad) : ok_status();
}

}  // namespace reflex::cluster

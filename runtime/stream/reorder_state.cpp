// Reorder as a saved state: sources, dedups, and every record that waits.
#include <algorithm>
#include <unordered_map>
#include <utility>

#include "runtime/base/time.h"
#include "runtime/stream/reorder_impl.h"

namespace reflex::stream {

void Reorder::Impl::save(StateWriter& writer) const {
  writer.begin("reorder");
  abi::RecordWriter records(writer);
  clocks_.save(writer, records, *pack_);
  order_.save(writer);
  id_dedup_.save(writer);
  save_pending(writer, records);
  std::unordered_map<const abi::Record*, uint64_t> numbers;
  for (size_t i = 0; i < staged_.size(); ++i) numbers[staged_[i]] = i + 1;
  kind_dedup_.save(writer, [&](const abi::Record* record) {
    const auto it = numbers.find(record);
    return it == numbers.end() ? 0 : it->second;
  });
  writer.i64(watermark_ns_);
  writer.flag(is_watermark_fresh_);
  writer.u64(order_count_);
  writer.i64(released_to_ns_);
  clocks_.save_paces(writer);
  writer.end();
}

void Reorder::Impl::save_pending(StateWriter& writer, abi::RecordWriter& records) const {
  const auto write_all = [&](const auto& list) {
    writer.u64(list.size());
    for (const abi::Record* record : list) records.write(*record, pack_->kinds[record->kind]);
  };
  std::vector<abi::Record*> waiting = ring_.records();
  // Times beside the pointers: of a minute of a fast stream nothing is in a cache.
  std::vector<std::pair<int64_t, abi::Record*>> by_time;
  by_time.reserve(waiting.size());
  for (abi::Record* record : waiting) by_time.emplace_back(record->ts_ns, record);
  std::sort(by_time.begin(), by_time.end(), [this](const auto& a, const auto& b) {
    return a.first != b.first ? a.first < b.first : order_.less(*a.second, *b.second);
  });
  for (size_t i = 0; i < waiting.size(); ++i) waiting[i] = by_time[i].second;
  write_all(waiting);
  write_all(ready_);  // only between a load and the next release
  write_all(staged_);
  write_all(late_);
  for (const int64_t ns : late_after_ns_) writer.i64(ns);
}

void Reorder::Impl::load_pending(StateReader& reader, abi::RecordReader& records, Slab& slab) {
  abi::RecordParts parts;
  const auto read_all = [&](const auto& take) {
    for (size_t left = reader.count(8); left > 0 && !reader.failed(); --left) {
      const bool usable = records.read(parts);
      if (parts.head.ts_ns < 0) reader.fail();
      if (reader.failed()) return;
      abi::Record* record = usable ? slab.add(parts) : nullptr;
      if (record) batch_.last_ns = std::max(batch_.last_ns, record->ts_ns);
      take(record);
    }
  };
  read_all([this](abi::Record* record) {
    if (record == nullptr) return;
    ring_.add(record->ts_ns, {record, 0, record->source, order_.tie_rank(*record),
                              record->id == nullptr && !kind_dedup_.applies(record->kind)});
  });
  read_all([this](abi::Record* record) {
    if (record) ready_.push_back(record);
  });
  std::vector<abi::Record*> staged;
  read_all([&](abi::Record* record) { staged.push_back(record); });
  std::vector<abi::Record*> late;
  read_all([&](abi::Record* record) { late.push_back(record); });
  for (abi::Record* record : late) {
    const int64_t after_ns = reader.i64();
    if (record == nullptr) continue;
    late_.push_back(record);
    late_after_ns_.push_back(after_ns);
  }
  kind_dedup_.load(reader, [&](uint64_t number) -> abi::Record* {
    return number == 0 || number > staged.size() ? nullptr : staged[number - 1];
  });
  for (abi::Record* record : staged) {
    if (record == nullptr) continue;
    if (delay_ns_ == 0) {
      ready_.push_back(record);  // the new set has no dedup: nothing to wait for
    } else {
      staged_.push_back(record);
    }
  }
}

Status Reorder::Impl::load(StateReader& reader, std::vector<std::string>& notes) {
  std::unordered_map<std::string_view, uint16_t> kinds;
  for (uint16_t kind = 0; kind < pack_->kinds.size(); ++kind) {
    kinds.emplace(pack_->kinds[kind].name, kind);
  }
  const auto find_kind = [&](std::string_view name, uint16_t& out) -> const abi::KindSchema* {
    const auto it = kinds.find(name);
    if (it == kinds.end()) return nullptr;
    out = it->second;
    return &pack_->kinds[out];
  };
  if (!reader.enter("reorder")) return Error{"the state of the stream is damaged"};
  abi::RecordReader records(reader, find_kind);
  batch_ = {INT64_MIN, std::make_shared<Slab>()};
  clocks_.load(reader, records, batch_.slab);
  order_.load(reader);
  id_dedup_.load(reader);
  load_pending(reader, records, *batch_.slab);
  load_rest(reader);
  reader.leave();
  slabs_.push(std::move(batch_));
  if (reader.failed()) return Error{"the state of the stream is damaged"};
  if (records.dropped() > 0) {
    notes.push_back(std::to_string(records.dropped()) +
                    " waiting events are of kinds that the new set has not");
  }
  return ok_status();
}

void Reorder::Impl::load_rest(StateReader& reader) {
  watermark_ns_ = reader.i64();
  is_watermark_fresh_ = reader.flag();
  order_count_ = reader.u64();
  released_to_ns_ = reader.i64();
  clocks_.load_paces(reader);
  // Times that differences are taken of.
  if (watermark_ns_ != SourceClocks::kNothing && watermark_ns_ < -kNsPerDay) reader.fail();
  set_now_limit();
}

void Reorder::Impl::use(std::shared_ptr<const abi::CompiledPack> pack, RejectSink sink) {
  order_.use(pack);
  kind_dedup_.use(pack);
  pack_ = std::move(pack);
  rejects_.set_sink(std::move(sink));
}

void Reorder::take_over(Reorder& old) {
  old.impl_->use(impl_->pack(), impl_->sink());
  impl_.swap(old.impl_);
}

}  // namespace reflex::stream

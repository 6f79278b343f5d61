// The evidence log as a saved state: series by their first key, each with episodes or counts.
#include <algorithm>
#include <tuple>

#include "runtime/base/check.h"
#include "runtime/engine/evidence_log.h"

namespace reflex::engine {
namespace {

void save_episode(StateWriter& writer, const attribution::Evidence::Episode& episode) {
  writer.i64(episode.onset_ns);
  writer.i64(episode.end_ns);
  writer.u64(episode.firings);
  abi::save_value(writer, episode.value);
  abi::save_value(writer, episode.limit);
  writer.u64(episode.events.size());
  for (const abi::EventRef& event : episode.events) abi::save_event(writer, event);
}

attribution::Evidence::Episode load_episode(StateReader& reader) {
  attribution::Evidence::Episode episode;
  episode.onset_ns = reader.i64();
  episode.end_ns = reader.i64();
  episode.firings = static_cast<uint32_t>(reader.bounded(UINT32_MAX));
  episode.value = abi::load_value(reader);
  episode.limit = abi::load_value(reader);
  for (size_t left = reader.count(4); left > 0 && !reader.failed(); --left) {
    episode.events.push_back(abi::load_event(reader));
  }
  return episode;
}

}  // namespace

/// Parts are an index (a gpu) or a name (a nic), plus one.
bool EvidenceLog::has_named_parts(abi::SignalId signal) const {
  return abi::is_named_key(pack_->signals[signal].count.part_key);
}

void EvidenceLog::save_series(StateWriter& writer, const Series& series) const {
  writer.u64(series.signal);
  abi::save_entity(writer, *pack_, series.entity);
  writer.u64(series.repairs_ns.size());
  for (const int64_t ns : series.repairs_ns) writer.i64(ns);
  writer.u64(series.episodes.size());
  for (const auto& episode : series.episodes) save_episode(writer, episode);
  const bool named = has_named_parts(series.signal);
  writer.flag(named);
  writer.u64(series.counted.size());
  for (const Series::Counted& counted : series.counted) {
    writer.i64(counted.ts_ns);
    writer.f64(counted.value);
    writer.flag(counted.part != 0);
    if (counted.part != 0 && named) writer.symbol(static_cast<SymbolId>(counted.part - 1));
    if (counted.part != 0 && !named) writer.u64(counted.part - 1);
    abi::save_event(writer, counted.event);
  }
}

bool EvidenceLog::load_series(StateReader& reader, const abi::LoadNames& names, Series& series) {
  const uint32_t signal = names.signal(reader);
  bool usable = abi::load_entity(reader, *pack_, series.entity) && signal != abi::LoadNames::kGone;
  usable = usable && pack_->signals[signal].entity_kind == series.entity.kind;
  series.signal = signal;
  for (size_t left = reader.count(); left > 0 && !reader.failed(); --left) {
    series.repairs_ns.push_back(reader.i64());
  }
  for (size_t left = reader.count(20); left > 0 && !reader.failed(); --left) {
    series.episodes.push_back(load_episode(reader));
  }
  const bool named = reader.flag();
  for (size_t left = reader.count(14); left > 0 && !reader.failed(); --left) {
    Series::Counted& counted = series.counted.emplace_back();
    counted.ts_ns = reader.i64();
    counted.value = reader.f64();
    if (reader.flag()) counted.part = 1 + (named ? reader.symbol() : reader.u64());
    counted.event = abi::load_event(reader);
  }
  if (reader.failed() || !usable) return false;
  return is_of_form(series);
}

bool EvidenceLog::is_of_form(const Series& series) const {
  return graded(series.signal) != nullptr ? series.episodes.empty() : series.counted.empty();
}

void EvidenceLog::close(Series& series, int64_t now_ns) {
  const bool open = !series.episodes.empty() && series.episodes.back().end_ns > now_ns;
  if (open) series.episodes.back().end_ns = now_ns;
}

void EvidenceLog::note_dropped(size_t series, std::vector<std::string>& notes) {
  if (series == 0) return;
  notes.push_back("evidence of " + std::to_string(series) +
                  " signals on entities was dropped: they are gone or kept on others now");
}

void EvidenceLog::save(StateWriter& writer) const {
  struct Place {
    std::string_view key;
    std::string_view name;
    uint64_t number;
    const Group* group;
  };
  std::vector<Place> order;
  for (const Key& key : keys_) {
    const bool named = abi::is_named_key(key.name);
    for (const auto& [value, group] : key.by_value) {
      const auto name =
          named ? pack_->symbols->name(static_cast<SymbolId>(value)) : std::string_view();
      order.push_back({key.name, name, named ? 0 : value, &group});
    }
  }
  std::sort(order.begin(), order.end(), [](const Place& a, const Place& b) {
    return std::tie(a.key, a.name, a.number) < std::tie(b.key, b.name, b.number);
  });
  writer.begin("evidence");
  writer.u64(series_count_);
  for (const Place& place : order) {
    for (const Series& series : place.group->series) save_series(writer, series);
  }
  writer.end();
}

void EvidenceLog::load(StateReader& reader, abi::LoadNames& names, int64_t now_ns) {
  if (!reader.enter("evidence")) return;
  size_t dropped = 0;
  for (size_t left = reader.count(5); left > 0 && !reader.failed(); --left) {
    Series series;
    const bool usable = load_series(reader, names, series);
    if (reader.failed()) return;
    if (!usable) {
      ++dropped;
      continue;
    }
    if (names.is_reset(series.signal)) close(series, now_ns);
    const auto& keys = pack_->entity_kinds[series.entity.kind].keys;
    if (keys.empty()) return reader.fail();
    Group& group = keys_[key_of_kind_[series.entity.kind]].by_value[series.entity.values[0]];
    group.signals.push_back(series.signal);
    group.series.push_back(std::move(series));
    ++series_count_;
  }
  reader.leave();
  note_dropped(dropped, names.notes());
}

void EvidenceLog::take_over(EvidenceLog& old, abi::SetChange& change, int64_t now_ns) {
  keys_ = std::move(old.keys_);
  series_count_ = old.series_count_;
  bool same_forms = true;
  for (abi::SignalId s = 0; s < pack_->signals.size(); ++s) {
    same_forms = same_forms && (graded(s) == nullptr) == (old.graded(s) == nullptr);
  }
  if (same_forms && !change.any_signal()) return;
  size_t dropped = 0;
  for (Key& key : keys_) {
    for (auto& [value, group] : key.by_value) {  // any order: each on its own
      dropped += std::erase_if(group.series, [&](const Series& s) { return !is_of_form(s); });
      group.signals.clear();
      for (Series& series : group.series) {
        group.signals.push_back(series.signal);
        if (change.new_signals[series.signal] != 0) close(series, now_ns);
      }
    }
  }
  series_count_ -= dropped;
  note_dropped(dropped, change.notes);
}

}  // namespace reflex::engine

// Engine::save and Engine::load: the parts in one order, under the names of the set. And take_over(),
// which moves the same parts.
//
// Topology first: what is bound to nodes asks it for their classes. Signals next: which of them
// begin anew decides what of rates and evidence comes along.
#include <algorithm>
#include <unordered_map>

#include "runtime/engine/engine.h"

namespace reflex::engine {
namespace {

Error damaged() { return Error{"the state of the engine is damaged"}; }

}  // namespace

void Engine::save(StateWriter& writer) const {
  writer.begin("engine");
  abi::save_names(writer, *pack_);
  writer.begin("clock");
  std::vector<std::string_view> logs;
  for (SymbolId id = 0; id < is_log_source_.size(); ++id) {
    if (is_log_source_[id] != 0) logs.push_back(pack_->symbols->name(id));
  }
  std::sort(logs.begin(), logs.end());
  writer.u64(logs.size());
  for (const std::string_view log : logs) writer.text(log);
  writer.u64(left_out_);
  writer.u64(late_events_);
  writer.i64(last_ts_ns_);
  writer.i64(next_epoch_ns_);
  writer.flag(started_);
  writer.end();
  topology_->save(writer);
  StateWriter signals(*pack_->symbols);  // its own: it may be skipped
  signals_->local().save(signals);
  writer.text(signals.take());
  coverage_.save(writer);
  adaptation_->save(writer);
  incidents_->save(writer);
  writer.end();
}

Result<LoadReport> Engine::load(StateReader& reader) {
  LoadReport report;
  abi::LoadNames names;
  if (!reader.enter("engine") || !names.load(reader, *pack_)) return damaged();
  if (!load_clock(reader)) return damaged();
  topology_->load(reader, names);
  if (!load_signals(reader, names, report)) return damaged();
  coverage_.load(reader, names);
  adaptation_->load(reader, names);
  incidents_->load(reader, names, last_ts_ns_);
  reader.leave();
  if (reader.failed()) return damaged();
  if (!pack_->adaptives.empty()) signals_->set_tables(adaptation_->tables());
  report.notes = std::move(names.notes());
  return report;
}

bool Engine::load_signals(StateReader& reader, abi::LoadNames& names, LoadReport& report) {
  const std::string_view bytes = reader.text();
  if (reader.failed()) return false;
  StateReader own(bytes, *pack_->symbols);
  std::vector<eval::StateFate> fates;
  if (!signals_->local().load(own, &fates)) return false;
  std::unordered_map<std::string_view, abi::SignalId> signals;
  for (abi::SignalId s = 0; s < pack_->signals.size(); ++s) signals[pack_->signals[s].name] = s;
  std::unordered_map<std::string_view, abi::FeatureId> features;
  for (abi::FeatureId f = 0; f < pack_->features.size(); ++f) features[pack_->features[f].name] = f;
  for (eval::StateFate& fate : fates) {
    if (fate.fate == abi::Fate::kReset) {
      const auto signal = signals.find(fate.name);
      if (!fate.is_feature && signal != signals.end()) names.reset_signal(signal->second);
      const auto feature = features.find(fate.name);
      if (fate.is_feature && feature != features.end()) names.reset_feature(feature->second);
    }
    report.rows.push_back({fate.is_feature ? "feature" : "signal", std::move(fate.name),
                           std::string(abi::word_of(fate.fate)), std::move(fate.why), fate.bytes});
  }
  return true;
}

bool Engine::load_clock(StateReader& reader) {
  if (!reader.enter("clock")) return false;
  is_log_source_.clear();
  for (size_t left = reader.count(); left > 0 && !reader.failed(); --left) {
    mark_log_source(pack_->symbols->intern(reader.text()));
  }
  left_out_ = reader.u64();
  late_events_ = reader.u64();
  last_ts_ns_ = reader.i64();
  next_epoch_ns_ = reader.i64();
  started_ = reader.flag();
  // The next hour after the last event: else there would be epochs without end to catch up with.
  if (next_epoch_ns_ != kNoTimeNs && next_epoch_ns_ < last_ts_ns_) reader.fail();
  reader.leave();
  return !reader.failed();
}

std::string Engine::cannot_take_over(const Engine& old) {
  std::string differs = abi::ids_differ(*old.pack_, *pack_);
  if (!differs.empty()) return differs + " changed";
  eval::SignalEngine& signals = signals_->local();
  if (!signals.can_take_over(old.signals_->local())) {
    return "the memory of states has too many holes";  // or other threads: a set that outgrew one
  }
  change_ = {pack_->set_sha256 == old.pack_->set_sha256,
             std::vector<uint8_t>(pack_->signals.size(), 0),
             std::vector<uint8_t>(pack_->adaptives.size(), 0),
             {}};
  const auto number_of = [](const auto& plans, const std::string& name) {
    size_t i = 0;
    while (i < plans.size() && plans[i].name != name) ++i;
    return i;
  };
  take_over_report_ = {};
  for (const eval::StateFate& fate : signals.fates()) {
    if (fate.fate == abi::Fate::kReset && !fate.is_feature) {
      change_.new_signals[number_of(pack_->signals, fate.name)] = 1;
    } else if (fate.fate == abi::Fate::kReset) {
      const size_t feature = number_of(pack_->features, fate.name);
      for (size_t a = 0; a < pack_->adaptives.size(); ++a) {
        if (pack_->adaptives[a].feature == feature) change_.new_adaptives[a] = 1;
      }
    }
    take_over_report_.rows.push_back({fate.is_feature ? "feature" : "signal", fate.name,
                                      std::string(abi::word_of(fate.fate)), fate.why, 0});
  }
  return "";
}

void Engine::take_over(Engine& old, LoadReport& report) {
  is_log_source_ = std::move(old.is_log_source_);
  events_by_kind_ = std::move(old.events_by_kind_);
  late_events_ = old.late_events_;
  left_out_ = old.left_out_;
  last_ts_ns_ = old.last_ts_ns_;
  next_epoch_ns_ = old.next_epoch_ns_;
  started_ = old.started_;
  topology_->take_over(*old.topology_);
  signals_->local().take_over(old.signals_->local());
  coverage_.take_over(old.coverage_);
  adaptation_->take_over(*old.adaptation_, change_);
  incidents_->take_over(*old.incidents_, change_, last_ts_ns_);
  if (!pack_->adaptives.empty()) signals_->set_tables(adaptation_->tables());
  report = std::move(take_over_report_);
  report.notes = std::move(change_.notes);
}

void Engine::see_inventory() { adaptation_->see_inventory(); }

void Engine::learn(const KnownIncident& known) {
  adaptation_->learn(known, !incidents_->is_open(known.incident), last_ts_ns_);
}

}  // namespace reflex::engine

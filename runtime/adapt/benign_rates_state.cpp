// Benign rates as a saved state.
//
// Cohorts in the order of their making (shifts are told in that order), nodes by name, signals in
// the order of the names of the state. Times are epochs.
#include <algorithm>

#include "runtime/adapt/benign_rates.h"

namespace reflex::adapt {
namespace {

// Why: most of what waits is one firing, alone or within an episode.
enum SumsForm : uint64_t { kAny, kFirst, kAgain };
constexpr int64_t kNoEpoch = INT64_MIN;
// Why: an epoch is an hour; ten thousand years. Differences of epochs stay far from overflow.
constexpr int64_t kEpochMax = int64_t{10'000} * 366 * 24;

int64_t load_epoch(StateReader& reader) {
  const int64_t epoch = reader.i64();
  if (epoch != kNoEpoch && (epoch < -kEpochMax || epoch > kEpochMax)) reader.fail();
  return epoch;
}

}  // namespace

void BenignRates::save(StateWriter& writer, const Cohort& cohort) const {
  writer.u64(cohort.nodes);
  writer.f64(cohort.node_hours);
  for (const Sums& s : cohort.sums) {
    writer.f64(s.firings);
    writer.f64(s.onsets);
    writer.f64(s.active_hours);
  }
  writer.u64(cohort.waiting.size());
  for (const uint32_t nodes : cohort.waiting) writer.u64(nodes);
  writer.flag(!cohort.days.empty());
  for (const Day& day : cohort.days) {
    for (const double onsets : day.quarters) writer.f64(onsets);
    writer.f64(day.firings);
    writer.u64(day.nodes);
  }
  writer.i64(cohort.day_epoch);
}

void BenignRates::load(StateReader& reader, const abi::LoadNames& names, Cohort& cohort) const {
  const auto wanted = [&](uint32_t signal) {
    return signal != abi::LoadNames::kGone && !names.is_reset(signal);
  };
  cohort.nodes = static_cast<uint32_t>(reader.bounded(UINT32_MAX));
  cohort.node_hours = reader.f64();
  for (const uint32_t signal : names.signals()) {
    Sums s;
    s.firings = reader.f64();
    s.onsets = reader.f64();
    s.active_hours = reader.f64();
    if (wanted(signal)) cohort.sums[signal] = s;
  }
  for (size_t left = reader.count(); left > 0 && !reader.failed(); --left) {
    cohort.waiting.push_back(static_cast<uint32_t>(reader.bounded(UINT32_MAX)));
  }
  if (reader.flag()) {
    for (const uint32_t signal : names.signals()) {
      Day day;
      for (double& onsets : day.quarters) onsets = reader.f64();
      day.firings = reader.f64();
      day.nodes = static_cast<uint32_t>(reader.bounded(UINT32_MAX));
      if (wanted(signal) && !cohort.days.empty()) cohort.days[signal] = day;
    }
  }
  cohort.day_epoch = load_epoch(reader);
}

void BenignRates::save(StateWriter& writer) const {
  writer.begin("rates");
  writer.i64(epoch_);
  writer.u64(version_);
  for (const int64_t since : signal_since_) writer.i64(since);
  writer.u64(cohorts_.size());
  for (const Cohort& cohort : cohorts_) {
    writer.u64(cohort.hw_class);
    writer.symbol(cohort.value);
    save(writer, cohort);
  }
  for (const Cohort& level : classes_) save(writer, level);
  save(writer, fleet_);
  std::vector<std::pair<std::string_view, SymbolId>> order;
  for (SymbolId id = 0; id < nodes_.size(); ++id) {
    if (nodes_[id]) order.emplace_back(pack_->symbols->name(id), id);
  }
  std::sort(order.begin(), order.end());
  writer.u64(order.size());
  for (const auto& [name, id] : order) {
    const Node& node = *nodes_[id];
    writer.symbol(id);
    writer.u64(node.cohort);
    writer.u64(node.hw_class);
    writer.symbol(node.value);
    writer.i64(node.since_epoch);
    writer.u64(node.generation);
    writer.u64(node.own.size());
    for (const Node::Own& own : node.own) {
      writer.u64(own.signal);
      writer.f64(own.sums.firings);
      writer.f64(own.sums.onsets);
      writer.f64(own.sums.active_hours);
      writer.i64(own.epoch);
      writer.i64(own.last_ns);
      writer.i64(own.day);
    }
  }
  writer.i64(first_waiting_epoch_);
  writer.u64(waiting_.size());
  for (const Epoch& epoch : waiting_) {
    const auto is_forgotten = [](const Waiting& w) { return w.generation == kForgotten; };
    const auto gone = std::count_if(epoch.all.begin(), epoch.all.end(), is_forgotten);
    writer.u64(epoch.all.size() - static_cast<size_t>(gone));
    for (const Waiting& w : epoch.all) {
      if (is_forgotten(w)) continue;
      writer.symbol(w.node);
      writer.u64(w.signal);
      writer.u64(w.generation);
      const bool one = w.sums.firings == 1;
      const SumsForm form = one && w.sums.onsets == 1 && w.sums.active_hours == 0 ? kFirst
                            : one && w.sums.onsets == 0                           ? kAgain
                                                                                  : kAny;
      writer.u64(form);
      if (form == kAny) writer.f64(w.sums.firings);
      if (form == kAny) writer.f64(w.sums.onsets);
      if (form != kFirst) writer.f64(w.sums.active_hours);
    }
  }
  save_shifts(writer, shifts_);
  // States of older versions end here.
  for (const Epoch& epoch : waiting_) {
    int64_t last_ns = 0;
    for (const Waiting& w : epoch.all) {
      if (w.generation == kForgotten) continue;
      writer.i64(w.ts_ns - last_ns);
      last_ns = w.ts_ns;
    }
  }
  writer.end();
}

void BenignRates::load_cohorts(StateReader& reader, const abi::LoadNames& names) {
  for (size_t left = reader.count(12); left > 0 && !reader.failed(); --left) {
    const uint32_t hw_class = names.hw_class(reader);
    Cohort& cohort = cohorts_.emplace_back();
    // Of a class that is gone: no one finds it any more, its nodes are about to leave it.
    cohort.hw_class = hw_class < classes_.size() ? static_cast<abi::ClassId>(hw_class) : 0;
    cohort.value = reader.symbol();
    cohort.sums.resize(pack_->signals.size());
    cohort.days.resize(pack_->signals.size());
    load(reader, names, cohort);
    if (hw_class < classes_.size()) {
      cohort_ids_.try_emplace({cohort.hw_class, cohort.value},
                              static_cast<uint32_t>(cohorts_.size() - 1));
    }
  }
  for (const uint32_t hw_class : names.classes()) {
    Cohort level;
    level.sums.resize(pack_->signals.size());
    load(reader, names, level);
    if (hw_class < classes_.size()) classes_[hw_class] = std::move(level);
  }
  load(reader, names, fleet_);
}

SymbolId BenignRates::load_node(StateReader& reader, const abi::LoadNames& names) {
  const SymbolId id = reader.symbol();
  if (id >= nodes_.size()) nodes_.resize(id + size_t{1});
  nodes_[id] = std::make_unique<Node>();
  Node& node = *nodes_[id];
  node.cohort = static_cast<uint32_t>(reader.u64());
  if (node.cohort >= cohorts_.size()) {
    reader.fail();
    return id;
  }
  const uint32_t hw_class = names.hw_class(reader);
  node.hw_class = hw_class < classes_.size() ? static_cast<abi::ClassId>(hw_class)
                                             : cohorts_[node.cohort].hw_class;
  node.value = reader.symbol();
  node.since_epoch = load_epoch(reader);
  node.generation = static_cast<uint32_t>(reader.bounded(UINT32_MAX));
  for (size_t left = reader.count(28); left > 0 && !reader.failed(); --left) {
    Node::Own own;
    const uint32_t signal = names.signal(reader);
    own.sums.firings = reader.f64();
    own.sums.onsets = reader.f64();
    own.sums.active_hours = reader.f64();
    own.epoch = load_epoch(reader);
    own.last_ns = reader.i64();
    own.day = load_epoch(reader);
    if (signal == abi::LoadNames::kGone || names.is_reset(signal)) continue;
    own.signal = signal;
    node.signals.push_back(own.signal);
    node.own.push_back(own);
  }
  return id;
}

/// Per epoch and entry that was saved: its number now + 1, or 0 when it is not kept.
std::vector<std::vector<uint32_t>> BenignRates::load_waiting(StateReader& reader,
                                                             const abi::LoadNames& names) {
  std::vector<std::vector<uint32_t>> numbers;
  first_waiting_epoch_ = load_epoch(reader);
  for (size_t epochs = reader.count(); epochs > 0 && !reader.failed(); --epochs) {
    std::vector<Waiting>& epoch = waiting_.emplace_back().all;
    std::vector<uint32_t>& kept = numbers.emplace_back();
    for (size_t left = reader.count(4); left > 0 && !reader.failed(); --left) {
      Waiting w;
      w.node = reader.symbol();
      const uint32_t signal = names.signal(reader);
      w.generation = static_cast<uint32_t>(reader.bounded(UINT32_MAX));
      const uint64_t form = reader.bounded(kAgain);
      w.sums.firings = form == kAny ? reader.f64() : 1;
      w.sums.onsets = form == kAny ? reader.f64() : form == kFirst ? 1 : 0;
      w.sums.active_hours = form == kFirst ? 0 : reader.f64();
      if (reader.failed() || find(w.node) == nullptr) {
        reader.fail();
        return numbers;
      }
      kept.push_back(0);
      if (signal == abi::LoadNames::kGone || names.is_reset(signal)) continue;
      w.signal = signal;
      epoch.push_back(w);
      kept.back() = static_cast<uint32_t>(epoch.size());
      const int64_t hour = first_waiting_epoch_ + static_cast<int64_t>(waiting_.size()) - 1;
      note_waiting(own_of(*nodes_[w.node], signal), hour, epoch.size());
    }
  }
  return numbers;
}

void BenignRates::load_times(StateReader& reader,
                             const std::vector<std::vector<uint32_t>>& numbers) {
  for (size_t epoch = 0; epoch < numbers.size() && !reader.failed(); ++epoch) {
    uint64_t ts_ns = 0;  // unsigned: damaged ones may overflow
    for (const uint32_t number : numbers[epoch]) {
      ts_ns += static_cast<uint64_t>(reader.i64());
      if (number > 0) waiting_[epoch].all[number - 1].ts_ns = static_cast<int64_t>(ts_ns);
    }
  }
}

void BenignRates::load(StateReader& reader, const abi::LoadNames& names,
                       const std::function<abi::ClassId(SymbolId)>& class_of) {
  if (!reader.enter("rates")) return;
  nodes_.clear();
  cohorts_.clear();
  cohort_ids_.clear();
  epoch_ = load_epoch(reader);
  version_ = reader.u64();
  signal_since_.assign(pack_->signals.size(), epoch_);  // of signals that are new
  for (const uint32_t signal : names.signals()) {
    const int64_t since = load_epoch(reader);
    const bool kept = signal != abi::LoadNames::kGone && !names.is_reset(signal);
    if (kept) signal_since_[signal] = since;
  }
  load_cohorts(reader, names);
  std::vector<SymbolId> order;
  for (size_t left = reader.count(7); left > 0 && !reader.failed(); --left) {
    order.push_back(load_node(reader, names));
  }
  const auto numbers = load_waiting(reader, names);
  shifts_ = load_shifts(reader, names);
  if (!reader.at_end()) load_times(reader, numbers);
  reader.leave();
  if (!reader.failed() && !names.same_set()) rebind(order, class_of);
}

/// Another set may see other classes in the same labels.
void BenignRates::rebind(const std::vector<SymbolId>& by_name,
                         const std::function<abi::ClassId(SymbolId)>& class_of) {
  for (const SymbolId id : by_name) {
    Node& node = *nodes_[id];
    node.hw_class = std::min<abi::ClassId>(class_of(id), static_cast<abi::ClassId>(classes_.size() - 1));
    const uint32_t cohort = cohort_of(node.hw_class, node.value);
    if (cohort == node.cohort) continue;
    node.cohort = cohort;
    node.since_epoch = epoch_;
    ++node.generation;
    for (auto& own : node.own) own.sums = {};
  }
  for (Cohort& cohort : cohorts_) cohort.nodes = 0;
  for (Cohort& level : classes_) level.nodes = 0;
  for (const SymbolId id : by_name) {
    Cohort& cohort = cohorts_[nodes_[id]->cohort];
    ++cohort.nodes;
    ++classes_[cohort.hw_class].nodes;
  }
  fleet_.nodes = static_cast<uint32_t>(by_name.size());
  ++version_;
}

void BenignRates::take_over(BenignRates& old, const abi::SetChange& change) {
  signal_since_ = std::move(old.signal_since_);
  nodes_ = std::move(old.nodes_);
  cohorts_ = std::move(old.cohorts_);
  cohort_ids_ = std::move(old.cohort_ids_);
  classes_ = std::move(old.classes_);
  fleet_ = std::move(old.fleet_);
  waiting_ = std::move(old.waiting_);
  first_waiting_epoch_ = old.first_waiting_epoch_;
  epoch_ = old.epoch_;
  version_ = old.version_ + (change.same_set ? 0 : 1);
  shifts_ = std::move(old.shifts_);
  if (change.any_signal()) forget_signals(change.new_signals);
}

/// As if nobody had looked for them yet.
void BenignRates::forget_signals(const std::vector<uint8_t>& signals) {
  const auto forget = [&](Cohort& cohort) {
    for (abi::SignalId s = 0; s < signals.size(); ++s) {
      if (signals[s] == 0) continue;
      cohort.sums[s] = {};
      if (!cohort.days.empty()) cohort.days[s] = {};
    }
  };
  for (Cohort& cohort : cohorts_) forget(cohort);
  for (Cohort& level : classes_) forget(level);
  forget(fleet_);
  for (const auto& node : nodes_) {
    if (!node) continue;
    std::erase_if(node->own, [&](const Node::Own& own) { return signals[own.signal] != 0; });
    std::erase_if(node->signals, [&](abi::SignalId signal) { return signals[signal] != 0; });
  }
  for (Epoch& epoch : waiting_) {
    for (Waiting& w : epoch.all) {
      if (signals[w.signal] != 0) w.generation = kForgotten;
    }
  }
  for (abi::SignalId s = 0; s < signals.size(); ++s) {
    if (signals[s] != 0) signal_since_[s] = epoch_;
  }
}

}  // namespace reflex::adapt

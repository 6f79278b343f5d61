// Counts, shrinkage and shifts of benign rates: see benign_rates.h.
#include "runtime/adapt/benign_rates.h"

#include <algorithm>
#include <cmath>

namespace reflex::adapt {
namespace {

// Node-hours that the next level's rate is worth. Why: a week of 200 nodes decides for itself, a
// cohort that has just begun follows its class.
constexpr double kCohortPriorHours = 500;
constexpr double kClassPriorHours = 2000;
// Why: a rate of zero would make one firing infinite evidence; half an event is the usual remedy.
constexpr double kEventPrior = 0.5;
constexpr double kFleetPriorHours = 200;
// Gamma shape of the differences between nodes of one cohort. Why: 2 lets a node be three times as
// chatty as its class before its own counts are needed to say so; fitted shapes were 0.7 to 3.
constexpr double kNodeShape = 2.0;
// Why: nothing is forgotten by this; it bounds the first step over a gap of years.
constexpr int64_t kEpochsAtOnceMax = 24 * 400;

// When a cohort has moved as a whole. Why: twice the rate on most nodes through most of a day is
// neither chance (six standard deviations, nodes differing as they do) nor a storm of an hour.
constexpr uint32_t kShiftNodesMin = 8;
constexpr double kShiftFactorMin = 2;
constexpr double kShiftDeviations = 6;
constexpr double kShiftNodesShare = 0.5;
constexpr double kFallNodesShare = 0.75;
constexpr int64_t kEpochsADay = kNsPerDay / kEpochNs;
constexpr int64_t kHabitEpochsMin = 3 * kEpochsADay;
constexpr size_t kShiftsMax = 1000;

/// Of `nodes` whose counts have this mean and differ by kNodeShape: how many fire at all.
double firing_nodes(double nodes, double mean, double shape) {
  return nodes * (1 - std::pow(1 + mean / shape, -shape));
}

double to_hours(int64_t ns) { return static_cast<double>(ns) / static_cast<double>(kNsPerHour); }

int64_t epoch_at(int64_t ts_ns) {
  const int64_t q = ts_ns / kEpochNs;
  return ts_ns % kEpochNs < 0 ? q - 1 : q;
}

}  // namespace

void BenignRates::add_sums(Sums& to, const Sums& more) {
  to.firings += more.firings;
  to.onsets += more.onsets;
  to.active_hours += more.active_hours;
}

BenignRates::BenignRates(std::shared_ptr<const abi::CompiledPack> pack, const RateOptions& options)
    : pack_(std::move(pack)), options_(options) {
  for (const abi::SignalPlan& s : pack_->signals) {
    by_node_key_.push_back(pack_->entity_kinds[s.entity_kind].keys.front() == "node" ? 1 : 0);
  }
  signal_since_.assign(pack_->signals.size(), INT64_MIN);
  fleet_.sums.resize(pack_->signals.size());
  classes_.resize(std::max<size_t>(pack_->classes.size(), 1));
  for (Cohort& c : classes_) c.sums.resize(pack_->signals.size());
}

double BenignRates::fade(double half_life_hours, double hours) {
  return std::exp2(-hours / half_life_hours);
}

BenignRates::Node& BenignRates::node_of(SymbolId node) {
  if (node >= nodes_.size()) nodes_.resize(node + 1);
  auto& slot = nodes_[node];
  if (!slot) {
    slot = std::make_unique<Node>();
    slot->since_epoch = epoch_ == INT64_MIN ? INT64_MIN : epoch_;
    slot->cohort = cohort_of(0, kNoSymbol);
    ++cohorts_[slot->cohort].nodes;
    ++classes_[0].nodes;
    ++fleet_.nodes;
  }
  return *slot;
}

const BenignRates::Node* BenignRates::find(SymbolId node) const {
  return node < nodes_.size() ? nodes_[node].get() : nullptr;
}

uint32_t BenignRates::cohort_of(abi::ClassId hw_class, SymbolId value) {
  const auto [it, added] =
      cohort_ids_.try_emplace({hw_class, value}, static_cast<uint32_t>(cohorts_.size()));
  if (added) {
    Cohort& c = cohorts_.emplace_back();
    c.hw_class = hw_class;
    c.value = value;
    c.sums.resize(pack_->signals.size());
    c.days.resize(pack_->signals.size());
    c.day_epoch = epoch_;
  }
  return it->second;
}

void BenignRates::move(Node& node, uint32_t cohort, int64_t ts_ns) {
  if (node.cohort == cohort) return;
  --cohorts_[node.cohort].nodes;
  --classes_[cohorts_[node.cohort].hw_class].nodes;
  node.cohort = cohort;
  ++cohorts_[cohort].nodes;
  ++classes_[cohorts_[cohort].hw_class].nodes;
  node.since_epoch = epoch_at(ts_ns);
  ++node.generation;
  for (auto& own : node.own) own.sums = {};
}

void BenignRates::see_node(SymbolId node, abi::ClassId hw_class, int64_t ts_ns) {
  Node& n = node_of(node);
  if (n.since_epoch == INT64_MIN && ts_ns != kNoTimeNs) n.since_epoch = epoch_at(ts_ns);
  if (n.hw_class == hw_class) return;
  n.hw_class = hw_class;
  const int64_t since = n.since_epoch;
  move(n, cohort_of(hw_class, n.value), ts_ns);
  if (since == INT64_MIN) n.since_epoch = since;
}

void BenignRates::set_cohort(SymbolId node, SymbolId value, int64_t ts_ns) {
  Node& n = node_of(node);
  n.value = value;
  move(n, cohort_of(n.hw_class, value), ts_ns);
}

BenignRates::Node::Own& BenignRates::own_of(Node& node, abi::SignalId signal) {
  const size_t at = node.find(signal);
  if (at < node.own.size()) return node.own[at];
  node.signals.push_back(signal);
  node.own.push_back({signal, {}, INT64_MIN, kNoTimeNs, INT64_MIN});
  return node.own.back();
}

void BenignRates::add(const abi::Firing& firing) {
  if (!by_node_key_[firing.signal] || firing.change != abi::FiringChange::kStart) return;
  const auto symbol = static_cast<SymbolId>(firing.entity.values[0]);
  Node& node = node_of(symbol);
  Node::Own& own = own_of(node, firing.signal);
  const int64_t holds = std::max<int64_t>(pack_->signals[firing.signal].holds_ns, kNsPerMinute);
  Waiting w{symbol, firing.signal, node.generation, 0, firing.ts_ns, {1, 0, 0}};
  if (own.last_ns == kNoTimeNs || firing.ts_ns - own.last_ns > holds) {
    w.sums.onsets = 1;
  } else {
    w.sums.active_hours = to_hours(std::max<int64_t>(firing.ts_ns - own.last_ns, 0));
  }
  own.last_ns = std::max(own.last_ns, firing.ts_ns);
  const int64_t epoch = epoch_at(firing.ts_ns);
  note_day(node, own, w, epoch);
  if (waiting_.empty()) first_waiting_epoch_ = epoch;
  // A firing behind the epochs that were applied counts with the oldest that wait.
  const int64_t at = std::max<int64_t>(epoch - first_waiting_epoch_, 0);
  if (at > kEpochsAtOnceMax) return;  // a jump of a year is no habit
  while (static_cast<int64_t>(waiting_.size()) <= at) waiting_.emplace_back();
  wait(own, first_waiting_epoch_ + at, w);
}

void BenignRates::wait(Node::Own& own, int64_t epoch, const Waiting& w) {
  std::vector<Waiting>& all = waiting_[static_cast<size_t>(epoch - first_waiting_epoch_)].all;
  // Of an hour that is summed up already; it happens to no firing in order.
  if (epoch_ != INT64_MIN && epoch < epoch_ - 1) return all.push_back(w);
  if (own.waiting_epoch == epoch && own.waiting >= kEachMax) {
    Waiting& newest = all[own.newest - 1];
    if (newest.generation == w.generation &&
        newest.ts_ns / kNsPerMinute == w.ts_ns / kNsPerMinute) {
      add_sums(newest.sums, w.sums);
      return;
    }
  }
  all.push_back(w);
  note_waiting(own, epoch, all.size());
}

void BenignRates::note_waiting(Node::Own& own, int64_t epoch, size_t number) {
  if (epoch < own.waiting_epoch) return;
  if (epoch > own.waiting_epoch) own.waiting = 0;
  own.waiting_epoch = epoch;
  ++own.waiting;
  own.newest = static_cast<uint32_t>(number);
}

void BenignRates::forget_waiting(SymbolId node) {
  if (const Node* n = find(node)) ++const_cast<Node*>(n)->generation;
}

void BenignRates::forget_waiting(SymbolId node, int64_t from_ns) {
  const int64_t first = std::max<int64_t>(epoch_at(from_ns) - first_waiting_epoch_, 0);
  for (auto at = static_cast<size_t>(first); at < waiting_.size(); ++at) {
    forget(first_waiting_epoch_ + static_cast<int64_t>(at), node, from_ns);
  }
}

void BenignRates::Epoch::index() {
  for (; indexed < all.size(); ++indexed) {
    Waiting& w = all[indexed];
    uint32_t& last = newest[w.node];
    w.before = last;
    if (last > 0 && all[last - 1].ts_ns > w.ts_ns) in_order = false;
    last = static_cast<uint32_t>(indexed) + 1;
  }
}

void BenignRates::forget(int64_t epoch, SymbolId node, int64_t from_ns) {
  Epoch& hour = waiting_[static_cast<size_t>(epoch - first_waiting_epoch_)];
  hour.index();
  const auto newest = hour.newest.find(node);
  if (newest == hour.newest.end()) return;
  uint32_t forgotten = 0;
  for (uint32_t i = newest->second; i > 0; i = hour.all[i - 1].before) {
    Waiting& w = hour.all[i - 1];
    if (w.ts_ns < from_ns && hour.in_order) break;
    if (w.ts_ns < from_ns || w.generation == kForgotten) continue;
    w.generation = kForgotten;
    ++forgotten;
  }
  if (forgotten == 0) return;
  // As if they had never been: a state does not hold them.
  std::vector<uint32_t> kept;
  for (uint32_t i = newest->second; i > 0; i = hour.all[i - 1].before) {
    if (hour.all[i - 1].generation != kForgotten) kept.push_back(i);
  }
  Node& n = *nodes_[node];
  for (Node::Own& own : n.own) {
    if (own.waiting_epoch != epoch) continue;
    own.waiting_epoch = INT64_MIN;
    own.waiting = 0;
  }
  for (auto i = kept.rbegin(); i != kept.rend(); ++i) {
    note_waiting(own_of(n, hour.all[*i - 1].signal), epoch, *i);
  }
}

// What a signal did on a node more than kEachMax times becomes one sum, where the first one was.
void BenignRates::Epoch::compact() {
  struct Key {
    uint64_t what;
    uint32_t generation;
    bool operator==(const Key&) const = default;
  };
  struct HashKey {
    size_t operator()(const Key& k) const {
      return k.what * 0x9e3779b97f4a7c15 ^ k.generation;  // Source: Knuth 6.4, golden ratio
    }
  };
  struct Found {
    uint32_t count = 0;
    size_t place = 0;  // + 1
  };
  std::unordered_map<Key, Found, HashKey> counts;  // only looked up
  const auto key = [](const Waiting& w) {
    return Key{uint64_t{w.node} << 32 | w.signal, w.generation};
  };
  std::erase_if(all, [](const Waiting& w) { return w.generation == kForgotten; });
  for (const Waiting& w : all) ++counts[key(w)].count;
  size_t size = 0;
  for (const Waiting& w : all) {
    auto& [count, place] = counts[key(w)];
    if (count > kEachMax && place > 0) {
      add_sums(all[place - 1].sums, w.sums);
      continue;
    }
    all[size++] = w;
    place = size;
  }
  all.resize(size);
  all.shrink_to_fit();
  std::unordered_map<SymbolId, uint32_t>().swap(newest);
  indexed = 0;
  in_order = true;
}

void BenignRates::apply(const Waiting& w) {
  Node& node = node_of(w.node);
  if (w.generation != node.generation) return;
  const auto add_to = [&](Sums& s) { add_sums(s, w.sums); };
  Node::Own& own = own_of(node, w.signal);
  if (own.epoch != INT64_MIN && own.epoch < epoch_) {
    const double keep = fade(options_.node_half_life_hours, static_cast<double>(epoch_ - own.epoch));
    own.sums.firings *= keep;
    own.sums.onsets *= keep;
    own.sums.active_hours *= keep;
  }
  own.epoch = epoch_;
  add_to(own.sums);
  add_to(cohorts_[node.cohort].sums[w.signal]);
  add_to(classes_[cohorts_[node.cohort].hw_class].sums[w.signal]);
  add_to(fleet_.sums[w.signal]);
}

void BenignRates::run_epoch() {
  const double keep = fade(options_.class_half_life_hours, 1);
  const auto age = [&](Cohort& c) {
    if (c.nodes == 0 && c.node_hours == 0 && c.waiting.empty()) return;
    // Exposure waits as long as the counts do.
    c.waiting.push_back(c.nodes);
    c.node_hours *= keep;
    if (static_cast<int64_t>(c.waiting.size()) > options_.delay_ns / kEpochNs) {
      c.node_hours += c.waiting.front();
      c.waiting.pop_front();
    }
    for (Sums& s : c.sums) {
      s.firings *= keep;
      s.onsets *= keep;
      s.active_hours *= keep;
    }
  };
  for (Cohort& c : cohorts_) age(c);
  for (Cohort& c : classes_) age(c);
  age(fleet_);
  const int64_t due = epoch_ - options_.delay_ns / kEpochNs;
  while (!waiting_.empty() && first_waiting_epoch_ < due) {
    for (const Waiting& w : waiting_.front().all) apply(w);
    waiting_.pop_front();
    ++first_waiting_epoch_;
  }
  // Incidents forget minutes before they open, so that this hour is over.
  const int64_t over = epoch_ - 2 - first_waiting_epoch_;
  if (over >= 0 && over < static_cast<int64_t>(waiting_.size())) {
    waiting_[static_cast<size_t>(over)].compact();
  }
  for (uint32_t c = 0; c < cohorts_.size(); ++c) {
    if (cohorts_[c].day_epoch == INT64_MIN) cohorts_[c].day_epoch = epoch_;
    if (epoch_ - cohorts_[c].day_epoch >= kEpochsADay) end_day(c);
  }
  ++version_;
}

void BenignRates::note_day(Node& node, Node::Own& own, const Waiting& w, int64_t epoch) {
  Cohort& cohort = cohorts_[node.cohort];
  const int64_t since = cohort.day_epoch == INT64_MIN ? epoch : cohort.day_epoch;
  const int64_t quarter = (epoch - since) * 4 / kEpochsADay;
  Day& day = cohort.days[w.signal];
  day.quarters[static_cast<size_t>(std::clamp<int64_t>(quarter, 0, 3))] += w.sums.onsets;
  day.firings += w.sums.firings;
  if (own.day != since) ++day.nodes;
  own.day = since;
}

void BenignRates::end_day(uint32_t cohort) {
  Cohort& c = cohorts_[cohort];
  const double nodes = c.nodes;
  // A habit that is younger than some days, or a cohort that is just growing, cannot have moved.
  const bool settled = c.nodes >= kShiftNodesMin && !c.waiting.empty() &&
                       c.waiting.front() * 10 >= c.nodes * 9 && c.nodes * 10 >= c.waiting.front() * 9 &&
                       c.node_hours >= nodes * static_cast<double>(kHabitEpochsMin) * 0.8;
  for (abi::SignalId s = 0; s < c.days.size(); ++s) {
    const Day day = c.days[s];
    c.days[s] = {};
    if (!settled || !by_node_key_[s]) continue;
    const double hours = hours_of(c, s);
    if (hours < nodes * static_cast<double>(kHabitEpochsMin) * 0.8) continue;
    double onsets = 0;
    for (const double q : day.quarters) onsets += q;
    const double usual = nodes * kEpochsADay * (c.sums[s].onsets + kEventPrior) / hours;
    const double factor = (onsets + kEventPrior) / (usual + kEventPrior);
    const bool rise = factor >= kShiftFactorMin;
    if (!rise && factor * kShiftFactorMin > 1) continue;
    const double spread = std::sqrt(usual + usual * usual / (nodes * kNodeShape) + 1);
    if (std::fabs(onsets - usual) < kShiftDeviations * spread) continue;
    const double middle = std::sqrt(factor) * usual / 4;
    const auto along = std::count_if(day.quarters.begin(), day.quarters.end(),
                                     [&](double q) { return rise ? q > middle : q < middle; });
    if (along < 3) continue;
    const double expected = firing_nodes(nodes, (rise ? onsets : usual) / nodes, kNodeShape);
    if (rise ? day.nodes < kShiftNodesShare * expected : day.nodes > kFallNodesShare * expected) {
      continue;
    }
    const double usual_firings =
        nodes * kEpochsADay * (c.sums[s].firings + kEventPrior) / hours;
    scale(cohort, s, factor, (day.firings + kEventPrior) / (usual_firings + kEventPrior));
    if (shifts_.size() < kShiftsMax) {
      shifts_.push_back({c.hw_class, pack_->signals[s].name, epoch_ * kEpochNs, factor});
    }
  }
  c.day_epoch = epoch_;
}

// The habit of the cohort, of its nodes, and what waits of before today: all as if it had always
// been so. Its class and the fleet follow by themselves.
void BenignRates::scale(uint32_t cohort, abi::SignalId signal, double onsets, double firings) {
  const auto by = [&](Sums& s) {
    s.onsets *= onsets;
    s.active_hours *= onsets;
    s.firings *= firings;
  };
  by(cohorts_[cohort].sums[signal]);
  for (auto& node : nodes_) {
    if (!node || node->cohort != cohort) continue;
    for (auto& own : node->own) {
      if (own.signal == signal) by(own.sums);
    }
  }
  for (size_t i = 0; i < waiting_.size(); ++i) {
    if (first_waiting_epoch_ + static_cast<int64_t>(i) >= cohorts_[cohort].day_epoch) break;
    for (Waiting& w : waiting_[i].all) {
      if (w.signal == signal && node_of(w.node).cohort == cohort) by(w.sums);
    }
  }
}

void BenignRates::advance(int64_t now_ns) {
  const int64_t to = epoch_at(now_ns);
  if (epoch_ == INT64_MIN || to - epoch_ > kEpochsAtOnceMax) {
    epoch_ = to;
    for (auto& node : nodes_) {
      if (node && node->since_epoch == INT64_MIN) node->since_epoch = to;
    }
    ++version_;
    return;
  }
  while (epoch_ < to) {
    ++epoch_;
    run_epoch();
  }
}

// Exposure of the node's own counts: they are `delay` old, and fade.
double BenignRates::node_hours(const Node& node, abi::SignalId signal) const {
  if (node.since_epoch == INT64_MIN || epoch_ == INT64_MIN) return 0;
  const int64_t since = std::max(node.since_epoch, signal_since_[signal]);
  const double age = static_cast<double>(epoch_ - since) - to_hours(options_.delay_ns);
  if (age <= 0) return 0;
  const double h = options_.node_half_life_hours;
  return h / M_LN2 * (1 - std::exp2(-age / h));
}

double BenignRates::hours_of(const Cohort& level, abi::SignalId signal) const {
  if (signal_since_[signal] == INT64_MIN) return level.node_hours;
  const double age =
      static_cast<double>(epoch_ - signal_since_[signal]) - to_hours(options_.delay_ns);
  if (age <= 0) return 0;
  const double h = options_.class_half_life_hours;
  return std::min(level.node_hours, level.nodes * h / M_LN2 * (1 - std::exp2(-age / h)));
}

abi::BenignRate BenignRates::benign(abi::SignalId signal, SymbolId node) const {
  abi::BenignRate out;
  if (!by_node_key_[signal]) return out;
  double hours = hours_of(fleet_, signal);
  if (hours <= 0) return out;
  using From = abi::TableOrigin::From;
  const Sums& all = fleet_.sums[signal];
  double firings = (all.firings + kEventPrior) / (hours + kFleetPriorHours);
  double onsets = (all.onsets + kEventPrior) / (hours + kFleetPriorHours);
  double mean = all.onsets > 0 ? all.active_hours / all.onsets : 0;
  out.from = From::kFleet;
  const auto narrow = [&](const Cohort& c, double prior_hours, From from) {
    const Sums& s = c.sums[signal];
    const double seen = hours_of(c, signal);
    firings = (s.firings + prior_hours * firings) / (seen + prior_hours);
    onsets = (s.onsets + prior_hours * onsets) / (seen + prior_hours);
    mean = (s.active_hours + mean) / (s.onsets + 1);
    if (seen > prior_hours) {
      out.from = from;
      hours = seen;
    }
  };
  const Node* n = find(node);
  if (n && options_.by_class) {
    narrow(classes_[n->hw_class], kClassPriorHours, From::kModel);
    narrow(cohorts_[n->cohort], kCohortPriorHours, From::kClass);
  }
  out.shape = kNodeShape;
  if (n && options_.by_node) {
    const double own_hours = node_hours(*n, signal);
    Sums own;
    const size_t at = n->find(signal);
    if (at < n->own.size() && n->own[at].epoch != INT64_MIN) {
      const Node::Own& o = n->own[at];
      const double keep = fade(options_.node_half_life_hours, static_cast<double>(epoch_ - o.epoch));
      own = {o.sums.firings * keep, o.sums.onsets * keep, o.sums.active_hours * keep};
    }
    const double class_firings = firings;
    firings = (own.firings + kNodeShape) / (own_hours + kNodeShape / firings);
    onsets = (own.onsets + kNodeShape) / (own_hours + kNodeShape / onsets);
    out.shape = own.firings + kNodeShape;
    // The node decides for itself once it is seen for longer than the prior is worth.
    if (own_hours > kNodeShape / class_firings) {
      out.from = From::kNode;
      hours = own_hours;
    }
  }
  out.firings_per_hour = firings;
  out.onsets_per_hour = onsets;
  out.mean_hours = mean;
  out.node_hours = hours;
  return out;
}

std::string BenignRates::cohort_text(SymbolId node) const {
  const Node* n = find(node);
  if (n == nullptr || n->hw_class >= pack_->classes.size()) return "fleet";
  std::string text = "class " + pack_->classes[n->hw_class].name;
  if (n->value != kNoSymbol) text += ", " + std::string(pack_->symbols->name(n->value));
  return text;
}

}  // namespace reflex::adapt

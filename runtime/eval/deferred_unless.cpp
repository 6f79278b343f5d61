// DeferredUnless: see deferred_unless.h.
#include "runtime/eval/deferred_unless.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace reflex::eval {

bool DeferredUnless::add(abi::SignalId signal) {
  const auto& list = core_.pack.signals[signal].sequence.unless;
  for (size_t i = 0; i < list.size(); ++i) {
    if (!list[i].deferred) continue;
    stores_of_[signal].emplace_back();
    stores_of_[signal].back().unless = static_cast<uint16_t>(i);
  }
  return !stores_of_[signal].empty();
}

void DeferredUnless::drop_oldest(abi::SignalId signal, Kept& kept, size_t count) {
  const auto end = kept.begin() + static_cast<std::ptrdiff_t>(count);
  for (auto at = kept.begin(); at != end; ++at) bytes_[signal] -= at->bytes();
  kept.erase(kept.begin(), end);
}

void DeferredUnless::keep(abi::SignalId signal, uint16_t unless, const abi::Record& record,
                          EntityIndex entity) {
  const abi::UnlessPlan& plan = core_.pack.signals[signal].sequence.unless[unless];
  for (Store& store : stores_of_[signal]) {
    if (store.unless != unless) continue;
    Kept& kept = plan.shared ? store.shared : store.by_key.at(entity);
    const auto alive = std::find_if(kept.begin(), kept.end(), [&](const RecordCopy& r) {
      return r.record().ts_ns >= record.ts_ns - plan.window_ns;
    });
    drop_oldest(signal, kept, static_cast<size_t>(alive - kept.begin()));
    if (kept.size() >= std::max(plan.kept_max, 1u)) {
      drop_oldest(signal, kept, 1);
      ++(plan.shared ? core_.shared_unless_dropped : core_.counters.unless_dropped);
    }
    kept.emplace_back(record, core_.pack.kinds[record.kind]);
    bytes_[signal] += kept.back().bytes();
  }
}

const DeferredUnless::Kept* DeferredUnless::find(Store& store, const abi::UnlessPlan& plan,
                                                 EntityIndex entity) {
  return plan.shared ? &store.shared : store.by_key.find(entity);
}

bool DeferredUnless::holds(abi::SignalId signal, const abi::UnlessPlan& plan,
                           const abi::Record& record, const Match& match, EntityIndex entity) {
  if (plan.join == abi::kNone32) return true;
  uint64_t out = 0;
  // At the time of the kept event: `job_of(a.node)` is the job of that moment.
  const Site site{core_.pack.signals[signal].entity_kind, entity, record.ts_ns, record.order};
  return core_.eval(plan.join, &record, site, match.captures.data(), &out) == abi::kTrue;
}

bool DeferredUnless::overtaken(abi::SignalId signal, const Match& match, EntityIndex entity,
                               uint64_t& judged) {
  uint64_t newest = judged;
  bool cancelled = false;
  for (Store& store : stores_of_[signal]) {
    const auto& plan = core_.pack.signals[signal].sequence.unless[store.unless];
    const Kept* kept = plan.at_close ? nullptr : find(store, plan, entity);
    if (kept == nullptr || kept->empty()) continue;
    newest = std::max(newest, kept->back().record().order);
    if (match.matched <= plan.after_step || match.matched > plan.before_step) continue;
    if (plan.after_step >= match.orders.size()) continue;
    const uint64_t from = std::max(judged, match.orders[plan.after_step]);
    for (auto at = kept->rbegin(); at != kept->rend() && !cancelled; ++at) {
      if (at->record().order <= from) break;
      cancelled = holds(signal, plan, at->record(), match, entity);
    }
  }
  judged = newest;
  return cancelled;
}

bool DeferredUnless::closes(abi::SignalId signal, uint16_t step, const Match& match,
                            EntityIndex entity) {
  for (Store& store : stores_of_[signal]) {
    const auto& plan = core_.pack.signals[signal].sequence.unless[store.unless];
    if (!plan.at_close || plan.check_step != step || plan.after_step >= match.orders.size()) {
      continue;
    }
    const Kept* kept = find(store, plan, entity);
    if (kept == nullptr) continue;
    uint64_t from = match.orders[plan.after_step];
    uint64_t to =
        plan.before_step < match.orders.size() ? match.orders[plan.before_step] : ~uint64_t{0};
    if (from > to) std::swap(from, to);  // `then ~2s` takes either order
    for (auto at = kept->rbegin(); at != kept->rend(); ++at) {
      const abi::Record& record = at->record();
      if (record.order <= from) break;
      if (record.order < to && holds(signal, plan, record, match, entity)) return true;
    }
  }
  return false;
}

void DeferredUnless::reset_entity(abi::SignalId signal, EntityIndex entity) {
  for (Store& store : stores_of_[signal]) {
    if (Kept* kept = store.by_key.find(entity)) drop_oldest(signal, *kept, kept->size());
  }
}

void DeferredUnless::take_over(DeferredUnless& old, abi::SignalId signal) {
  stores_of_[signal] = std::move(old.stores_of_[signal]);
  bytes_[signal] = old.bytes_[signal];
}

uint64_t DeferredUnless::bytes() const {
  return std::accumulate(bytes_.begin(), bytes_.end(), uint64_t{0});
}

bool DeferredUnless::has_state(abi::SignalId signal, EntityIndex entity) const {
  for (const Store& store : stores_of_[signal]) {
    const Kept* kept = store.by_key.find(entity);
    if (kept != nullptr && !kept->empty()) return true;
  }
  return false;
}

void DeferredUnless::save_kept(const Kept& kept, PlanWriter& plan) {
  plan.out.u64(kept.size());
  for (const RecordCopy& copy : kept) plan.record(copy.record());
}

void DeferredUnless::load_kept(abi::SignalId signal, Kept& kept, PlanReader& plan) {
  const size_t n = plan.in.count();
  for (size_t i = 0; i < n && !plan.in.failed(); ++i) {
    RecordCopy copy = plan.record();
    if (copy.bytes() == 0) continue;
    bytes_[signal] += copy.bytes();
    kept.push_back(std::move(copy));
  }
}

void DeferredUnless::save_shared(abi::SignalId signal, PlanWriter& plan) const {
  for (const Store& store : stores_of_[signal]) save_kept(store.shared, plan);
}

void DeferredUnless::load_shared(abi::SignalId signal, PlanReader& plan) {
  for (Store& store : stores_of_[signal]) load_kept(signal, store.shared, plan);
}

void DeferredUnless::save(abi::SignalId signal, EntityIndex entity, PlanWriter& plan) const {
  static const Kept kNone;
  for (const Store& store : stores_of_[signal]) {
    const Kept* kept = store.by_key.find(entity);
    save_kept(kept == nullptr ? kNone : *kept, plan);
  }
}

void DeferredUnless::load(abi::SignalId signal, EntityIndex entity, PlanReader& plan) {
  for (Store& store : stores_of_[signal]) load_kept(signal, store.by_key.at(entity), plan);
}

}  // namespace reflex::eval

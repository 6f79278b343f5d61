// What a group shows together: masks, the job-relative leak, votes; and graded evidence by row.
// Part of EvidenceField (attribution.md section 6, README 4).
#include <algorithm>
#include <cmath>
#include <tuple>

#include "runtime/attribution/evidence_field.h"

namespace reflex::attribution {
namespace {

// Why: one node is no group, and two nodes that share a cable are not common mode yet.
constexpr uint32_t kMaskMembersMin = 3;
constexpr uint32_t kMaskFiredMin = 2;
// Why: however many show it, a little of a member's own evidence stays.
constexpr double kHitMax = 0.97;

struct Shown {
  int64_t onset_ns;
  uint32_t row;
};
struct Dense {
  int64_t from_ns = kNoTimeNs;
  uint32_t members = 0;
};

// The earliest window of length `within_ns` that has the most distinct members.
Dense densest(std::vector<Shown>& shown, int64_t within_ns, size_t rows) {
  std::sort(shown.begin(), shown.end(), [](const Shown& a, const Shown& b) {
    return a.onset_ns != b.onset_ns ? a.onset_ns < b.onset_ns : a.row < b.row;
  });
  Dense best;
  std::vector<uint32_t> count(rows, 0);
  uint32_t distinct = 0;
  size_t first = 0;
  for (const Shown& s : shown) {
    if (count[s.row]++ == 0) ++distinct;
    while (shown[first].onset_ns < s.onset_ns - within_ns) {
      if (--count[shown[first++].row] == 0) --distinct;
    }
    if (distinct > best.members) best = {shown[first].onset_ns, distinct};
  }
  return best;
}

}  // namespace

uint32_t EvidenceField::fired_in_job(const abi::EdgePlan& e) const {
  int32_t& known = fired_in_job_[static_cast<size_t>(&e - pack_.edges.data())];
  if (known >= 0) return static_cast<uint32_t>(known);
  known = 0;
  uint32_t last = kNoNode;
  for (const Span& s : spans(e.to)) {
    if (s.suppressed || s.node == kNoNode || s.node == last || !rows()[s.node].view->in_job) {
      continue;
    }
    if (!in_window(s, e, input_.opened_ns)) continue;
    last = s.node;
    ++known;
  }
  return static_cast<uint32_t>(known);
}

unsigned EvidenceField::votes_in_job(abi::SignalId signal) const {
  int32_t& known = votes_in_job_[signal];
  if (known >= 0) return static_cast<unsigned>(known);
  known = 0;
  for (const Span& s : spans(signal)) {
    if (!s.suppressed && s.node != kNoNode && rows()[s.node].view->in_job)
      known += episode(s).lead_counts.back();
  }
  return static_cast<unsigned>(known);
}

double EvidenceField::soft(const Span& s) const {
  const abi::SignalId signal = evidence(s).signal;
  if (numbers().votes(signal)) {
    const unsigned own = episode(s).lead_counts.back();
    return std::exp(vote_log_ratio(own, votes_in_job(signal), job_size()));
  }
  double& known = nodes_->soft[s.evidence];  // a graded entity has one episode
  if (s.episode != 0 || std::isnan(known)) {
    known = std::exp(numbers().log_a(signal, view(s.node), episode(s).lead_counts));
  }
  return known;
}

double EvidenceField::soft(abi::SignalId signal, uint32_t row) const {
  if (numbers().votes(signal)) {
    return std::exp(vote_log_ratio(0, votes_in_job(signal), job_size()));
  }
  auto& known = nodes_->silent_soft[signal];
  if (known.empty()) known.assign(rows().size() + 1, std::nan(""));
  // No events at all: only a repair makes one node differ from the next.
  const NodeView* v = view(row);
  double& value = known[repaired_lately(row) ? row : rows().size()];
  if (std::isnan(value)) value = std::exp(numbers().log_a(signal, v, LeadCounts{}));
  return value;
}

// The external cause on the group is taken as active, whether or not it wins, with strength
// 1 - (1 - hit)^2, hit = share of the members that show a signal of the list within the window.
// Source: methods.md 6.3 (3). Only that cause on that group is weighed without its own mask.
void EvidenceField::try_mask(const abi::MaskPlan& mask, const Group& group,
                             const abi::EntityKey& entity) {
  const auto members = static_cast<uint32_t>(group.rows.size());
  if (members < kMaskMembersMin) return;
  std::vector<Shown> shown;
  for (abi::SignalId signal : mask.signals) {
    if (!keyed_by_node(signal) || !at_[signal]) continue;
    for (uint32_t row : group.rows) {
      for (const Span& s : spans(signal, row)) {
        if (!s.suppressed) shown.push_back({s.onset_ns, row});
      }
    }
  }
  const Dense dense = densest(shown, mask.within_ns, rows().size());
  if (dense.members < kMaskFiredMin || dense.members < mask.at_least * members) return;
  const double hit = std::min(kHitMax, static_cast<double>(dense.members) / members);
  const std::string where = entity_text(entity);
  ActiveMask active;
  active.cause = mask.cause;
  active.group = &group;
  active.entity = entity;
  active.survive = (1 - hit) * (1 - hit);
  active.text = pack_.causes[mask.cause].name + (where.empty() ? "" : " on " + where) +
                " (common mode: " + std::to_string(dense.members) + " of " +
                std::to_string(members) + " members)";
  const int64_t from = dense.from_ns + std::min<int64_t>(0, mask.lag_lo_ns);
  const int64_t to = dense.from_ns + std::max(mask.within_ns, mask.lag_hi_ns);
  const auto id = static_cast<uint32_t>(masks_.size());
  masks_.push_back(active);
  for (abi::SignalId signal : mask.signals) {
    if (!keyed_by_node(signal) || !at_[signal]) continue;
    SignalSpans& all = *at_[signal];
    for (uint32_t row : group.rows) {
      for (uint32_t i = all.begin[row]; i < all.begin[row + 1]; ++i) {
        Span& s = all.spans[i];
        if (s.onset_ns < from || s.onset_ns > to) continue;
        if (s.mask == abi::kNone32 || masks_[s.mask].survive > active.survive) s.mask = id;
      }
    }
  }
}

void EvidenceField::add_masks() {
  // By cause and place: the order decides which of two equally strong masks is named.
  std::vector<const abi::MaskPlan*> order;
  for (const abi::MaskPlan& m : pack_.masks) order.push_back(&m);
  const auto key = [&](const abi::MaskPlan* m) {
    return std::make_tuple(std::string_view(pack_.causes[m->cause].name),
                           std::string_view(m->where.file), m->where.line, m->where.column);
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](const auto* a, const auto* b) { return key(a) < key(b); });
  for (const abi::MaskPlan* mask : order) {
    const auto& keys = pack_.entity_kinds[pack_.causes[mask->cause].entity_kind].keys;
    abi::EntityKey entity;
    entity.kind = pack_.causes[mask->cause].entity_kind;
    entity.count = static_cast<uint8_t>(keys.size());
    const char what = keys.size() == 1 ? place_letter(keys[0]) : char{0};
    if (keys.empty() || (keys.size() == 1 && keys[0] == "job")) {
      if (!keys.empty()) entity.values[0] = input_.job;
      try_mask(*mask, *groups().job(), entity);
      continue;
    }
    std::vector<const Group*> found;  // none when the cause has no group
    for (const auto& [id, group] : groups().of(what)) found.push_back(&group);
    std::sort(found.begin(), found.end(), [&](const Group* a, const Group* b) {
      return pack_.symbols->name(a->id) < pack_.symbols->name(b->id);
    });
    for (const Group* g : found) {
      entity.values[0] = g->id;
      try_mask(*mask, *g, entity);
    }
  }
}

}  // namespace reflex::attribution

// What a group shows together: masks, the job-relative leak, votes; and graded evidence by row.
// Part of EvidenceField (attribution.md section 6, README 4).
#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime/attribution/evidence_field.h"

namespace reflex::attribution {
namespace {

SymbolId group_of(const NodeView& v, std::string_view key) {
  if (key == "rack") return v.rack;
  if (key == "tor") return v.tor;
  if (key == "pod") return v.pod;
  if (key == "zone") return v.zone;
  return kNoSymbol;
}

}  // namespace

uint32_t EvidenceField::fired_in_job(const abi::EdgePlan& e) const {
  int32_t& known = fired_in_job_[static_cast<size_t>(&e - pack_.edges.data())];
  if (known >= 0) return static_cast<uint32_t>(known);
  known = 0;
  uint32_t last = kNoNode;
  for (const Span& s : spans(e.to)) {
    if (s.node == kNoNode || s.node == last || !rows_[s.node].view->in_job) continue;
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
    if (s.node != kNoNode && rows_[s.node].view->in_job) known += episode(s).lead_counts.back();
  }
  return static_cast<unsigned>(known);
}

double EvidenceField::log_a(const Span& s) const {
  const abi::SignalId signal = evidence(s).signal;
  if (numbers_->votes(signal)) {
    return vote_log_ratio(episode(s).lead_counts.back(), votes_in_job(signal), job_size_);
  }
  return numbers_->log_a(signal, s.node == kNoNode ? nullptr : rows_[s.node].view,
                         episode(s).lead_counts);
}

double EvidenceField::log_a(abi::SignalId signal, uint32_t row) const {
  if (numbers_->votes(signal)) return vote_log_ratio(0, votes_in_job(signal), job_size_);
  auto& known = silent_log_a_[signal];
  if (known.empty()) known.assign(rows_.size() + 1, std::numeric_limits<float>::quiet_NaN());
  float& value = known[row == kNoNode ? rows_.size() : row];
  if (std::isnan(value)) {
    value = static_cast<float>(
        numbers_->log_a(signal, row == kNoNode ? nullptr : rows_[row].view, LeadCounts{}));
  }
  return value;
}

// (1 - hit)^2 of a member's evidence is left. Source: methods.md 6.3 (3).
void EvidenceField::apply_mask(uint32_t mask, const std::vector<uint32_t>& members) {
  const abi::MaskPlan& plan = pack_.masks[mask];
  if (members.size() < 2) return;
  for (const abi::SignalId signal : plan.signals) {
    // The most members within `within` of each other.
    std::vector<std::pair<int64_t, uint32_t>> onsets;
    for (const uint32_t row : members) {
      for (const Span& s : spans(signal, row)) onsets.push_back({s.onset_ns, row});
    }
    std::sort(onsets.begin(), onsets.end());
    for (size_t first = 0, next = 0; first < onsets.size(); ++first) {
      next = std::max(next, first);
      while (next < onsets.size() &&
             onsets[next].first - onsets[first].first <= plan.within_ns) {
        ++next;
      }
      std::vector<uint32_t> rows;
      for (size_t i = first; i < next; ++i) rows.push_back(onsets[i].second);
      std::sort(rows.begin(), rows.end());
      rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
      const double hit = static_cast<double>(rows.size()) / static_cast<double>(members.size());
      if (rows.size() < 2 || hit < plan.at_least) continue;
      const int64_t from = onsets[first].first;
      for (const uint32_t row : rows) {
        SignalSpans& all = signals_[signal];
        for (uint32_t i = all.begin[row]; i < all.begin[row + 1]; ++i) {
          Span& s = all.spans[i];
          if (s.onset_ns < from || s.onset_ns > from + plan.within_ns) continue;
          if (s.mask != abi::kNone32) continue;
          s.mask = mask;
          s.survive *= std::max((1 - hit) * (1 - hit), 1e-6);
          mask_hits_[{mask, row}] = {kNoSymbol, static_cast<uint32_t>(rows.size()),
                                     static_cast<uint32_t>(members.size())};
        }
      }
    }
  }
}

void EvidenceField::add_masks() {
  for (uint32_t m = 0; m < pack_.masks.size(); ++m) {
    const auto& keys = pack_.entity_kinds[pack_.causes[pack_.masks[m].cause].entity_kind].keys;
    const std::string_view key = keys.empty() ? "job" : keys.front();
    std::map<std::string_view, std::vector<uint32_t>> groups;  // by name
    for (uint32_t row = 0; row < rows_.size(); ++row) {
      const NodeView& v = *rows_[row].view;
      if (key == "job") {
        if (v.in_job) groups["job"].push_back(row);
      } else if (const SymbolId id = group_of(v, key); id != kNoSymbol) {
        groups[pack_.symbols->name(id)].push_back(row);
      }
    }
    for (const auto& [name, members] : groups) apply_mask(m, members);
  }
}

std::string EvidenceField::mask_text(const Span& s) const {
  if (s.mask == abi::kNone32) return "";
  const auto it = mask_hits_.find({s.mask, s.node});
  std::string text = pack_.causes[pack_.masks[s.mask].cause].name + " (common mode";
  if (it != mask_hits_.end()) {
    text += ": " + std::to_string(it->second.hit) + " of " + std::to_string(it->second.members) +
            " members";
  }
  return text + ")";
}

}  // namespace reflex::attribution

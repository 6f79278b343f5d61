// Indexing of the evidence and the observed parents of each episode; see the header.
#include "runtime/attribution/evidence_field.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "runtime/abi/gpu_address.h"

namespace reflex::attribution {
namespace {

// Why: an event signal holds for an hour unless its author says otherwise (SYNTAX 8).
constexpr int64_t kDefaultHoldsNs = kNsPerHour;
bool is_integer_key(std::string_view name) { return name == "link" || name == "rank"; }
bool is_gpu_key(std::string_view name) { return name == "gpu" || name == "gpu_index"; }

}  // namespace

EvidenceField::EvidenceField(const abi::CompiledPack& pack, const CauseGraph& graph,
                             const Input& input, const std::vector<uint8_t>& skip,
                             const EvidenceField* same_nodes)
    : pack_(pack), graph_(graph), input_(input) {
  for (const abi::SignalPlan& s : pack.signals) {
    const auto& keys = pack.entity_kinds[s.entity_kind].keys;
    by_node_.push_back(std::find(keys.begin(), keys.end(), "node") != keys.end() ? 1 : 0);
  }
  signals_.resize(pack.signals.size());
  if (same_nodes) {
    rows_ = same_nodes->rows_;
    row_of_symbol_ = same_nodes->row_of_symbol_;
    observed_ = same_nodes->observed_;
    numbers_ = same_nodes->numbers_;
    groups_ = same_nodes->groups_;
  } else {
    add_rows();
    observed_ = std::make_shared<Observed>();
    observed_->on_row.assign(signals_.size() * rows_.size(), 0);
    observed_->on_any.assign(signals_.size(), 0);
    observed_->soft.assign(input.evidence.size(), std::nan(""));
    observed_->silent_soft.resize(signals_.size());
    numbers_ = std::make_shared<Numbers>(pack, input);
    std::vector<const NodeView*> views;
    for (const Row& row : rows_) views.push_back(row.view);
    groups_ = std::make_shared<const Groups>(std::move(views));
  }
  for (const Row& r : rows_) job_size_ += r.view->in_job ? 1 : 0;
  fired_in_job_.assign(pack.edges.size(), -1);
  votes_in_job_.assign(signals_.size(), -1);
  add_spans(skip);
  if (input.switches.explain_away) add_parents(graph);
  if (input.switches.common_mode) add_masks();
}

void EvidenceField::add_rows() {
  for (const NodeView& v : input_.nodes) rows_.push_back({&v, pack_.symbols->name(v.node)});
  // The engine hands nodes over by name: then looking is enough, and 10,000 names stay unsorted.
  const auto by_name = [](const Row& a, const Row& b) { return a.name < b.name; };
  if (!std::is_sorted(rows_.begin(), rows_.end(), by_name)) {
    std::sort(rows_.begin(), rows_.end(), by_name);
  }
  rows_.erase(std::unique(rows_.begin(), rows_.end(),
                          [](const Row& a, const Row& b) { return a.name == b.name; }),
              rows_.end());
  for (uint32_t i = 0; i < rows_.size(); ++i) {
    const SymbolId id = rows_[i].view->node;
    if (id >= row_of_symbol_.size()) row_of_symbol_.resize(id + 1, kNoNode);
    row_of_symbol_[id] = i;
  }
}

uint32_t EvidenceField::row_of(SymbolId node) const {
  return node < row_of_symbol_.size() ? row_of_symbol_[node] : kNoNode;
}

bool EvidenceField::key_value(const abi::EntityKey& key, std::string_view name,
                              uint64_t* value) const {
  const auto& keys = pack_.entity_kinds[key.kind].keys;
  for (size_t i = 0; i < keys.size() && i < key.count; ++i) {
    if (keys[i] == name) {
      *value = key.values[i];
      return true;
    }
  }
  return false;
}

bool EvidenceField::compatible(const abi::EntityKey& a, const abi::EntityKey& b) const {
  const auto& keys = pack_.entity_kinds[a.kind].keys;
  for (size_t i = 0; i < keys.size() && i < a.count; ++i) {
    uint64_t other = 0;
    if (keys[i] == "node" || !key_value(b, keys[i], &other)) continue;
    if (other != a.values[i]) return false;
  }
  return true;
}

bool EvidenceField::same_place(const abi::EntityKey& key, uint32_t row) const {
  const NodeView& v = *rows_[row].view;
  const auto& keys = pack_.entity_kinds[key.kind].keys;
  for (size_t i = 0; i < keys.size() && i < key.count; ++i) {
    const char what = place_letter(keys[i]);
    if (what != 0 && place_of(v, what) != key.values[i]) return false;
  }
  return true;
}

// Twins (same entity, same times) differ only in what an explanation shows of them.
bool EvidenceField::episode_before(const Evidence::Episode& a, const Evidence::Episode& b) const {
  if (a.firings != b.firings) return a.firings > b.firings;
  return std::lexicographical_compare(
      a.events.begin(), a.events.end(), b.events.begin(), b.events.end(),
      [&](const abi::EventRef& x, const abi::EventRef& y) {
        if (x.ts_ns != y.ts_ns) return x.ts_ns < y.ts_ns;
        if (x.source != y.source) {
          return pack_.symbols->name(x.source) < pack_.symbols->name(y.source);
        }
        return std::tie(x.seq, x.id) < std::tie(y.seq, y.id);
      });
}

void EvidenceField::add_spans(const std::vector<uint8_t>& skip) {
  for (uint32_t i = 0; i < input_.evidence.size(); ++i) {
    if (i < skip.size() && skip[i]) continue;
    const Evidence& ev = input_.evidence[i];
    const abi::SignalPlan& plan = pack_.signals[ev.signal];
    const bool condition = plan.shape == abi::SignalShape::kCondition;
    const int64_t holds = condition ? 0 : plan.holds_ns > 0 ? plan.holds_ns : kDefaultHoldsNs;
    uint32_t row = kNoNode;
    uint64_t node = 0;
    if (key_value(ev.entity, "node", &node)) {
      row = row_of(static_cast<SymbolId>(node));
      if (row == kNoNode) continue;  // not a node of this incident
    }
    for (uint32_t k = 0; k < ev.episodes.size(); ++k) {
      const Evidence::Episode& e = ev.episodes[k];
      if (e.onset_ns > input_.now_ns) continue;
      const bool suppressed = !e.suppressed_by.empty();
      signals_[ev.signal].spans.push_back({e.onset_ns, std::max(e.onset_ns, e.end_ns - holds), 1,
                                           row, i, k, suppressed, abi::kNone32});
    }
  }
  std::vector<bool> is_parent(signals_.size(), false);
  for (const abi::EdgePlan& e : pack_.edges) {
    if (e.from_signal) is_parent[e.from] = true;
  }
  for (SignalSpans& s : signals_) {
    if (s.spans.empty()) continue;
    const auto before = [&](const Span& a, const Span& b) {
      if (a.node != b.node) return a.node < b.node;
      if (a.onset_ns != b.onset_ns) return a.onset_ns < b.onset_ns;
      if (a.last_ns != b.last_ns) return a.last_ns < b.last_ns;
      if (!(evidence(a).entity == evidence(b).entity)) {
        return entity_text(evidence(a).entity) < entity_text(evidence(b).entity);
      }
      return episode_before(episode(a), episode(b));
    };
    if (!std::is_sorted(s.spans.begin(), s.spans.end(), before)) {
      std::sort(s.spans.begin(), s.spans.end(), before);
    }
    s.begin.assign(rows_.size() + 1, 0);
    uint32_t at = 0;
    for (uint32_t row = 0; row <= rows_.size(); ++row) {
      while (at < s.spans.size() && s.spans[at].node < row) ++at;
      s.begin[row] = at;
    }
    if (is_parent[static_cast<size_t>(&s - signals_.data())]) add_prefix(s);
  }
}

void EvidenceField::add_prefix(SignalSpans& s) {
  std::vector<uint32_t> order(s.spans.size());
  for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return s.spans[a].onset_ns < s.spans[b].onset_ns;
  });
  SignalSpans::Prefix top{0, {kNoTimeNs, kNoTimeNs}, {kNoNode, kNoNode}, {0, 0}};
  for (uint32_t i : order) {
    const Span& x = s.spans[i];
    if (x.suppressed) continue;
    const bool first = top.last_ns[0] != kNoTimeNs;
    if (first && top.node[0] == x.node) {
      if (x.last_ns > top.last_ns[0]) top.last_ns[0] = x.last_ns, top.span[0] = i;
    } else if (x.last_ns > top.last_ns[0]) {
      top.last_ns[1] = top.last_ns[0], top.node[1] = top.node[0], top.span[1] = top.span[0];
      top.last_ns[0] = x.last_ns, top.node[0] = x.node, top.span[0] = i;
    } else if (x.last_ns > top.last_ns[1]) {
      top.last_ns[1] = x.last_ns, top.node[1] = x.node, top.span[1] = i;
    }
    top.onset_ns = x.onset_ns;
    s.prefix.push_back(top);
  }
}

std::span<const Span> EvidenceField::spans(abi::SignalId signal) const {
  return signals_[signal].spans;
}

std::span<const Span> EvidenceField::spans(abi::SignalId signal, uint32_t row) const {
  const SignalSpans& s = signals_[signal];
  if (s.begin.empty() || row >= rows_.size()) return {};
  return std::span<const Span>(s.spans).subspan(s.begin[row], s.begin[row + 1] - s.begin[row]);
}

bool EvidenceField::observed(abi::SignalId signal, uint32_t row) const {
  if (row == kNoNode) {  // a job or rack signal reports when any node of the job does
    uint8_t& any = observed_->on_any[signal];
    for (uint32_t i = 0; any == 0 && i < rows_.size(); ++i) {
      if (rows_[i].view->in_job && observed(signal, i)) any = 2;
    }
    if (any == 0) any = 1;
    return any == 2;
  }
  uint8_t& known = observed_->on_row[signal * rows_.size() + row];
  if (known == 0) {
    known = input_.observed(input_.observed_state, signal, rows_[row].view->node) ? 2 : 1;
  }
  return known == 2;
}

const Span* EvidenceField::parent_on(const abi::EdgePlan& e, const Span& child,
                                     std::span<const Span> list, bool same_entity) const {
  for (const Span& u : list) {
    if (u.suppressed) continue;
    if (child.onset_ns < u.onset_ns + e.lag_lo_ns) continue;
    if (child.onset_ns > u.last_ns + e.lag_hi_ns) continue;
    if (same_entity && !compatible(evidence(u).entity, evidence(child).entity)) continue;
    if (child.node != kNoNode && !same_place(evidence(u).entity, child.node)) continue;
    return &u;
  }
  return nullptr;
}

const Span* EvidenceField::active_parent(const abi::EdgePlan& e, const Span& child) const {
  const SignalSpans& s = signals_[e.from];
  if (s.spans.empty()) return nullptr;
  const bool on_node = by_node_[e.from] && child.node != kNoNode;
  if (!on_node) return parent_on(e, child, s.spans, true);
  if (e.scope == abi::Scope::kSelf) return parent_on(e, child, spans(e.from, child.node), true);
  const char what = place_letter(e.scope);
  if (what != 0 || e.scope == abi::Scope::kClass) {
    const NodeView& own = *rows_[child.node].view;
    if (what != 0 && place_of(own, what) == kNoSymbol) return nullptr;
    for (const Span& u : s.spans) {
      const NodeView& other = *rows_[u.node].view;
      const bool same =
          what != 0 ? place_of(other, what) == place_of(own, what) : other.hw_class == own.hw_class;
      if (!same) continue;
      if (parent_on(e, child, {&u, 1}, false)) return &u;
    }
    return nullptr;
  }
  // peers, job, all: the largest last_ns among those that began early enough decides.
  auto it =
      std::upper_bound(s.prefix.begin(), s.prefix.end(), child.onset_ns - e.lag_lo_ns,
                       [](int64_t t, const SignalSpans::Prefix& p) { return t < p.onset_ns; });
  if (it == s.prefix.begin()) return nullptr;
  --it;
  const bool skip_first = e.scope == abi::Scope::kPeers && it->node[0] == child.node;
  const int at = skip_first ? 1 : 0;
  if (it->last_ns[at] == kNoTimeNs || child.onset_ns > it->last_ns[at] + e.lag_hi_ns) {
    return nullptr;
  }
  return &s.spans[it->span[at]];
}

void EvidenceField::add_parents(const CauseGraph& graph) {
  for (abi::SignalId v = 0; v < signals_.size(); ++v) {
    if (graph.parent_edges[v].empty()) continue;
    for (Span& child : signals_[v].spans) {
      const abi::ClassId c =
          child.node == kNoNode ? abi::ClassId{0} : rows_[child.node].view->hw_class;
      for (uint32_t edge : graph.parent_edges[v]) {
        const abi::EdgePlan& e = pack_.edges[edge];
        if (active_parent(e, child)) child.survive *= 1 - strength(e, c);
      }
    }
  }
}

std::vector<std::string> EvidenceField::parents_text(abi::SignalId signal, const Span& s) const {
  std::vector<std::string> out;
  for (uint32_t edge : graph_.parent_edges[signal]) {
    const abi::EdgePlan& e = pack_.edges[edge];
    if (const Span* u = active_parent(e, s)) {
      out.push_back(pack_.signals[e.from].name + " on " + entity_text(evidence(*u).entity));
    }
  }
  return out;
}

std::string EvidenceField::entity_text(const abi::EntityKey& key) const {
  const auto& keys = pack_.entity_kinds[key.kind].keys;
  const bool node = !keys.empty() && keys[0] == "node";
  std::string out;
  for (size_t i = 0; i < keys.size() && i < key.count; ++i) {
    if (i > 0) out += '/';
    if (i == 0 && !node) out += keys[0] + " ";
    if (is_gpu_key(keys[i]))
      out += abi::gpu_to_text(static_cast<int64_t>(key.values[i]));
    else if (is_integer_key(keys[i]))
      out += std::to_string(static_cast<int64_t>(key.values[i]));
    else
      out += pack_.symbols->name(static_cast<SymbolId>(key.values[i]));
  }
  return out;
}

}  // namespace reflex::attribution

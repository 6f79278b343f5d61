// Indexing of the evidence and the observed parents of each episode; see the header.
#include "runtime/attribution/evidence_field.h"

#include <algorithm>
#include <bit>
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

EvidenceField::Nodes::Nodes(const abi::CompiledPack& pack, const Input& input, LevelCache& levels)
    : numbers(pack, input, levels), groups({}) {
  rows.reserve(input.nodes.size());
  for (const NodeView& v : input.nodes) rows.push_back({&v, pack.symbols->name(v.node)});
  // The engine hands nodes over by name: then looking is enough, and 10,000 names stay unsorted.
  const auto by_name = [](const Row& a, const Row& b) { return a.name < b.name; };
  if (!std::is_sorted(rows.begin(), rows.end(), by_name)) {
    std::sort(rows.begin(), rows.end(), by_name);
  }
  rows.erase(std::unique(rows.begin(), rows.end(),
                         [](const Row& a, const Row& b) { return a.name == b.name; }),
             rows.end());
  std::vector<const NodeView*> views;
  views.reserve(rows.size());
  repaired_lately.reserve(rows.size());
  SymbolId last = 0;
  for (const Row& row : rows) last = std::max(last, row.view->node);
  row_of_symbol.assign(last + 1, kNoNode);
  for (uint32_t i = 0; i < rows.size(); ++i) {
    row_of_symbol[rows[i].view->node] = i;
    job_size += rows[i].view->in_job ? 1 : 0;
    views.push_back(rows[i].view);
    const int64_t repaired_ns = rows[i].view->repaired_ns;
    const bool lately = repaired_ns != kNoTimeNs &&
                        input.opened_ns - repaired_ns < numbers.longest_window_ns();
    repaired_lately.push_back(lately ? 1 : 0);
  }
  groups = Groups(std::move(views));
}

EvidenceField::EvidenceField(const abi::CompiledPack& pack, const CauseGraph& graph,
                             const Input& input)
    : pack_(pack), graph_(graph), input_(input) {
  auto nodes = std::make_shared<Nodes>(pack, input, *graph.levels);
  const size_t bits = nodes->rows.size() * shape().words;
  nodes->asked.assign(bits, 0);
  nodes->yes.assign(bits, 0);
  nodes->on_any.assign(pack.signals.size(), 0);
  nodes->soft.assign(input.evidence.size(), std::nan(""));
  nodes->silent_soft.resize(pack.signals.size());
  nodes_ = std::move(nodes);
  at_.assign(pack.signals.size(), nullptr);
  shown_.assign(bits, 0);
  changed_.assign(bits, 0);
  fired_in_job_.assign(pack.edges.size(), -1);
  votes_in_job_.assign(pack.signals.size(), -1);
  add_spans();
  if (input.switches.explain_away) {
    for (abi::SignalId v = 0; v < at_.size(); ++v) add_parents(v);
  }
  if (input.switches.common_mode) add_masks();
}

EvidenceField::EvidenceField(const EvidenceField& whole, const std::vector<uint8_t>& skip)
    : pack_(whole.pack_),
      graph_(whole.graph_),
      input_(whole.input_),
      nodes_(whole.nodes_),
      at_(whole.at_),
      shown_(whole.shown_),
      fired_in_job_(pack_.edges.size(), -1),
      votes_in_job_(at_.size(), -1) {
  SignalBits touched(shape().words, 0);
  for (size_t i = 0; i < skip.size(); ++i) {
    if (skip[i]) set_bit(touched.data(), input_.evidence[i].signal);
  }
  // What they explained, and what they were common to, is weighed anew as well.
  SignalBits children(shape().words, 0);
  for (abi::SignalId v = 0; input_.switches.explain_away && v < at_.size(); ++v) {
    for (const uint32_t e : graph_.parent_edges[v]) {
      if (at_[v] && has_bit(touched.data(), pack_.edges[e].from)) set_bit(children.data(), v);
    }
  }
  const bool masks = input_.switches.common_mode &&
                     meet(touched.data(), shape().masked.data(), shape().words);
  if (!masks) masks_ = whole.masks_;
  for (abi::SignalId s = 0; s < at_.size(); ++s) {
    const bool new_mask = masks && at_[s] && has_bit(shape().masked.data(), s);
    const bool anew = has_bit(touched.data(), s) || has_bit(children.data(), s) || new_mask;
    if (anew) take(whole, s, skip);
    if (!new_mask || !at_[s]) continue;
    for (Span& span : at_[s]->spans) span.mask = abi::kNone32;
  }
  for (abi::SignalId v = 0; v < at_.size(); ++v) {
    if (!at_[v] || !has_bit(children.data(), v)) continue;
    for (Span& span : at_[v]->spans) span.survive = 1;
    add_parents(v);
  }
  if (masks) add_masks();
  note_changes(whole);
}

void EvidenceField::take(const EvidenceField& whole, abi::SignalId signal,
                         const std::vector<uint8_t>& skip) {
  for (uint32_t row = 0; row < rows().size(); ++row) {
    shown_[row * shape().words + signal / 64] &= ~(uint64_t{1} << (signal % 64));
  }
  at_[signal] = nullptr;
  auto list = std::make_unique<SignalSpans>();
  for (const Span& s : whole.spans(signal)) {
    if (s.evidence >= skip.size() || !skip[s.evidence]) list->spans.push_back(s);
  }
  if (list->spans.empty()) return;
  index(signal, *list);
  at_[signal] = list.get();
  own_.push_back(std::move(list));
}

void EvidenceField::note_changes(const EvidenceField& whole) {
  const size_t words = shape().words;
  changed_.assign(rows().size() * words, 0);
  changed_anywhere_.assign(words, 0);
  std::vector<uint8_t> row_changed(rows().size(), 0);
  const auto same = [](const Span& a, const Span& b) {
    return a.evidence == b.evidence && a.episode == b.episode && a.survive == b.survive &&
           a.mask == b.mask;
  };
  for (abi::SignalId s = 0; s < at_.size(); ++s) {
    if (at_[s] == whole.at_[s]) continue;
    const auto now = spans(s), before = whole.spans(s);
    if (std::equal(now.begin(), now.end(), before.begin(), before.end(), same)) continue;
    set_bit(changed_anywhere_.data(), s);
    if (!keyed_by_node(s)) continue;
    for (uint32_t row = 0; row < rows().size(); ++row) {
      const auto mine = spans(s, row), theirs = whole.spans(s, row);
      if (std::equal(mine.begin(), mine.end(), theirs.begin(), theirs.end(), same)) continue;
      set_bit(changed_.data() + row * words, s);
      row_changed[row] = 1;
    }
  }
  for (uint32_t row = 0; row < row_changed.size(); ++row) {
    if (row_changed[row]) changed_rows_.push_back(row);
  }
  masks_changed_ = !std::equal(masks_.begin(), masks_.end(), whole.masks_.begin(),
                               whole.masks_.end(), [](const ActiveMask& a, const ActiveMask& b) {
                                 return a.cause == b.cause && a.group == b.group &&
                                        a.survive == b.survive;
                               });
}

uint32_t EvidenceField::row_of(SymbolId node) const {
  return node < nodes_->row_of_symbol.size() ? nodes_->row_of_symbol[node] : kNoNode;
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
  const auto& same = shape().same_key[a.kind * shape().kinds.size() + b.kind];
  for (size_t i = 0; i < shape().kinds[a.kind].keys && i < a.count; ++i) {
    if (same[i] < 0 || same[i] >= b.count) continue;
    if (b.values[static_cast<size_t>(same[i])] != a.values[i]) return false;
  }
  return true;
}

bool EvidenceField::same_place(const abi::EntityKey& key, uint32_t row) const {
  const NodeView& v = *rows()[row].view;
  const PackShape::Kind& kind = shape().kinds[key.kind];
  for (size_t i = 0; i < kind.keys && i < key.count; ++i) {
    const char what = kind.place[i];
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

void EvidenceField::add_spans() {
  std::vector<uint32_t> episodes(at_.size(), 0);
  for (const Evidence& ev : input_.evidence) {
    episodes[ev.signal] += static_cast<uint32_t>(ev.episodes.size());
  }
  for (uint32_t i = 0; i < input_.evidence.size(); ++i) {
    const Evidence& ev = input_.evidence[i];
    const abi::SignalPlan& plan = pack_.signals[ev.signal];
    const bool condition = plan.shape == abi::SignalShape::kCondition;
    const int64_t holds = condition ? 0 : plan.holds_ns > 0 ? plan.holds_ns : kDefaultHoldsNs;
    uint32_t row = kNoNode;
    const int node_at = shape().kinds[ev.entity.kind].node_at;
    if (node_at >= 0 && node_at < ev.entity.count) {
      row = row_of(static_cast<SymbolId>(ev.entity.values[static_cast<size_t>(node_at)]));
      if (row == kNoNode) continue;  // not a node of this incident
    }
    for (uint32_t k = 0; k < ev.episodes.size(); ++k) {
      const Evidence::Episode& e = ev.episodes[k];
      if (e.onset_ns > input_.now_ns) continue;
      const bool suppressed = !e.suppressed_by.empty();
      if (!at_[ev.signal]) {
        own_.push_back(std::make_unique<SignalSpans>());
        at_[ev.signal] = own_.back().get();
        own_.back()->spans.reserve(episodes[ev.signal]);
      }
      const int64_t last_ns = std::clamp(e.end_ns - holds, e.onset_ns, kEndlessNs);
      at_[ev.signal]->spans.push_back({e.onset_ns, last_ns, 1, row, i, k, suppressed, abi::kNone32});
    }
  }
  for (abi::SignalId signal = 0; signal < at_.size(); ++signal) {
    if (!at_[signal]) continue;
    SignalSpans& s = *at_[signal];
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
    index(signal, s);
  }
}

void EvidenceField::index(abi::SignalId signal, SignalSpans& s) {
  const auto count = static_cast<uint32_t>(rows().size());
  s.begin.assign(count + 1, 0);
  uint32_t at = 0;
  for (uint32_t row = 0; row <= count; ++row) {
    s.begin[row] = at;
    const uint32_t first = at;
    while (at < s.spans.size() && s.spans[at].node == row) ++at;
    if (at > first) set_bit(shown_.data() + row * shape().words, signal);
  }
  if (shape().is_parent[signal]) add_prefix(s);
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

bool EvidenceField::observed(abi::SignalId signal, uint32_t row) const {
  const Nodes& n = *nodes_;
  if (row == kNoNode) {  // a job or rack signal reports when any node of the job does
    uint8_t& any = n.on_any[signal];
    for (uint32_t i = 0; any == 0 && i < n.rows.size(); ++i) {
      if (n.rows[i].view->in_job && observed(signal, i)) any = 2;
    }
    if (any == 0) any = 1;
    return any == 2;
  }
  const size_t at = row * shape().words;
  if (!has_bit(n.asked.data() + at, signal)) ask(signal, row);
  return has_bit(n.yes.data() + at, signal);
}

void EvidenceField::ask(abi::SignalId signal, uint32_t row) const {
  const Nodes& n = *nodes_;
  const size_t at = row * shape().words;
  set_bit(n.asked.data() + at, signal);
  const bool yes = input_.observed(input_.observed_state, signal, n.rows[row].view->node);
  if (yes) set_bit(n.yes.data() + at, signal);
}

bool EvidenceField::all_observed(const SignalBits& signals, uint32_t row) const {
  const size_t at = row * shape().words;
  for (size_t w = 0; w < signals.size(); ++w) {
    uint64_t open = signals[w] & ~nodes_->asked[at + w];
    for (; open != 0; open &= open - 1) {
      ask(static_cast<abi::SignalId>(w * 64 + static_cast<size_t>(std::countr_zero(open))), row);
    }
    if ((signals[w] & ~nodes_->yes[at + w]) != 0) return false;
  }
  return true;
}

void EvidenceField::observed(const SignalBits& signals, uint32_t row, SignalBits& out) const {
  const size_t at = row * shape().words;
  out.resize(shape().words);
  for (size_t w = 0; w < out.size(); ++w) {
    uint64_t open = signals[w] & ~nodes_->asked[at + w];
    for (; open != 0; open &= open - 1) {
      ask(static_cast<abi::SignalId>(w * 64 + static_cast<size_t>(std::countr_zero(open))), row);
    }
    out[w] = signals[w] & nodes_->yes[at + w];
  }
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
  if (!at_[e.from]) return nullptr;
  const SignalSpans& s = *at_[e.from];
  const bool on_node = keyed_by_node(e.from) && child.node != kNoNode;
  if (!on_node) return parent_on(e, child, s.spans, true);
  if (e.scope == abi::Scope::kSelf) return parent_on(e, child, spans(e.from, child.node), true);
  const char what = place_letter(e.scope);
  if (what != 0 || e.scope == abi::Scope::kClass) {
    const NodeView& own = *rows()[child.node].view;
    if (what != 0 && place_of(own, what) == kNoSymbol) return nullptr;
    for (const Span& u : s.spans) {
      const NodeView& other = *rows()[u.node].view;
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

void EvidenceField::add_parents(abi::SignalId signal) {
  if (graph_.parent_edges[signal].empty() || !at_[signal]) return;
  for (Span& child : at_[signal]->spans) {
    const abi::ClassId c =
        child.node == kNoNode ? abi::ClassId{0} : rows()[child.node].view->hw_class;
    for (uint32_t edge : graph_.parent_edges[signal]) {
      const abi::EdgePlan& e = pack_.edges[edge];
      if (active_parent(e, child)) child.survive *= 1 - strength(e, c);
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

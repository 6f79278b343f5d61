// Tables of a pack set; see pack_shape.h.
#include "runtime/attribution/pack_shape.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "runtime/attribution/groups.h"

namespace reflex::attribution {
namespace {

class Maker {
 public:
  explicit Maker(const abi::CompiledPack& pack) : pack_(pack) {}

  PackShape make(const std::vector<std::vector<uint32_t>>& cause_edges,
                 const std::vector<abi::CauseId>& cause_order) {
    shape_.words = std::max<size_t>((pack_.signals.size() + 63) / 64, 1);
    shape_.graded.assign(shape_.words, 0);
    shape_.masked.assign(shape_.words, 0);
    add_kinds();
    add_signals();
    for (const auto& edges : cause_edges) {
      const auto c = static_cast<abi::CauseId>(shape_.causes.size());
      shape_.causes.push_back(cause(c, edges));
    }
    for (const abi::SynergyPlan& s : pack_.synergies) {
      shape_.causes[s.cause].has_synergy = true;
      shape_.causes[s.cause].calm = false;
    }
    for (const abi::CauseId f : cause_order) add_wear(f, cause_edges[f]);
    add_windows();
    return std::move(shape_);
  }

 private:
  void add_kinds() {
    for (const abi::EntityKind& kind : pack_.entity_kinds) {
      PackShape::Kind k;
      k.keys = static_cast<uint8_t>(std::min<size_t>(kind.keys.size(), k.place.size()));
      for (uint8_t i = 0; i < k.keys; ++i) {
        if (kind.keys[i] == "node" && k.node_at < 0) k.node_at = static_cast<int8_t>(i);
        if (kind.keys[i] == "job" && k.job_at < 0) k.job_at = static_cast<int8_t>(i);
        k.place[i] = place_letter(kind.keys[i]);
      }
      shape_.kinds.push_back(k);
    }
    for (const abi::EntityKind& a : pack_.entity_kinds) {
      for (const abi::EntityKind& b : pack_.entity_kinds) {
        std::array<int8_t, 3> at{-1, -1, -1};
        for (size_t i = 0; i < std::min<size_t>(a.keys.size(), at.size()); ++i) {
          const auto it = std::find(b.keys.begin(), b.keys.end(), a.keys[i]);
          const bool found = a.keys[i] != "node" && it != b.keys.end();
          if (found) at[i] = static_cast<int8_t>(it - b.keys.begin());
        }
        shape_.same_key.push_back(at);
      }
    }
  }

  void add_part_key(const std::string& key) {
    const auto it = std::find(part_keys_.begin(), part_keys_.end(), key);
    shape_.part_key.push_back(static_cast<uint32_t>(it - part_keys_.begin()));
    if (it == part_keys_.end()) part_keys_.push_back(key);
  }

  bool on_node(uint32_t entity_kind) const { return shape_.kinds[entity_kind].node_at >= 0; }

  void add_signals() {
    for (const abi::SignalPlan& s : pack_.signals) {
      shape_.by_node.push_back(on_node(s.entity_kind) ? 1 : 0);
      const auto id = static_cast<abi::SignalId>(shape_.by_node.size() - 1);
      const bool graded = s.shape == abi::SignalShape::kCount && s.count.graded.on;
      if (graded) set_bit(shape_.graded.data(), id);
      shape_.votes.push_back(s.count.graded.votes ? 1 : 0);
      add_part_key(s.count.part_key);
    }
    shape_.is_parent.assign(pack_.signals.size(), 0);
    shape_.spreads.assign(pack_.signals.size(), 0);
    for (const abi::EdgePlan& e : pack_.edges) {
      if (e.from_signal) shape_.is_parent[e.from] = 1;
      shape_.shares_key.push_back(!e.from_signal && shares_key(e) ? 1 : 0);
      // An external cause of no node reaches many with any scope.
      const bool external = !e.from_signal && !on_node(pack_.causes[e.cause].entity_kind);
      if ((e.scope != abi::Scope::kSelf || external) && shape_.by_node[e.to]) {
        shape_.spreads[e.to] = 1;
      }
    }
    for (const abi::MaskPlan& m : pack_.masks) {
      for (const abi::SignalId s : m.signals) set_bit(shape_.masked.data(), s);
    }
  }

  bool shares_key(const abi::EdgePlan& e) const {
    const auto& cause = pack_.entity_kinds[pack_.causes[e.cause].entity_kind].keys;
    const auto& signal = pack_.entity_kinds[pack_.signals[e.to].entity_kind].keys;
    return std::any_of(cause.begin(), cause.end(), [&](const std::string& key) {
      return std::find(signal.begin(), signal.end(), key) != signal.end();
    });
  }

  PackShape::Cause cause(abi::CauseId c, const std::vector<uint32_t>& edges) const {
    PackShape::Cause out;
    out.on_node = on_node(pack_.causes[c].entity_kind);
    out.fault = pack_.causes[c].kind == abi::CauseKind::kFault;
    out.plain = out.calm = out.on_node;
    for (SignalBits* bits : {&out.children, &out.own, &out.wide, &out.naming, &out.habits,
                             &out.own_spread}) {
      bits->assign(shape_.words, 0);
    }
    SignalBits seen(shape_.words, 0);
    for (const uint32_t i : edges) {
      const abi::EdgePlan& e = pack_.edges[i];
      const abi::SignalPlan& s = pack_.signals[e.to];
      const bool node = shape_.by_node[e.to] != 0;
      const bool own = node && out.on_node && e.scope == abi::Scope::kSelf;
      if (node) set_bit(out.children.data(), e.to);
      if (node && e.scope == abi::Scope::kSelf) set_bit(out.own.data(), e.to);
      if (!own || shape_.spreads[e.to] || shape_.votes[e.to]) set_bit(out.wide.data(), e.to);
      if (node && !own) out.plain = false;
      const bool same_for_all = !node && !particular(pack_.causes[c].entity_kind, s.entity_kind);
      if (!own && !same_for_all) out.calm = false;
      if (own && shape_.spreads[e.to]) set_bit(out.own_spread.data(), e.to);
      const bool graded = has_bit(shape_.graded.data(), e.to);
      const bool names = out.fault && !s.count.part_key.empty();
      if (own && graded && names) set_bit(out.naming.data(), e.to);
      // Of several edges to one signal the first counts.
      const bool again = own && has_bit(seen.data(), e.to);
      if (own) set_bit(seen.data(), e.to);
      if (!again && own && graded && !shape_.votes[e.to] && !e.has_weight) {
        set_bit(out.habits.data(), e.to);
      }
    }
    if (!out.plain) out.habits.assign(shape_.words, 0);
    return out;
  }

  /// Which entities of kind `of` count depends on the node or the part.
  bool particular(uint32_t cause_kind, uint32_t of) const {
    const auto& same = shape_.same_key[cause_kind * shape_.kinds.size() + of];
    const auto& places = shape_.kinds[of].place;
    return std::any_of(same.begin(), same.end(), [](int8_t at) { return at >= 0; }) ||
           std::any_of(places.begin(), places.end(), [](char letter) { return letter != 0; });
  }

  void add_wear(abi::CauseId f, const std::vector<uint32_t>& all) {
    if (pack_.causes[f].kind != abi::CauseKind::kFault) return;
    std::vector<uint32_t> edges;
    for (const uint32_t i : all) {
      const abi::EdgePlan& e = pack_.edges[i];
      const bool wear = e.scope == abi::Scope::kSelf && has_bit(shape_.graded.data(), e.to) &&
                        !e.has_weight && !shape_.votes[e.to] &&
                        shape_.by_node[e.to];
      if (wear) edges.push_back(i);
    }
    if (edges.empty()) return;
    shape_.wear_signals.emplace_back(shape_.words, 0);
    for (const uint32_t i : edges) set_bit(shape_.wear_signals.back().data(), pack_.edges[i].to);
    shape_.wear_edges.push_back(std::move(edges));
  }

  void add_windows() {
    std::map<std::tuple<abi::SignalId, int64_t, int64_t>, uint32_t> windows;
    for (uint32_t i = 0; i < pack_.edges.size(); ++i) {
      const abi::EdgePlan& e = pack_.edges[i];
      const bool own = e.from_signal || e.has_weight ||
                       pack_.causes[e.cause].kind == abi::CauseKind::kExternal;
      shape_.window_of.push_back(
          own ? i : windows.try_emplace({e.to, e.lag_lo_ns, e.lag_hi_ns}, i).first->second);
    }
  }

  const abi::CompiledPack& pack_;
  PackShape shape_;
  std::vector<std::string> part_keys_{std::string()};
};

}  // namespace

PackShape pack_shape_of(const abi::CompiledPack& pack,
                        const std::vector<std::vector<uint32_t>>& cause_edges,
                        const std::vector<abi::CauseId>& cause_order) {
  return Maker(pack).make(cause_edges, cause_order);
}

}  // namespace reflex::attribution

// Which hypotheses one incident has, with their priors. Nodes without own evidence for a cause are
// grouped by everything that their weight depends on and evaluated once.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "runtime/attribution/ranking.h"

namespace reflex::attribution {
namespace {

class Maker {
 public:
  Maker(const EvidenceField& field, const CauseGraph& graph) : field_(field), graph_(graph) {}

  std::vector<Candidate> make() {
    for (abi::CauseId c : graph_.cause_order) {
      const auto& keys = kinds()[cause(c).entity_kind].keys;
      if (std::find(keys.begin(), keys.end(), "node") != keys.end())
        add_nodes(c);
      else if (field_.input().switches.common_mode)
        add_external(c, keys);
    }
    return std::move(out_);
  }

 private:
  const abi::CausePlan& cause(abi::CauseId c) const { return field_.pack().causes[c]; }
  const std::vector<abi::EntityKind>& kinds() const { return field_.pack().entity_kinds; }

  double prior_nats(abi::CauseId c, uint32_t row) const {
    const NodeView* view = row == kNoNode ? nullptr : field_.rows()[row].view;
    const Numbers& numbers = field_.numbers();
    return round_nats(numbers.prior_nats(c, view) / numbers.temperature());
  }

  void push(abi::CauseId c, uint32_t row, const abi::EntityKey& entity) {
    Candidate x;
    x.cause = c;
    x.row = row;
    x.entity = entity;
    x.prior_nats = prior_nats(c, row);
    out_.push_back(std::move(x));
  }

  void add_external(abi::CauseId c, const std::vector<std::string>& keys) {
    std::vector<abi::EntityKey> found;
    abi::EntityKey key;
    key.kind = cause(c).entity_kind;
    key.count = static_cast<uint8_t>(keys.size());
    const char what = keys.size() == 1 ? place_letter(keys[0]) : char{0};
    if (keys.empty()) {
      found.push_back(key);
    } else if (keys.size() == 1 && keys[0] == "job") {
      key.values[0] = field_.input().job;
      found.push_back(key);
    } else if (what != 0) {
      for (const auto& row : field_.rows()) {
        if (!row.view->in_job) continue;  // a switch that no node of the job hangs on
        key.values[0] = place_of(*row.view, what);
        if (key.values[0] != kNoSymbol) found.push_back(key);
      }
    } else {
      add_from_evidence(key, keys, found);
    }
    const auto by_value = [](const auto& a, const auto& b) { return a.values < b.values; };
    std::sort(found.begin(), found.end(), by_value);  // only to find equal ones
    found.erase(std::unique(found.begin(), found.end()), found.end());
    std::sort(found.begin(), found.end(), [&](const auto& a, const auto& b) {
      return field_.entity_text(a) < field_.entity_text(b);
    });
    for (const abi::EntityKey& e : found) push(c, kNoNode, e);
  }

  void add_from_evidence(abi::EntityKey key, const std::vector<std::string>& keys,
                         std::vector<abi::EntityKey>& found) const {
    for (const Evidence& ev : field_.input().evidence) {
      bool all = !ev.episodes.empty();
      for (size_t i = 0; i < keys.size() && all; ++i) {
        all = field_.key_value(ev.entity, keys[i], &key.values[i]);
      }
      if (all) found.push_back(key);
    }
  }

  // Everything that the weight of a node without own evidence depends on.
  struct Signature {
    abi::ClassId hw_class = 0;
    uint64_t hazard = 0;
    std::array<SymbolId, 4> places{};  // only when an edge asks for places
    int64_t repaired_ns = kNoTimeNs;   // within the longest window of a graded child
    std::vector<bool> observed;
    friend bool operator==(const Signature&, const Signature&) = default;
  };

  void add_nodes(abi::CauseId c) {
    children_.clear();
    own_.clear();
    bool places = false;
    for (uint32_t index : graph_.cause_edges[c]) {
      const abi::EdgePlan& e = field_.pack().edges[index];
      const auto& keys = kinds()[field_.pack().signals[e.to].entity_kind].keys;
      places |= place_letter(e.scope) != 0;
      for (const std::string& k : keys) places |= place_letter(k) != 0;
      if (!field_.keyed_by_node(e.to)) continue;
      if (std::find(children_.begin(), children_.end(), e.to) == children_.end()) {
        children_.push_back(e.to);
      }
      if (e.scope == abi::Scope::kSelf) own_.push_back(e.to);
    }
    signatures_.clear();
    size_t last = 0;
    for (uint32_t row = 0; row < field_.rows().size(); ++row) {
      const NodeView& v = *field_.rows()[row].view;
      if (!v.in_job) continue;
      if (shows_any(children_, row)) {
        add_entities(c, row);
        continue;
      }
      sign(c, v, row, places);
      if (last >= signatures_.size() || !(signatures_[last].signature == signature_)) {
        last = 0;
        while (last < signatures_.size() && !(signatures_[last].signature == signature_)) ++last;
      }
      if (last == signatures_.size()) signatures_.push_back({signature_, kNoNode, kNoNode});
      Signed& known = signatures_[last];
      // A node that may be ailing otherwise has odds of its own, but not another weight.
      const bool ailing = shows_any(field_.numbers().graded_signals(), row);
      if (!ailing && known.alike != kNoNode) {
        out_[known.alike].alike.push_back(row);
        continue;
      }
      const auto at = static_cast<uint32_t>(out_.size());
      push(c, row, node_entity(c, row));
      out_.back().like = known.first;
      if (known.first == kNoNode) known.first = at;
      if (!ailing) known.alike = at;
    }
  }

  void sign(abi::CauseId c, const NodeView& v, uint32_t row, bool places) {
    signature_.hw_class = v.hw_class;
    signature_.hazard = std::bit_cast<uint64_t>(field_.numbers().hazard(c, v));
    signature_.places =
        places ? std::array{v.rack, v.tor, v.pod, v.zone} : std::array<SymbolId, 4>{};
    signature_.repaired_ns = repaired_lately(v) ? v.repaired_ns : kNoTimeNs;
    signature_.observed.clear();
    for (abi::SignalId s : children_) signature_.observed.push_back(field_.observed(s, row));
  }

  // "Ailing for another reason" looks at every graded signal of the node, not only the cause's own.
  bool repaired_lately(const NodeView& v) const {
    return v.repaired_ns != kNoTimeNs &&
           field_.input().opened_ns - v.repaired_ns < field_.numbers().longest_window_ns();
  }

  bool shows_any(const std::vector<abi::SignalId>& signals, uint32_t row) const {
    return std::any_of(signals.begin(), signals.end(),
                       [&](abi::SignalId s) { return !field_.spans(s, row).empty(); });
  }

  abi::EntityKey node_entity(abi::CauseId c, uint32_t row) const {
    abi::EntityKey key;
    key.kind = cause(c).entity_kind;
    key.count = 1;  // the further keys stay open: "some gpu of the node"
    key.values[0] = field_.rows()[row].view->node;
    return key;
  }

  // One hypothesis for each gpu (nic, ...) that shows evidence, else one for the node.
  void add_entities(abi::CauseId c, uint32_t row) {
    const auto& keys = kinds()[cause(c).entity_kind].keys;
    abi::EntityKey key = node_entity(c, row);
    std::vector<abi::EntityKey> found;
    for (abi::SignalId signal : own_) {
      for (const Span& s : field_.spans(signal, row)) {
        if (keys.size() < 2) break;
        abi::EntityKey named = key;
        named.count = static_cast<uint8_t>(keys.size());
        bool all = true;
        for (size_t i = 1; i < keys.size() && all; ++i) {
          all = field_.key_value(field_.evidence(s).entity, keys[i], &named.values[i]);
        }
        if (all && std::find(found.begin(), found.end(), named) == found.end()) {
          found.push_back(named);
        }
      }
    }
    if (found.empty()) found.push_back(key);
    if (found.size() > 1) {
      std::sort(found.begin(), found.end(), [&](const auto& a, const auto& b) {
        return field_.entity_text(a) < field_.entity_text(b);
      });
    }
    for (const abi::EntityKey& e : found) push(c, row, e);
  }

  struct Signed {
    Signature signature;
    uint32_t first = kNoNode;  // the candidate whose weight stands for all of the signature
    uint32_t alike = kNoNode;  // the one that stands for nodes that show nothing at all
  };

  const EvidenceField& field_;
  const CauseGraph& graph_;
  Signature signature_;
  std::vector<Signed> signatures_;
  std::vector<abi::SignalId> children_;
  std::vector<abi::SignalId> own_;
  std::vector<Candidate> out_;
};

}  // namespace

std::vector<Candidate> hypotheses(const EvidenceField& field, const CauseGraph& graph) {
  return Maker(field, graph).make();
}

}  // namespace reflex::attribution

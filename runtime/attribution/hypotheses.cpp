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
  Maker(const EvidenceField& field, const CauseGraph& graph, std::vector<Candidate> spare)
      : field_(field), graph_(graph), out_(std::move(spare)) {
    out_.clear();
  }

  std::vector<Candidate> make() {
    // Why: a small job has one for each node and cause at most; of a large one most are alike.
    constexpr size_t kReservedMax = 2000;
    out_.reserve(std::min(field_.rows().size() * graph_.cause_order.size(), kReservedMax));
    for (abi::CauseId c : graph_.cause_order) add(c);
    return std::move(out_);
  }

  /// The same of a field made from a whole one, whose hypotheses are `before`: those of a cause are
  /// taken over when no node changes sides. `from[i]`: which one of `before` hypothesis i was.
  std::vector<Candidate> make_again(const EvidenceField& whole,
                                    const std::vector<Candidate>& before,
                                    std::vector<uint32_t>& from) {
    out_.reserve(before.size());
    from.reserve(before.size());
    size_t first = 0;
    for (abi::CauseId c : graph_.cause_order) {
      size_t last = first;
      while (last < before.size() && before[last].cause == c) ++last;
      const size_t begin = out_.size();
      if (stands(c, whole)) {
        const auto shift = static_cast<uint32_t>(begin - first);  // modulo 2^32
        for (size_t i = first; i < last; ++i) {
          out_.push_back(before[i]);
          if (out_.back().like != kNoNode) out_.back().like += shift;
          from.push_back(static_cast<uint32_t>(i));
        }
      } else {
        add(c);
        find_again(before, first, last, begin, from);
      }
      first = last;
    }
    return std::move(out_);
  }

 private:
  void add(abi::CauseId c) {
    if (shape(c).on_node)
      add_nodes(c);
    else if (field_.input().switches.common_mode)
      add_external(c, kinds()[cause(c).entity_kind].keys);
  }

  /// Whether the evidence that is left out changes nothing of which hypotheses the cause has.
  bool stands(abi::CauseId c, const EvidenceField& whole) const {
    if (!shape(c).on_node) return true;
    const size_t words = field_.shape().words;
    const uint64_t* graded = field_.shape().graded.data();
    const bool several = kinds()[cause(c).entity_kind].keys.size() > 1;
    return std::all_of(
        field_.changed_rows().begin(), field_.changed_rows().end(), [&](uint32_t row) {
          const uint64_t* now = field_.shown(row);
          const uint64_t* then = whole.shown(row);
          if (several && meet(field_.changed(row), shape(c).own.data(), words)) return false;
          const bool shows = meet(now, shape(c).children.data(), words);
          if (shows != meet(then, shape(c).children.data(), words)) return false;
          return shows || meet(now, graded, words) == meet(then, graded, words);
        });
  }

  // Both lists stand by node, and those of one node by the name of the entity.
  void find_again(const std::vector<Candidate>& before, size_t first, size_t last, size_t begin,
                  std::vector<uint32_t>& from) const {
    size_t at = first;
    for (size_t i = begin; i < out_.size(); ++i) {
      while (at < last && before[at].row < out_[i].row) ++at;
      uint32_t found = kNoNode;
      for (size_t k = at; k < last && before[k].row == out_[i].row; ++k) {
        if (before[k].entity == out_[i].entity) found = static_cast<uint32_t>(k);
      }
      from.push_back(found);
    }
  }

  const PackShape::Cause& shape(abi::CauseId c) const { return field_.shape().causes[c]; }
  const abi::CausePlan& cause(abi::CauseId c) const { return field_.pack().causes[c]; }
  const std::vector<abi::EntityKind>& kinds() const { return field_.pack().entity_kinds; }

  double prior_nats(abi::CauseId c, uint32_t row) const {
    const NodeView* view = row == kNoNode ? nullptr : field_.rows()[row].view;
    const Numbers& numbers = field_.numbers();
    return round_nats(numbers.prior_nats(c, view) / numbers.temperature());
  }

  void push(abi::CauseId c, uint32_t row, const abi::EntityKey& entity) {
    out_.emplace_back();
    Candidate& x = out_.back();
    x.cause = c;
    x.row = row;
    x.entity = entity;
    x.prior_nats = row == kNoNode ? prior_nats(c, row) : prior_of_node(c, row);
  }

  // Nodes of one class and one history have the same.
  double prior_of_node(abi::CauseId c, uint32_t row) {
    const NodeView& v = *field_.rows()[row].view;
    const auto hazard = std::bit_cast<uint64_t>(field_.numbers().hazard(c, v));
    if (prior_.cause != c || prior_.hw_class != v.hw_class || prior_.hazard != hazard) {
      prior_ = {c, v.hw_class, hazard, prior_nats(c, row)};
    }
    return prior_.nats;
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
    SignalBits observed;
    friend bool operator==(const Signature&, const Signature&) = default;
  };

  void add_nodes(abi::CauseId c) {
    const SignalBits& children = shape(c).children;
    const size_t words = field_.shape().words;
    own_.clear();
    bool places = false;
    for (uint32_t index : graph_.cause_edges[c]) {
      const abi::EdgePlan& e = field_.pack().edges[index];
      places |= place_letter(e.scope) != 0;
      const PackShape::Kind& kind = field_.shape().kinds[field_.pack().signals[e.to].entity_kind];
      for (const char letter : kind.place) places |= letter != 0;
      if (has_bit(shape(c).own.data(), e.to) && e.scope == abi::Scope::kSelf) own_.push_back(e.to);
    }
    signatures_.clear();
    size_t last = 0;
    for (uint32_t row = 0; row < field_.rows().size(); ++row) {
      const NodeView& v = *field_.rows()[row].view;
      if (!v.in_job) continue;
      if (meet(field_.shown(row), children.data(), words)) {
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
      const bool ailing = meet(field_.shown(row), field_.shape().graded.data(), words);
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
    // "Ailing for another reason" looks at every graded signal of the node, not only the cause's own.
    signature_.repaired_ns = field_.repaired_lately(row) ? v.repaired_ns : kNoTimeNs;
    field_.observed(shape(c).children, row, signature_.observed);
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
    if (keys.size() < 2) return push(c, row, key);
    std::vector<abi::EntityKey> found;
    for (abi::SignalId signal : own_) {
      for (const Span& s : field_.spans(signal, row)) {
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
  std::vector<abi::SignalId> own_;
  struct Prior {
    abi::CauseId cause = 0;
    abi::ClassId hw_class = 0;
    uint64_t hazard = ~uint64_t{0};
    double nats = 0;
  };
  Prior prior_;
  std::vector<Candidate> out_;
};

}  // namespace

std::vector<Candidate> hypotheses(const EvidenceField& field, const CauseGraph& graph,
                                  std::vector<Candidate> spare) {
  return Maker(field, graph, std::move(spare)).make();
}

std::vector<Candidate> hypotheses_again(const EvidenceField& field, const CauseGraph& graph,
                                        const EvidenceField& whole,
                                        const std::vector<Candidate>& before,
                                        std::vector<uint32_t>& from,
                                        std::vector<Candidate> spare) {
  return Maker(field, graph, std::move(spare)).make_again(whole, before, from);
}

}  // namespace reflex::attribution

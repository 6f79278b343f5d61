// Peers: `peers(job by train.step.role).median` as a query of the pack (language.md A8).
//
// What is compared comes from the other side of the comparison (Env::peers_feature). What stands
// behind `by` must be known of every peer, not only of the entity under evaluation: the last value
// of a field or a feature on the same keys as the compared one, or a label of the node.
#include <algorithm>
#include <array>

#include "compiler/sema/phases.h"

namespace reflex::sema {

namespace {

using abi::PeersStat;
using abi::Scalar;
using abi::Type;
using ast::Expr;
using ast::ExprKind;
using ir::Op;

constexpr std::array<std::pair<std::string_view, PeersStat>, 7> kStats{
    {{"median", PeersStat::kMedian},
     {"mad", PeersStat::kMad},
     {"mean", PeersStat::kMean},
     {"min", PeersStat::kMin},
     {"max", PeersStat::kMax},
     {"rank", PeersStat::kRank},
     {"count", PeersStat::kCount}}};

std::optional<PeersStat> stat_of(State& s, const Segment& stat) {
  for (const auto& [name, value] : kStats) {
    if (name == stat.text) return value;
  }
  auto& d = s.report(Id::kUnknownName, stat.span, "peers have no '" + stat.text + "'");
  std::vector<std::string> names;
  for (const auto& [name, value] : kStats) names.emplace_back(name);
  suggest(d, stat.text, names, stat.span);
  return std::nullopt;
}

/// The word in `peers(job)`; nothing when it is none of the scopes (reported).
std::optional<std::string> scope_of(State& s, const Expr* call, Span span) {
  if (call == nullptr || call->args.empty()) return "job";
  static constexpr std::array<std::string_view, 4> kScopes{"job", "rack", "tor", "class"};
  std::string scope = "job";
  size_t words = 0;
  for (size_t i = 0; i < call->args.size(); ++i) {
    if (!call->arg_names[i].empty()) continue;
    const auto path = flatten(*call->args[i]);
    scope = path && path->size() == 1 && ++words == 1 ? (*path)[0].text : "?";
  }
  if (std::find(kScopes.begin(), kScopes.end(), scope) != kScopes.end()) return scope;
  auto& d = s.report(Id::kUnknownName, span, "no peers of '" + scope + "'");
  d.help = "there are: job, rack, tor, class";
  return std::nullopt;
}

bool is_discrete(const Type& t) {
  return t.scalar == Scalar::kEnum || t.scalar == Scalar::kEntity || t.scalar == Scalar::kBool ||
         (t.scalar == Scalar::kInt && t.unit == abi::Unit::kNone);
}

std::optional<abi::PeersKey> key_of(State& s, const Env& env, const Expr& e) {
  const NodePtr n = check_expr(s, env, e);
  if (is_error(n)) return std::nullopt;
  if (n->op == Op::kNodeLabel && n->args[0]->op == Op::kEntityKey) {
    return abi::PeersKey{kNone32, n->index};
  }
  if (n->op == Op::kFeature && !n->mean && is_discrete(n->type)) {
    const auto& features = s.pack.features;
    if (features[n->index].entity_kind == features[env.peers_feature].entity_kind) {
      return abi::PeersKey{n->index, kNoSymbol};
    }
    s.report(Id::kTypeMismatch, e.span, "`by` stands on other keys than what is compared");
    return std::nullopt;
  }
  auto& d = s.report(Id::kTypeMismatch, e.span,
                     "`by` needs a word, an entity, an integer or a bool that each peer has");
  d.help = "write: peers(job by train.step.role) or peers(job by label(node, role))";
  return std::nullopt;
}

bool placed_right(State& s, const Env& env, Span span) {
  if (!env.peers_allowed) {
    auto& d = s.report(Id::kNotHere, span, "peers are compared only in `when` and in targets");
    d.help = "write: signal .. { when gpu.temp.value > peers(job).median + .. }";
    return false;
  }
  if (env.peers_feature == kNone32) {
    auto& d = s.report(Id::kPeersWithoutFeature, span,
                       "peers has nothing to compare: the other side reads no feature");
    d.help = "write: gpu.temp.value > peers(job).median + ..";
    return false;
  }
  return true;
}

/// The same question twice is one query.
uint32_t intern_query(State& s, abi::PeersQuery query) {
  std::string key = std::to_string(query.feature) + "/" + query.scope + "/" +
                    std::to_string(static_cast<int>(query.stat)) + "/" +
                    std::to_string(query.at_least);
  for (const abi::PeersKey& by : query.by) {
    key += "/" + std::to_string(by.feature) + "," + std::to_string(by.label);
  }
  const auto [it, added] = s.peers_ids.emplace(key, static_cast<uint32_t>(s.pack.peers.size()));
  if (added) s.pack.peers.push_back(std::move(query));
  return it->second;
}

}  // namespace

bool mentions_peers(const Expr& e) {
  if (e.kind == ExprKind::kCall && e.text == "peers") return true;
  if (e.kind == ExprKind::kName && e.text.rfind("peers.", 0) == 0) return true;
  for (const auto& a : e.args) {
    if (a && mentions_peers(*a)) return true;
  }
  return false;
}

NodePtr check_peers(State& s, const Env& env, const Expr* call, const Segment& stat, Span span) {
  const auto scope = scope_of(s, call, span);
  if (!scope) return poison(span);
  const auto which = stat_of(s, stat);
  if (!which || !placed_right(s, env, span)) return poison(span);
  abi::PeersQuery query;
  query.feature = env.peers_feature;
  query.scope = *scope;
  query.stat = *which;
  query.at_least = env.peers_at_least;
  for (size_t i = 0; call != nullptr && i < call->args.size(); ++i) {
    if (call->arg_names[i].empty()) continue;
    const auto key = key_of(s, env, *call->args[i]);
    if (!key) return poison(span);
    query.by.push_back(*key);
  }
  const uint32_t number = intern_query(s, std::move(query));

  Type t = env.peers_type;
  t.optional = true;
  const bool place = *which == PeersStat::kRank || *which == PeersStat::kCount;
  if (place || !is_number(t)) {
    // A duration's statistics come back as f64 nanoseconds.
    const NodePtr n = load(Op::kPeers, number, real_type(), span);
    return t.scalar == Scalar::kDuration && !place ? to_i64(n, duration_type()) : n;
  }
  if (t.scalar == Scalar::kInt) t = real_type();
  if (*which == PeersStat::kMad && t.unit == abi::Unit::kCelsius) {
    t.unit = abi::Unit::kCelsiusDelta;
  }
  return load(Op::kPeers, number, t, span);
}

}  // namespace reflex::sema

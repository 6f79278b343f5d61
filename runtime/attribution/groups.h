// Groups: the nodes of an incident by place (rack, tor, pod, zone), hardware class, job, or all.
//
// For the rows of an incident; rows in a group keep the order of the rows (by name). Shared by all
// rankings of the incident, not by threads.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "runtime/attribution/attribution.h"

namespace reflex::attribution {

struct Group {
  char what = 'j';  // a(ll), j(ob), r(ack), t(or), p(od), z(one), c(lass)
  uint32_t id = kNoSymbol;
  std::vector<uint32_t> rows;
};

/// Whether a node belongs to the group.
inline bool in_group(const Group& g, const NodeView& v) {
  switch (g.what) {
    case 'a':
      return true;
    case 'j':
      return v.in_job;
    case 'r':
      return v.rack == g.id;
    case 't':
      return v.tor == g.id;
    case 'p':
      return v.pod == g.id;
    case 'z':
      return v.zone == g.id;
    default:
      return v.hw_class == g.id;
  }
}

/// The label of a node that a key or a scope names; kNoSymbol when it has none.
inline SymbolId place_of(const NodeView& v, char what) {
  switch (what) {
    case 'r':
      return v.rack;
    case 't':
      return v.tor;
    case 'p':
      return v.pod;
    case 'z':
      return v.zone;
    default:
      return kNoSymbol;
  }
}
/// 'r' for "rack", ...; 0 for a key that is no place.
inline char place_letter(std::string_view key) {
  return key == "rack" ? 'r' : key == "tor" ? 't' : key == "pod" ? 'p' : key == "zone" ? 'z' : 0;
}
/// The place that a scope asks for; 0: none.
inline char place_letter(abi::Scope s) {
  return s == abi::Scope::kRack   ? 'r'
         : s == abi::Scope::kTor  ? 't'
         : s == abi::Scope::kPod  ? 'p'
         : s == abi::Scope::kZone ? 'z'
                                  : 0;
}

class Groups {
 public:
  /// Row i is `views[i]`. Borrows the views.
  explicit Groups(std::vector<const NodeView*> views) : views_(std::move(views)) {
    all_.what = 'a';
    all_.rows.reserve(views_.size());
    job_.rows.reserve(views_.size());
    for (uint32_t i = 0; i < views_.size(); ++i) {
      all_.rows.push_back(i);
      if (views_[i]->in_job) job_.rows.push_back(i);
    }
  }
  [[nodiscard]] const Group* all() const { return &all_; }
  /// The same group as all() when every node is in the job.
  [[nodiscard]] const Group* job() const {
    return job_.rows.size() == all_.rows.size() ? &all_ : &job_;
  }
  /// Null when no node is in it.
  [[nodiscard]] const Group* named(char what, uint32_t id) const {
    const auto& groups = of(what);
    const auto it = groups.find(id);
    return it == groups.end() ? nullptr : &it->second;
  }
  using ById = std::unordered_map<uint32_t, Group>;
  /// All groups of one letter: 'r', 't', 'p', 'z' or 'c'; in no order. Made when first asked for.
  [[nodiscard]] const ById& of(char what) const {
    const size_t at = std::string_view("rtpzc").find(what);
    if (at == std::string_view::npos) return none_;
    auto& known = named_[at];
    if (known) return *known;
    known = std::make_unique<ById>();
    Group* last = nullptr;
    for (uint32_t i = 0; i < views_.size(); ++i) {
      const uint32_t id = what == 'c' ? views_[i]->hw_class : place_of(*views_[i], what);
      if (what != 'c' && id == kNoSymbol) continue;
      if (!last || last->id != id) last = &(*known)[id];
      last->what = what;
      last->id = id;
      last->rows.push_back(i);
    }
    return *known;
  }

 private:
  std::vector<const NodeView*> views_;
  Group all_;
  Group job_;
  ById none_;
  mutable std::array<std::unique_ptr<ById>, 5> named_;
};

}  // namespace reflex::attribution

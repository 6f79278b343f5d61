// One list of plans after the other: see same_ids.h.
#include "runtime/abi/same_ids.h"

#include <algorithm>

namespace reflex::abi {
namespace {

template <typename T, typename Same>
bool all_same(const std::vector<T>& a, const std::vector<T>& b, const Same& same) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), same);
}

constexpr auto kSameName = [](const auto& x, const auto& y) { return x.name == y.name; };

/// By name, and on the same keys.
constexpr auto kSameKept = [](const auto& x, const auto& y) {
  return x.name == y.name && x.entity_kind == y.entity_kind;
};

bool same_kind(const KindSchema& a, const KindSchema& b) {
  return a.name == b.name && a.dedup_slots == b.dedup_slots && a.dedup_ns == b.dedup_ns &&
         a.builtin == b.builtin &&
         all_same(a.fields, b.fields, [](const FieldSchema& x, const FieldSchema& y) {
           return x.name == y.name && x.type == y.type && x.is_key == y.is_key;
         });
}

bool same_use(const KindSchema& a, const KindSchema& b) {
  return all_same(a.fields, b.fields,
                  [](const FieldSchema& x, const FieldSchema& y) { return x.used == y.used; });
}

bool same_query(const PeersQuery& a, const PeersQuery& b) {
  return a.feature == b.feature && a.scope == b.scope && a.stat == b.stat &&
         a.at_least == b.at_least && a.bucket_ns == b.bucket_ns &&
         all_same(a.by, b.by, [](const PeersKey& x, const PeersKey& y) {
           return x.feature == y.feature && x.label == y.label;
         });
}

bool same_assign(const DecoderAssign& a, const DecoderAssign& b) {
  return a.slot == b.slot && a.from == b.from && a.group == b.group && a.base == b.base &&
         a.constant_int == b.constant_int && a.constant_real == b.constant_real &&
         a.constant_text == b.constant_text && a.scale == b.scale && a.int_min == b.int_min &&
         a.int_max == b.int_max;
}

bool same_decoder(const DecoderPlan& a, const DecoderPlan& b) {
  return a.name == b.name && a.input == b.input && a.prefix_auto == b.prefix_auto &&
         a.kernel_only == b.kernel_only &&
         all_same(a.lines, b.lines, [](const DecoderLine& x, const DecoderLine& y) {
           return x.pattern == y.pattern && x.kind == y.kind && x.ignore == y.ignore &&
                  x.fold_lines == y.fold_lines && all_same(x.assigns, y.assigns, same_assign);
         });
}

bool same_class(const ClassPlan& a, const ClassPlan& b) {
  return a.name == b.name && a.parent == b.parent && a.binding == b.binding;
}

bool same_clock(const ClockPlan& a, const ClockPlan& b) {
  return a.lateness_ns == b.lateness_ns && a.idle_after_ns == b.idle_after_ns &&
         a.future_skew_ns == b.future_skew_ns;
}

bool same_limits(const LimitsPlan& a, const LimitsPlan& b) {
  return a.keys_max == b.keys_max && a.partials_per_key == b.partials_per_key &&
         a.state_bytes_max == b.state_bytes_max;
}

}  // namespace

bool SetChange::any_signal() const {
  return std::find(new_signals.begin(), new_signals.end(), 1) != new_signals.end();
}

bool SetChange::any_adaptive() const {
  return std::find(new_adaptives.begin(), new_adaptives.end(), 1) != new_adaptives.end();
}

std::string ids_differ(const CompiledPack& a, const CompiledPack& b) {
  if (a.symbols != b.symbols) return "names";
  if (!all_same(a.kinds, b.kinds, same_kind)) return "event kinds";
  if (!all_same(a.entity_types, b.entity_types, kSameName)) return "entities";
  // A decoder of logs is made for the fields that rules read.
  if (!a.decoders.empty() && !all_same(a.kinds, b.kinds, same_use)) return "fields that rules read";
  if (!all_same(a.enums, b.enums, [](auto& x, auto& y) { return x.words == y.words; })) {
    return "enums";
  }
  const auto same_keys = [](const EntityKind& x, const EntityKind& y) { return x.keys == y.keys; };
  if (!all_same(a.entity_kinds, b.entity_kinds, same_keys)) return "keys of entities";
  if (!all_same(a.signals, b.signals, kSameKept)) return "the list of signals";
  if (!all_same(a.features, b.features, kSameKept)) return "the list of features";
  if (!all_same(a.causes, b.causes, kSameKept)) return "the list of causes";
  if (!all_same(a.incidents, b.incidents, kSameKept)) return "the list of incidents";
  if (!all_same(a.params, b.params, kSameName)) return "the list of parameters";
  const auto same_adaptive = [](const AdaptivePlan& x, const AdaptivePlan& y) {
    return x.name == y.name && x.param == y.param && x.feature == y.feature;
  };
  if (!all_same(a.adaptives, b.adaptives, same_adaptive)) return "adaptive parameters";
  if (!all_same(a.peers, b.peers, same_query)) return "peers";
  if (!all_same(a.classes, b.classes, same_class)) return "what profiles match";
  if (!all_same(a.decoders, b.decoders, same_decoder)) return "decoders";
  if (!same_clock(a.clock, b.clock)) return "the clock";
  if (!same_limits(a.limits, b.limits)) return "limits";
  return "";
}

}  // namespace reflex::abi

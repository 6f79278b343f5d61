// Dotted names in expressions: step variables, captures, parameters, features, last values.
#include <algorithm>

#include "compiler/sema/phases.h"

namespace reflex::sema {

namespace {

using abi::Scalar;
using abi::Type;
using ir::Op;

std::string join(const std::vector<Segment>& path, size_t from, size_t to) {
  std::string text;
  for (size_t i = from; i < to; ++i) text += (i > from ? "." : "") + path[i].text;
  return text;
}

Span span_of(const std::vector<Segment>& path, size_t from) {
  return source::cover(path[from].span, path.back().span);
}

Type instant_type() {
  Type t;
  t.scalar = Scalar::kInstant;
  return t;
}

void report_unknown_field(State& s, const KindInfo& kind, const std::string& field, Span span) {
  auto& d =
      s.report(Id::kUnknownField, span, "'" + kind.schema.name + "' has no field '" + field + "'");
  suggest(d, field, field_names(kind), span);
}

void mark_field_used(State& s, uint32_t kind, uint16_t slot) {
  const KindInfo& info = s.kinds[kind];
  if (!info.is_abstract) s.pack.kinds[info.id].fields[slot].used = true;
}

/// `variable.field`: of the record under evaluation, of an earlier step, or of a macro parameter.
enum class From : uint8_t { kRecord, kStep, kOpaque };
NodePtr field(State& s, const Env& env, From from, uint32_t kind, uint32_t step,
              const std::vector<Segment>& path, Span span) {
  if (path.size() == 1) {
    auto& d = s.report(Id::kTypeMismatch, span, "'" + path[0].text + "' is an event, not a value");
    d.help = "name one of its fields: " + path[0].text + ".<field>";
    return poison(span);
  }
  const std::string name = join(path, 1, path.size());
  const auto slot = slot_of(s.kinds[kind], name);
  if (!slot) {
    if (from == From::kRecord && name == "ts") return load(Op::kTimestamp, 0, instant_type(), span);
    if (from == From::kRecord && name == "repeats") return load(Op::kRepeats, 0, int_type(), span);
    report_unknown_field(s, s.kinds[kind], name, span_of(path, 1));
    return poison(span);
  }
  const Type type = s.kinds[kind].schema.fields[*slot].type;
  if (type.scalar == Scalar::kError) return poison(span);
  if (type.counter) {
    auto& d = s.report(Id::kCounterRead, span,
                       "'" + name + "' is a counter: its value alone means nothing");
    d.help = "write: increase(" + s.kinds[kind].schema.name + "." + name + ", 1h)";
    return poison(span);
  }
  mark_field_used(s, kind, *slot);
  if (from == From::kRecord) return load(Op::kField, *slot, type, span);
  if (from == From::kOpaque) return load(Op::kUnknown, 0, type, span);
  if (env.captures == nullptr) {
    s.report(Id::kGuardReadsStep, span, "the fields of a step cannot be read here");
    return poison(span);
  }
  if (abi::slot_form(type) == abi::SlotForm::kText ||
      abi::slot_form(type) == abi::SlotForm::kArray) {
    s.report(Id::kTypeMismatch, span,
             "a later step cannot read a " + to_text(s, type) + " of an earlier one");
    return poison(span);
  }
  return load(Op::kCapture, env.captures->index_of(step, *slot), type, span);
}

NodePtr bound(State& s, const Binding& b, const std::vector<Segment>& path, Span span,
              const Env& env, const Type* expected) {
  if (b.expr == nullptr) {
    if (b.kind != kNone32) return field(s, env, From::kOpaque, b.kind, 0, path, span);
    if (b.type.scalar == Scalar::kError || path.size() > 1) return poison(span);
    return load(Op::kUnknown, 0, b.type, span);
  }
  if (path.size() == 1) return check_expr(s, *b.env, *b.expr, expected);
  auto full = flatten(*b.expr);
  if (!full) {
    s.report(Id::kTypeMismatch, b.expr->span,
             "the macro reads fields of '" + b.name + "': give it an event");
    return poison(span);
  }
  full->insert(full->end(), path.begin() + 1, path.end());
  return check_path(s, *b.env, *full, span, expected);
}

NodePtr parameter(State& s, const std::vector<Segment>& path, Span span) {
  const std::string name = join(path, 1, path.size());
  for (uint32_t i = 0; i < s.params.size(); ++i) {
    const ParamInfo& p = s.params[i];
    if (p.name != name) continue;
    return p.adaptive == kNone32 ? load(Op::kParam, i, p.type, span)
                                 : load(Op::kTable, p.adaptive, p.type, span);
  }
  auto& d = s.report(Id::kUnknownParameter, path.size() > 1 ? span_of(path, 1) : span,
                     "'" + name + "' is not a parameter of any profile");
  std::vector<std::string> names;
  for (const ParamInfo& p : s.params) names.push_back(p.name);
  std::sort(names.begin(), names.end());
  if (names.empty()) {
    d.help = "no profile is loaded; give the folder of the hardware profiles too";
  } else if (path.size() > 1) {
    suggest(d, name, names, span_of(path, 1));
  }
  return poison(span);
}

NodePtr entity_key(State& s, const Env& env, uint32_t position, Span span) {
  const std::string& key = s.pack.entity_kinds[env.entity_kind].keys[position];
  Type t = int_type();
  if (const auto id = entity_type_id(s, key)) {
    t.scalar = Scalar::kEntity;
    t.entity = *id;
    t.gpu_index = key == "gpu" || key == "link" || key == "rank";
  }
  return load(Op::kEntityKey, position, t, span);
}

/// A bare key name beside a record is the record's own: a predicate is evaluated once per event,
/// for every signal that shares it. Null when the record does not have it.
NodePtr key_of_record(State& s, const Env& env, const std::string& key, Span span) {
  const KindInfo& kind = s.kinds[env.record_kind];
  if (const auto slot = slot_of(kind, key)) {
    mark_field_used(s, env.record_kind, *slot);
    return load(Op::kField, *slot, kind.schema.fields[*slot].type, span);
  }
  const auto node = slot_of(kind, "node");
  const auto job = entity_type_id(s, "job");
  if (key != "job" || !node || !job) return nullptr;
  mark_field_used(s, env.record_kind, *node);
  Type t;
  t.scalar = Scalar::kEntity;
  t.entity = *job;
  t.optional = true;
  return make(Op::kJobOf, t, {load(Op::kField, *node, kind.schema.fields[*node].type, span)}, span);
}

NodePtr named_feature(State& s, const Env& env, uint32_t index, const std::string& name,
                      Span span) {
  for (const Symbol& symbol : s.feature_names.symbols) {
    if (symbol.index == index) symbol.used = true;
  }
  const abi::FeatureId id = s.features[index].id;
  if (id == kNone32) return poison(span);
  if (!env.features_allowed || !env.has_entity) {
    s.report(Id::kNotHere, span, "feature '" + name + "' cannot be read here");
    return poison(span);
  }
  const abi::FeaturePlan& plan = s.pack.features[id];
  if (plan.entity_kind != env.entity_kind) {
    auto& d = s.report(Id::kEntityMismatch, span,
                       "feature '" + name + "' is kept on " + entity_text(s, plan.entity_kind) +
                           ", not on " + entity_text(s, env.entity_kind));
    d.notes.push_back({s.features[index].decl->name.span, "declared here"});
    return poison(span);
  }
  return feature_node(s, id, span);
}

/// `gpu.temp.value`: the last value of that field for the entity.
NodePtr last_of(State& s, const Env& env, uint32_t kind, const std::vector<Segment>& path,
                Span span) {
  const auto slot = slot_of(s.kinds[kind], path.back().text);
  if (!slot) {
    report_unknown_field(s, s.kinds[kind], path.back().text, path.back().span);
    return poison(span);
  }
  if (!env.features_allowed || !env.has_entity) {
    s.report(Id::kNotHere, span,
             "the last value of '" + s.kinds[kind].schema.name + "' cannot be read here");
    return poison(span);
  }
  if (s.kinds[kind].schema.fields[*slot].type.counter) {
    auto& d = s.report(Id::kCounterRead, span,
                       "'" + path.back().text + "' is a counter: its value alone means nothing");
    d.help = "write: increase(" + join(path, 0, path.size()) + ", 1h)";
    return poison(span);
  }
  const auto id = last_value(s, env, kind, *slot, span);
  return id ? feature_node(s, *id, span) : poison(span);
}

NodePtr unknown_name(State& s, const Env& env, const std::vector<Segment>& path, Span span) {
  const std::string name = join(path, 0, path.size());
  auto& d = s.report(Id::kUnknownName, span, "no name '" + name + "' here");
  if (env.record_kind != kNone32 && path.size() == 1 && !env.record_names.empty() &&
      slot_of(s.kinds[env.record_kind], name)) {
    d.help = "did you mean '" + env.record_names[0] + "." + name + "'?";
    d.fixes.push_back({span, env.record_names[0] + "." + name, true});
    return poison(span);
  }
  std::vector<std::string> heads = env.record_names;
  for (const StepVariable& v : env.steps) heads.push_back(v.name);
  for (const Binding& b : env.bindings) heads.push_back(b.name);
  heads.push_back("profile");
  if (env.has_entity) {
    for (const std::string& key : s.pack.entity_kinds[env.entity_kind].keys) heads.push_back(key);
  }
  if (path.size() > 1) {
    const auto near = diag::did_you_mean(path[0].text, heads);
    if (near) {
      d.help = "did you mean '" + *near + "." + join(path, 1, path.size()) + "'?";
      d.fixes.push_back({path[0].span, *near, false});
      return poison(span);
    }
  }
  const auto features = visible_names(s, s.feature_names, env.pack);
  heads.insert(heads.end(), features.begin(), features.end());
  suggest(d, name, heads, span);
  return poison(span);
}

/// The longest prefix of the path that is a kind, with exactly one name after it.
std::optional<uint32_t> kind_prefix(const State& s, const Env& env,
                                    const std::vector<Segment>& path) {
  if (path.size() < 2) return std::nullopt;
  return find(s, s.kind_names, env.pack, join(path, 0, path.size() - 1));
}

}  // namespace

uint32_t CaptureTable::index_of(uint32_t step, uint16_t slot) {
  for (uint32_t i = 0; i < entries.size(); ++i) {
    if (entries[i].step == step && entries[i].slot == slot) return i;
  }
  entries.push_back({step, slot});
  return static_cast<uint32_t>(entries.size() - 1);
}

NodePtr check_path(State& s, const Env& env, const std::vector<Segment>& path, Span span,
                   const Type* expected) {
  const std::string& head = path[0].text;
  for (const Binding& b : env.bindings) {
    if (b.name == head) return bound(s, b, path, span, env, expected);
  }
  for (const std::string& name : env.record_names) {
    if (name == head) return field(s, env, From::kRecord, env.record_kind, 0, path, span);
  }
  for (const StepVariable& v : env.steps) {
    if (v.name == head) return field(s, env, From::kStep, v.kind, v.step, path, span);
  }
  if (expected != nullptr && expected->scalar == Scalar::kEnum && path.size() == 1 &&
      (expected->enum_id != 0 || env.constant_only)) {
    return symbol_constant(s, head, *expected, span);
  }
  if (env.constant_only) {
    s.report(Id::kNotConstant, span, "'" + join(path, 0, path.size()) + "' is not a constant");
    return poison(span);
  }
  if (head == "profile" && path.size() > 1) return parameter(s, path, span);
  if (head == "peers" && path.size() == 2) return check_peers(s, env, nullptr, path[1], span);
  if (head == "now" && path.size() == 1) return load(Op::kNow, 0, instant_type(), span);
  if (env.has_entity && path.size() == 1) {
    const auto keys = s.pack.entity_kinds[env.entity_kind].keys;
    for (uint32_t i = 0; i < keys.size(); ++i) {
      if (keys[i] != head) continue;
      if (env.record_kind == kNone32) return entity_key(s, env, i, span);
      if (const NodePtr n = key_of_record(s, env, head, span)) return n;
    }
  }
  const std::string full = join(path, 0, path.size());
  bool ambiguous = false;
  if (const auto index = find(s, s.feature_names, env.pack, full, &ambiguous)) {
    if (!ambiguous) return named_feature(s, env, *index, full, span);
    ast::Name name{full, span};
    resolve(s, s.feature_names, env.pack, name, Id::kUnknownName);
    return poison(span);
  }
  if (const auto kind = kind_prefix(s, env, path)) return last_of(s, env, *kind, path, span);
  return unknown_name(s, env, path, span);
}

}  // namespace reflex::sema

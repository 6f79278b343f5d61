// Event kinds: builtin ones, inheritance, fields, dedup.
#include <algorithm>
#include <limits>

#include "compiler/sema/phases.h"

namespace reflex::sema {

namespace {

using abi::Scalar;
using abi::Type;

// Why: a deeper hierarchy of kinds or profiles is not readable.
constexpr int kInheritanceMax = 8;
// Why: a chain written from its last kind up recurses once a level; the stack stays bounded.
constexpr int kRecursionMax = 256;

void report_depth(State& s, const ast::EventDecl& d) {
  auto& diag = s.report(Id::kProfileDepth, d.extends.span,
                        "event kinds inherit at most 8 levels deep; '" + d.name.text +
                            "' is one too deep");
  diag.help = "extend a kind further up";
}

Type field_type(const State& s, Scalar scalar, const char* entity, bool optional) {
  Type t;
  t.scalar = scalar;
  t.optional = optional;
  if (entity != nullptr) {
    t.entity = *entity_type_id(s, entity);
    t.gpu_index = std::string_view(entity) == "gpu";
  }
  if (scalar == Scalar::kArray) t.array_bound = 65535;
  return t;
}

struct BuiltinField {
  const char* name;
  Scalar scalar;
  const char* entity;
  bool key;
  bool optional;
};
struct BuiltinKindRow {
  const char* name;
  std::vector<BuiltinField> fields;
};

const std::vector<BuiltinKindRow>& builtin_rows() {
  // In the order of abi::BuiltinKind. Source: events.md "Inventory and placement".
  static const std::vector<BuiltinKindRow> kRows{
      {"node.labels",
       {{"node", Scalar::kEntity, "node", true, false},
        {"labels", Scalar::kArray, nullptr, false, false}}},
      {"job.start",
       {{"job", Scalar::kEntity, "job", true, false},
        {"nodes", Scalar::kArray, "node", false, false}}},
      {"job.nodes",
       {{"job", Scalar::kEntity, "job", true, false},
        {"nodes", Scalar::kArray, "node", false, false}}},
      {"job.end",
       {{"job", Scalar::kEntity, "job", true, false},
        {"status", Scalar::kEnum, nullptr, false, true}}},
      {"node.repaired",
       {{"node", Scalar::kEntity, "node", true, false},
        {"parts", Scalar::kArray, nullptr, false, true}}},
      {"gpu.replaced",
       {{"node", Scalar::kEntity, "node", true, false},
        {"gpu", Scalar::kEntity, "gpu", true, false}}},
      {"maint.start",
       {{"node", Scalar::kEntity, "node", true, true},
        {"rack", Scalar::kEntity, "rack", true, true},
        {"tor", Scalar::kEntity, "tor", true, true}}},
      {"maint.end",
       {{"node", Scalar::kEntity, "node", true, true},
        {"rack", Scalar::kEntity, "rack", true, true},
        {"tor", Scalar::kEntity, "tor", true, true}}},
      {"incident.open",
       {{"incident", Scalar::kEnum, nullptr, false, true},
        {"job", Scalar::kEntity, "job", true, false},
        {"symptom", Scalar::kEnum, nullptr, false, true}}},
  };
  return kRows;
}

void add_field(KindInfo& kind, abi::FieldSchema field, FieldRange range) {
  kind.schema.fields.push_back(std::move(field));
  kind.ranges.push_back(range);
}

void add_declared_field(State& s, KindInfo& kind, const ast::FieldDecl& f) {
  for (size_t i = 0; i < kind.schema.fields.size(); ++i) {
    if (kind.schema.fields[i].name != f.name.text) continue;
    auto& d =
        s.report(Id::kDuplicateName, f.name.span,
                 "field '" + f.name.text + "' is declared twice in '" + kind.schema.name + "'");
    d.notes.push_back({kind.ranges[i].span, "first declared here"});
    return;
  }
  FieldRange range{};
  const auto type = resolve_type(s, f.type, &range);
  range.span = f.name.span;
  abi::FieldSchema field;
  field.name = f.name.text;
  if (type) field.type = *type;
  field.is_key = f.key;
  field.redact = f.redact;
  field.used = false;
  if (f.counter) {
    if (type && !is_number(*type)) {
      s.report(Id::kTypeMismatch, f.type.span, "a counter must be a number");
    }
    field.type.counter = true;
  }
  if (f.key && type && !integer_like(*type)) {
    s.report(Id::kTypeMismatch, f.type.span,
             "a key must be an entity, an integer or a word, not " + to_text(s, *type));
    field.is_key = false;
  }
  add_field(kind, std::move(field), range);
}

void check_dedup(State& s, KindInfo& kind) {
  const ast::EventDecl& d = *kind.decl;
  for (const ast::Name& name : d.dedup_fields) {
    if (const auto slot = slot_of(kind, name.text)) {
      kind.schema.dedup_slots.push_back(*slot);
      continue;
    }
    auto& diag = s.report(Id::kUnknownField, name.span,
                          "'" + kind.schema.name + "' has no field '" + name.text + "'");
    suggest(diag, name.text, field_names(kind), name.span);
  }
  if (d.dedup_for) {
    const auto ns = constant_duration(s, kind.pack, *d.dedup_for, "the dedup span");
    kind.schema.dedup_ns = ns.value_or(0);
  }
}

void check_kind(State& s, uint32_t index, int below) {
  if (s.kinds[index].check != KindInfo::Check::kNew) return;
  s.kinds[index].check = KindInfo::Check::kBusy;
  const ast::EventDecl& d = *s.kinds[index].decl;
  if (!d.extends.empty()) {
    const auto parent = resolve(s, s.kind_names, s.kinds[index].pack, d.extends, Id::kUnknownKind);
    if (parent && s.kinds[*parent].check == KindInfo::Check::kBusy) {
      s.report(Id::kInheritanceCycle, d.extends.span,
               "'" + d.name.text + "' extends itself through '" + d.extends.text + "'");
    } else if (parent && below > kRecursionMax) {
      report_depth(s, d);
    } else if (parent) {
      if (s.kinds[*parent].decl != nullptr) check_kind(s, *parent, below + 1);
      KindInfo& kind = s.kinds[index];
      kind.parent = *parent;
      kind.level = s.kinds[*parent].level + 1;
      // Once per chain: what extends a kind that is too deep is not reported again.
      if (kind.level == kInheritanceMax + 1) report_depth(s, d);
      kind.schema.fields = s.kinds[*parent].schema.fields;
      kind.ranges = s.kinds[*parent].ranges;
    }
  }
  KindInfo& kind = s.kinds[index];
  for (const ast::FieldDecl& f : d.fields) add_declared_field(s, kind, f);
  if (kind.schema.fields.size() > abi::kFieldsMax) {
    s.report(Id::kTooManyFields, d.name.span,
             "'" + d.name.text + "' has " + std::to_string(kind.schema.fields.size()) +
                 " fields; at most 64 are possible");
    kind.schema.fields.resize(abi::kFieldsMax);
    kind.ranges.resize(abi::kFieldsMax);
  }
  check_dedup(s, kind);
  kind.check = KindInfo::Check::kDone;
}

}  // namespace

void add_builtin_kinds(State& s) {
  for (const BuiltinKindRow& row : builtin_rows()) {
    KindInfo kind;
    kind.schema.name = row.name;
    kind.schema.builtin = true;
    kind.check = KindInfo::Check::kDone;
    for (const BuiltinField& f : row.fields) {
      abi::FieldSchema field;
      field.name = f.name;
      field.type = field_type(s, f.scalar, f.entity, f.optional);
      field.is_key = f.key;
      add_field(kind, std::move(field),
                {std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max(), {}});
    }
    ast::Name name;
    name.text = row.name;
    declare(s, s.kind_names, name, kBuiltinPack, static_cast<uint32_t>(s.kinds.size()), true);
    s.kinds.push_back(std::move(kind));
  }
}

void check_kinds(State& s) {
  for (uint32_t i = 0; i < s.kinds.size(); ++i) check_kind(s, i, 0);
  for (KindInfo& kind : s.kinds) {
    if (kind.is_abstract) continue;
    kind.id = static_cast<abi::KindId>(s.pack.kinds.size());
    s.pack.kinds.push_back(kind.schema);
  }
}

std::optional<uint16_t> slot_of(const KindInfo& kind, const std::string& field) {
  for (size_t i = 0; i < kind.schema.fields.size(); ++i) {
    if (kind.schema.fields[i].name == field) return static_cast<uint16_t>(i);
  }
  return std::nullopt;
}

std::vector<std::string> field_names(const KindInfo& kind) {
  std::vector<std::string> names;
  for (const auto& f : kind.schema.fields) names.push_back(f.name);
  return names;
}

std::vector<uint32_t> concrete_kinds(const State& s, uint32_t kind) {
  if (!s.kinds[kind].is_abstract) return {kind};
  std::vector<uint32_t> out;
  for (uint32_t i = 0; i < s.kinds.size(); ++i) {
    if (s.kinds[i].is_abstract) continue;
    for (uint32_t up = s.kinds[i].parent; up != kNone32; up = s.kinds[up].parent) {
      if (up != kind) continue;
      out.push_back(i);
      break;
    }
  }
  std::sort(out.begin(), out.end(), [&](uint32_t a, uint32_t b) {
    return s.kinds[a].schema.name < s.kinds[b].schema.name;
  });
  return out;
}

}  // namespace reflex::sema

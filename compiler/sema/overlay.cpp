// Overlays (A4): what a site changes of packs that it did not write.
//
// Every verb is applied where the thing that it changes is checked, before anything is lowered:
// aliases after the kinds, lists and profiles while they are filled, `disable` and `except` after
// the signals. A name is looked up as from inside the overlay's target pack. Each change is noted
// in CompiledPack::overlay_changes; two overlays may not change one thing (R527).
#include "compiler/sema/overlay.h"

#include <algorithm>
#include <map>

#include "runtime/abi/gpu_address.h"

namespace reflex::sema {

namespace {

using abi::Scalar;

std::optional<PackIndex> pack_named(const State& s, const std::string& name) {
  const auto& packs = s.in.packs.packs;
  for (PackIndex p = kBuiltinPack + 1; p < packs.size(); ++p) {
    if (packs[p].name == name) return p;
  }
  return std::nullopt;
}

void check_target(State& s, DeclRef ref, const ast::OverlayDecl& d) {
  const auto target = pack_named(s, d.target.text);
  if (!target) {
    std::vector<std::string> names;
    for (const Pack& pack : s.in.packs.packs) {
      if (pack.head != nullptr) names.push_back(pack.name);
    }
    auto& diag = s.report(Id::kUnknownPack, d.target.span,
                          "overlay '" + d.name.text + "' is for pack '" + d.target.text +
                              "', which is not among the given paths");
    suggest(diag, d.target.text, names, d.target.span);
    return;
  }
  const Pack& pack = s.in.packs.packs[*target];
  if (!version_satisfies(pack.version, d.range)) {
    auto& diag =
        s.report(Id::kImportVersion, d.target.span,
                 "overlay '" + d.name.text + "' is for '" + pack.name + "' " + d.range +
                     ", loaded is version " + (pack.version.empty() ? "(none)" : pack.version));
    if (pack.head != nullptr) diag.notes.push_back({pack.span, "this version is loaded"});
    diag.help = "check the overlay against the new version, then widen its range";
    return;
  }
  s.overlays.push_back({&d, *target, ref.pack});
}

// ---------------------------------------------------------------- alias kind

/// The slot that a rename or constant is about; envelope members have the codes of KindAlias.
std::optional<uint16_t> alias_slot(State& s, const KindInfo& kind, const ast::Name& field) {
  if (const auto slot = slot_of(kind, field.text)) return slot;
  if (field.text == "ts") return abi::KindAlias::kTs;
  if (field.text == "id") return abi::KindAlias::kId;
  if (field.text == "source") return abi::KindAlias::kSource;
  auto& d = s.report(Id::kUnknownField, field.span,
                     "'" + kind.schema.name + "' has no field '" + field.text + "'");
  suggest(d, field.text, field_names(kind), field.span);
  return std::nullopt;
}

/// The member that a field is read from: a name, or `field("any text")`; empty: a constant.
std::string member_of(const ast::Expr& e) {
  if (e.kind == ast::ExprKind::kName) return e.text;
  const bool quoted = e.kind == ast::ExprKind::kCall && e.text == "field" && e.args.size() == 1 &&
                      e.args[0]->kind == ast::ExprKind::kString;
  return quoted ? e.args[0]->text : std::string();
}

std::optional<abi::KindAlias::Constant> alias_constant(State& s, PackIndex pack,
                                                       const KindInfo& kind, uint16_t slot,
                                                       const ast::Expr& e) {
  abi::KindAlias::Constant constant{slot, 0, {}};
  abi::Type type = kind.schema.fields[slot].type;
  type.counter = false;
  Env env;
  env.pack = pack;
  env.constant_only = true;
  if (type.scalar == Scalar::kString && e.kind == ast::ExprKind::kString) {
    constant.text = e.text;
    return constant;
  }
  NodePtr n = check_expr(s, env, e, &type);
  if (type.scalar != Scalar::kEnum && type.scalar != Scalar::kEntity) {
    n = coerce(s, n, type, ("field '" + kind.schema.fields[slot].name + "'").c_str());
  }
  if (is_error(n)) return std::nullopt;
  const bool fits = n->type.scalar == type.scalar && is_constant(n) &&
                    abi::slot_form(type) != abi::SlotForm::kText &&
                    abi::slot_form(type) != abi::SlotForm::kArray;
  if (!fits) {
    s.report(Id::kTypeMismatch, e.span,
             "field '" + kind.schema.fields[slot].name + "' is a " + to_text(s, type));
    return std::nullopt;
  }
  constant.bits = static_cast<uint64_t>(n->imm);
  return constant;
}

void alias_field(State& s, PackIndex pack, const KindInfo& kind,
                 const ast::DecoderDecl::Assign& assign, abi::KindAlias& alias) {
  const auto slot = alias_slot(s, kind, assign.field);
  if (!slot || !assign.value) return;
  const std::string member = member_of(*assign.value);
  for (const auto& other : alias.renames) {
    if (other.slot != *slot && (member.empty() || other.member != member)) continue;
    s.report(Id::kDuplicateName, assign.field.span,
             other.slot == *slot ? "field '" + assign.field.text + "' is given twice"
                                 : "member '" + member + "' is read into two fields");
    return;
  }
  if (!member.empty()) {
    alias.renames.push_back({*slot, member});
    return;
  }
  if (*slot >= abi::KindAlias::kSource) {
    s.report(Id::kNotConstant, assign.value->span,
             "'" + assign.field.text + "' is read from a member, it cannot be a constant");
    return;
  }
  auto constant = alias_constant(s, pack, kind, *slot, *assign.value);
  if (constant) alias.constants.push_back(std::move(*constant));
}

void apply_alias(State& s, const OverlayUse& use, const ast::OverlayEntry& e) {
  const auto index = resolve(s, s.kind_names, use.target, e.target, Id::kUnknownKind);
  if (!index) return;
  const KindInfo& kind = s.kinds[*index];
  if (kind.is_abstract) {
    s.report(Id::kAbstractUse, e.target.span, "kind '" + e.target.text + "' is abstract");
    return;
  }
  for (const KindInfo& other : s.kinds) {
    if (other.schema.name != e.what.text) continue;
    auto& d = s.report(Id::kDuplicateName, e.what.span,
                       "'" + e.what.text + "' is a declared kind, it cannot be another's name");
    if (other.decl != nullptr) d.notes.push_back({other.decl->name.span, "declared here"});
    return;
  }
  if (!claim(s, "kind " + e.what.text, e.what.span)) return;
  abi::KindAlias alias;
  alias.name = e.what.text;
  alias.where = s.where(e.what.span);
  std::string text;
  for (const auto& assign : e.assigns) {
    alias_field(s, use.target, kind, assign, alias);
    const Span v = assign.value->span;
    text += (text.empty() ? " { " : "  ") + assign.field.text + " = " +
            std::string(s.in.sources.text(v.file).substr(v.begin, v.end - v.begin));
  }
  note_change(s, use, e.what.span,
              "kind " + alias.name + " is read as " + kind.schema.name +
                  (text.empty() ? text : text + " }"));
  s.alias_kinds[alias.name] = *index;
  s.pack.kinds[kind.id].aliases.push_back(std::move(alias));
}

// ---------------------------------------------------------------- disable, except

void apply_disable(State& s, const OverlayUse& use, const ast::OverlayEntry& e) {
  const auto index = resolve(s, s.signal_names, use.target, e.target, Id::kUnknownSignal);
  if (!index) return;
  abi::SignalPlan& plan = s.pack.signals[*index];
  if (!claim(s, "disable " + plan.name, e.target.span)) return;
  int64_t until = INT64_MAX;
  if (!e.until.empty()) {
    const auto ns = until_ns(s, e.until, e.span);
    if (!ns) return;
    until = *ns;
  }
  plan.disabled_until_ns = until;
  plan.disabled_by = "overlay " + use.decl->name.text + (e.reason.empty() ? "" : ": " + e.reason);
  const bool inert = s.in.now_ns != 0 && until <= s.in.now_ns;
  note_change(s, use, e.target.span,
              "signal " + plan.name + " is disabled" +
                  (e.until.empty() ? std::string() : " until " + e.until) +
                  (e.reason.empty() ? std::string() : " (" + e.reason + ")"),
              inert);
}

/// One key value of a row, as EntityKey holds it.
std::optional<uint64_t> key_value(State& s, const std::string& key, const ast::Expr& e) {
  const bool number = key == "gpu" || key == "link" || key == "rank";
  if (number && e.kind == ast::ExprKind::kInt && e.int_value >= 0) {
    return static_cast<uint64_t>(e.int_value);
  }
  if (key == "gpu" && e.kind == ast::ExprKind::kString) {
    if (const auto pci = abi::gpu_from_pci(e.text)) return static_cast<uint64_t>(*pci);
  }
  const bool word = e.kind == ast::ExprKind::kName || e.kind == ast::ExprKind::kString;
  if (!number && word) return s.in.symbols->intern(e.text);
  auto& d = s.report(Id::kTypeMismatch, e.span,
                     number ? "'" + key + "' is a number" : "'" + key + "' is a name");
  d.help = number ? "write: 3, or for a gpu its address: \"3b:00\"" : "write: n0417, or \"n-0417\"";
  return std::nullopt;
}

void add_row(State& s, const OverlayUse& use, const ast::Expr& row,
             const std::vector<size_t>& order, abi::SignalPlan& plan) {
  const auto& keys = s.pack.entity_kinds[plan.entity_kind].keys;
  abi::ExceptionPlan::Row out;
  std::string text;
  for (size_t i = 0; i < plan.exceptions.positions.size(); ++i) {
    const ast::Expr& e = *row.args[order[i]];
    const auto value = key_value(s, keys[plan.exceptions.positions[i]], e);
    if (!value) return;
    out.values.push_back(*value);
    const std::string word = e.kind == ast::ExprKind::kInt ? std::to_string(e.int_value) : e.text;
    text += (i == 0 ? "" : ", ") + word;
  }
  for (const auto& other : plan.exceptions.rows) {
    if (other.values == out.values) return;  // said twice, meant once
  }
  out.overlay = use.decl->name.text;
  note_change(s, use, row.span,
              "signal " + plan.name + ": " + plan.exceptions.name + " (" + text + ") is excepted");
  plan.exceptions.rows.push_back(std::move(out));
}

void apply_except(State& s, const OverlayUse& use, const ast::OverlayEntry& e) {
  const auto index = resolve(s, s.signal_names, use.target, e.target, Id::kUnknownSignal);
  if (!index) return;
  abi::SignalPlan& plan = s.pack.signals[*index];
  const ast::SignalDecl& d = *s.signals[*index].decl;
  if (d.exceptions.empty() || d.exceptions.text != e.what.text) {
    auto& diag =
        s.report(Id::kNoException, e.what.span,
                 "signal '" + e.target.text + "' takes no exceptions '" + e.what.text + "'");
    diag.notes.push_back({d.name.span, "declared here"});
    diag.help = d.exceptions.empty() ? "its author must write: exceptions " + e.what.text + " (..)"
                                     : "did you mean '" + d.exceptions.text + "'?";
    return;
  }
  // The author's keys in the order of the plan, each at its place in the overlay's rows.
  std::vector<size_t> order;
  for (const ast::Name& key : d.exception_keys) {
    const auto at = std::find_if(e.keys.begin(), e.keys.end(),
                                 [&](const ast::Name& k) { return k.text == key.text; });
    if (at != e.keys.end()) order.push_back(static_cast<size_t>(at - e.keys.begin()));
  }
  if (order.size() != d.exception_keys.size() || e.keys.size() != order.size()) {
    auto& diag = s.report(Id::kNoException, e.what.span,
                          "the exceptions '" + e.what.text + "' have other keys");
    diag.notes.push_back({d.exceptions.span, "their shape is declared here"});
    std::string keys;
    for (const ast::Name& key : d.exception_keys) keys += (keys.empty() ? "" : ", ") + key.text;
    diag.help = "write: except " + e.target.text + " " + e.what.text + " (" + keys + ") [ .. ]";
    return;
  }
  if (s.signals[*index].broken) return;
  for (const ast::ExprPtr& row : e.rows) {
    if (row->args.size() == order.size()) add_row(s, use, *row, order, plan);
  }
}

}  // namespace

bool claim(State& s, const std::string& what, Span span) {
  const auto [first, fresh] = s.overlay_claims.emplace(what, span);
  if (fresh) return true;
  auto& d = s.report(Id::kOverlayConflict, span, "two overlays change one thing: " + what);
  d.notes.push_back({first->second, "changed first here"});
  d.help = "leave it to one of the two";
  return false;
}

void note_change(State& s, const OverlayUse& use, Span span, std::string text, bool inert) {
  s.pack.overlay_changes.push_back({use.decl->name.text, std::move(text), inert, s.where(span)});
}

void check_overlays(State& s) {
  std::map<std::string, Span> names;  // changes are told by the overlay's name
  for_each<ast::OverlayDecl>(s, [&](DeclRef ref, const ast::OverlayDecl& d, const ast::Decl&) {
    const auto [first, fresh] = names.emplace(d.name.text, d.name.span);
    if (!fresh) {
      auto& diag = s.report(Id::kDuplicateName, d.name.span,
                            "overlay '" + d.name.text + "' is declared twice");
      diag.notes.push_back({first->second, "first declared here"});
      diag.help = "give one of them another name, or join them";
    }
    check_target(s, ref, d);
  });
}

void apply_aliases(State& s) {
  for_each_entry(s, ast::OverlayEntry::Verb::kAliasKind,
                 [&](const OverlayUse& u, const ast::OverlayEntry& e) { apply_alias(s, u, e); });
}

void apply_signal_overlays(State& s) {
  for_each_entry(s, ast::OverlayEntry::Verb::kDisableSignal,
                 [&](const OverlayUse& u, const ast::OverlayEntry& e) { apply_disable(s, u, e); });
  for_each_entry(s, ast::OverlayEntry::Verb::kExcept,
                 [&](const OverlayUse& u, const ast::OverlayEntry& e) { apply_except(s, u, e); });
}

}  // namespace reflex::sema

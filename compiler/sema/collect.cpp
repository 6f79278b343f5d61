// First pass: every declaration of every pack gets its row and its name.
#include "compiler/sema/phases.h"

namespace reflex::sema {

namespace {

/// Base entity types, in a fixed order. Source: SYNTAX decisions 14 of the language reference.
constexpr const char* kEntityTypes[] = {"node", "gpu",     "nic",    "disk",   "dimm",  "port",
                                        "link", "rank",    "job",    "rack",   "tor",   "pod",
                                        "zone", "storage", "server", "switch", "domain"};

void collect_kinds(State& s) {
  for_each<ast::EventDecl>(s, [&](DeclRef ref, const ast::EventDecl& d, const ast::Decl&) {
    KindInfo info;
    info.decl = &d;
    info.pack = ref.pack;
    info.is_abstract = d.abstract_kind;
    info.schema.name = d.name.text;
    info.schema.where = s.where(d.name.span);
    declare(s, s.kind_names, d.name, ref.pack, static_cast<uint32_t>(s.kinds.size()), true);
    s.kinds.push_back(std::move(info));
  });
}

void collect_rest(State& s) {
  // A missing `export` makes lists and macros private; everything else is visible to importers.
  for_each<ast::ListDecl>(s, [&](DeclRef ref, const ast::ListDecl& d, const ast::Decl& decl) {
    declare(s, s.list_names, d.name, ref.pack, static_cast<uint32_t>(s.lists.size()),
            decl.exported);
    ListInfo list;
    list.decl = &d;
    list.pack = ref.pack;
    s.lists.push_back(std::move(list));
  });
  for_each<ast::MacroDecl>(s, [&](DeclRef ref, const ast::MacroDecl& d, const ast::Decl& decl) {
    declare(s, s.macro_names, d.name, ref.pack, static_cast<uint32_t>(s.macros.size()),
            decl.exported);
    s.macros.push_back({&d, ref.pack, false});
  });
  for_each<ast::FeatureDecl>(s, [&](DeclRef ref, const ast::FeatureDecl& d, const ast::Decl&) {
    declare(s, s.feature_names, d.name, ref.pack, static_cast<uint32_t>(s.features.size()), true);
    s.features.push_back({&d, ref.pack, kNone32});
  });
  for_each<ast::SignalDecl>(s, [&](DeclRef ref, const ast::SignalDecl& d, const ast::Decl&) {
    declare(s, s.signal_names, d.name, ref.pack, static_cast<uint32_t>(s.signals.size()), true);
    s.signals.push_back({&d, ref.pack, false});
    s.pack.signals.emplace_back();
  });
  for_each<ast::FaultDecl>(s, [&](DeclRef ref, const ast::FaultDecl& d, const ast::Decl&) {
    declare(s, s.cause_names, d.name, ref.pack, static_cast<uint32_t>(s.causes.size()), true);
    s.causes.push_back({&d, ref.pack, {}});
    s.pack.causes.emplace_back();
  });
  for_each<ast::IncidentDecl>(s, [&](DeclRef ref, const ast::IncidentDecl& d, const ast::Decl&) {
    declare(s, s.incident_names, d.name, ref.pack, static_cast<uint32_t>(s.incidents.size()), true);
    s.incidents.push_back(&d);
    s.pack.incidents.emplace_back();
  });
}

}  // namespace

void collect(State& s) {
  for (const char* name : kEntityTypes) s.pack.entity_types.push_back({name});
  s.pack.enums.emplace_back();  // 0: the open enum
  s.pack.entity_kinds.push_back({{"node"}});
  add_builtin_kinds(s);
  collect_kinds(s);
  collect_rest(s);
}

}  // namespace reflex::sema

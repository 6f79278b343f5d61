// `was OLD` (state and learned numbers go on under the new name) and what imports say by name.
#include <algorithm>

#include "compiler/sema/phases.h"

namespace reflex::sema {

namespace {

/// The full old name; empty after a report or without `was`.
std::string renamed_from(State& s, const Table& table, PackIndex pack, const ast::Name& was,
                         std::map<std::string, Span>& taken) {
  if (was.empty()) return "";
  const std::string full = s.full_name(pack, was.text);
  for (const Symbol& symbol : table.symbols) {
    if (symbol.pack != pack || symbol.name != was.text) continue;
    auto& d = s.report(Id::kWasStillThere, was.span,
                       table.what + " '" + was.text + "' is still declared");
    d.notes.push_back({symbol.span, "declared here"});
    d.help = "remove the old one, or `was`";
    return "";
  }
  const auto [first, fresh] = taken.emplace(full, was.span);
  if (fresh) return full;
  auto& d = s.report(Id::kWasStillThere, was.span, "another " + table.what + " was '" + was.text +
                                                       "' too: its state can go to one only");
  d.notes.push_back({first->second, "taken here"});
  return "";
}

void check_only(State& s, const ast::Import& import, PackIndex target) {
  const Table* const tables[] = {&s.kind_names,   &s.list_names,  &s.macro_names,
                                 &s.feature_names, &s.signal_names, &s.cause_names,
                                 &s.incident_names};
  for (const ast::Name& name : import.only) {
    std::vector<std::string> there;
    bool found = false;
    for (const Table* table : tables) {
      for (const Symbol& symbol : table->symbols) {
        if (symbol.pack != target || !symbol.visible) continue;
        found = found || symbol.name == name.text;
        there.push_back(symbol.name);
      }
    }
    if (found || s.syntax_errors) continue;
    auto& d = s.report(Id::kUnknownName, name.span,
                       "pack '" + import.pack.text + "' has no '" + name.text + "' to import");
    std::sort(there.begin(), there.end());
    suggest(d, name.text, there, name.span);
  }
}

}  // namespace

void check_renames(State& s) {
  std::map<std::string, Span> taken;
  for (uint32_t i = 0; i < s.signals.size(); ++i) {
    const SignalInfo& info = s.signals[i];
    s.pack.signals[i].was = renamed_from(s, s.signal_names, info.pack, info.decl->was, taken);
  }
  taken.clear();
  for (const FeatureInfo& info : s.features) {
    const std::string was = renamed_from(s, s.feature_names, info.pack, info.decl->was, taken);
    if (info.id != kNone32 && !was.empty()) s.pack.features[info.id].was = was;
  }
}

void check_imports(State& s) {
  const auto& packs = s.in.packs.packs;
  for (PackIndex p = 0; p < packs.size(); ++p) {
    if (packs[p].head == nullptr) continue;
    std::map<std::string, Span> aliases;
    for (const ast::Import& import : packs[p].head->imports) {
      const auto target = std::find_if(packs.begin(), packs.end(), [&](const Pack& other) {
        return other.name == import.pack.text && !other.modules.empty();
      });
      if (target != packs.end()) {
        check_only(s, import, static_cast<PackIndex>(target - packs.begin()));
      }
      if (import.as.empty()) continue;
      const auto [first, fresh] = aliases.emplace(import.as.text, import.as.span);
      if (fresh) continue;
      auto& d = s.report(Id::kDuplicateName, import.as.span,
                         "'" + import.as.text + "' stands for two packs");
      d.notes.push_back({first->second, "first taken here"});
    }
  }
}

}  // namespace reflex::sema

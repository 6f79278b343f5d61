// Declarations by name, edges by their ends, classes by their values; see pack_diff.h.
#include "runtime/app/pack_diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <sstream>

#include "compiler/ast/ast.h"
#include "compiler/format/format.h"
#include "compiler/migrate/signature.h"
#include "runtime/base/time.h"
#include "runtime/explain/verdict_words.h"

namespace reflex::app {
namespace {

using How = PackChange::How;

/// A declaration that is compared by name.
struct Item {
  std::string meaning;  // the tree, without documentation
  std::string text;     // canonical layout, to be shown
};
using Key = std::pair<std::string, std::string>;  // category, name

/// The tree of a signal holds its leading comment as `:doc "..."`: not a matter of meaning.
std::string without_doc(const std::string& tree) {
  static constexpr std::string_view kMark = " :doc \"";
  const size_t begin = tree.find(kMark);
  if (begin == std::string::npos) return tree;
  size_t end = begin + kMark.size();
  while (end < tree.size() && tree[end] != '"') end += tree[end] == '\\' ? 2 : 1;
  return tree.substr(0, begin) + tree.substr(std::min(end + 1, tree.size()));
}

std::string canonical(const std::string& text) {
  source::SourceMap map;
  diag::Sink sink;
  const auto file = map.add("declaration", text);
  return format::format_file(map, file, {}, sink).value_or(text + "\n");
}

/// Category and name of a declaration; nothing for edges, which are compared by their plans.
struct Namer {
  std::string pack;
  using Found = std::optional<Key>;

  [[nodiscard]] std::string full(const ast::Name& name) const { return pack + "." + name.text; }
  Found operator()(const ast::EventDecl& d) const { return Key{"event", d.name.text}; }
  Found operator()(const ast::ProfileDecl& d) const { return Key{"profile", d.name.text}; }
  Found operator()(const ast::ListDecl& d) const { return Key{"list", full(d.name)}; }
  Found operator()(const ast::MacroDecl& d) const { return Key{"macro", full(d.name)}; }
  Found operator()(const ast::DecoderDecl& d) const { return Key{"decoder", full(d.name)}; }
  Found operator()(const ast::SignalDecl& d) const { return Key{"signal", full(d.name)}; }
  Found operator()(const ast::FeatureDecl& d) const { return Key{"feature", full(d.name)}; }
  Found operator()(const ast::FaultDecl& d) const {
    return Key{d.external ? "external" : "fault", full(d.name)};
  }
  Found operator()(const ast::IncidentDecl& d) const { return Key{"incident", full(d.name)}; }
  Found operator()(const ast::TestDecl& d) const { return Key{"test", pack + ": " + d.title}; }
  Found operator()(const ast::OverlayDecl& d) const { return Key{"overlay", full(d.name)}; }
  Found operator()(const ast::VerdictRuleDecl& d) const { return Key{"rule", full(d.name)}; }
  Found operator()(const ast::SuppressDecl& d) const { return Key{"suppress", full(d.name)}; }
  Found operator()(const ast::CausesDecl& d) const {
    const bool plan = d.verb != ast::CausesDecl::Verb::kMasks && d.on.empty();
    if (plan) return std::nullopt;
    std::string name = d.cause.text;
    for (const auto& effect : d.effects) name += " " + effect.text;
    return Key{d.verb == ast::CausesDecl::Verb::kMasks ? "mask" : "maintenance",
               pack + ": " + name};
  }
  Found operator()(const ast::BaselineDecl& d) const {
    return Key{d.repair ? "repair" : "cohort", pack + ": " + d.kind.text};
  }
  Found operator()(const ast::MaintenanceDecl& d) const {
    return Key{"maintenance", pack + ": " + d.from.text};
  }
  Found operator()(const ast::SynergyDecl& d) const {
    std::string name = d.cause.text;
    for (const auto& s : d.signals) name += " " + s.text;
    return Key{"synergy", pack + ": " + name};
  }
  /// A construct that this file does not know yet is compared as a whole, by what it says.
  template <typename T>
  Found operator()(const T&) const {
    return Key{"statement", pack};
  }
};

std::map<Key, Item> items_of(const compiler::Compilation& c) {
  std::map<Key, Item> items;
  for (size_t m = 0; m < c.modules.size(); ++m) {
    const Namer namer{c.module_packs[m]};
    for (const ast::Decl& decl : c.modules[m].decls) {
      const auto key = std::visit(namer, decl.node);
      if (!key) continue;
      const std::string_view text = c.sources.text(c.modules[m].file);
      // Statements without a name of their own may share one: they are compared together.
      Item& item = items[*key];
      item.meaning += without_doc(ast::print_decl(decl)) + "\n";
      item.text +=
          canonical(std::string(text.substr(decl.span.begin, decl.span.end - decl.span.begin)));
    }
  }
  return items;
}

std::vector<std::string> marked(const std::string& text, const char* mark) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(mark + line);
  return lines;
}

/// The lines of the difference without its heads.
std::vector<std::string> changed_lines(const std::string& before, const std::string& after) {
  std::vector<std::string> lines;
  std::istringstream in(format::unified_diff("", before, after));
  for (std::string line; std::getline(in, line);) {
    const bool head = line.starts_with("---") || line.starts_with("+++") || line.starts_with("@@");
    if (!head && !line.empty() && line[0] != ' ') {
      lines.push_back(line.substr(0, 1) + " " + line.substr(1));
    }
  }
  return lines;
}

void compare_items(const compiler::Compilation& before, const compiler::Compilation& after,
                   std::vector<PackChange>& out) {
  const auto old_items = items_of(before);
  const auto new_items = items_of(after);
  for (const auto& [key, item] : new_items) {
    const auto found = old_items.find(key);
    if (found == old_items.end()) {
      out.push_back({How::kAdded, key.first, key.second, marked(item.text, "+ "), ""});
    } else if (found->second.meaning != item.meaning) {
      out.push_back(
          {How::kChanged, key.first, key.second, changed_lines(found->second.text, item.text), ""});
    }
  }
  for (const auto& [key, item] : old_items) {
    if (!new_items.contains(key)) {
      out.push_back({How::kRemoved, key.first, key.second, marked(item.text, "- "), ""});
    }
  }
}

// ---------------------------------------------------------------- edges

std::map<std::string, std::string> edges_of(const abi::CompiledPack& pack) {
  std::map<std::string, std::string> edges;
  for (const auto& e : pack.edges) {
    const std::string& from = e.from_signal ? pack.signals[e.from].name : pack.causes[e.cause].name;
    const std::string name = fmt::format("{} causes {} (scope {})", from, pack.signals[e.to].name,
                                         abi::scope_word(e.scope));
    std::string p = explain::number_text(e.p);
    for (size_t c = 0; c < e.class_p.size(); ++c) {
      p += fmt::format("{}{} {}", c == 0 ? " by class: " : ", ", pack.classes[c].name,
                       explain::number_text(e.class_p[c]));
    }
    edges[name] +=
        fmt::format("{}{} lag {} .. {}", edges.contains(name) ? "; " : "",
                    e.has_weight ? fmt::format("weight {} nats", e.weight_nats) : "p " + p,
                    to_text(Duration{e.lag_lo_ns}), to_text(Duration{e.lag_hi_ns}));
  }
  return edges;
}

void compare_edges(const abi::CompiledPack& before, const abi::CompiledPack& after,
                   std::vector<PackChange>& out) {
  const auto old_edges = edges_of(before);
  const auto new_edges = edges_of(after);
  for (const auto& [name, numbers] : new_edges) {
    const auto found = old_edges.find(name);
    if (found == old_edges.end()) {
      out.push_back({How::kAdded, "edge", name, {"+ " + numbers}, ""});
    } else if (found->second != numbers) {
      out.push_back({How::kChanged, "edge", name, {"- " + found->second, "+ " + numbers}, ""});
    }
  }
  for (const auto& [name, numbers] : old_edges) {
    if (!new_edges.contains(name)) {
      out.push_back({How::kRemoved, "edge", name, {"- " + numbers}, ""});
    }
  }
}

// ---------------------------------------------------------------- packs, classes, signals

std::string value_text(const abi::CompiledPack& pack, const abi::ClassPlan& plan, size_t param) {
  if (plan.params_known[param] == 0) return "unknown";
  const abi::Type& type = pack.params[param].type;
  const abi::Value value{plan.params[param], 1};
  if (abi::slot_form(type) == abi::SlotForm::kF64) return explain::number_text(value.f64());
  if (type.scalar == abi::Scalar::kDuration) return to_text(Duration{value.i64()});
  if (type.scalar == abi::Scalar::kBool) return value.bits != 0 ? "true" : "false";
  if (type.scalar == abi::Scalar::kEnum) {
    return std::string(pack.symbols->name(static_cast<SymbolId>(value.bits)));
  }
  return std::to_string(value.i64());
}

/// (parameter, class) -> value
std::map<Key, std::string> class_values(const abi::CompiledPack& pack) {
  std::map<Key, std::string> values;
  for (const auto& plan : pack.classes) {
    for (size_t p = 0; p < pack.params.size(); ++p) {
      if (plan.params_known.size() <= p) continue;
      values[{pack.params[p].name, plan.name}] = value_text(pack, plan, p);
    }
  }
  return values;
}

/// The values that nodes will read, inherited ones too: what a changed base means for each class.
/// Classes with the same change are one entry.
void compare_classes(const abi::CompiledPack& before, const abi::CompiledPack& after,
                     std::vector<PackChange>& out) {
  const auto old_values = class_values(before);
  std::map<std::pair<std::string, std::vector<std::string>>, std::vector<std::string>> groups;
  for (const auto& [key, value] : class_values(after)) {
    const auto found = old_values.find(key);
    if (found == old_values.end() || found->second == value) continue;
    groups[{key.first, {"- " + found->second, "+ " + value}}].push_back(key.second);
  }
  for (const auto& [change, classes] : groups) {
    out.push_back({How::kChanged, "value", "profile." + change.first, change.second,
                   fmt::format("{} class(es): {}", classes.size(), fmt::join(classes, ", "))});
  }
}

/// The implicit packs have no version.
std::vector<std::string> version_line(char sign, const std::string& version) {
  if (version.empty()) return {};
  return {std::string(1, sign) + " " + version};
}

void compare_packs(const abi::CompiledPack& before, const abi::CompiledPack& after,
                   std::vector<PackChange>& out) {
  std::map<std::string, std::string> versions;
  for (const auto& p : before.packs) versions[p.name] = p.version;
  for (const auto& p : after.packs) {
    const auto found = versions.find(p.name);
    if (found == versions.end()) {
      out.push_back({How::kAdded, "pack", p.name, version_line('+', p.version), ""});
    } else {
      if (found->second != p.version) {
        out.push_back(
            {How::kChanged, "pack", p.name, {"- " + found->second, "+ " + p.version}, ""});
      }
      versions.erase(found);
    }
  }
  for (const auto& [name, version] : versions) {
    out.push_back({How::kRemoved, "pack", name, version_line('-', version), ""});
  }
  const auto settings = [](const abi::CompiledPack& p) {
    return fmt::format(
        "lateness {}, idle_after {}, future_skew {}, settle {}, keys {}, partials "
        "{}, horizon {}, state {} bytes",
        to_text(Duration{p.clock.lateness_ns}), to_text(Duration{p.clock.idle_after_ns}),
        to_text(Duration{p.clock.future_skew_ns}), to_text(Duration{p.clock.settle_ns}),
        p.limits.keys_max, p.limits.partials_per_key, to_text(Duration{p.limits.horizon_ns}),
        p.limits.state_bytes_max);
  };
  if (settings(before) != settings(after)) {
    out.push_back({How::kChanged,
                   "clock and limits",
                   "of the set",
                   {"- " + settings(before), "+ " + settings(after)},
                   ""});
  }
}

/// Signals whose own text is the same and whose meaning is not.
void compare_indirect(const compiler::Compilation& before, const compiler::Compilation& after,
                      std::vector<PackChange>& out) {
  std::set<std::string> told;
  std::string through;
  for (const PackChange& change : out) {
    if (change.category == "signal") told.insert(change.name);
    const bool read = change.category == "list" || change.category == "macro" ||
                      change.category == "feature" || change.category == "event";
    if (read && change.how == How::kChanged) {
      through += (through.empty() ? "" : ", ") + change.category + " " + change.name;
    }
  }
  const migrate::Side old_side{*before.pack, before.ir};
  const migrate::Side new_side{*after.pack, after.ir};
  std::map<std::string, std::string> signatures;
  for (abi::SignalId s = 0; s < before.pack->signals.size(); ++s) {
    signatures[before.pack->signals[s].name] =
        migrate::signal_signature(old_side, s, migrate::Detail::kExact);
  }
  for (abi::SignalId s = 0; s < after.pack->signals.size(); ++s) {
    const std::string& name = after.pack->signals[s].name;
    const auto found = signatures.find(name);
    if (told.contains(name) || found == signatures.end()) continue;
    if (found->second == migrate::signal_signature(new_side, s, migrate::Detail::kExact)) continue;
    out.push_back({How::kChanged,
                   "signal",
                   name,
                   {},
                   "its text is the same; what it reads changed" +
                       (through.empty() ? std::string() : ": " + through)});
  }
}

}  // namespace

std::vector<PackChange> pack_changes(const compiler::Compilation& before,
                                     const compiler::Compilation& after) {
  std::vector<PackChange> changes;
  compare_packs(*before.pack, *after.pack, changes);
  compare_items(before, after, changes);
  compare_edges(*before.pack, *after.pack, changes);
  compare_classes(*before.pack, *after.pack, changes);
  compare_indirect(before, after, changes);
  std::stable_sort(changes.begin(), changes.end(), [](const PackChange& a, const PackChange& b) {
    return std::tie(a.category, a.name) < std::tie(b.category, b.name);
  });
  return changes;
}

}  // namespace reflex::app

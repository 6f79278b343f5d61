// Names: declaring, finding across packs, did-you-mean, and `# allow` comments.
#include <algorithm>
#include <cctype>

#include "compiler/sema/phases.h"

namespace reflex::sema {

void declare(State& s, Table& table, const ast::Name& name, PackIndex pack, uint32_t index,
             bool visible) {
  const auto range = table.by_name.equal_range(name.text);
  for (auto it = range.first; it != range.second; ++it) {
    const Symbol& other = table.symbols[it->second];
    // Kinds are named on the wire and profiles are visible everywhere: one of each in a set.
    const bool global = &table == &s.kind_names || table.everywhere;
    if (other.pack != pack && !global) continue;
    auto& d = s.report(Id::kDuplicateName, name.span,
                       table.what + " '" + name.text + "' is declared twice");
    if (other.pack == kBuiltinPack && pack != kBuiltinPack) {
      d.notes.push_back({std::nullopt, "it is a builtin of the engine"});
    } else {
      d.notes.push_back({other.span, "first declared here"});
    }
    d.help = "give one of them another name, or remove it";
    return;
  }
  table.by_name.emplace(name.text, static_cast<uint32_t>(table.symbols.size()));
  table.symbols.push_back({name.text, pack, index, name.span, visible, false});
}

namespace {

bool may_see(const State& s, const Table& table, PackIndex from, const Symbol& symbol) {
  if (symbol.pack == from || symbol.pack == kBuiltinPack || table.everywhere) return true;
  if (!symbol.visible) return false;
  for (const ImportRef& import : s.in.packs.packs[from].imports) {
    if (import.pack != symbol.pack) continue;
    if (import.only.empty()) return true;
    if (std::find(import.only.begin(), import.only.end(), symbol.name) != import.only.end()) {
      return true;
    }
  }
  return false;
}

void plain_candidates(const State& s, const Table& table, PackIndex pack, const std::string& name,
                      std::vector<uint32_t>& out) {
  const auto range = table.by_name.equal_range(name);
  for (auto it = range.first; it != range.second; ++it) {
    const Symbol& symbol = table.symbols[it->second];
    if (symbol.pack == pack) {
      out.assign(1, it->second);  // the own pack wins
      return;
    }
    if (may_see(s, table, pack, symbol)) out.push_back(it->second);
  }
}

/// "nv.xid_48" through an alias or a pack's name.
void qualified_candidates(const State& s, const Table& table, PackIndex pack,
                          const std::string& name, std::vector<uint32_t>& out) {
  auto try_prefix = [&](const std::string& prefix, PackIndex target) {
    if (prefix.empty() || name.size() <= prefix.size() + 1) return;
    if (name.compare(0, prefix.size(), prefix) != 0 || name[prefix.size()] != '.') return;
    const auto range = table.by_name.equal_range(name.substr(prefix.size() + 1));
    for (auto it = range.first; it != range.second; ++it) {
      const Symbol& symbol = table.symbols[it->second];
      const bool seen = symbol.pack == pack || symbol.visible;
      if (symbol.pack == target && seen) out.push_back(it->second);
    }
  };
  const auto& packs = s.in.packs.packs;
  try_prefix(packs[pack].name, pack);
  for (const ImportRef& import : packs[pack].imports) {
    try_prefix(import.alias, import.pack);
    if (import.alias != packs[import.pack].name) try_prefix(packs[import.pack].name, import.pack);
  }
}

std::vector<uint32_t> candidates(const State& s, const Table& table, PackIndex pack,
                                 const std::string& name) {
  std::vector<uint32_t> out;
  plain_candidates(s, table, pack, name, out);
  if (out.empty()) qualified_candidates(s, table, pack, name, out);
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

}  // namespace

std::optional<uint32_t> find(const State& s, const Table& table, PackIndex pack,
                             const std::string& name, bool* ambiguous) {
  const auto found = candidates(s, table, pack, name);
  if (ambiguous != nullptr) *ambiguous = found.size() > 1;
  if (found.empty()) return std::nullopt;
  return table.symbols[found[0]].index;
}

namespace {

/// The name that a signal or feature has now, when `name` is what it was called before.
const Symbol* renamed_to(const State& s, const Table& table, const std::string& name) {
  for (const Symbol& symbol : table.symbols) {
    const ast::Name* was = nullptr;
    if (&table == &s.signal_names) was = &s.signals[symbol.index].decl->was;
    if (&table == &s.feature_names) was = &s.features[symbol.index].decl->was;
    if (was != nullptr && was->text == name) return &symbol;
  }
  return nullptr;
}

/// Verdicts and signals are derived from events: a pattern that read them would be a loop.
bool report_derived(State& s, const Table& table, PackIndex pack, const ast::Name& name) {
  if (&table != &s.kind_names) return false;
  if (name.text == "verdict") {
    auto& d = s.report(Id::kStratum, name.span,
                       "an event pattern cannot read verdicts: events -> signals -> verdicts -> "
                       "events would be a loop");
    d.help = "write a rule: rule NAME on verdict v of INCIDENT where v.top.p > 0.9 { .. }";
    return true;
  }
  const auto signal = find(s, s.signal_names, pack, name.text);
  if (!signal) return false;
  auto& d = s.report(Id::kStratum, name.span,
                     "'" + name.text + "' is a signal: an event pattern cannot read what is "
                     "derived from events");
  d.notes.push_back({s.signals[*signal].decl->name.span, "the signal is declared here"});
  d.help = "repeat its pattern here, or join them in the graph: " + name.text + " causes ..";
  return true;
}

}  // namespace

std::optional<uint32_t> resolve(State& s, const Table& table, PackIndex pack, const ast::Name& name,
                                Id unknown) {
  const auto found = candidates(s, table, pack, name.text);
  if (found.size() == 1) {
    table.symbols[found[0]].used = true;
    return table.symbols[found[0]].index;
  }
  if (found.size() > 1) {
    auto& d = s.report(Id::kAmbiguousName, name.span, "'" + name.text + "' means several things");
    for (const uint32_t i : found) {
      const Symbol& symbol = table.symbols[i];
      d.notes.push_back({symbol.span, "'" + s.full_name(symbol.pack, symbol.name) + "'"});
    }
    d.help = "write the full name";
    return std::nullopt;
  }
  const auto range = table.by_name.equal_range(name.text);
  if (range.first != range.second) {
    const Symbol& symbol = table.symbols[range.first->second];
    const std::string& owner = s.in.packs.packs[symbol.pack].name;
    auto& d = s.report(Id::kNotImported, name.span,
                       table.what + " '" + name.text + "' belongs to pack '" + owner +
                           (symbol.visible ? "', which this pack does not import"
                                           : "', which does not export it"));
    d.notes.push_back({symbol.span, "declared here"});
    d.help = symbol.visible ? "add: import " + owner : "declare it with: export";
    return std::nullopt;
  }
  if (declared_in_broken_text(s, table, name.text)) return std::nullopt;
  if (report_derived(s, table, pack, name)) return std::nullopt;
  if (const Symbol* now = renamed_to(s, table, name.text)) {
    auto& d = s.report(unknown, name.span, "no " + table.what + " '" + name.text + "' any more");
    d.notes.push_back({now->span, "renamed here"});
    d.help = "it is called '" + now->name + "' now";
    d.fixes.push_back({name.span, now->name, false});
    return std::nullopt;
  }
  auto& d = s.report(unknown, name.span, "no " + table.what + " '" + name.text + "'");
  suggest(d, name.text, visible_names(s, table, pack), name.span);
  return std::nullopt;
}

bool declared_in_broken_text(const State& s, const Table& table, const std::string& name) {
  if (!s.syntax_errors) return false;
  auto word = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.';
  };
  for (source::FileId f = 0; f < s.in.sources.file_count(); ++f) {
    const std::string_view text = s.in.sources.text(f);
    for (const std::string& keyword : table.keywords) {
      for (size_t at = text.find(keyword); at != std::string_view::npos;
           at = text.find(keyword, at + 1)) {
        size_t i = at + keyword.size();
        while (i < text.size() && std::isspace(static_cast<unsigned char>(text[i]))) ++i;
        const size_t end = i + name.size();
        if (i == at + keyword.size() || text.compare(i, name.size(), name) != 0) continue;
        if (end >= text.size() || !word(text[end])) return true;
      }
    }
  }
  return false;
}

std::vector<std::string> visible_names(const State& s, const Table& table, PackIndex pack) {
  std::vector<std::string> names;
  for (const Symbol& symbol : table.symbols) {
    if (may_see(s, table, pack, symbol)) names.push_back(symbol.name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

void suggest(diag::Diagnostic& d, const std::string& wrong,
             const std::vector<std::string>& candidates, Span fix_span) {
  const auto near = diag::did_you_mean(wrong, candidates);
  if (near) {
    d.help = "did you mean '" + *near + "'?";
    d.fixes.push_back({fix_span, *near, false});
  } else if (!candidates.empty() && candidates.size() <= 6) {
    d.help = "there are: ";
    for (size_t i = 0; i < candidates.size(); ++i) {
      d.help += (i ? ", '" : "'") + candidates[i] + "'";
    }
  }
}

// ---------------------------------------------------------------- reports

diag::Diagnostic& State::report(Id id, Span span, std::string message) {
  if (diag::info(id).severity == diag::Severity::kWarning && span.file < allow_comments.size()) {
    const uint32_t line = in.sources.locate(span.file, span.begin).line;
    for (Allow& allow : allow_comments[span.file]) {
      if (allow.id != id || line < allow.first_line || line > allow.last_line) continue;
      allow.used = true;
      return sink.suppress(id, span, std::move(message), allow.reason);
    }
  }
  return sink.report(id, span, std::move(message));
}

abi::SourceRef State::where(Span span) const {
  if (span.file >= in.sources.file_count()) return {};
  const auto at = in.sources.locate(span.file, span.begin);
  return {std::string(in.sources.path(span.file)), at.line, at.column};
}

std::string State::full_name(PackIndex p, const std::string& name) const {
  return in.packs.packs[p].name + "." + name;
}

namespace {

/// The last line that a comment on `line` speaks for: its own, or when it stands alone that of the
/// next line that is no comment; where a declaration begins there, the whole declaration.
uint32_t last_line_of(const State& s, const ast::Module& module, uint32_t line, bool alone) {
  if (!alone) return line;
  const auto is_comment = [&](uint32_t n) {
    const std::string_view text = s.in.sources.line(module.file, n);
    const size_t first = text.find_first_not_of(" \t");
    return first != std::string_view::npos && text[first] == '#';
  };
  uint32_t next = line + 1;
  while (is_comment(next)) ++next;
  for (const ast::Decl& decl : module.decls) {
    if (s.in.sources.locate(module.file, decl.span.begin).line != next) continue;
    return s.in.sources.locate(module.file, decl.span.end).line;
  }
  return next;
}

std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

}  // namespace

void collect_allows(State& s) {
  static constexpr std::string_view kMark = "# allow R";
  s.allow_comments.resize(s.in.sources.file_count());
  for (const ast::Module& module : s.in.modules) {
    const std::string_view text = s.in.sources.text(module.file);
    for (size_t at = text.find(kMark); at != std::string_view::npos;
         at = text.find(kMark, at + 1)) {
      size_t end = at + kMark.size();
      while (end < text.size() && text[end] >= '0' && text[end] <= '9') ++end;
      const auto id =
          diag::parse_id(text.substr(at + kMark.size() - 1, end - at - kMark.size() + 1));
      if (!id) continue;
      const Span span{module.file, static_cast<uint32_t>(at), static_cast<uint32_t>(end)};
      const uint32_t line = s.in.sources.locate(module.file, span.begin).line;
      const std::string_view before = s.in.sources.line(module.file, line);
      const bool alone = trimmed(before).starts_with('#');
      const std::string_view reason =
          trimmed(text.substr(end, std::min(text.find('\n', end), text.size()) - end));
      s.allow_comments[module.file].push_back(
          {span, *id, line, last_line_of(s, module, line, alone), std::string(reason), false});
    }
  }
}

void report_unused_allows(State& s) {
  // Why: with errors about, not every check ran; what seems unused may be needed.
  if (s.sink.has_errors()) return;
  for (const auto& file : s.allow_comments) {
    for (const State::Allow& allow : file) {
      if (allow.used || allow.id == Id::kUnusedAllow) continue;
      s.sink.report(Id::kUnusedAllow, allow.span,
                    "this comment suppresses nothing: no " + diag::to_text(allow.id) + " here");
    }
  }
}

}  // namespace reflex::sema

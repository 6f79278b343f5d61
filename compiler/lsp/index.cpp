// Look-ups in the index; index_declare.cpp and index_use.cpp fill it. See index.h.
#include "compiler/lsp/index.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "compiler/lsp/index_build.h"

namespace reflex::lsp {

std::string_view word_of(SymbolKind kind) {
  static constexpr std::array<std::string_view, kSymbolKinds> kWords{
      "pack",    "event kind", "field",       "profile", "profile parameter", "list",
      "macro",   "feature",    "signal",      "cause",   "incident",          "decoder",
      "overlay", "rule",       "suppression", "test",    "exception",         "variable"};
  return kWords[static_cast<size_t>(kind)];
}

Index::Index(const compiler::Session& session, const sema::PackSet& packs,
             const abi::CompiledPack& plans)
    : session_(session), packs_(packs) {
  for (size_t m = 0; m < session.modules().size(); ++m) {
    pack_of_[session.modules()[m].file] = packs.of_module[m];
  }
  for (const auto& field : plans.verdict_fields) verdict_fields_.push_back(field.name);
  declare_all(*this, plans);
  use_all(*this);
  sort();
}

SymbolId Index::add(Symbol symbol) {
  const auto id = static_cast<SymbolId>(symbols_.size());
  by_name_[static_cast<size_t>(symbol.kind)].emplace(symbol.name, id);
  if (symbol.owner != kNoSymbol) members_[symbol.owner].push_back(id);
  symbols_.push_back(std::move(symbol));
  return id;
}

void Index::use(Span span, SymbolId symbol, bool declares) {
  if (span.end > span.begin) {
    occurrences_[span.file].push_back({span, symbol, declares, Occurrence::Word::kSymbol});
  }
}

void Index::word(Span span, Occurrence::Word word) {
  if (span.end > span.begin) occurrences_[span.file].push_back({span, kNoSymbol, false, word});
}

void Index::sort() {
  for (auto& [file, list] : occurrences_) {
    std::stable_sort(list.begin(), list.end(), [](const Occurrence& a, const Occurrence& b) {
      if (a.span.begin != b.span.begin) return a.span.begin < b.span.begin;
      if (a.span.end != b.span.end) return a.span.end < b.span.end;
      return (a.symbol != kNoSymbol) > (b.symbol != kNoSymbol);
    });
    // Rows of a table test share their statements: one place is told once.
    list.erase(std::unique(list.begin(), list.end(),
                           [](const Occurrence& a, const Occurrence& b) {
                             return a.span.begin == b.span.begin && a.span.end == b.span.end;
                           }),
               list.end());
  }
}

const std::vector<Occurrence>& Index::occurrences(FileId file) const {
  static const std::vector<Occurrence> kNone;
  const auto found = occurrences_.find(file);
  return found == occurrences_.end() ? kNone : found->second;
}

const Occurrence* Index::at(FileId file, uint32_t offset) const {
  const Occurrence* best = nullptr;
  for (const Occurrence& o : occurrences(file)) {
    if (o.span.begin > offset) break;
    if (o.span.end < offset) continue;
    // A name that begins here wins over one that ends here.
    const bool better =
        best == nullptr || best->span.end == offset ||
        (o.span.end != offset && o.span.end - o.span.begin <= best->span.end - best->span.begin);
    if (better) best = &o;
  }
  return best;
}

std::vector<Occurrence> Index::places(SymbolId symbol) const {
  std::vector<Occurrence> out;
  for (const auto& [file, list] : occurrences_) {
    for (const Occurrence& o : list) {
      if (o.symbol == symbol) out.push_back(o);
    }
  }
  const auto& sources = session_.sources();
  std::stable_sort(out.begin(), out.end(), [&](const Occurrence& a, const Occurrence& b) {
    return sources.path(a.span.file) < sources.path(b.span.file);
  });
  return out;
}

bool Index::may_see(sema::PackIndex pack, const Symbol& symbol) const {
  if (symbol.builtin || symbol.pack == pack || symbol.kind == SymbolKind::kProfile ||
      symbol.kind == SymbolKind::kParameter || symbol.kind == SymbolKind::kPack) {
    return true;
  }
  if (!symbol.visible) return false;
  for (const sema::ImportRef& import : packs_.packs[pack].imports) {
    if (import.pack != symbol.pack) continue;
    if (import.only.empty()) return true;
    if (std::find(import.only.begin(), import.only.end(), symbol.name) != import.only.end()) {
      return true;
    }
  }
  return false;
}

std::vector<SymbolId> Index::find(SymbolKind kind, sema::PackIndex pack,
                                  const std::string& name) const {
  const auto& table = by_name_[static_cast<size_t>(kind)];
  std::vector<SymbolId> out;
  auto range = table.equal_range(name);
  for (auto it = range.first; it != range.second; ++it) {
    const Symbol& symbol = symbols_[it->second];
    if (symbol.pack == pack && !symbol.builtin) return {it->second};  // the own pack wins
    if (may_see(pack, symbol)) out.push_back(it->second);
  }
  if (!out.empty()) return out;
  auto qualified = [&](const std::string& prefix, sema::PackIndex target) {
    if (prefix.empty() || name.size() <= prefix.size() + 1 || name[prefix.size()] != '.' ||
        name.compare(0, prefix.size(), prefix) != 0) {
      return;
    }
    range = table.equal_range(name.substr(prefix.size() + 1));
    for (auto it = range.first; it != range.second; ++it) {
      const Symbol& symbol = symbols_[it->second];
      const bool seen = symbol.pack == target && (symbol.pack == pack || symbol.visible);
      if (seen && std::find(out.begin(), out.end(), it->second) == out.end()) {
        out.push_back(it->second);
      }
    }
  };
  qualified(packs_.packs[pack].name, pack);
  for (const sema::ImportRef& import : packs_.packs[pack].imports) {
    qualified(import.alias, import.pack);
    qualified(packs_.packs[import.pack].name, import.pack);
  }
  return out;
}

std::vector<SymbolId> Index::chain(SymbolId id) const {
  std::vector<SymbolId> out;
  while (id != kNoSymbol && std::find(out.begin(), out.end(), id) == out.end()) {
    out.push_back(id);
    id = symbols_[id].of_kind;
  }
  return out;
}

std::vector<SymbolId> Index::fields(SymbolId kind) const {
  std::vector<SymbolId> out;
  for (const SymbolId id : chain(kind)) {
    const auto members = members_.find(id);
    if (members == members_.end()) continue;
    out.insert(out.end(), members->second.begin(), members->second.end());
  }
  return out;
}

SymbolId Index::field(SymbolId kind, const std::string& name) const {
  for (const SymbolId id : fields(kind)) {
    if (symbols_[id].name == name) return id;
  }
  return kNoSymbol;
}

sema::PackIndex Index::pack_of(FileId file) const {
  const auto found = pack_of_.find(file);
  return found == pack_of_.end() ? sema::kBuiltinPack : found->second;
}

std::vector<SymbolId> Index::variables_at(FileId file, uint32_t offset) const {
  std::vector<SymbolId> out;
  for (SymbolId id = 0; id < symbols_.size(); ++id) {
    const Symbol& s = symbols_[id];
    if (s.kind == SymbolKind::kVariable && s.whole.file == file && s.whole.begin <= offset &&
        offset <= s.whole.end) {
      out.push_back(id);
    }
  }
  return out;
}

std::vector<Segment> segments(const source::SourceMap& sources, Span span) {
  const std::string_view text = sources.text(span.file);
  std::vector<Segment> out;
  bool name = true;  // wanted next; else a dot
  for (uint32_t i = span.begin; i < span.end && i < text.size();) {
    const char c = text[i];
    if (c == ' ' || c == '\t' || c == '\r' || c == '\n') {
      ++i;
    } else if (c == '#') {
      while (i < text.size() && text[i] != '\n') ++i;
    } else if (name && (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_')) {
      const uint32_t begin = i;
      while (i < span.end &&
             (std::isalnum(static_cast<unsigned char>(text[i])) != 0 || text[i] == '_')) {
        ++i;
      }
      out.push_back({std::string(text.substr(begin, i - begin)), {span.file, begin, i}});
      name = false;
    } else if (!name && c == '.') {
      ++i;
      name = true;
    } else {
      break;
    }
  }
  return out;
}

std::string comment_above(std::string_view text, uint32_t offset) {
  std::vector<std::string_view> lines;
  size_t end = text.rfind('\n', offset == 0 ? 0 : offset - 1);
  while (end != std::string_view::npos && end > 0) {
    const size_t before = text.rfind('\n', end - 1);
    const size_t begin = before == std::string_view::npos ? 0 : before + 1;
    std::string_view line = text.substr(begin, end - begin);
    while (!line.empty() && (line.front() == ' ' || line.front() == '\t')) line.remove_prefix(1);
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.remove_suffix(1);
    if (line.empty() || line.front() != '#') break;
    line.remove_prefix(line.size() > 1 && line[1] == ' ' ? 2 : 1);
    lines.push_back(line);
    end = before;
  }
  std::string out;
  for (auto it = lines.rbegin(); it != lines.rend(); ++it) {
    out += (out.empty() ? "" : "\n") + std::string(*it);
  }
  return out;
}

}  // namespace reflex::lsp

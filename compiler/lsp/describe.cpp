// What a symbol is, in Markdown: its head as written, type, unit, value per hardware class, costs
// and the comment above it.
#include <algorithm>
#include <set>

#include "compiler/lsp/requests.h"

namespace reflex::lsp {
namespace {

// Why: a hover is read at a glance; a list of 200 codes is not.
constexpr size_t kHeadMax = 240;

std::string one_line(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool blank = c == ' ' || c == '\t' || c == '\n' || c == '\r';
    if (blank && (out.empty() || out.back() == ' ')) continue;
    out += blank ? ' ' : c;
  }
  while (!out.empty() && out.back() == ' ') out.pop_back();
  if (out.size() > kHeadMax) {
    size_t end = kHeadMax;
    while (end > 0 && (static_cast<unsigned char>(out[end]) & 0xC0u) == 0x80u) --end;
    out = out.substr(0, end) + " ..";
  }
  return out;
}

std::string source_text(const Workspace& w, Span span) {
  const std::string_view text = w.text(span.file);
  if (span.end > text.size() || span.begin >= span.end) return {};
  return std::string(text.substr(span.begin, span.end - span.begin));
}

/// A declaration up to its block; without a block all of it.
std::string head_of(const Workspace& w, const Symbol& s) {
  std::string text = source_text(w, s.whole);
  const bool block = s.kind != SymbolKind::kList && s.kind != SymbolKind::kMacro &&
                     s.kind != SymbolKind::kFeature && s.kind != SymbolKind::kField &&
                     s.kind != SymbolKind::kParameter;
  const size_t brace = block ? text.find('{') : std::string::npos;
  return one_line(text.substr(0, brace));
}

std::string unit_of(const std::string& type) {
  const std::string bare = type.substr(0, type.find_first_of("?<"));
  static const std::set<std::string> kUnits{"celsius", "watt", "hertz", "byte", "ratio"};
  if (kUnits.count(bare) != 0) return bare;
  if (bare == "duration") return "a duration such as 5m";
  if (bare == "per") return type.substr(0, type.find('?'));
  return {};
}

std::string seconds_text(int64_t ns) {
  const int64_t s = ns / 1'000'000'000;
  if (s % 86400 == 0 && s > 0) return std::to_string(s / 86400) + "d";
  if (s % 3600 == 0 && s > 0) return std::to_string(s / 3600) + "h";
  if (s % 60 == 0 && s > 0) return std::to_string(s / 60) + "m";
  return std::to_string(s) + "s";
}

std::string describe_parameter(Workspace& w, const Symbol& s) {
  const std::string type = s.param ? source_text(w, s.param->type.span) : "";
  std::string out = "type `" + type + "`";
  const std::string unit = unit_of(type);
  if (!unit.empty()) out += ", unit " + unit;
  if (s.param && s.param->within) out += ", within " + source_text(w, s.param->within->span);
  out += "\n\n| class | value | set by |\n|---|---|---|\n";
  for (const ClassValue& v : class_values(w, s.name)) {
    out += "| " + v.profile + " | " + v.value + " | " + v.from + " |\n";
  }
  return out;
}

std::string describe_signal(Workspace& w, const Symbol& s) {
  const Index& index = w.index();
  std::string causes, effects;
  for (const ast::Module& m : w.session().modules()) {
    for (const ast::Decl& d : m.decls) {
      const auto* edge = std::get_if<ast::CausesDecl>(&d.node);
      if (edge == nullptr) continue;
      for (const ast::Name& effect : edge->effects) {
        if (effect.text == s.name) causes += (causes.empty() ? "" : ", ") + edge->cause.text;
      }
    }
  }
  std::string out;
  if (!causes.empty()) out += "evidence for: " + causes + "\n\n";
  const auto fact = w.facts().find(index.packs().packs[s.pack].name + "." + s.name);
  if (fact != w.facts().end()) {
    out += std::to_string(fact->second.bytes_per_key) + " bytes per key, horizon " +
           seconds_text(fact->second.horizon_ns);
  }
  return out;
}

std::string details(Workspace& w, SymbolId id) {
  const Index& index = w.index();
  const Symbol& s = index.symbol(id);
  switch (s.kind) {
    case SymbolKind::kField: {
      const std::string type = type_text(w, s);
      std::string out = "field of `" + index.symbol(s.owner).name + "`, type `" + type + "`";
      const std::string unit = unit_of(type);
      return unit.empty() ? out : out + ", unit " + unit;
    }
    case SymbolKind::kParameter:
      return describe_parameter(w, s);
    case SymbolKind::kSignal:
      return describe_signal(w, s);
    case SymbolKind::kKind: {
      std::string out = "fields: ";
      bool first = true;
      for (const SymbolId f : index.fields(id)) {
        out += std::string(first ? "" : ", ") + "`" + index.symbol(f).name + ": " +
               type_text(w, index.symbol(f)) + "`";
        first = false;
      }
      return out;
    }
    case SymbolKind::kVariable:
      return s.of_kind == kNoSymbol ? "" : "stands for `" + index.symbol(s.of_kind).name + "`";
    case SymbolKind::kPack:
      return s.head ? "version " + s.head->version : "";
    default:
      return {};
  }
}

}  // namespace

std::string type_text(const Workspace& w, const Symbol& field) {
  if (field.field != nullptr && !field.stale) return source_text(w, field.field->type.span);
  return field.builtin ? field.builtin_type : "?";
}

std::vector<ClassValue> class_values(Workspace& w, const std::string& parameter) {
  const Index& index = w.index();
  // Overlays first: they are said last.
  std::vector<std::pair<std::string, ClassValue>> set;
  for (const ast::Module& m : w.session().modules()) {
    for (const ast::Decl& d : m.decls) {
      const auto* overlay = std::get_if<ast::OverlayDecl>(&d.node);
      if (overlay == nullptr) continue;
      for (const auto& e : overlay->entries) {
        if (!e.set || e.set->name.text != parameter || !e.set->value) continue;
        set.push_back({e.target.text,
                       {"", source_text(w, e.set->value->span), "overlay " + overlay->name.text}});
      }
    }
  }
  std::vector<ClassValue> out;
  for (SymbolId id = 0; id < index.symbols().size(); ++id) {
    const Symbol& s = index.symbol(id);
    if (s.kind != SymbolKind::kProfile || s.stale) continue;
    const auto* own = std::get_if<ast::ProfileDecl>(&s.decl->node);
    if (own == nullptr || own->abstract_profile) continue;
    ClassValue value{s.name, "", ""};
    for (const SymbolId above : index.chain(id)) {
      const Symbol& a = index.symbol(above);
      for (const auto& [profile, change] : set) {
        if (value.value.empty() && profile == a.name) value = {s.name, change.value, change.from};
      }
      const auto* p = a.stale ? nullptr : std::get_if<ast::ProfileDecl>(&a.decl->node);
      if (p == nullptr || !value.value.empty()) continue;
      for (const ast::ProfileParam& param : p->params) {
        if (param.name.text != parameter) continue;
        if (param.value) value = {s.name, source_text(w, param.value->span), a.name};
        for (const ast::Setting& setting : param.adaptive_settings) {
          if (setting.name.text != "default" || !setting.value || !value.value.empty()) continue;
          value = {s.name, source_text(w, setting.value->span) + " (adaptive)", a.name};
        }
      }
    }
    if (!value.value.empty()) out.push_back(value);
  }
  std::sort(out.begin(), out.end(),
            [](const ClassValue& a, const ClassValue& b) { return a.profile < b.profile; });
  return out;
}

std::string describe(Workspace& w, SymbolId id) {
  const Symbol& s = w.index().symbol(id);
  if (s.builtin) {
    const std::string head = s.kind == SymbolKind::kField
                                 ? s.name + ": " + type_text(w, s)
                                 : std::string(word_of(s.kind)) + " " + s.name;
    return "```rfx\n" + head + "\n```\n\nbuiltin of the engine\n\n" + details(w, id);
  }
  std::string head = s.kind == SymbolKind::kVariable ? s.name : head_of(w, s);
  if (s.kind == SymbolKind::kPack) head = "pack " + s.name;
  std::string out = "```rfx\n" + head + "\n```";
  const std::string more = details(w, id);
  if (!more.empty()) out += "\n\n" + more;
  const std::string comment = comment_above(w.text(s.whole.file), s.whole.begin);
  if (!comment.empty() && s.kind != SymbolKind::kVariable) out += "\n\n" + comment;
  const std::string& pack = w.index().packs().packs[s.pack].name;
  if (s.kind != SymbolKind::kVariable && s.kind != SymbolKind::kPack) {
    out += "\n\n" + std::string(word_of(s.kind)) + " of pack `" + pack + "`";
  }
  return out;
}

}  // namespace reflex::lsp

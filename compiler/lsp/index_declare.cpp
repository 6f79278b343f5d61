// First pass of the index: every declaration, the builtin kinds, and what a broken file still
// names.
#include <algorithm>
#include <set>

#include "compiler/lsp/index_build.h"

namespace reflex::lsp {

namespace {

/// A type of a builtin field, as a declaration would write it.
std::string type_word(const abi::Type& type, const abi::CompiledPack& plans) {
  std::string word = "word";
  switch (type.scalar) {
    case abi::Scalar::kBool:
      word = "bool";
      break;
    case abi::Scalar::kInt:
      word = "int";
      break;
    case abi::Scalar::kReal:
      word = "f64";
      break;
    case abi::Scalar::kString:
      word = "string";
      break;
    case abi::Scalar::kDuration:
      word = "duration";
      break;
    case abi::Scalar::kInstant:
      word = "instant";
      break;
    case abi::Scalar::kEntity:
      word = plans.entity_types[type.entity].name;
      break;
    default:
      break;
  }
  return word + (type.optional ? "?" : "");
}

}  // namespace

/// Adds the symbols of one module.
class Declarer {
 public:
  explicit Declarer(Index& index) : index_(index) {}

  void builtins(const abi::CompiledPack& plans) {
    for (const auto& kind : plans.kinds) {
      if (!kind.builtin) continue;
      Symbol s;
      s.kind = SymbolKind::kKind;
      s.name = kind.name;
      s.builtin = true;
      const SymbolId id = index_.add(std::move(s));
      for (const auto& field : kind.fields) {
        Symbol f;
        f.kind = SymbolKind::kField;
        f.name = field.name;
        f.owner = id;
        f.builtin = true;
        f.builtin_type = type_word(field.type, plans);
        index_.add(std::move(f));
      }
    }
  }

  void module(const ast::Module& m, sema::PackIndex pack) {
    pack_ = pack;
    if (m.head) {
      Symbol s = named(SymbolKind::kPack, m.head->name, m.head->span);
      s.head = &*m.head;
      declare(std::move(s));
    }
    for (const ast::Decl& d : m.decls) declaration(d);
  }

  /// Declarations of the last good text that the present one names but that did not parse.
  void stale(const ast::Module& good, FileId file, sema::PackIndex pack) {
    pack_ = pack;
    file_ = file;
    stale_ = true;
    for (const ast::Decl& d : good.decls) declaration(d);
    stale_ = false;
  }

 private:
  Symbol named(SymbolKind kind, const ast::Name& name, Span whole) const {
    Symbol s;
    s.kind = kind;
    s.name = name.text;
    s.pack = pack_;
    s.span = name.span;
    s.whole = whole;
    s.decl = decl_;
    s.visible = visible_;
    return s;
  }

  SymbolId declare(Symbol s) {
    if (s.name.empty()) return kNoSymbol;
    if (stale_ && !place_stale(s)) return kNoSymbol;
    const Span span = s.span;
    const SymbolId id = index_.add(std::move(s));
    index_.use(span, id, /*declares=*/true);
    return id;
  }

  /// Finds the name in the present text; false: it is gone, or it has parsed.
  bool place_stale(Symbol& s) const {
    if (s.kind == SymbolKind::kVariable || s.kind == SymbolKind::kTest) return false;
    s.stale = true;
    if (s.owner != kNoSymbol) {  // a field goes with its kind
      s.span = {file_, 0, 0};
      s.whole = index_.symbol(s.owner).whole;
      return true;
    }
    for (const SymbolId other : index_.find(s.kind, s.pack, s.name)) {
      if (index_.symbol(other).pack == s.pack) return false;
    }
    const std::string_view text = index_.session().sources().text(file_);
    const std::string wanted = " " + s.name;
    for (size_t at = text.find(wanted); at != std::string_view::npos;
         at = text.find(wanted, at + 1)) {
      const size_t end = at + wanted.size();
      const bool whole_word = end >= text.size() || std::string_view(" ({:=\n\r").find(text[end]) !=
                                                        std::string_view::npos;
      const size_t line =
          text.rfind('\n', at) == std::string_view::npos ? 0 : text.rfind('\n', at) + 1;
      const bool starts =
          text.substr(line, at - line).find_first_of("{}(#\"") == std::string_view::npos;
      if (!whole_word || !starts || text[line] == ' ') continue;
      s.span = {file_, static_cast<uint32_t>(at + 1), static_cast<uint32_t>(end)};
      s.whole = s.span;
      return true;
    }
    return false;
  }

  void declaration(const ast::Decl& d) {
    decl_ = &d;
    const bool needs_export = std::holds_alternative<ast::ListDecl>(d.node) ||
                              std::holds_alternative<ast::MacroDecl>(d.node);
    visible_ = d.exported || !needs_export;
    std::visit([&](const auto& node) { declare_node(node, d.span); }, d.node);
    decl_ = nullptr;
    visible_ = true;
  }

  void declare_node(const ast::EventDecl& e, Span whole) {
    const SymbolId id = declare(named(SymbolKind::kKind, e.name, whole));
    if (id == kNoSymbol) return;
    for (const ast::FieldDecl& f : e.fields) {
      Symbol s = named(SymbolKind::kField, f.name, f.span);
      s.owner = id;
      s.field = &f;
      declare(std::move(s));
    }
  }
  void declare_node(const ast::ProfileDecl& p, Span whole) {
    declare(named(SymbolKind::kProfile, p.name, whole));
    for (const ast::ProfileParam& param : p.params) {
      // An override names the parameter that another profile declares.
      if (param.type.name.empty()) continue;
      Symbol s = named(SymbolKind::kParameter, param.name, param.span);
      s.param = &param;
      declare(std::move(s));
    }
  }
  void declare_node(const ast::SignalDecl& s, Span whole) {
    const SymbolId id = declare(named(SymbolKind::kSignal, s.name, whole));
    if (id == kNoSymbol) return;
    if (!s.exceptions.empty()) {
      Symbol e = named(SymbolKind::kException, s.exceptions, s.exceptions.span);
      e.owner = id;
      declare(std::move(e));
    }
    for (const ast::Step& step : s.steps) variable(step.variable, id, whole);
    for (const ast::Unless& u : s.unless) variable(u.variable, id, whole);
  }
  void declare_node(const ast::MacroDecl& m, Span whole) {
    const SymbolId id = declare(named(SymbolKind::kMacro, m.name, whole));
    for (const auto& p : m.params) variable(p.name, id, whole);
  }
  void declare_node(const ast::VerdictRuleDecl& r, Span whole) {
    const SymbolId id = declare(named(SymbolKind::kRule, r.name, whole));
    variable(r.variable, id, whole);
  }
  void declare_node(const ast::TestDecl&, Span whole) {
    if (stale_) return;
    // A table test is one declaration a row, one behind the other.
    if (last_test_.end != 0 && last_test_.file == whole.file && last_test_.begin == whole.begin) {
      return;
    }
    last_test_ = whole;
    Symbol s;
    s.kind = SymbolKind::kTest;
    s.pack = pack_;
    s.span = title_span(whole);
    s.name = index_.session()
                 .sources()
                 .text(whole.file)
                 .substr(s.span.begin + 1, s.span.end - s.span.begin - 2);
    s.whole = whole;
    s.decl = decl_;
    index_.add(std::move(s));
  }
  void declare_node(const ast::ListDecl& l, Span whole) {
    declare(named(SymbolKind::kList, l.name, whole));
  }
  void declare_node(const ast::FeatureDecl& f, Span whole) {
    declare(named(SymbolKind::kFeature, f.name, whole));
  }
  void declare_node(const ast::FaultDecl& f, Span whole) {
    declare(named(SymbolKind::kCause, f.name, whole));
  }
  void declare_node(const ast::IncidentDecl& i, Span whole) {
    declare(named(SymbolKind::kIncident, i.name, whole));
  }
  void declare_node(const ast::DecoderDecl& d, Span whole) {
    declare(named(SymbolKind::kDecoder, d.name, whole));
  }
  void declare_node(const ast::OverlayDecl& o, Span whole) {
    declare(named(SymbolKind::kOverlay, o.name, whole));
  }
  void declare_node(const ast::SuppressDecl& s, Span whole) {
    declare(named(SymbolKind::kSuppress, s.name, whole));
  }
  void declare_node(const ast::CausesDecl&, Span) {}
  void declare_node(const ast::MaintenanceDecl&, Span) {}
  void declare_node(const ast::BaselineDecl&, Span) {}
  void declare_node(const ast::SynergyDecl&, Span) {}

  void variable(const ast::Name& name, SymbolId owner, Span whole) {
    Symbol s = named(SymbolKind::kVariable, name, whole);
    s.owner = owner;
    s.visible = false;
    declare(std::move(s));
  }

  /// The quoted title behind `test`.
  Span title_span(Span whole) const {
    const std::string_view text = index_.session().sources().text(whole.file);
    const size_t open = text.find('"', whole.begin);
    if (open == std::string_view::npos || open + 2 > whole.end) return whole;
    size_t close = open + 1;
    while (close < whole.end && text[close] != '"') close += text[close] == '\\' ? 2 : 1;
    return {whole.file, static_cast<uint32_t>(open),
            static_cast<uint32_t>(std::min<size_t>(close + 1, whole.end))};
  }

  Index& index_;
  sema::PackIndex pack_ = 0;
  FileId file_ = 0;
  const ast::Decl* decl_ = nullptr;
  bool visible_ = true;
  bool stale_ = false;
  Span last_test_;
};

void declare_all(Index& index, const abi::CompiledPack& plans) {
  Declarer declarer(index);
  declarer.builtins(plans);
  const auto& modules = index.session().modules();
  for (sema::PackIndex p = 0; p < index.packs().packs.size(); ++p) {
    for (const uint32_t m : index.packs().packs[p].modules) declarer.module(modules[m], p);
  }
  for (const ast::Module& m : modules) {
    const ast::Module* good = index.session().last_good(m.file);
    if (good != nullptr) declarer.stale(*good, m.file, index.pack_of(m.file));
  }
}

}  // namespace reflex::lsp

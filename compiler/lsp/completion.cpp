// Completion: names that fit where the cursor is, by the words before it, and the keywords that the
// grammar accepts there.
#include <algorithm>
#include <map>
#include <set>

#include "compiler/lsp/around.h"
#include "compiler/lsp/requests.h"
#include "compiler/sema/builtins.h"

namespace reflex::lsp {
namespace {

/// Source: LSP 3.17 CompletionItemKind.
enum ItemKind : int {
  kFunctionItem = 3,
  kFieldItem = 5,
  kVariableItem = 6,
  kClassItem = 7,
  kInterfaceItem = 8,
  kModuleItem = 9,
  kPropertyItem = 10,
  kUnitItem = 11,
  kValueItem = 12,
  kKeywordItem = 14,
  kEnumMemberItem = 20,
  kConstantItem = 21,
  kStructItem = 22,
  kEventItem = 23,
  kTypeItem = 25
};

ItemKind item_kind(SymbolKind kind) {
  switch (kind) {
    case SymbolKind::kPack:
      return kModuleItem;
    case SymbolKind::kKind:
      return kStructItem;
    case SymbolKind::kField:
      return kFieldItem;
    case SymbolKind::kProfile:
      return kClassItem;
    case SymbolKind::kParameter:
      return kPropertyItem;
    case SymbolKind::kList:
    case SymbolKind::kFeature:
      return kConstantItem;
    case SymbolKind::kMacro:
      return kFunctionItem;
    case SymbolKind::kSignal:
      return kEventItem;
    case SymbolKind::kCause:
    case SymbolKind::kIncident:
      return kInterfaceItem;
    default:
      return kVariableItem;
  }
}

class Completer {
 public:
  Completer(Workspace& w, const Around& a, uint32_t offset)
      : w_(w), index_(w.index()), a_(a), offset_(offset) {}

  Json run() {
    if (a_.in_comment) return list();
    if (a_.in_text) {
      template_fields();
      return list();
    }
    if (!a_.base.empty()) {
      members();
      return list();
    }
    names();
    keywords();
    return list();
  }

 private:
  void add(const std::string& label, ItemKind kind, const std::string& detail,
           const std::string& documentation, int rank) {
    if (label.empty() || !told_.insert(label).second) return;
    const Span span{a_.file, a_.replace, offset_};
    Json item = {{"label", label},
                 {"kind", static_cast<int>(kind)},
                 {"sortText", std::to_string(rank) + label},
                 {"textEdit", {{"range", range_json(w_, span)}, {"newText", label}}}};
    if (!detail.empty()) item["detail"] = detail;
    if (!documentation.empty()) item["documentation"] = markdown(documentation);
    items_.push_back(std::move(item));
  }

  Json list() {
    std::stable_sort(items_.begin(), items_.end(), [](const Json& a, const Json& b) {
      return a["sortText"].get_ref<const std::string&>() <
             b["sortText"].get_ref<const std::string&>();
    });
    return {{"isIncomplete", false}, {"items", items_}};
  }

  std::string comment_of(const Symbol& s) const {
    return s.builtin || s.stale ? "" : comment_above(w_.text(s.whole.file), s.whole.begin);
  }

  void symbols(SymbolKind kind, int rank = 1) {
    const auto& all = index_.symbols();
    for (const Symbol& s : all) {
      if (s.kind != kind || !index_.may_see(a_.pack, s)) continue;
      const std::string& pack = index_.packs().packs[s.pack].name;
      const std::string detail =
          std::string(word_of(kind)) + (s.builtin ? ", builtin" : " of " + pack);
      add(s.name, item_kind(kind), detail, comment_of(s), rank);
    }
  }

  void fields(SymbolId kind, int rank = 1) {
    if (kind == kNoSymbol) return;
    for (const SymbolId id : index_.fields(kind)) {
      const Symbol& s = index_.symbol(id);
      if (s.kind != SymbolKind::kField) continue;
      add(s.name, kFieldItem, type_text(w_, s), "field of `" + index_.symbol(s.owner).name + "`",
          rank);
    }
  }

  void words(std::initializer_list<const char*> list, ItemKind kind, const char* detail) {
    for (const char* word : list) add(word, kind, detail, "", 1);
  }

  void parameters() {
    for (const Symbol& s : index_.symbols()) {
      if (s.kind != SymbolKind::kParameter) continue;
      std::string values;
      for (const ClassValue& v : class_values(w_, s.name)) {
        values += "- " + v.profile + ": " + v.value + "\n";
      }
      add(s.name, kPropertyItem, s.param ? s.param->type.name : "", values + "\n" + comment_of(s),
          1);
    }
  }

  /// `it.`, `x.`, `profile.`, `peers.`, `gpu.`, `gpu.temp.`, `nv.`.
  void members() {
    if (a_.base == "profile") return parameters();
    if (a_.base == "peers" || a_.base == ")") {
      return words({"median", "mad", "count"}, kPropertyItem, "of the peers");
    }
    for (auto it = a_.variables.rbegin(); it != a_.variables.rend(); ++it) {
      if (it->first == a_.base) return fields(it->second);
    }
    if (a_.base == "it") return fields(a_.record);
    if (a_.declaration == "rule") {
      for (const std::string& f : index_.verdict_fields())
        add_rest("v." + f, "field of the verdict");
      verdict_members(a_.base);
    }
    const auto exact = index_.find(SymbolKind::kKind, a_.pack, a_.base);
    if (!exact.empty()) fields(exact[0]);
    for (const Symbol& s : index_.symbols()) {
      if (s.kind == SymbolKind::kField || s.kind == SymbolKind::kVariable ||
          !index_.may_see(a_.pack, s)) {
        continue;
      }
      add_rest(s.name, std::string(word_of(s.kind)));
    }
    for (const sema::ImportRef& import : index_.packs().packs[a_.pack].imports) {
      const std::string& pack = index_.packs().packs[import.pack].name;
      if (import.alias != a_.base && pack != a_.base) continue;
      for (const Symbol& s : index_.symbols()) {
        const bool own = s.pack == import.pack && s.visible && s.owner == kNoSymbol && !s.builtin;
        if (own) add(s.name, item_kind(s.kind), std::string(word_of(s.kind)), comment_of(s), 1);
      }
    }
  }

  /// The next part of a dotted name that begins with the base.
  void add_rest(const std::string& name, const std::string& detail) {
    const std::string prefix = a_.base + ".";
    if (name.size() <= prefix.size() || name.compare(0, prefix.size(), prefix) != 0) return;
    const std::string rest = name.substr(prefix.size());
    add(rest, kStructItem, detail, "", 2);
  }

  void verdict_members(const std::string& base) {
    const size_t dot = base.find('.');
    const std::string below = dot == std::string::npos ? "" : base.substr(dot + 1) + ".";
    for (const std::string& f : index_.verdict_fields()) {
      if (f.compare(0, below.size(), below) == 0) {
        add(f.substr(below.size()), kFieldItem, "field of the verdict", "", 1);
      }
    }
  }

  void template_fields() {
    const size_t open = a_.text_before.rfind('{');
    if (open == std::string::npos || a_.text_before.find('}', open) != std::string::npos) return;
    if (a_.declaration != "rule") return;
    if (!a_.base.empty()) return verdict_members(a_.base);
    for (size_t i = 0; i + 1 < a_.before.size(); ++i) {
      if (a_.before[i].text == "verdict") {
        add(std::string(a_.before[i + 1].text), kVariableItem, "the verdict", "", 1);
      }
    }
  }

  void types() {
    words({"bool",  "u8",     "u16",   "u32",   "u64",   "i8",        "i16",     "i32",     "i64",
           "f64",   "string", "word",  "enum",  "array", "duration",  "instant", "celsius", "watt",
           "hertz", "byte",   "bit/s", "ratio", "per",   "gpu_index", "set",     "map"},
          kTypeItem, "type");
    entities();
  }

  void entities() {
    for (const auto& e : w_.check().pack.entity_types) add(e.name, kTypeItem, "entity", "", 1);
  }

  void units() {
    words({"celsius", "watt", "kW", "hertz", "kHz", "MHz", "GHz", "byte", "KiB", "MiB", "GiB",
           "TiB", "ratio", "count", "per hour", "per minute", "per second", "per day"},
          kUnitItem, "unit");
  }

  /// Words of an enum, and members of lists of the same type: `it.kind == `, `it.code in [`.
  bool values_of_left() {
    size_t n = 2;
    if (a_.last() == "[" || a_.last() == ",") {
      while (n <= a_.before.size() && a_.last(n) != "in") ++n;
      if (n > a_.before.size()) return false;
      ++n;
    } else if (a_.last() != "==" && a_.last() != "!=" && a_.last() != "in") {
      return false;
    }
    const std::string path = a_.path_at(n);
    const size_t dot = path.rfind('.');
    if (dot == std::string::npos) return false;
    SymbolId kind = path.substr(0, dot) == "it" ? a_.record : kNoSymbol;
    for (const auto& [name, of] : a_.variables) {
      if (name == path.substr(0, dot)) kind = of;
    }
    const auto named = index_.find(SymbolKind::kKind, a_.pack, path.substr(0, dot));
    if (kind == kNoSymbol && !named.empty()) kind = named[0];
    if (kind == kNoSymbol) return false;
    const SymbolId field = index_.field(kind, path.substr(dot + 1));
    if (field == kNoSymbol) return false;
    values_of(index_.symbol(field));
    return true;
  }

  void values_of(const Symbol& field) {
    if (field.field != nullptr) {
      for (const ast::Name& word : field.field->type.enum_words) {
        add(word.text, kEnumMemberItem, "of " + field.name, "", 0);
      }
    }
    const std::string type = field.field != nullptr ? field.field->type.name : field.builtin_type;
    for (const Symbol& s : index_.symbols()) {
      if (s.kind != SymbolKind::kList || s.stale || !index_.may_see(a_.pack, s)) continue;
      const auto* list = std::get_if<ast::ListDecl>(&s.decl->node);
      if (list == nullptr || !list->type.element || list->type.element->name != type) continue;
      if (a_.last() == "in") add(s.name, kConstantItem, "list", comment_of(s), 0);
      list_members(*list, s.name);
    }
  }

  void list_members(const ast::ListDecl& list, const std::string& name) {
    if (!list.value) return;
    // Why: a list of a thousand codes helps nobody to choose.
    constexpr size_t kMembersMax = 100;
    size_t count = 0;
    for (const auto& e : list.value->args) {
      if (!e || ++count > kMembersMax) break;
      const std::string_view text = w_.text(e->span.file);
      if (e->span.end > text.size()) continue;
      add(std::string(text.substr(e->span.begin, e->span.end - e->span.begin)), kValueItem,
          "member of " + name, "", 2);
    }
  }

  void expression() {
    for (const auto& [name, kind] : a_.variables) {
      add(name, kVariableItem, kind == kNoSymbol ? "" : index_.symbol(kind).name, "", 0);
    }
    if (a_.record != kNoSymbol && a_.has("where")) {
      add("it", kVariableItem, index_.symbol(a_.record).name, "the event under evaluation", 0);
    }
    add("profile", kVariableItem, "parameters of the node's class", "", 1);
    symbols(SymbolKind::kFeature);
    symbols(SymbolKind::kList, 2);
    symbols(SymbolKind::kMacro);
    for (const sema::FunctionDoc& doc : sema::function_docs()) {
      add(std::string(doc.name), kFunctionItem, std::string(doc.signature),
          std::string(doc.meaning) + "\n\nunknown when: " + std::string(doc.unknown_when), 2);
    }
    symbols(SymbolKind::kKind, 3);
  }

  bool by_last_word();
  bool in_test();
  void names();

  void keywords() {
    const auto next = parse::continuation(w_.session().sources(), a_.file, a_.begin,
                                          std::max(a_.begin, dotted_begin()));
    for (const std::string& word : next.keywords) add(word, kKeywordItem, "keyword", "", 5);
  }
  uint32_t dotted_begin() const { return a_.replace; }

  Workspace& w_;
  const Index& index_;
  const Around& a_;
  uint32_t offset_;
  std::set<std::string> told_;
  std::vector<Json> items_;
};

/// Statements of tests: what a statement's first words ask for.
bool Completer::in_test() {
  const std::string last = a_.last();
  if (last == ":") {
    symbols(SymbolKind::kKind);
    add("log", kKeywordItem, "raw text of a node", "", 1);
    return true;
  }
  if (last == "as") {
    symbols(SymbolKind::kProfile);
    return true;
  }
  if (last == "verdict") {
    symbols(SymbolKind::kIncident);
    return true;
  }
  if (last == "expect" || last == "no" || last == "allow" || last == "because" ||
      last == "silent") {
    symbols(SymbolKind::kSignal);
    return true;
  }
  if (a_.last(2) == "top" || a_.last(4) == "top" || a_.last(2) == "external" ||
      last == "external") {
    symbols(SymbolKind::kCause);
    return true;
  }
  // Behind the kind and its targets come fields.
  const SymbolId kind = a_.statement_kind(index_);
  if (kind != kNoSymbol) fields(kind, 0);
  return kind != kNoSymbol;
}

bool Completer::by_last_word() {
  const std::string last = a_.last();
  static const std::map<std::string, SymbolKind> kAfter{
      {"causes", SymbolKind::kSignal},   {"masks", SymbolKind::kSignal},
      {"signals", SymbolKind::kSignal},  {"prior_scale", SymbolKind::kCause},
      {"import", SymbolKind::kPack},     {"profile", SymbolKind::kProfile},
      {"synergy", SymbolKind::kCause},   {"except", SymbolKind::kSignal},
      {"then", SymbolKind::kKind},       {"strictly", SymbolKind::kKind},
      {"absent", SymbolKind::kKind},     {"unless", SymbolKind::kKind},
      {"none", SymbolKind::kKind},       {"count", SymbolKind::kKind},
      {"of", SymbolKind::kKind},         {"->", SymbolKind::kKind},
      {"distinct", SymbolKind::kFeature}};
  if (a_.declaration == "overlay" && (last == "list" || last == "signal")) {
    symbols(last == "list" ? SymbolKind::kList : SymbolKind::kSignal);
    return true;
  }
  if (last == "for" && a_.declaration == "overlay") {
    symbols(SymbolKind::kPack);
    return true;
  }
  if (last == "extends") {
    symbols(a_.declaration == "profile" ? SymbolKind::kProfile : SymbolKind::kKind);
    return true;
  }
  if (last == "scope") {
    words({"self", "peers", "job", "rack", "tor", "pod", "zone", "class", "all"}, kEnumMemberItem,
          "scope");
    return true;
  }
  if (last == "severity" && a_.declaration != "rule") {
    words({"info", "warning", "critical"}, kEnumMemberItem, "severity");
    return true;
  }
  if (last == ":") {
    const bool typed =
        a_.declaration == "event" || a_.declaration == "profile" || a_.declaration == "list";
    if (typed) types();
    if (!typed || a_.declaration == "macro") symbols(SymbolKind::kKind);
    return true;
  }
  const bool keys = last == "on" || ((last == "(" || last == ",") && a_.has("on") && !a_.has("{") &&
                                     a_.declaration != "dedup");
  if (keys && a_.declaration != "incident" && !a_.has("opens") && !a_.has("reset")) {
    entities();
    return true;
  }
  if (last == "on" || (last == "or" && a_.has("opens"))) {
    if (a_.declaration == "incident" && !a_.has("opens")) {
      entities();
      return true;
    }
    symbols(SymbolKind::kKind);
    if (a_.has("opens")) symbols(SymbolKind::kSignal);
    return true;
  }
  if (last == "event" && a_.before.size() > 1) {
    symbols(SymbolKind::kKind);
    return true;
  }
  const auto found = kAfter.find(last);
  if (found == kAfter.end()) return false;
  symbols(found->second);
  return true;
}

void Completer::names() {
  if (a_.before.empty()) {  // an edge begins with a name
    symbols(SymbolKind::kCause, 6);
    symbols(SymbolKind::kSignal, 7);
    return;
  }
  if (!a_.before.empty() && a_.before.back().cls == parse::EditorToken::Class::kNumber) {
    return units();
  }
  if (values_of_left()) {
    if (a_.last() != "in") expression();
    return;
  }
  if (a_.declaration == "test" && in_test()) return;
  if (by_last_word()) return;
  if (a_.declaration == "decoder" && (a_.last() == "{" || a_.last() == ",")) {
    return fields(a_.statement_kind(index_), 0);
  }
  const bool edge = a_.has("causes") || a_.has("masks");
  if (edge && a_.last() == ",") return symbols(SymbolKind::kSignal);
  static const std::set<std::string> kExpression{
      "where", "when", "and", "or", "not", "==", "!=",    "<",     "<=", ">",  ">=",
      "+",     "-",    "*",   "/",  "(",   ",",  "below", "above", "=",  "in", "p"};
  if (kExpression.count(a_.last()) != 0) expression();
}

}  // namespace

Json completion(Workspace& w, const Json& params) {
  const Place place = place_of_params(w, params);
  const Around a = around(w, place.file, place.offset);
  return Completer(w, a, place.offset).run();
}

}  // namespace reflex::lsp

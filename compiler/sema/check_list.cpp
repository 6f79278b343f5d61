// Lists (inline and from a CSV column) and macros.
#include <algorithm>
#include <charconv>
#include <limits>

#include "compiler/sema/overlay.h"
#include "compiler/sema/phases.h"

namespace reflex::sema {

namespace {

using abi::Scalar;

/// Adds one element to the list; reports what does not fit.
/// Types whose values are written as text; elsewhere a text is a mistake that coerce() reports.
bool holds_words(const abi::Type& type) {
  return type.scalar == Scalar::kString || type.scalar == Scalar::kEnum ||
         type.scalar == Scalar::kEntity;
}

void add_element(State& s, ListInfo& list, const NodePtr& node, const FieldRange& range) {
  if (is_error(node)) return;
  if (node->op == ir::Op::kConstText && holds_words(list.element)) {
    const std::string text = literal_text(s, node);
    if (list.element.scalar == Scalar::kString) {
      list.texts.push_back(text);
    } else {
      const NodePtr symbol = symbol_constant(s, text, list.element, node->span);
      if (!is_error(symbol)) list.ints.push_back(symbol->imm);
    }
    return;
  }
  const NodePtr fitted = coerce(s, node, list.element, "the list's element type");
  if (is_error(fitted)) return;
  if (fitted->rep == ir::Rep::kF64) {
    list.reals.push_back(bits_to_f64(fitted->imm));
    return;
  }
  if (fitted->imm < range.lo || fitted->imm > range.hi) {
    s.report(Id::kNumberRange, node->span,
             std::to_string(fitted->imm) + " does not fit the list's element type");
    return;
  }
  list.ints.push_back(fitted->imm);
}

/// Field `column` (1-based) of a CSV line; double quotes as in RFC 4180.
std::optional<std::string> csv_field(std::string_view line, int64_t column) {
  size_t at = 0;
  for (int64_t c = 1;; ++c) {
    std::string text;
    if (at < line.size() && line[at] == '"') {
      for (++at; at < line.size(); ++at) {
        if (line[at] == '"' && at + 1 < line.size() && line[at + 1] == '"')
          ++at;
        else if (line[at] == '"')
          break;
        text += line[at];
      }
      if (at < line.size()) ++at;
    }
    while (at < line.size() && line[at] != ',') text += line[at++];
    if (c == column) return text;
    if (at >= line.size()) return std::nullopt;
    ++at;
  }
}

void read_csv(State& s, ListInfo& list, const std::string& text, const FieldRange& range) {
  const ast::ListDecl& d = *list.decl;
  size_t at = 0;
  uint32_t line_number = 0;
  while (at < text.size()) {
    size_t end = text.find('\n', at);
    if (end == std::string::npos) end = text.size();
    std::string_view line(text.data() + at, end - at);
    at = end + 1;
    ++line_number;
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    if (line.empty() || line[0] == '#') continue;
    const auto field = csv_field(line, d.column);
    if (!field || field->empty()) continue;
    if (list.element.scalar == Scalar::kString || list.element.scalar == Scalar::kEnum ||
        (list.element.scalar == Scalar::kEntity && !list.element.gpu_index)) {
      list.ints.push_back(s.in.symbols->intern(*field));
      if (list.element.scalar == Scalar::kString) list.texts.push_back(*field);
      continue;
    }
    int64_t value = 0;
    const auto parsed = std::from_chars(field->data(), field->data() + field->size(), value);
    const bool whole = parsed.ec == std::errc() && parsed.ptr == field->data() + field->size();
    if (!whole && line_number == 1) continue;  // a header line
    if (!whole || value < range.lo || value > range.hi) {
      s.report(Id::kNumberRange, d.name.span,
               "line " + std::to_string(line_number) + " of \"" + d.from_file + "\": '" + *field +
                   "' does not fit the list's element type");
      return;
    }
    list.ints.push_back(value);
  }
}

/// The element type of a list without a written type: that of its first element.
abi::Type inferred_type(State& s, const ListInfo& list, const Env& env) {
  if (list.decl->value == nullptr || list.decl->value->args.empty()) return int_type();
  const NodePtr first = check_expr(s, env, *list.decl->value->args[0]);
  return first->type;
}

/// `key: value` of a map; a key that stands twice is a mistake, whoever wrote it.
void add_pair(State& s, ListInfo& list, const Env& env, const ast::Expr& e,
              const FieldRange& range) {
  if (e.kind != ast::ExprKind::kPair) {
    s.report(Id::kTypeMismatch, e.span, "an element of a map is written key: value");
    return;
  }
  NodePtr key = check_expr(s, env, *e.args[0], &list.element);
  NodePtr value = check_expr(s, env, *e.args[1], &list.value_type);
  if (is_error(key) || is_error(value)) return;
  if (value->op == ir::Op::kConstText && holds_words(list.value_type)) {
    value = symbol_constant(s, literal_text(s, value), list.value_type, value->span);
  } else if (list.value_type.scalar != Scalar::kEnum && list.value_type.scalar != Scalar::kEntity) {
    value = coerce(s, value, list.value_type, "the map's value type");
  }
  if (is_error(value)) return;
  const size_t before = list.ints.size() + list.reals.size() + list.texts.size();
  add_element(s, list, key, range);
  if (list.ints.size() + list.reals.size() + list.texts.size() == before) return;  // reported
  if (list.element.scalar != Scalar::kString && key->op == ir::Op::kConstText) {
    key = symbol_constant(s, literal_text(s, key), list.element, key->span);
  } else if (list.element.scalar != Scalar::kString) {
    key = coerce(s, key, list.element, "the map's key type");
  }
  for (const ListInfo::Pair& other : list.pairs) {
    const bool same = other.key->imm == key->imm && other.key->index == key->index;
    if (!same) continue;
    auto& d = s.report(Id::kDuplicateName, e.args[0]->span, "the key stands twice in the map");
    d.notes.push_back({other.key->span, "first written here"});
    return;
  }
  list.pairs.push_back({key, value});
}

void add_elements(State& s, ListInfo& list, const Env& env, const ast::Expr& value,
                  const FieldRange& range) {
  for (const auto& element : value.args) {
    if (list.is_map) {
      add_pair(s, list, env, *element, range);
      continue;
    }
    if (element->kind == ast::ExprKind::kPair) {
      auto& d = s.report(Id::kTypeMismatch, element->span, "a set has no keys with values");
      d.help = "declare it as map<key type, value type>";
      continue;
    }
    if (element->kind == ast::ExprKind::kRange && list.element.scalar == Scalar::kInt) {
      const auto lo = constant_count(s, env.pack, *element->args[0], "a range", range.lo, range.hi);
      const auto hi = constant_count(s, env.pack, *element->args[1], "a range", range.lo, range.hi);
      // Why: a list is stored as its members; a wider range is a comparison, not a list.
      if (lo && hi && (*hi < *lo || *hi - *lo > 65535)) {
        s.report(Id::kBadInterval, element->span, "the range is empty or too wide for a list");
      } else if (lo && hi) {
        for (int64_t v = *lo; v <= *hi; ++v) list.ints.push_back(v);
      }
      continue;
    }
    add_element(s, list, check_expr(s, env, *element, &list.element), range);
  }
}

void sort_members(ListInfo& list) {
  std::sort(list.ints.begin(), list.ints.end());
  list.ints.erase(std::unique(list.ints.begin(), list.ints.end()), list.ints.end());
}

/// `map<K, V>`: both types; false after a report.
bool map_types(State& s, ListInfo& list, FieldRange* range) {
  const ast::TypeRef& type = list.decl->type;
  if (type.element == nullptr || type.more.size() != 1) {
    auto& d = s.report(Id::kUnknownType, type.span, "a map has a key type and a value type");
    d.help = "write: map<u16, duration>";
    return false;
  }
  if (!list.decl->from_file.empty()) {
    s.report(Id::kNotHere, list.decl->name.span, "a map is written in place, not read from a file");
    return false;
  }
  const auto key = resolve_type(s, *type.element, range);
  const auto value = resolve_type(s, type.more[0], nullptr);
  if (!key || !value) return false;
  const abi::SlotForm form = abi::slot_form(*value);
  if (form == abi::SlotForm::kText || form == abi::SlotForm::kArray) {
    auto& d = s.report(Id::kTypeMismatch, type.more[0].span,
                       "a map cannot hold a " + to_text(s, *value));
    d.help = "for text of a small vocabulary write: word";
    return false;
  }
  list.is_map = true;
  list.element = *key;
  list.value_type = *value;
  return true;
}

void fill_list(State& s, ListInfo& list) {
  const ast::ListDecl& d = *list.decl;
  Env env;
  env.pack = list.pack;
  env.constant_only = true;
  FieldRange range{std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max(), {}};
  if (d.type.name == "map") {
    if (!map_types(s, list, &range)) return;
  } else if (d.type.name == "set" && d.type.element) {
    const auto type = resolve_type(s, *d.type.element, &range);
    if (!type) return;
    list.element = *type;
  } else if (!d.type.name.empty()) {
    auto& diag = s.report(Id::kUnknownType, d.type.span, "a list is a set<..> or a map<..>");
    const bool wrapped = d.type.element != nullptr;  // list<u16>: the author knows the element
    diag.help = "write: set<" + (wrapped ? d.type.element->name : d.type.name) + ">";
    return;
  } else {
    list.element = inferred_type(s, list, env);
  }
  if (!d.from_file.empty()) {
    const std::string base(s.in.sources.path(d.name.span.file));
    const size_t slash = base.rfind('/');
    const std::string path =
        slash == std::string::npos ? d.from_file : base.substr(0, slash + 1) + d.from_file;
    const auto text = s.in.read_file ? s.in.read_file(path) : std::nullopt;
    if (!text) {
      s.report(Id::kUnknownList, d.name.span, "cannot read \"" + path + "\"");
      return;
    }
    read_csv(s, list, *text, range);
  } else if (d.value) {
    add_elements(s, list, env, *d.value, range);
  }
  list.range = range;
  sort_members(list);
}

void extend_list(State& s, const OverlayUse& use, const ast::OverlayEntry& e) {
  const auto index = resolve(s, s.list_names, use.target, e.target, Id::kUnknownList);
  if (!index || s.lists[*index].element.scalar == Scalar::kError) return;
  ListInfo& list = s.lists[*index];
  Env env;
  env.pack = use.target;
  env.constant_only = true;
  const size_t before = s.sink.error_count();
  add_elements(s, list, env, *e.value, list.range);
  if (s.sink.error_count() > before) return;
  sort_members(list);
  const Span v = e.value->span;
  note_change(s, use, e.target.span,
              "list " + s.full_name(list.pack, list.decl->name.text) + " also has " +
                  std::string(s.in.sources.text(v.file).substr(v.begin, v.end - v.begin)));
}

void check_list(State& s, ListInfo& list) {
  const size_t before = s.sink.error_count();
  fill_list(s, list);
  if (s.sink.error_count() > before) list.element = {};  // poisoned: its uses stay silent
}

void check_macro(State& s, uint32_t index) {
  MacroInfo& macro = s.macros[index];
  const ast::MacroDecl& d = *macro.decl;
  const size_t before = s.sink.error_count();
  Env env;
  env.pack = macro.pack;
  env.macro_stack.push_back(index);
  for (const auto& param : d.params) {
    Binding b;
    b.name = param.name.text;
    if (const auto kind = find(s, s.kind_names, macro.pack, param.type.text)) {
      b.kind = *kind;
    } else {
      ast::TypeRef ref;
      ref.name = param.type.text;
      ref.span = param.type.span;
      const auto type = param.type.empty() ? std::nullopt : resolve_type(s, ref, nullptr);
      if (type) b.type = *type;
    }
    env.bindings.push_back(std::move(b));
  }
  if (d.body) check_expr(s, env, *d.body);
  macro.broken = s.sink.error_count() > before;
}

}  // namespace

void check_lists(State& s) {
  for (ListInfo& list : s.lists) check_list(s, list);
  for_each_entry(s, ast::OverlayEntry::Verb::kExtendList,
                 [&](const OverlayUse& u, const ast::OverlayEntry& e) { extend_list(s, u, e); });
}

void check_macros(State& s) {
  for (uint32_t i = 0; i < s.macros.size(); ++i) check_macro(s, i);
}

}  // namespace reflex::sema

// Decoders (A14): patterns, groups, and how a field gets its value -> DecoderPlan.
#include <re2/re2.h>

#include <algorithm>
#include <array>

#include "compiler/sema/phases.h"

namespace reflex::sema {

namespace {

using abi::DecoderAssign;
using abi::Scalar;
using abi::SlotForm;
using ast::Expr;
using ast::ExprKind;
using From = DecoderAssign::From;

// Why: RE2's program size bounds memory and time per byte; the largest shipped pattern needs 900.
constexpr int kRegexProgramMax = 20'000;
constexpr int64_t kFoldMax = 16;  // Why: a wrapped event of the supported logs has at most 3 lines

struct Conversion {
  std::string_view name;
  int64_t lo;
  int64_t hi;
};
constexpr std::array<Conversion, 8> kInts{{{"u8", 0, 255},
                                           {"u16", 0, 65535},
                                           {"u32", 0, 4294967295},
                                           {"u64", 0, INT64_MAX},
                                           {"i8", -128, 127},
                                           {"i16", -32768, 32767},
                                           {"i32", -2147483648LL, 2147483647},
                                           {"i64", INT64_MIN, INT64_MAX}}};
constexpr std::array<std::pair<std::string_view, double>, 5> kTimes{
    {{"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"minutes", 60e9}, {"hours", 3600e9}}};

/// (?<name>..) -> (?P<name>..), the only spelling that this RE2 knows. Lookbehind (?<= and (?<!
/// is left alone and refused by RE2.
std::string re2_groups(const std::string& pattern) {
  std::string out;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] == '\\' && i + 1 < pattern.size()) {
      out += pattern[i++];
      out += pattern[i];
      continue;
    }
    const bool named = pattern.compare(i, 3, "(?<") == 0 && i + 3 < pattern.size() &&
                       pattern[i + 3] != '=' && pattern[i + 3] != '!';
    if (!named) {
      out += pattern[i];
      continue;
    }
    out += "(?P<";
    i += 2;
  }
  return out;
}

struct LineBuilder {
  State& s;
  PackIndex pack;
  const ast::DecoderDecl::Line& d;
  abi::DecoderLine line;
  std::map<std::string, int> groups;
  uint32_t kind = kNone32;

  bool pattern();
  void assign(const ast::DecoderDecl::Assign& a);
  std::optional<int> group_of(const Expr& e, const char* what);
  bool call(const Expr& e, const abi::FieldSchema& f, DecoderAssign& out);
  bool bare_name(const Expr& e, const abi::FieldSchema& f, DecoderAssign& out);
  bool constant(const Expr& e, const abi::FieldSchema& f, DecoderAssign& out);
  void missing_keys();
  void unknown_group(const std::string& name, Span span);
  void range_of(uint16_t slot, DecoderAssign& out) const;
};

bool LineBuilder::pattern() {
  line.pattern = re2_groups(d.regex);
  RE2::Options options;
  options.set_log_errors(false);
  const RE2 regex(line.pattern, options);
  if (!regex.ok() || regex.ProgramSize() > kRegexProgramMax) {
    auto& diag = s.report(Id::kBadRegex, d.regex_span,
                          regex.ok() ? "the regular expression is too large" : regex.error());
    diag.help = "only linear-time expressions are possible: no lookaround, no backreferences";
    return false;
  }
  for (const auto& [name, index] : regex.NamedCapturingGroups()) groups[name] = index;
  return true;
}

void LineBuilder::unknown_group(const std::string& name, Span span) {
  auto& diag = s.report(Id::kUnknownGroup, span, "the pattern has no group '" + name + "'");
  std::vector<std::string> names;
  for (const auto& [g, index] : groups) names.push_back(g);
  suggest(diag, name, names, span);
  diag.notes.push_back({d.regex_span, "the pattern is here"});
}

std::optional<int> LineBuilder::group_of(const Expr& e, const char* what) {
  if (e.kind != ExprKind::kName) {
    s.report(Id::kBadArguments, e.span, std::string(what) + " takes the name of a group");
    return std::nullopt;
  }
  const auto found = groups.find(e.text);
  if (found != groups.end()) return found->second;
  unknown_group(e.text, e.span);
  return std::nullopt;
}

void LineBuilder::range_of(uint16_t slot, DecoderAssign& out) const {
  const FieldRange& range = s.kinds[kind].ranges[slot];
  if (s.kinds[kind].schema.fields[slot].type.scalar != Scalar::kInt) return;
  out.int_min = std::max(out.int_min, range.lo);
  out.int_max = std::min(out.int_max, range.hi);
}

/// u16(g), hex(g), gpu_at(node, g), words(g), ms(g) ...
bool LineBuilder::call(const Expr& e, const abi::FieldSchema& f, DecoderAssign& out) {
  std::string fn = e.text;
  // `u32?(g)`: what does not convert is missing, never an error; that is always so for fields.
  if (!fn.empty() && fn.back() == '?') fn.pop_back();
  const size_t wanted = fn == "gpu_at" ? 2 : 1;
  if (e.args.size() != wanted) {
    s.report(Id::kBadArguments, e.span,
             fn + "() takes " + std::to_string(wanted) + " argument" + (wanted > 1 ? "s" : ""));
    return false;
  }
  const auto group = group_of(*e.args[wanted - 1], "the conversion");
  if (!group) return false;
  out.group = *group;
  auto need = [&](bool fits) {
    if (fits) return true;
    s.report(
        Id::kTypeMismatch, e.span,
        "field '" + f.name + "' is a " + to_text(s, f.type) + ": " + fn + "() does not give that");
    return false;
  };
  if (fn == "gpu_at") {
    out.from = From::kGpuAtGroup;
    return need(f.type.scalar == Scalar::kEntity && f.type.gpu_index);
  }
  if (fn == "words") {
    out.from = From::kHexWords;
    return need(f.type.scalar == Scalar::kArray);
  }
  const bool integer = abi::slot_form(f.type) == SlotForm::kI64 && f.type.scalar != Scalar::kEnum;
  if (fn == "hex") {
    out.base = 16;
    return need(integer);
  }
  for (const Conversion& c : kInts) {
    if (c.name != fn) continue;
    out.int_min = std::max(out.int_min, c.lo);
    out.int_max = std::min(out.int_max, c.hi);
    return need(integer || abi::slot_form(f.type) == SlotForm::kF64);
  }
  for (const auto& [name, scale] : kTimes) {
    if (name != fn) continue;
    out.scale = scale;
    return need(f.type.scalar == Scalar::kDuration);
  }
  if (fn == "f64") return need(abi::slot_form(f.type) == SlotForm::kF64);
  if (const auto unit = parse_unit(fn); unit && unit->type.scalar == Scalar::kQuantity) {
    out.scale = unit->multiply / unit->divide;
    return need(f.type.scalar == Scalar::kQuantity && f.type.unit == unit->type.unit);
  }
  auto& diag = s.report(Id::kUnknownFunction, e.span, "no conversion '" + fn + "'");
  if (fn == "ns") {  // no log prints them; a scale of 1 in the plan means text such as "45s"
    diag.help = "durations are read with us(), ms(), s(), minutes() or hours()";
    return false;
  }
  std::vector<std::string> names{"hex", "gpu_at", "words", "f64"};
  for (const Conversion& c : kInts) names.emplace_back(c.name);
  for (const auto& [name, scale] : kTimes) names.emplace_back(name);
  if (const auto near = diag::did_you_mean(fn, names)) diag.help = "did you mean '" + *near + "'?";
  return false;
}

bool LineBuilder::bare_name(const Expr& e, const abi::FieldSchema& f, DecoderAssign& out) {
  const auto group = groups.find(e.text);
  if (group != groups.end()) {
    out.group = group->second;
    if (f.type.scalar == Scalar::kArray) out.from = From::kHexWords;
    return true;
  }
  if (e.text == "node") {
    if (f.type.scalar == Scalar::kEntity && s.pack.entity_types[f.type.entity].name == "node") {
      out.from = From::kNode;
      return true;
    }
    s.report(Id::kTypeMismatch, e.span,
             "field '" + f.name + "' is a " + to_text(s, f.type) + ", not a node");
    return false;
  }
  if (f.type.scalar == Scalar::kEnum && f.type.enum_id != 0) {
    const auto& words = s.pack.enums[f.type.enum_id].words;
    if (std::find(words.begin(), words.end(), e.text) != words.end() || e.text == "other") {
      out.from = From::kConstantText;
      out.constant_text = e.text;
      return true;
    }
  }
  unknown_group(e.text, e.span);
  return false;
}

bool LineBuilder::constant(const Expr& e, const abi::FieldSchema& f, DecoderAssign& out) {
  if (e.kind == ExprKind::kString) {
    out.from = From::kConstantText;
    out.constant_text = e.text;
    const bool named =
        f.type.scalar == Scalar::kEnum || (f.type.scalar == Scalar::kEntity && !f.type.gpu_index);
    if (named) return !is_error(symbol_constant(s, e.text, f.type, e.span));
    if (f.type.scalar == Scalar::kString) return true;
    s.report(Id::kTypeMismatch, e.span,
             "field '" + f.name + "' is a " + to_text(s, f.type) + ", not text");
    return false;
  }
  Env env;
  env.pack = pack;
  env.constant_only = true;
  const NodePtr raw = check_expr(s, env, e, &f.type);
  if (is_error(raw)) return false;
  abi::Type want = f.type;
  want.counter = false;
  const NodePtr n = raw->type.scalar == Scalar::kBool && want.scalar == Scalar::kBool
                        ? raw
                        : coerce(s, raw, want, "the field");
  if (is_error(n)) return false;
  if (!is_constant(n)) {
    s.report(Id::kNotConstant, e.span, "a group, a conversion of a group, or a constant is needed");
    return false;
  }
  if (n->rep == ir::Rep::kF64) {
    out.from = From::kConstantReal;
    out.constant_real = bits_to_f64(n->imm);
  } else {
    out.from = From::kConstantInt;
    out.constant_int = n->imm;
  }
  return true;
}

void LineBuilder::assign(const ast::DecoderDecl::Assign& a) {
  const KindInfo& info = s.kinds[kind];
  const auto slot = slot_of(info, a.field.text);
  if (!slot) {
    auto& diag = s.report(Id::kUnknownField, a.field.span,
                          "'" + info.schema.name + "' has no field '" + a.field.text + "'");
    suggest(diag, a.field.text, field_names(info), a.field.span);
    return;
  }
  for (const DecoderAssign& other : line.assigns) {
    if (other.slot != *slot) continue;
    s.report(Id::kDuplicateName, a.field.span, "'" + a.field.text + "' is assigned twice");
    return;
  }
  const abi::FieldSchema& f = info.schema.fields[*slot];
  DecoderAssign out;
  out.slot = *slot;
  const Expr& e = *a.value;
  bool ok = false;
  if (e.kind == ExprKind::kCall) {
    ok = call(e, f, out);
  } else if (e.kind == ExprKind::kName && e.text.find('.') == std::string::npos) {
    ok = bare_name(e, f, out);
  } else {
    ok = constant(e, f, out);
  }
  if (!ok) return;
  if (out.from == From::kGroup) range_of(*slot, out);
  line.assigns.push_back(std::move(out));
}

/// A node key that nobody assigns is the node of the log; any other required key is an error.
void LineBuilder::missing_keys() {
  const KindInfo& info = s.kinds[kind];
  for (uint16_t i = 0; i < info.schema.fields.size(); ++i) {
    const abi::FieldSchema& f = info.schema.fields[i];
    const bool assigned = std::any_of(line.assigns.begin(), line.assigns.end(),
                                      [&](const DecoderAssign& a) { return a.slot == i; });
    // An assignment that failed its check was reported; it is not missing as well.
    const bool tried = std::any_of(d.assigns.begin(), d.assigns.end(),
                                   [&](const auto& a) { return a.field.text == f.name; });
    if (assigned || tried || !f.is_key) continue;
    if (f.name == "node" && f.type.scalar == Scalar::kEntity) {
      DecoderAssign node;
      node.slot = i;
      node.from = From::kNode;
      line.assigns.push_back(std::move(node));
      continue;
    }
    if (f.type.optional) continue;
    auto& diag = s.report(Id::kMissingKey, d.kind.span,
                          "key '" + f.name + "' of '" + info.schema.name + "' gets no value");
    diag.notes.push_back({info.ranges[i].span, "the key is declared here"});
    diag.help = "write: { " + f.name + " = GROUP .. } with a group (?<GROUP>..) of the pattern";
  }
}

void check_line(State& s, PackIndex pack, const ast::DecoderDecl::Line& d, abi::DecoderPlan& plan) {
  LineBuilder b{s, pack, d, {}, {}, kNone32};
  const bool pattern_ok = b.pattern();
  b.line.ignore = d.ignore;
  b.line.where = s.where(d.span);
  if (d.fold < 1 || d.fold > kFoldMax) {
    s.report(Id::kNumberRange, d.span, "`fold` must be in 1 .. 16");
  } else {
    b.line.fold_lines = static_cast<uint32_t>(d.fold);
  }
  if (d.ignore) {
    plan.lines.push_back(std::move(b.line));
    return;
  }
  const auto kind = resolve(s, s.kind_names, pack, d.kind, Id::kUnknownKind);
  if (!kind) return;
  if (s.kinds[*kind].is_abstract) {
    s.report(Id::kAbstractUse, d.kind.span,
             "kind '" + d.kind.text + "' is abstract: no event can be made of it");
    return;
  }
  b.kind = *kind;
  b.line.kind = s.kinds[*kind].id;
  if (!pattern_ok) return;
  for (const auto& a : d.assigns) b.assign(a);
  b.missing_keys();
  plan.lines.push_back(std::move(b.line));
}

}  // namespace

void check_decoders(State& s) {
  std::map<std::pair<PackIndex, std::string>, Span> seen;
  for_each<ast::DecoderDecl>(s, [&](DeclRef ref, const ast::DecoderDecl& d, const ast::Decl&) {
    const auto [it, added] = seen.emplace(std::make_pair(ref.pack, d.name.text), d.name.span);
    if (!added) {
      auto& diag = s.report(Id::kDuplicateName, d.name.span,
                            "decoder '" + d.name.text + "' is declared twice");
      diag.notes.push_back({it->second, "first declared here"});
    }
    abi::DecoderPlan plan;
    plan.name = s.full_name(ref.pack, d.name.text);
    plan.input = d.input.empty() ? "text" : d.input.text;
    if (plan.input != "text") {
      s.report(Id::kLaterVersion, d.input.span,
               "decoders for '" + plan.input + "' belong to a later version of the engine");
    }
    plan.kernel_only = d.prefix == "kernel";
    if (!d.prefix.empty() && d.prefix != "auto" && d.prefix != "none" && !plan.kernel_only) {
      auto& diag = s.report(Id::kUnknownOption, d.name.span, "no prefix '" + d.prefix + "'");
      diag.help = "there are: auto, kernel, none";
    }
    plan.prefix_auto = d.prefix != "none";
    plan.where = s.where(d.name.span);
    for (const auto& line : d.lines) check_line(s, ref.pack, line, plan);
    s.pack.decoders.push_back(std::move(plan));
  });
}

}  // namespace reflex::sema

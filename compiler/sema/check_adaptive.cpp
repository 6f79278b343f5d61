// Adaptive profile parameters (A3): `adaptive NAME: T { from FEATURE quantile Q over D default X
// floor A ceiling B min_samples N }` and what derived profiles override of it.
//
// The declaration makes one AdaptivePlan; every class has its own AdaptiveSettings, inherited like
// parameters. Numbers without a unit are in the unit of the declared type. The feature is looked up
// only after the features were checked (check_adaptives); values come from tables at run time.
#include <algorithm>
#include <limits>

#include "compiler/sema/phases.h"

namespace reflex::sema {

namespace {

constexpr int64_t kMinSamplesMax = 1'000'000'000;

const std::vector<std::string>& setting_words() {
  static const std::vector<std::string> kWords{"ceiling",     "default", "floor",   "from",
                                               "min_samples", "over",    "quantile"};
  return kWords;
}

/// A number of the parameter's type; without a unit it is in the unit of the declaration.
std::optional<double> value_in_type(State& s, PackIndex pack, const ast::Expr& e,
                                    const AdaptiveInfo& info, const std::string& what) {
  const bool plain = (e.kind == ast::ExprKind::kInt || e.kind == ast::ExprKind::kReal) &&
                     e.unit_text.empty();
  if (plain) {
    const double v =
        e.kind == ast::ExprKind::kInt ? static_cast<double>(e.int_value) : e.real_value;
    return v * info.unit_factor;
  }
  Env env;
  env.pack = pack;
  env.constant_only = true;
  const abi::Type& type = s.params[info.param].type;
  const NodePtr n = coerce(s, check_expr(s, env, e, &type), type, what.c_str());
  if (is_error(n)) return std::nullopt;
  const auto v = constant_f64(n);
  if (!v) s.report(Id::kNotConstant, e.span, "the value must be a constant");
  return v;
}

struct Setter {
  State& s;
  PackIndex pack;
  const ast::ProfileParam& p;
  const AdaptiveInfo& info;
  abi::AdaptiveSettings& out;
  bool declares;
  bool ok = true;

  void one(const ast::Setting& setting);
  void range() const;
};

void Setter::one(const ast::Setting& setting) {
  const std::string& name = setting.name.text;
  const ast::Expr& v = *setting.value;
  auto number = [&](double& into) {
    const auto x = value_in_type(s, pack, v, info, "`" + name + "`");
    ok = ok && x;
    into = x.value_or(into);
  };
  if (name == "quantile") {
    const auto q = constant_number(s, pack, v, "the quantile");
    if (q && !(*q > 0 && *q < 1)) {
      s.report(Id::kProbabilityRange, v.span, "a quantile lies between 0 and 1");
    }
    ok = ok && q && *q > 0 && *q < 1;
    out.quantile = q.value_or(out.quantile);
  } else if (name == "over") {
    const auto ns = constant_duration(s, pack, v, "`over`");
    if (ns && *ns == 0) s.report(Id::kBadInterval, v.span, "`over` must be above 0");
    ok = ok && ns && *ns > 0;
    out.window_ns = ns.value_or(0);
  } else if (name == "min_samples") {
    const auto n = constant_count(s, pack, v, "`min_samples`", 1, kMinSamplesMax);
    ok = ok && n;
    out.min_samples = static_cast<uint64_t>(n.value_or(1));
  } else if (name == "default") {
    number(out.initial);
  } else if (name == "floor") {
    number(out.floor);
  } else if (name == "ceiling") {
    number(out.ceiling);
  } else if (name == "from") {
    if (declares) return;  // looked up by check_adaptives
    auto& d = s.report(Id::kNotHere, setting.name.span,
                       "`from` belongs to the declaration of '" + p.name.text + "'");
    d.notes.push_back({s.params[info.param].span, "declared here"});
    ok = false;
  } else {
    auto& d = s.report(Id::kUnknownOption, setting.name.span,
                       "an adaptive parameter has no setting '" + name + "'");
    suggest(d, name, setting_words(), setting.name.span);
    ok = false;
  }
}

void Setter::range() const {
  if (!ok) return;
  const bool bounded = out.floor != 0 || out.ceiling != 0;
  if (bounded && out.floor >= out.ceiling) {
    s.report(Id::kBadInterval, p.name.span,
             "the floor of '" + p.name.text + "' must be below its ceiling");
  } else if (bounded && (out.initial < out.floor || out.initial > out.ceiling)) {
    s.report(Id::kParameterRange, p.name.span,
             "the default of '" + p.name.text + "' is outside of floor .. ceiling");
  }
}

bool has_setting(const ast::ProfileParam& p, std::string_view name) {
  return std::any_of(p.adaptive_settings.begin(), p.adaptive_settings.end(),
                     [&](const ast::Setting& x) { return x.name.text == name; });
}

/// Without a bound on one side that side is open; without any the value is not bounded at all.
void open_bounds(const ast::ProfileParam& p, abi::AdaptiveSettings& out) {
  const bool floor = has_setting(p, "floor");
  const bool ceiling = has_setting(p, "ceiling");
  if (floor && !ceiling) out.ceiling = std::numeric_limits<double>::max();
  if (!floor && ceiling) out.floor = -std::numeric_limits<double>::max();
}

void check_complete(State& s, const ast::ProfileParam& p) {
  for (const char* needed : {"from", "default", "over"}) {
    if (has_setting(p, needed)) continue;
    auto& d = s.report(Id::kIncomplete, p.name.span,
                       "adaptive parameter '" + p.name.text + "' has no `" + needed + "`");
    d.help = "write: { from FEATURE quantile 0.999 over 7d default 3 floor 1 ceiling 30 }";
    return;
  }
}

/// Features of any pack: profiles are seen everywhere and import nothing.
std::optional<uint32_t> feature_named(State& s, const ast::Name& name) {
  std::vector<const Symbol*> named;
  std::vector<std::string> names;
  for (const Symbol& symbol : s.feature_names.symbols) {
    names.push_back(symbol.name);
    const std::string full = s.full_name(symbol.pack, symbol.name);
    if (symbol.name == name.text || full == name.text) named.push_back(&symbol);
  }
  if (named.size() == 1) {
    named[0]->used = true;
    return named[0]->index;
  }
  if (named.size() > 1) {
    auto& d = s.report(Id::kAmbiguousName, name.span, "feature '" + name.text + "' is ambiguous");
    d.help = "write: " + s.full_name(named[0]->pack, named[0]->name);
    return std::nullopt;
  }
  if (declared_in_broken_text(s, s.feature_names, name.text)) return std::nullopt;
  auto& d = s.report(Id::kUnknownName, name.span, "no feature '" + name.text + "'");
  suggest(d, name.text, names, name.span);
  return std::nullopt;
}

bool fits(const abi::Type& param, const abi::Type& feature) {
  if (param.scalar == abi::Scalar::kQuantity || feature.scalar == abi::Scalar::kQuantity) {
    return param.scalar == feature.scalar && param.unit == feature.unit &&
           param.per_time == feature.per_time;
  }
  return is_number(feature);
}

}  // namespace

void declare_adaptive(State& s, PackIndex pack, const ast::ProfileParam& p, uint32_t param) {
  const abi::Type& type = s.params[param].type;
  if (abi::slot_form(type) != abi::SlotForm::kF64) {
    auto& d = s.report(Id::kTypeMismatch, p.type.span,
                       "an adaptive parameter is a number with fractions or a quantity, this is: " +
                           to_text(s, type));
    d.help = "such as f64, celsius or per<hour>";
    return;
  }
  check_complete(s, p);
  AdaptiveInfo info;
  info.param = param;
  info.pack = pack;
  const std::string unit =
      p.type.name == "per" && p.type.element ? "per<" + p.type.element->name + ">" : p.type.name;
  if (const auto word = parse_unit(unit)) info.unit_factor = word->multiply / word->divide;
  for (const ast::Setting& setting : p.adaptive_settings) {
    if (setting.name.text != "from") continue;
    if (setting.value->kind == ast::ExprKind::kName) {
      info.feature = {setting.value->text, setting.value->span};
    } else {
      s.report(Id::kNotHere, setting.value->span, "`from` takes the name of a declared feature");
    }
  }
  s.params[param].adaptive = static_cast<abi::AdaptiveId>(s.adaptives.size());
  s.adaptives.push_back(std::move(info));
  s.pack.adaptives.push_back({p.name.text, param, kNone32, s.where(p.name.span)});
}

std::optional<double> set_adaptive(State& s, PackIndex pack, abi::ClassPlan& plan,
                                   const ast::ProfileParam& p, abi::AdaptiveId id, bool declares) {
  abi::AdaptiveSettings& out = plan.adaptive[id];
  if (declares) open_bounds(p, out);
  Setter setter{s, pack, p, s.adaptives[id], out, declares};
  for (const ast::Setting& setting : p.adaptive_settings) setter.one(setting);
  setter.range();
  out.where = s.where(p.name.span);
  if (!setter.ok) return std::nullopt;
  return out.initial;
}

void check_adaptives(State& s) {
  for (abi::AdaptiveId id = 0; id < s.adaptives.size(); ++id) {
    const AdaptiveInfo& info = s.adaptives[id];
    if (info.feature.empty()) continue;  // reported
    const auto index = feature_named(s, info.feature);
    if (!index) continue;
    const abi::FeatureId feature = s.features[*index].id;
    if (feature == kNone32) continue;  // broken, reported
    const abi::Type& have = s.feature_types[feature];
    const abi::Type& want = s.params[info.param].type;
    if (!fits(want, have)) {
      auto& d = s.report(Id::kUnitMismatch, info.feature.span,
                         "feature '" + info.feature.text + "' is a " + to_text(s, have) +
                             ", the parameter is a " + to_text(s, want));
      d.notes.push_back({s.params[info.param].span, "the parameter is declared here"});
      continue;
    }
    if (!node_keyed(s, s.pack.features[feature].entity_kind)) {
      s.report(Id::kEntityMismatch, info.feature.span,
               "feature '" + info.feature.text + "' is on " +
                   entity_text(s, s.pack.features[feature].entity_kind) +
                   "; classes are of nodes");
      continue;
    }
    s.pack.adaptives[id].feature = feature;
  }
}

}  // namespace reflex::sema

// relocate: one walk over everything that has a span; see relocate.h.
#include "compiler/ast/relocate.h"

#include <utility>

namespace reflex::ast {
namespace {

// Who adds a member that holds a span visits it below; these catch that it was added.
static_assert(sizeof(Expr) == 176 && sizeof(Aggregate) == 248 && sizeof(TypeRef) == 112 &&
              sizeof(PackHead) == 208 && sizeof(EventDecl) == 160 && sizeof(ProfileDecl) == 160 &&
              sizeof(ProfileParam) == 224 && sizeof(ListDecl) == 208 && sizeof(MacroDecl) == 80 &&
              sizeof(Step) == 160 && sizeof(Unless) == 232 && sizeof(CountCondition) == 128 &&
              sizeof(SignalDecl) == 680 && sizeof(FeatureDecl) == 152 && sizeof(FaultDecl) == 224 &&
              sizeof(CausesDecl) == 232 && sizeof(IncidentDecl) == 136 &&
              sizeof(DecoderDecl) == 152 && sizeof(DecoderDecl::Line) == 144 &&
              sizeof(TestTarget) == 128 && sizeof(TestDecl) == 192 &&
              sizeof(TestDecl::Event) == 192 && sizeof(TestDecl::Expect) == 440 &&
              sizeof(OverlayEntry) == 560 && sizeof(OverlayDecl) == 152 &&
              sizeof(VerdictRuleDecl) == 248 && sizeof(SuppressDecl) == 144 &&
              sizeof(BaselineDecl) == 152 && sizeof(MaintenanceDecl) == 152 &&
              sizeof(SynergyDecl) == 80);

class Mover {
 public:
  explicit Mover(Place to) : to_(to) {}

  void at(Span& s) const {
    if (s.begin == 0 && s.end == 0) return;  // not set
    s.file = to_.file;
    s.begin += to_.delta;
    s.end += to_.delta;
  }
  template <typename T>
  void at(std::vector<T>& all) const {
    for (T& one : all) at(one);
  }
  template <typename T>
  void at(std::unique_ptr<T>& one) const {
    if (one != nullptr) at(*one);
  }
  template <typename T>
  void at(std::optional<T>& one) const {
    if (one.has_value()) at(*one);
  }
  template <typename A, typename B>
  void at(std::pair<A, B>& both) const {
    all(both.first, both.second);
  }
  template <typename... T>
  void all(T&... members) const {
    (at(members), ...);
  }

  void at(Name& x) const { at(x.span); }
  void at(Expr& x) const { all(x.span, x.op_span, x.args, x.aggregate); }
  void at(KindPattern& x) const { all(x.kind, x.where, x.span); }
  void at(Aggregate::Option& x) const { all(x.value, x.span); }
  void at(Aggregate& x) const { all(x.distinct_of, x.source, x.args, x.options, x.span); }
  void at(TypeRef& x) const { all(x.enum_words, x.element, x.more, x.span); }
  void at(Import& x) const { all(x.pack, x.as, x.only, x.span); }
  void at(Setting& x) const { all(x.name, x.value); }
  void at(PackHead& x) const { all(x.name, x.imports, x.clock, x.limits, x.span); }
  void at(FieldDecl& x) const { all(x.name, x.type, x.span); }
  void at(EventDecl& x) const { all(x.name, x.extends, x.fields, x.dedup_fields, x.dedup_for); }
  void at(ProfileParam& x) const {
    all(x.name, x.type, x.value, x.within, x.adaptive_settings, x.span);
  }
  void at(ProfileDecl::PriorScale& x) const { all(x.fault, x.value); }
  void at(ProfileDecl& x) const { all(x.name, x.extends, x.matches, x.params, x.prior_scales); }
  void at(ListDecl& x) const { all(x.name, x.type, x.value); }
  void at(MacroDecl::Param& x) const { all(x.name, x.type); }
  void at(MacroDecl& x) const { all(x.name, x.params, x.body); }
  void at(Step& x) const { all(x.variable, x.pattern, x.tolerance, x.absent_for, x.span); }
  void at(Unless& x) const {
    all(x.variable, x.pattern, x.between_first, x.between_second, x.span);
  }
  void at(CountCondition& x) const {
    all(x.aggregate, x.threshold, x.within, x.rearm, x.exact_max, x.graded_extra, x.span);
  }
  void at(SignalDecl& x) const {
    all(x.name, x.on, x.within, x.steps, x.unless, x.guards, x.keep_max, x.count, x.when,
        x.for_span, x.keep_span, x.clear, x.nodata_for, x.peers_at_least, x.holds, x.exceptions,
        x.exception_keys, x.leak, x.was);
  }
  void at(FeatureDecl& x) const { all(x.name, x.on, x.value, x.resets, x.was); }
  void at(FaultDecl& x) const { all(x.name, x.on, x.prior, x.half_life, x.severity, x.remedy); }
  void at(CausesDecl& x) const {
    all(x.cause, x.effects, x.p, x.weight_nats, x.lag_lo, x.lag_hi, x.scope, x.when_at_least,
        x.when_in, x.on);
  }
  void at(IncidentDecl& x) const {
    all(x.name, x.on, x.opens_on, x.settle, x.merge_for, x.confirm, x.suspect, x.unexplained);
  }
  void at(DecoderDecl::Assign& x) const { all(x.field, x.value); }
  void at(DecoderDecl::Line& x) const { all(x.regex_span, x.kind, x.assigns, x.span); }
  void at(DecoderDecl& x) const { all(x.name, x.input, x.lines); }
  void at(TestTarget& x) const { all(x.sub, x.span); }
  void at(TestDecl::Nodes& x) const { all(x.target, x.profile, x.labels, x.span); }
  void at(TestDecl::Job& x) const { all(x.name, x.nodes, x.at, x.to, x.span); }
  void at(TestDecl::Event& x) const {
    all(x.at, x.until, x.every, x.kind, x.targets, x.fields, x.repeat, x.repeat_every, x.late,
        x.span);
  }
  void at(TestDecl::Gap& x) const { all(x.source, x.target, x.from, x.to, x.span); }
  void at(TestDecl::Expect::Clause& x) const { all(x.targets, x.names, x.p, x.span); }
  void at(TestDecl::Expect& x) const {
    all(x.signal, x.target, x.at, x.tolerance, x.before, x.incident, x.job, x.clauses, x.span);
  }
  void at(TestDecl& x) const {
    all(x.row, x.nodes, x.jobs, x.events, x.gaps, x.expects, x.shuffle);
  }
  void at(OverlayEntry& x) const {
    all(x.target, x.what, x.keys, x.rows, x.value, x.set, x.scale, x.assigns, x.span);
  }
  void at(OverlayDecl& x) const { all(x.name, x.target, x.entries); }
  void at(TemplatePart& x) const { all(x.value, x.span); }
  void at(VerdictRuleDecl::Label& x) const { all(x.name, x.value); }
  void at(VerdictRuleDecl::Annotation& x) const { all(x.name, x.parts); }
  void at(VerdictRuleDecl::Action& x) const { all(x.name, x.args, x.per, x.in, x.mode, x.span); }
  void at(VerdictRuleDecl& x) const {
    all(x.name, x.variable, x.incident, x.where, x.severity, x.labels, x.annotations, x.actions,
        x.repeat_every, x.resolve_after);
  }
  void at(SuppressDecl& x) const { all(x.name, x.signals, x.where); }
  void at(BaselineDecl& x) const { all(x.kind, x.field, x.on); }
  void at(MaintenanceDecl& x) const { all(x.from, x.until, x.on, x.grace); }
  void at(SynergyDecl& x) const { all(x.cause, x.signals, x.weight_nats); }
  void at(Decl& x) const {
    at(x.span);
    std::visit([this](auto& node) { at(node); }, x.node);
  }

 private:
  Place to_;
};

}  // namespace

void relocate(Decl& decl, Place to) { Mover(to).at(decl); }

void relocate(Module& module, Place to) {
  const Mover mover(to);
  mover.all(module.head, module.decls);
  module.file = to.file;
}

}  // namespace reflex::ast

// What packs say of verdicts (A10): rules, their labels, templates and actions; and what overlays
// changed (A4). Part of the plans (plan.h): plain data, times in nanoseconds.
//
// Expressions of a rule read one record: the verdict, with the fields VerdictSchema lists.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/abi/plan_ids.h"

namespace reflex::abi {

/// Literal text, or (when `expr` is set) the value of an expression in a printf format.
struct TemplateText {
  std::string text;
  ExprId expr = kNone32;
  std::string format;  // "%.1f", "%d", "%s"; empty: the default of the type
};

/// `action cordon(v.top.node) limit 3 per rack in 1h mode dry_run`: an effect that is asked for,
/// never run by the engine itself.
struct ActionPlan {
  std::string name;
  std::vector<ExprId> args;
  uint32_t limit = 0;           // 0 = none
  std::string per;              // the label that `per_value` reads; empty: over all nodes
  ExprId per_value = kNone32;   // of the top node
  int64_t window_ns = 0;
  bool live = false;  // `mode live`; else dry_run
  SourceRef where;
};

struct RulePlan {
  std::string name;
  uint32_t incident = 0;  // CompiledPack::incidents
  ExprId where = kNone32;
  ExprId severity = kNone32;
  struct Label {
    std::string name;
    ExprId value = kNone32;
  };
  struct Annotation {
    std::string name;
    std::vector<TemplateText> parts;
  };
  std::vector<Label> labels;
  std::vector<Annotation> annotations;
  std::vector<ActionPlan> actions;
  int64_t repeat_ns = 0;  // 0 = say it once
  int64_t resolve_ns = 0;
  SourceRef where_declared;
};

/// One effect of an overlay, for `check -v` and `config show`.
struct OverlayChange {
  std::string overlay;
  std::string text;  // "profile hw.h100 temp_hot: 87 -> 89 celsius"
  bool inert = false;
  SourceRef where;
};

}  // namespace reflex::abi

// The tables of one compilation and the environment of one expression; internal to sema.
//
// State owns what declarations became; the files of this folder are functions over it, one concern
// each (see phases.h for the list). Indices: `kinds` holds abstract kinds too, so a kind index is
// not an abi::KindId; every other index equals its id in CompiledPack.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "compiler/sema/node.h"
#include "compiler/sema/sema.h"

namespace reflex::sema {

using abi::kNone32;
using diag::Id;
using source::Span;

struct DeclRef {
  PackIndex pack = 0;
  uint32_t module = 0;
  uint32_t index = 0;
};

struct FieldRange {
  int64_t lo;
  int64_t hi;
  Span span;
};

struct KindInfo {
  const ast::EventDecl* decl = nullptr;  // null for builtin kinds
  PackIndex pack = kBuiltinPack;
  bool is_abstract = false;
  uint32_t parent = kNone32;  // kind index
  int level = 0;              // kinds above it
  abi::KindId id = 0;         // meaningless when abstract
  abi::KindSchema schema;
  std::vector<FieldRange> ranges;  // parallel to schema.fields; of integer-like fields
  enum class Check : uint8_t { kNew, kBusy, kDone } check = Check::kNew;
};

struct ListInfo {
  const ast::ListDecl* decl = nullptr;
  PackIndex pack = 0;
  abi::Type element;
  FieldRange range{INT64_MIN, INT64_MAX, {}};
  std::vector<int64_t> ints;
  std::vector<double> reals;
  std::vector<std::string> texts;
  // map<K, V>: `element` is K
  bool is_map = false;
  abi::Type value_type;
  struct Pair {
    NodePtr key;
    NodePtr value;
  };
  std::vector<Pair> pairs;
};

struct MacroInfo {
  const ast::MacroDecl* decl = nullptr;
  PackIndex pack = 0;
  bool broken = false;  // its own check reported errors
};

struct FeatureInfo {
  const ast::FeatureDecl* decl = nullptr;
  PackIndex pack = 0;
  abi::FeatureId id = kNone32;  // kNone32: broken
};

struct SignalInfo {
  const ast::SignalDecl* decl = nullptr;
  PackIndex pack = 0;
  bool broken = false;
};

struct CauseInfo {
  const ast::FaultDecl* decl = nullptr;
  PackIndex pack = 0;
  std::string half_life_owner;
};

struct ParamInfo {
  std::string name;
  abi::Type type;
  Span span;                     // of the declaration
  std::optional<double> lo, hi;  // `within`, in the base unit
  abi::AdaptiveId adaptive = kNone32;
};

struct AdaptiveInfo {
  uint32_t param = 0;
  PackIndex pack = 0;
  double unit_factor = 1;  // of a number without unit, to the base unit
  ast::Name feature;       // `from`
};

/// An overlay whose target pack is loaded.
struct OverlayUse {
  const ast::OverlayDecl* decl = nullptr;
  PackIndex target = 0;
  PackIndex own = 0;
};

/// A named thing of one category.
struct Symbol {
  std::string name;  // short
  PackIndex pack = 0;
  uint32_t index = 0;
  Span span;
  bool visible = true;  // false: only inside its pack
  mutable bool used = false;
};
struct Table {
  std::string what;                   // "event kind", "signal", ...
  std::vector<std::string> keywords;  // that declare one: "fault", "external"
  bool everywhere = false;            // visible without import
  std::vector<Symbol> symbols;
  std::multimap<std::string, uint32_t> by_name;
};

struct State {
  State(const Input& input, diag::Sink& s, Output& o)
      : in(input), sink(s), out(o), pack(o.pack), ir(o.ir) {}
  const Input& in;
  diag::Sink& sink;
  Output& out;
  abi::CompiledPack& pack;
  ir::Module& ir;

  std::vector<KindInfo> kinds;
  std::vector<ListInfo> lists;
  std::vector<MacroInfo> macros;
  std::vector<FeatureInfo> features;                // declared ones
  std::vector<SignalInfo> signals;                  // [SignalId]
  std::vector<CauseInfo> causes;                    // [CauseId]
  std::vector<ParamInfo> params;                    // [ParamId]
  std::vector<AdaptiveInfo> adaptives;              // [AdaptiveId]
  std::vector<const ast::ProfileDecl*> profiles;    // [ClassId]
  std::vector<const ast::IncidentDecl*> incidents;  // [incident]
  std::vector<abi::Type> feature_types;             // [FeatureId]

  Table kind_names{"event kind", {"event"}, false, {}, {}};
  Table list_names{"list", {"list"}, false, {}, {}};
  Table macro_names{"macro", {"macro"}, false, {}, {}};
  Table feature_names{"feature", {"feature"}, false, {}, {}};
  Table signal_names{"signal", {"signal"}, false, {}, {}};
  Table cause_names{"fault or external cause", {"fault", "external"}, false, {}, {}};
  Table incident_names{"incident", {"incident"}, false, {}, {}};
  Table profile_names{"profile", {"profile"}, true, {}, {}};

  std::map<std::string, abi::ExprId> expr_ids;  // interned functions
  std::map<std::string, abi::LeafId> leaf_ids;
  std::map<std::string, abi::FeatureId> feature_ids;
  std::map<std::string, uint32_t> peers_ids;
  std::map<std::string, uint32_t> text_ids, glob_ids, regex_ids, set_ids;
  std::map<std::string, uint16_t> enum_ids;

  uint32_t verdict_kind = kNone32;  // of the record that rules on verdicts read
  std::vector<OverlayUse> overlays;
  std::map<std::string, Span> overlay_claims;     // what an overlay has changed
  std::map<std::string, uint32_t> alias_kinds;    // another name of a kind -> kind index

  struct Allow {
    Span span;
    Id id;
    uint32_t first_line;  // the comment's own line
    uint32_t last_line;   // a comment above a declaration covers the whole of it
    std::string reason;
    bool used = false;
  };
  std::vector<std::vector<Allow>> allow_comments;  // [FileId]

  std::vector<std::pair<int64_t, Span>> windows;  // look-backs stated in the pack being checked
  bool syntax_errors = false;                     // some statement did not parse
  uint32_t expansions = 0;                        // macros expanded in this predicate

  diag::Diagnostic& report(Id id, Span span, std::string message);
  abi::SourceRef where(Span span) const;
  std::string full_name(PackIndex p, const std::string& name) const;
};

/// A macro parameter bound to what the caller wrote, or (while the macro itself is checked) to a
/// kind or type.
struct Env;
struct Binding {
  std::string name;
  const ast::Expr* expr = nullptr;
  const Env* env = nullptr;
  uint32_t kind = kNone32;
  abi::Type type;
};

/// A step whose fields an expression may capture.
struct StepVariable {
  std::string name;
  uint32_t kind = kNone32;
  uint32_t step = 0;
};

/// Numbers the captured fields of one sequence.
struct CaptureTable {
  struct Entry {
    uint32_t step;
    uint16_t slot;
  };
  std::vector<Entry> entries;
  uint32_t index_of(uint32_t step, uint16_t slot);
};

struct Env {
  PackIndex pack = 0;
  // the record, if any
  uint32_t record_kind = kNone32;
  std::vector<std::string> record_names;
  // the entity, if any
  bool has_entity = false;
  abi::EntityKindId entity_kind = 0;
  bool features_allowed = false;
  // a profile's `matches`
  bool profile_match = false;
  // only literals, lists and enum words
  bool constant_only = false;
  std::vector<StepVariable> steps;
  CaptureTable* captures = nullptr;
  std::vector<Binding> bindings;
  std::vector<uint32_t> macro_stack;
  // peers
  bool peers_allowed = false;
  uint32_t peers_at_least = 3;
  abi::FeatureId peers_feature = kNone32;
  abi::Type peers_type;
};

/// One name of a dotted path with its place.
struct Segment {
  std::string text;
  Span span;
};

/// A call of a feature function in one shape, whichever way it was written.
struct FeatureCall {
  std::string fn;
  std::string inner_fn;
  ast::Name source;
  const ast::Expr* where = nullptr;
  const ast::Expr* streak_value = nullptr;
  std::vector<const ast::Expr*> args;
  struct Option {
    std::string name;
    const ast::Expr* value;
    Span span;
  };
  std::vector<Option> options;
  Span span;
};

}  // namespace reflex::sema

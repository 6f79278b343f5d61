// The syntax tree of a .rfx file: every construct of language.md A1 to A14, with spans.
//
// Contract: built only by parse::parse; holds what was written, nothing resolved. Names are kept
// as dotted text. Nodes own their children. No ANTLR type and no semantic type appears here.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "compiler/source/source_map.h"

namespace reflex::ast {

using source::Span;

/// A possibly dotted name: "gpu.xid", "temp_hot".
struct Name {
  std::string text;
  Span span;
  [[nodiscard]] bool empty() const { return text.empty(); }
};

// ---------------------------------------------------------------- expressions

enum class ExprKind : uint8_t {
  kInt,       // int_value; hex allowed (0x1f); unit_text may hold a unit word; -5 is one kInt
  kReal,      // real_value; unit_text may hold a unit word ("celsius", "%", "watt", "/hour",
              // "celsius/hour", "Gbit/s", "count"); `200k` is kInt 200000
  kDuration,  // int_value = ns ("2m", "1h30m", "250ms"; -24h is negative)
  kString,    // text
  kBool,      // int_value
  kName,      // text: one identifier, or the whole dotted path as written: "gpu.temp.value",
              // "it.code", "profile.temp_hot" (never a kMember chain)
  kMember,    // args[0] . text; only after a call or an index: `peers(job).median`
  kIndex,     // args[0] [ args[1] ]
  kCall,      // text ( args ), text may be dotted or end in '?' ("u32?"); `x is missing` is
              // missing(x); `label gpu.product` is label(gpu.product) with one kName;
              // arg_names is parallel to args, "" = positional; "by" in `peers(job by x)`
  kNot,       // not args[0]
  kNegate,    // - args[0]
  kBinary,    // op args[0] args[1]
  kIn,        // args[0] in args[1]  (list literal, range, or a name)
  kNotIn,
  kLike,     // args[0] like "glob"
  kMatches,  // args[0] matches /re/ ; text = the expression's source
  kAnyBits,  // args[0] any bits (n, ...): args[1..]
  kAllBits,
  kList,       // [ args ]
  kRange,      // args[0] .. args[1]
  kPercentOf,  // args[0]% of args[1]; args[0] is the plain number without unit
  kPair,       // args[0] : args[1], an element of a map literal
  kAggregate,  // an aggregate used as an expression; in `aggregate`
  kError,      // recovery; a diagnostic was reported
};

enum class BinaryOp : uint8_t {
  kOr,
  kAnd,
  kEq,
  kNe,
  kLt,
  kLe,
  kGt,
  kGe,
  kAdd,
  kSub,
  kMul,
  kDiv,
  kMod,
  kBitAnd,
  kBitOr,
};

struct Aggregate;

struct Expr {
  ExprKind kind = ExprKind::kError;
  Span span;
  BinaryOp op = BinaryOp::kOr;
  Span op_span;
  std::string text;
  std::string unit_text;  // as written, blanks removed: "celsius", "%", "per<hour>"
  int64_t int_value = 0;
  double real_value = 0;
  uint32_t depth = 1;  // longest path to a leaf; bounded by the parser
  std::vector<std::unique_ptr<Expr>> args;
  std::vector<std::string> arg_names;
  std::unique_ptr<Aggregate> aggregate;
};
using ExprPtr = std::unique_ptr<Expr>;

/// `gpu.xid where it.code == 48`: a kind (or feature source path) and an optional predicate.
struct KindPattern {
  Name kind;      // "gpu.xid", or "gpu.temp.value" where a field is aggregated
  ExprPtr where;  // may be null
  Span span;
};

/// count / distinct / bursts / none / feature functions over one kind (A6, A7).
///   count KIND where P >= n within D          fn="count"
///   count distinct X of KIND where P ...      fn="distinct", distinct_of = X
///   count bursts(KIND where P, gap D) ...     fn="bursts"
///   none KIND where P in the last D           fn="none"
///   decayed(x, half_life D), rate(x, D), ...  fn = the function's name
struct Aggregate {
  std::string fn;
  Name distinct_of;
  KindPattern source;  // what it ranges over
  /// For feature functions: the first argument when it is itself a call, e.g. increase(k.f).
  std::string inner_fn;       // "increase" in decayed(increase(gpu.ecc.total) where ..)
  std::vector<ExprPtr> args;  // further positional arguments
  struct Option {             // half_life 3d, gap 3m, last 8, within 1h, target .., slack 2%
    std::string name;
    ExprPtr value;
    Span span;
  };
  std::vector<Option> options;
  Span span;
};

// ---------------------------------------------------------------- types

struct TypeRef {
  std::string name;                  // "u16", "celsius", "enum", "array", "per", "set", "node", ...
  std::vector<Name> enum_words;      // enum(a, b)
  std::unique_ptr<TypeRef> element;  // array<u32, 5>, set<u16>, per<hour>
  std::vector<TypeRef> more;         // map<k, v>: element = k, more[0] = v
  uint32_t bound = 0;                // array bound
  bool optional = false;             // T?
  Span span;
};

// ---------------------------------------------------------------- declarations

struct Import {
  Name pack;
  std::string range;  // "1.2", "^3", ">= 1.4", ""
  Name as;
  std::vector<Name> only;
  Span span;
};

/// `clock { lateness 5s ... }`, `limits { keys 200k ... }`: name and value as written.
struct Setting {
  Name name;
  ExprPtr value;
  std::string suffix;  // "per key"
};

struct PackHead {
  Name name;
  std::string version;
  std::string engine_range;  // ">= 1.4"
  int64_t dsl = 1;
  std::vector<Import> imports;
  std::vector<Setting> clock;
  std::vector<Setting> limits;
  Span span;
};

struct FieldDecl {
  bool key = false;
  bool counter = false;
  bool redact = false;
  Name name;
  TypeRef type;
  Span span;
};

struct EventDecl {
  Name name;
  Name extends;
  bool abstract_kind = false;
  std::vector<FieldDecl> fields;
  std::vector<Name> dedup_fields;
  ExprPtr dedup_for;  // duration
};

struct ProfileParam {
  Name name;
  TypeRef type;  // name empty: an override
  ExprPtr value;
  ExprPtr within;  // range
  bool adaptive = false;
  std::vector<Setting> adaptive_settings;  // from, quantile, over, default, floor, ...
  Span span;
};

struct ProfileDecl {
  Name name;
  Name extends;
  bool abstract_profile = false;
  bool fallback = false;
  ExprPtr matches;  // label gpu.product like ".." and ..; `label X` is a kCall
  std::vector<ProfileParam> params;
  struct PriorScale {
    Name fault;
    ExprPtr value;
  };
  std::vector<PriorScale> prior_scales;
};

struct ListDecl {
  Name name;
  TypeRef type;   // set<u16>, map<..>
  ExprPtr value;  // kList; null when from a file
  std::string from_file;
  int64_t column = 1;
};

struct MacroDecl {
  Name name;
  struct Param {
    Name name;
    Name type;  // a kind or a type name
  };
  std::vector<Param> params;
  ExprPtr body;
};

/// A step of a sequence: `a: KIND where P`, `then b: ..`, `then absent u: .. for 30s`.
struct Step {
  enum class Mode : uint8_t { kFirst, kThen, kThenStrictly, kThenEither, kThenAbsent };
  Mode mode = Mode::kFirst;
  Name variable;  // may be empty
  KindPattern pattern;
  ExprPtr tolerance;  // then ~2s
  ExprPtr absent_for;
  Span span;
};

struct Unless {
  Name variable;
  KindPattern pattern;
  Name between_first;
  Name between_second;
  Span span;
};

/// `count .. >= n within D [each] [rearm n] [exact max n]`
struct CountCondition {
  std::unique_ptr<Aggregate> aggregate;
  BinaryOp op = BinaryOp::kGe;
  ExprPtr threshold;
  ExprPtr within;
  bool each = false;
  ExprPtr rearm;
  bool exact = false;
  ExprPtr exact_max;
  /// `count .. within D graded [extra N] [rising|steady|votes]`: no comparison.
  bool graded = false;
  ExprPtr graded_extra;
  std::string graded_shape;  // "", "rising", "steady", "votes"
  Span span;
};

struct SignalDecl {
  Name name;
  std::vector<Name> on;  // keys
  ExprPtr within;        // sequence window
  // sequence
  std::vector<Step> steps;
  std::vector<Unless> unless;
  std::vector<std::unique_ptr<Aggregate>> guards;  // `and none ..`
  std::string keep_mode;                           // "", "earliest", "latest", "all"
  ExprPtr keep_max;
  std::string after_match;  // "skip past last"
  // count
  std::optional<CountCondition> count;
  // condition
  ExprPtr when;
  ExprPtr for_span;
  ExprPtr keep_span;     // `keep 5m` of a condition
  ExprPtr clear;         // `clear below X` becomes: shown value < X; see clear_op
  std::string clear_op;  // "below", "above", "when"
  std::string nodata;    // "", "hold", "interrupt"
  ExprPtr nodata_for;
  ExprPtr peers_at_least;
  // any
  ExprPtr holds;
  Name exceptions;  // `exceptions known_sensor (node ==, gpu ==)`
  std::vector<Name> exception_keys;
  ExprPtr leak;          // leak 1e-3
  std::string leak_per;  // "hour", "job", "" (a probability)
  bool learn = false;
  Name was;         // `was old_name`
  std::string doc;  // leading comment block, joined
};

struct FeatureDecl {
  Name name;
  std::vector<Name> on;
  std::unique_ptr<Aggregate> value;
  std::vector<KindPattern> resets;
  Name was;
};

struct FaultDecl {
  bool external = false;
  Name name;
  std::vector<Name> on;
  ExprPtr prior;
  std::string prior_per;  // "job", "hour", "day"
  ExprPtr half_life;
  Name severity;
  Name remedy;
};

struct CausesDecl {
  enum class Verb : uint8_t { kCauses, kMasks, kExplainedBy };
  Verb verb = Verb::kCauses;
  Name cause;
  std::vector<Name> effects;
  ExprPtr p;  // literal or profile.x
  ExprPtr weight_nats;
  ExprPtr lag_lo;
  ExprPtr lag_hi;
  Name scope;             // empty = self
  ExprPtr when_at_least;  // masks
  ExprPtr when_in;
  Name on;  // explained by maintenance on node
  bool learn = false;
};

struct IncidentDecl {
  Name name;
  std::vector<Name> on;
  std::vector<KindPattern> opens_on;  // signals or kinds
  ExprPtr settle;
  ExprPtr merge_for;
  ExprPtr confirm;
  ExprPtr suspect;
  ExprPtr unexplained;
};

struct DecoderDecl {
  Name name;
  Name input;
  std::string prefix;  // "auto", "none"
  struct Assign {
    Name field;
    ExprPtr value;
  };
  struct Line {
    std::string regex;
    Span regex_span;
    bool ignore = false;
    Name kind;
    std::vector<Assign> assigns;
    int64_t fold = 1;  // `fold 3`: spans so many physical lines
    Span span;
  };
  std::vector<Line> lines;
};

// ---------------------------------------------------------------- tests (A12)

/// `n1`, `n[1..8]`, `n1/0`, `j`: who an event or expectation is about.
struct TestTarget {
  std::string text;  // as written
  std::string base;  // "n", "n1"
  bool ranged = false;
  int64_t lo = 0;
  int64_t hi = 0;
  std::vector<ExprPtr> sub;  // after '/': gpu index, nic name
  Span span;
};

struct TestDecl {
  std::string title;
  /// `test .. for (a, b) in [(..), ..]` is one TestDecl a row: the values stand in place of the
  /// variables, the title ends with the row ("limit [hw.h100, 88]"), `row` is kept for printing.
  std::vector<std::pair<Name, ExprPtr>> row;
  struct Nodes {
    TestTarget target;
    Name profile;
    std::vector<std::pair<Name, ExprPtr>> labels;  // with rack "r1"
    Span span;
  };
  struct Job {
    Name name;
    std::vector<TestTarget> nodes;
    ExprPtr at;  // `job j on n[1..8] from 0s`; null = before everything
    ExprPtr to;  // end of the job; null = never
    Span span;
  };
  /// `at T: KIND targets field value ... x10 every 2s` / `at A..B every D: ...` /
  /// `at T: log n1 "raw text"` (kind == "log": raw text through the decoders)
  struct Event {
    ExprPtr at;
    ExprPtr until;
    ExprPtr every;  // of the `at` range
    Name kind;
    std::vector<TestTarget> targets;
    std::vector<std::pair<Name, ExprPtr>> fields;
    std::string log_text;  // kind == "log"
    ExprPtr repeat;        // x10
    ExprPtr repeat_every;
    ExprPtr late;
    Span span;
  };
  struct Gap {
    Name source;
    TestTarget target;
    ExprPtr from;
    ExprPtr to;
    Span span;
  };
  struct Expect {
    bool negated = false;  // expect no SIGNAL
    bool allow = false;    // `allow SIGNAL`
    // signal form
    Name signal;
    std::optional<TestTarget> target;
    ExprPtr at;
    ExprPtr tolerance;
    ExprPtr before;  // `expect no SIGNAL before T`
    // verdict form
    bool verdict = false;
    Name incident;
    TestTarget job;
    struct Clause {
      /// "top", "not", "because", "silent", "none", "external", "undetermined", "suspect", "gpu"
      std::string what;
      std::vector<TestTarget> targets;
      std::vector<Name> names;  // fault of `top`, signals of `because` / `silent`
      BinaryOp p_op = BinaryOp::kGe;
      ExprPtr p;
      Span span;
    };
    std::vector<Clause> clauses;
    Span span;
  };
  std::vector<Nodes> nodes;
  std::vector<Job> jobs;
  std::vector<Event> events;
  std::vector<Gap> gaps;
  std::vector<Expect> expects;
  ExprPtr shuffle;
  bool strict = false;
};

// ---------------------------------------------------------------- overlays, rules on verdicts, ..

/// One change of an overlay (A4). Which members are set goes by the verb.
struct OverlayEntry {
  enum class Verb : uint8_t {
    kExtendList,     // extend list TARGET [ value ]
    kSetProfile,     // set profile TARGET  param | prior_scale
    kDisableSignal,  // disable signal TARGET [reason ..] [until ..]
    kExcept,         // except TARGET what (keys) [ rows ]
    kAliasKind,      // alias kind what = TARGET { assigns }
  };
  Verb verb = Verb::kExtendList;
  Name target;
  Name what;                        // the exception; the other name of the kind
  std::vector<Name> keys;           // except
  std::vector<ExprPtr> rows;        // except: a kList each
  ExprPtr value;                    // extend: kList
  std::optional<ProfileParam> set;  // set
  std::optional<ProfileDecl::PriorScale> scale;
  std::vector<DecoderDecl::Assign> assigns;  // alias: field = member (kName) or constant
  std::string reason;
  std::string until;
  Span span;
};
struct OverlayDecl {
  Name name;
  Name target;
  std::string range;
  std::vector<OverlayEntry> entries;
};

/// A piece of a template: literal text, or an expression with a printf format ("" = default).
struct TemplatePart {
  std::string text;
  ExprPtr value;
  std::string format;
  Span span;
};
/// `rule NAME on verdict v of INCIDENT where .. { .. }` (A10).
struct VerdictRuleDecl {
  Name name;
  Name variable;
  Name incident;
  ExprPtr where;
  ExprPtr severity;
  struct Label {
    Name name;
    ExprPtr value;
  };
  struct Annotation {
    Name name;
    std::vector<TemplatePart> parts;
  };
  /// `action cordon(v.top.node) limit 3 per rack in 1h mode dry_run`
  struct Action {
    Name name;
    std::vector<ExprPtr> args;
    int64_t limit = 0;  // 0 = none
    Name per;           // empty: over all
    ExprPtr in;
    Name mode;  // empty: dry_run
    Span span;
  };
  std::vector<Label> labels;
  std::vector<Annotation> annotations;
  std::vector<Action> actions;
  ExprPtr repeat_every;
  ExprPtr resolve_after;
};
struct SuppressDecl {
  Name name;
  std::vector<Name> signals;
  ExprPtr where;
  std::string until;
  std::string reason;
};
/// `cohort from event KIND by FIELD on node`, `repair from event KIND on node`.
struct BaselineDecl {
  bool repair = false;
  Name kind;
  Name field;  // cohort
  Name on;
};
struct MaintenanceDecl {
  Name from;
  Name until;
  Name on;
  ExprPtr grace;
};

/// `synergy FAULT from S1 and S2 weight 1.5 nats`
struct SynergyDecl {
  Name cause;
  std::vector<Name> signals;
  ExprPtr weight_nats;
};

using DeclNode = std::variant<EventDecl, ProfileDecl, ListDecl, MacroDecl, DecoderDecl, SignalDecl,
                              FeatureDecl, FaultDecl, CausesDecl, IncidentDecl, TestDecl,
                              OverlayDecl, VerdictRuleDecl, SuppressDecl, MaintenanceDecl,
                              BaselineDecl, SynergyDecl>;

struct Decl {
  bool exported = false;
  DeclNode node;
  Span span;
};

/// One file. `head` is present in the file that holds the `pack` statement.
struct Module {
  source::FileId file = 0;
  std::optional<PackHead> head;
  std::vector<Decl> decls;
};

/// Deterministic text form for `check --emit ast` and golden tests.
std::string print(const Module& module);
std::string print_decl(const Decl& decl);

}  // namespace reflex::ast

// Index: what every name of the workspace declares and where it is used.
//
// Contract: built of the syntax trees alone, so that it works while packs have mistakes; names are
// looked up as sema does it (own pack, imports, aliases). A file that does not parse keeps the
// declarations of its last good text that its present text still seems to name. Pointers into the
// trees are valid until the session changes. Deterministic: symbols stand in the order of packs,
// files and places. Not: types of expressions, diagnostics (sema's).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "compiler/driver/session.h"

namespace reflex::lsp {

using source::FileId;
using source::Span;
using SymbolId = uint32_t;
inline constexpr SymbolId kNoSymbol = 0xFFFFFFFFu;

enum class SymbolKind : uint8_t {
  kPack,
  kKind,  // of events
  kField,
  kProfile,
  kParameter,
  kList,
  kMacro,
  kFeature,
  kSignal,
  kCause,
  kIncident,
  kDecoder,
  kOverlay,
  kRule,
  kSuppress,
  kTest,
  kException,
  kVariable,  // a step, a parameter of a macro, the verdict of a rule
};
inline constexpr size_t kSymbolKinds = static_cast<size_t>(SymbolKind::kVariable) + 1;
/// "signal", "event kind", ..
std::string_view word_of(SymbolKind kind);

struct Symbol {
  SymbolKind kind = SymbolKind::kPack;
  std::string name;  // short: without the pack
  sema::PackIndex pack = 0;
  Span span;                     // of the name; meaningless for builtins
  Span whole;                    // of the declaration
  SymbolId owner = kNoSymbol;    // of a field, exception or variable
  SymbolId of_kind = kNoSymbol;  // of a variable: the kind of event it stands for; of a kind or
                                 // profile: what it extends
  bool visible = true;           // outside of its pack
  bool builtin = false;
  bool stale = false;  // of the last good text
  const ast::Decl* decl = nullptr;
  const ast::FieldDecl* field = nullptr;
  const ast::ProfileParam* param = nullptr;
  const ast::PackHead* head = nullptr;
  std::string builtin_type;  // of a field of a builtin kind, as declarations write it
};

/// A place that names a symbol, or a word that means something without one.
struct Occurrence {
  enum class Word : uint8_t { kSymbol, kType, kEnumWord, kFunction, kTarget, kVariable };
  Span span;
  SymbolId symbol = kNoSymbol;
  bool declares = false;
  Word word = Word::kSymbol;
};

class Index {
 public:
  Index(const compiler::Session& session, const sema::PackSet& packs,
        const abi::CompiledPack& plans);

  [[nodiscard]] const std::vector<Symbol>& symbols() const { return symbols_; }
  [[nodiscard]] const Symbol& symbol(SymbolId id) const { return symbols_[id]; }
  /// Sorted by place.
  [[nodiscard]] const std::vector<Occurrence>& occurrences(FileId file) const;
  /// The smallest occurrence that holds the place or ends there.
  [[nodiscard]] const Occurrence* at(FileId file, uint32_t offset) const;
  /// Every place of a symbol, by path and offset.
  [[nodiscard]] std::vector<Occurrence> places(SymbolId symbol) const;

  /// The symbols that `name` can mean in `pack`; own pack before imports, as sema has it.
  [[nodiscard]] std::vector<SymbolId> find(SymbolKind kind, sema::PackIndex pack,
                                           const std::string& name) const;
  /// Whether `pack` may write the short name of this symbol.
  [[nodiscard]] bool may_see(sema::PackIndex pack, const Symbol& symbol) const;
  /// Fields of a kind with those it inherits, its own first.
  [[nodiscard]] std::vector<SymbolId> fields(SymbolId kind) const;
  [[nodiscard]] SymbolId field(SymbolId kind, const std::string& name) const;
  /// The kind or profile and what it extends, itself first.
  [[nodiscard]] std::vector<SymbolId> chain(SymbolId id) const;
  [[nodiscard]] sema::PackIndex pack_of(FileId file) const;
  [[nodiscard]] const sema::PackSet& packs() const { return packs_; }
  [[nodiscard]] const compiler::Session& session() const { return session_; }
  /// Fields of a verdict, as rules on verdicts read them.
  [[nodiscard]] const std::vector<std::string>& verdict_fields() const { return verdict_fields_; }
  /// Variables whose scope is the declaration around this place.
  [[nodiscard]] std::vector<SymbolId> variables_at(FileId file, uint32_t offset) const;

 private:
  friend class Declarer;
  friend class User;
  SymbolId add(Symbol symbol);
  void use(Span span, SymbolId symbol, bool declares = false);
  void word(Span span, Occurrence::Word word);
  void sort();

  const compiler::Session& session_;
  const sema::PackSet& packs_;
  std::vector<Symbol> symbols_;
  std::multimap<std::string, SymbolId> by_name_[kSymbolKinds];
  std::unordered_map<SymbolId, std::vector<SymbolId>> members_;  // fields, exceptions
  std::map<FileId, std::vector<Occurrence>> occurrences_;
  std::map<FileId, sema::PackIndex> pack_of_;
  std::vector<std::string> verdict_fields_;
};

/// One name of a dotted path with its place.
struct Segment {
  std::string text;
  Span span;
};
/// The names of a dotted path as it is written in the source.
std::vector<Segment> segments(const source::SourceMap& sources, Span span);

/// The comment lines right above a declaration, without `#`.
std::string comment_above(std::string_view text, uint32_t offset);

}  // namespace reflex::lsp

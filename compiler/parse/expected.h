// What could have stood here: a walk over the automaton of the grammar (ANTLR's ATN).
//
// ANTLR reports where its prediction gave up and the tokens of that one decision; with soft
// keywords that is a list of 200 words at the wrong place. Here all paths are followed through the
// tokens of one declaration (NFA with shared stacks); the first token that no path accepts is the
// place of the error, and what the paths wanted there is the expectation. Used on the error path
// only. Cost: O(tokens * live paths); the grammar is nearly unambiguous, so few paths live.
#pragma once

#include <antlr4-runtime.h>

#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "compiler/parse/tokens.h"

namespace reflex::parse {

struct Expectation {
  std::vector<std::string> shown;     // "'within'", "a name", ..; sorted by usefulness
  std::vector<std::string> keywords;  // every keyword and unit that fits, for did-you-mean
  std::vector<size_t> types;          // token types that fit, names folded
  [[nodiscard]] bool wants(size_t type) const;
};

class Simulator {
 public:
  Simulator(const antlr4::Parser& parser, const Tokens& tokens)
      : atn_(parser.getATN()), vocabulary_(parser.getVocabulary()), tokens_(tokens) {}

  /// Follows the tokens of [start, stop); returns the first position that no path accepts, or
  /// stop. `complete()` tells whether a declaration could end there.
  size_t run(size_t start, size_t stop);
  [[nodiscard]] Expectation next();
  [[nodiscard]] bool complete() const { return complete_; }

 private:
  struct Config {
    antlr4::atn::ATNState* state;
    int32_t stack;  // index into stacks_, -1 = empty
  };
  struct Frame {
    antlr4::atn::ATNState* follow;
    int32_t below;
  };
  int32_t push(antlr4::atn::ATNState* follow, int32_t below);
  /// Visits every state reachable without a token from `configs`; `fold` stops at rules that have
  /// a label in messages and tells them instead.
  template <typename OnEdge, typename OnRule>
  void close(const std::vector<Config>& configs, OnEdge on_edge, OnRule on_rule);

  const antlr4::atn::ATN& atn_;
  const antlr4::dfa::Vocabulary& vocabulary_;
  const Tokens& tokens_;
  std::vector<Frame> stacks_;
  std::unordered_map<uint64_t, int32_t> stack_ids_;
  std::vector<Config> kernel_;
  bool complete_ = false;
};

}  // namespace reflex::parse

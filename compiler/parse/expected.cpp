// See expected.h. Labels: a rule in kLabels is told as its label; rules in is_quiet() only
// continue what already stands there (operators, dots), and are told when nothing else is.
#include "compiler/parse/expected.h"

#include <algorithm>
#include <array>
#include <set>
#include <unordered_set>

#include "RuleParser.h"

namespace reflex::parse {
namespace {

using antlr4::atn::ATNState;
using antlr4::atn::RuleTransition;
using antlr4::atn::Transition;
using Parser = rfxgen::RuleParser;

// Why: a declaration with that many live paths is too ambiguous to say anything useful about.
constexpr size_t kPathsMax = 20'000;

struct Label {
  size_t rule;
  std::string_view text;
};

std::string_view label_of(size_t rule) {
  static constexpr std::array<Label, 21> kLabels = {{
      {Parser::RuleDottedName, "a name"},
      {Parser::RuleIdentifier, "a name"},
      {Parser::RuleExprName, "a name"},
      {Parser::RuleWord, "a name"},
      {Parser::RuleWordPath, "a name"},
      {Parser::RuleClauseWord, "a name"},
      {Parser::RuleClausePath, "a name"},
      {Parser::RuleExpr, "an expression"},
      {Parser::RuleComparison, "an expression"},
      {Parser::RuleSum, "an expression"},
      {Parser::RuleTerm, "an expression"},
      {Parser::RulePrimary, "an expression"},
      {Parser::RuleTypeRef, "a type"},
      {Parser::RuleTarget, "a node or job"},
      {Parser::RuleClauseTarget, "a node"},
      {Parser::RuleBareNumber, "a number"},
      {Parser::RuleComparisonOp, "a comparison"},
      {Parser::RuleVersion, "a version"},
      {Parser::RuleVersionRange, "a version"},
      {Parser::RuleTestItem, "a field and its value"},
      {Parser::RuleTimeWord, "a unit of time"},
  }};
  for (const Label& label : kLabels) {
    if (label.rule == rule) {
      return label.text;
    }
  }
  return {};
}

/// Rules that are one clause of a block; their keywords are offered to did-you-mean only.
std::string_view clause_label_of(size_t rule) {
  switch (rule) {
    case Parser::RuleSignalClause:
      return "a clause of the signal";
    case Parser::RuleTestStatement:
      return "a statement of the test";
    case Parser::RuleVerdictClause:
      return "a clause of the verdict";
    case Parser::RuleSetting:
      return "a setting";
    case Parser::RuleCallOption:
      return "an option";
    default:
      return {};
  }
}

/// Entering `rule` from `from` would continue an operand that is already complete.
bool continues_operand(size_t rule, size_t from) {
  return rule == Parser::RuleArithmeticOp || rule == Parser::RuleComparisonTail ||
         (rule == Parser::RuleCallArguments && from == Parser::RuleAccess);
}

/// Rules whose tokens continue an operand or a name.
bool is_quiet(size_t rule) {
  static constexpr std::array<size_t, 20> kQuiet = {
      Parser::RuleExpr,         Parser::RuleComparison,   Parser::RuleComparisonTail,
      Parser::RuleSum,          Parser::RuleArithmeticOp, Parser::RulePrimary,
      Parser::RuleAccess,       Parser::RuleAccessTail,   Parser::RuleDottedName,
      Parser::RuleWordPath,     Parser::RuleClausePath,   Parser::RuleTarget,
      Parser::RuleClauseTarget, Parser::RuleTypeRef,      Parser::RuleUnit,
      Parser::RuleTestUnit,     Parser::RuleVersionRange, Parser::RuleBareNumber,
      Parser::RuleSettings,     Parser::RuleComparisonOp};
  return std::find(kQuiet.begin(), kQuiet.end(), rule) != kQuiet.end();
}

bool closes_bracket(size_t type) { return type == Lexer::RPAREN || type == Lexer::RBRACKET; }

/// A token type as a message shows it.
std::string shown(size_t type, const antlr4::dfa::Vocabulary& vocabulary) {
  switch (type) {
    case antlr4::Token::EOF:
      return "the end of the file";
    case Lexer::IDENT:
      return "a name";
    case Lexer::INT:
    case Lexer::REAL:
    case Lexer::PERCENT:
      return "a number";
    case Lexer::STRING:
    case Lexer::RAW_STRING:
      return "a string";
    case Lexer::DATE:
      return "a date like 2026-12-31";
    case Lexer::VERSION:
      return "a version";
    case Lexer::DURATION:
      return "a duration";
    case Lexer::LINE_RE:
      return "'line /pattern/'";
    case Lexer::REPEAT_COUNT:
      return "a count like x10";
    case Lexer::UNIT:
    case Lexer::RATE_UNIT:
      return "a unit";
    default:
      return vocabulary.getDisplayName(type);
  }
}

bool is_keyword(const std::string& name) {
  return name.size() > 2 && name.front() == '\'' && name[1] >= 'a' && name[1] <= 'z' &&
         name.find(' ') == std::string::npos;
}

void add_units(std::vector<std::string>& words) {
  for (const char* unit : {"celsius", "watt", "hertz", "byte", "nats", "ratio", "KiB", "MiB", "GiB",
                           "TiB", "kHz", "MHz", "GHz", "count"}) {
    words.emplace_back(unit);
  }
}

std::vector<size_t> types_of(const Transition& edge, size_t max_type) {
  std::vector<size_t> types;
  for (size_t type = 1; type <= max_type; ++type) {
    if (edge.matches(type, 1, max_type)) {
      types.push_back(type);
    }
  }
  if (edge.matches(antlr4::Token::EOF, 1, max_type)) {
    types.push_back(antlr4::Token::EOF);
  }
  return types;
}

}  // namespace

bool Expectation::wants(size_t type) const {
  return std::find(types.begin(), types.end(), type) != types.end();
}

int32_t Simulator::push(ATNState* follow, int32_t below) {
  const uint64_t key =
      (static_cast<uint64_t>(follow->stateNumber) << 32) | static_cast<uint32_t>(below);
  const auto [it, fresh] = stack_ids_.emplace(key, static_cast<int32_t>(stacks_.size()));
  if (fresh) {
    stacks_.push_back({follow, below});
  }
  return it->second;
}

template <typename OnEdge, typename OnRule>
void Simulator::close(const std::vector<Config>& configs, OnEdge on_edge, OnRule on_rule) {
  std::vector<Config> work = configs;
  std::unordered_set<uint64_t> seen;
  while (!work.empty() && seen.size() < kPathsMax) {
    const Config c = work.back();
    work.pop_back();
    const uint64_t key =
        (static_cast<uint64_t>(c.state->stateNumber) << 32) | static_cast<uint32_t>(c.stack);
    if (!seen.insert(key).second) {
      continue;
    }
    if (c.state->getStateType() == ATNState::RULE_STOP) {
      if (c.stack < 0) {
        complete_ = true;
      } else {
        const Frame frame = stacks_[static_cast<size_t>(c.stack)];
        work.push_back({frame.follow, frame.below});
      }
      continue;
    }
    for (Transition* edge : c.state->transitions) {
      if (edge->getSerializationType() == Transition::RULE) {
        auto* rule = static_cast<RuleTransition*>(edge);
        if (on_rule(rule->target->ruleIndex, c.state->ruleIndex)) {
          work.push_back({rule->target, push(rule->followState, c.stack)});
        }
      } else if (edge->isEpsilon()) {
        work.push_back({edge->target, c.stack});
      } else {
        on_edge(*edge, c);
      }
    }
  }
}

size_t Simulator::run(size_t start, size_t stop) {
  kernel_.assign(1, {atn_.ruleToStartState[Parser::RuleDeclaration], -1});
  for (size_t at = start; at < stop; ++at) {
    const size_t type = tokens_.type(at);
    std::vector<Config> reached;
    complete_ = false;
    close(
        kernel_,
        [&](const Transition& edge, const Config& from) {
          if (edge.matches(type, 1, atn_.maxTokenType)) {
            reached.push_back({edge.target, from.stack});
          }
        },
        [](size_t, size_t) { return true; });
    if (reached.empty()) {
      return at;
    }
    kernel_ = std::move(reached);
  }
  return stop;
}

Expectation Simulator::next() {
  complete_ = false;
  std::set<std::string> main, quiet, words;
  std::set<size_t> types;
  close(
      kernel_,
      [&](const Transition& edge, const Config& from) {
        for (const size_t type : types_of(edge, atn_.maxTokenType)) {
          const bool continues = is_quiet(from.state->ruleIndex) && !closes_bracket(type);
          if (type != Lexer::SEMICOLON) {
            (continues ? quiet : main).insert(shown(type, vocabulary_));
          }
        }
      },
      [&](size_t rule, size_t from) {
        if (continues_operand(rule, from)) {
          quiet.insert("an operator");
          return false;
        }
        const std::string_view label = label_of(rule);
        const std::string_view clause = clause_label_of(rule);
        if (!label.empty() || !clause.empty()) {
          main.emplace(label.empty() ? clause : label);
          return false;
        }
        return true;
      });
  // Once more without folding clauses: the keywords that a misspelt word can have meant.
  close(
      kernel_,
      [&](const Transition& edge, const Config&) {
        for (const size_t type : types_of(edge, atn_.maxTokenType)) {
          types.insert(type);
          const std::string name = shown(type, vocabulary_);
          if (is_keyword(name)) {
            words.insert(name.substr(1, name.size() - 2));
          }
        }
      },
      [&](size_t rule, size_t from) {
        if (continues_operand(rule, from) || label_of(rule) == "a comparison") {
          types.insert(Lexer::EQ);
          return false;
        }
        return label_of(rule).empty();
      });
  Expectation result;
  const std::set<std::string>& told = main.empty() ? quiet : main;
  result.shown.assign(told.begin(), told.end());
  result.keywords.assign(words.begin(), words.end());
  if (types.count(Lexer::UNIT) != 0) {
    add_units(result.keywords);
  }
  result.types.assign(types.begin(), types.end());
  return result;
}

}  // namespace reflex::parse

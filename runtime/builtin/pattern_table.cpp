// PatternTable: construction and matching. Patterns are compiled once, never per event.
#include "runtime/builtin/pattern_table.h"

#include <re2/re2.h>

#include <algorithm>
#include <cstring>
#include <limits>

namespace reflex::builtin {

PatternTable::~PatternTable() = default;

Result<std::shared_ptr<const PatternTable>> PatternTable::make(
    const PatternSource& source, std::shared_ptr<const SymbolTable> symbols) {
  std::shared_ptr<PatternTable> table(new PatternTable);
  table->symbols_ = std::move(symbols);
  table->globs_ = source.globs;
  table->int_sets_ = source.int_sets;
  for (const std::string& text : source.texts) {
    std::vector<uint64_t> words((sizeof(abi::Text) + text.size() + 7) / 8);
    const abi::Text header{static_cast<uint32_t>(text.size())};
    std::memcpy(words.data(), &header, sizeof header);
    std::memcpy(reinterpret_cast<char*>(words.data()) + sizeof header, text.data(), text.size());
    table->texts_.push_back(std::move(words));
  }
  re2::RE2::Options options;
  options.set_log_errors(false);
  for (const std::string& pattern : source.regexes) {
    auto regex = std::make_unique<re2::RE2>(pattern, options);
    if (!regex->ok()) return Error{"regular expression /" + pattern + "/: " + regex->error()};
    if (regex->ProgramSize() > kRegexProgramMax) {
      return Error{"regular expression /" + pattern +
                   "/ is too large: " + std::to_string(regex->ProgramSize()) +
                   " instructions, at most " + std::to_string(kRegexProgramMax)};
    }
    table->regexes_.push_back(std::move(regex));
  }
  return std::shared_ptr<const PatternTable>(std::move(table));
}

const abi::Text* PatternTable::text(uint32_t index) const noexcept {
  return reinterpret_cast<const abi::Text*>(texts_[index].data());
}

bool PatternTable::glob_matches(uint32_t index, std::string_view text) const noexcept {
  return glob_match(globs_[index], text);
}

bool PatternTable::regex_matches(uint32_t index, std::string_view text) const noexcept {
  return re2::RE2::PartialMatch(re2::StringPiece(text.data(), text.size()), *regexes_[index]);
}

bool PatternTable::symbol_matches(uint32_t glob, int64_t symbol) const noexcept {
  if (symbols_ == nullptr || symbol < 0) return false;
  if (static_cast<uint64_t>(symbol) >= symbols_->size()) return false;
  return glob_match(globs_[glob], symbols_->name(static_cast<SymbolId>(symbol)));
}

bool PatternTable::set_contains(uint32_t index, int64_t value) const noexcept {
  const std::vector<int64_t>& set = int_sets_[index];
  return std::binary_search(set.begin(), set.end(), value);
}

bool glob_match(std::string_view glob, std::string_view text) noexcept {
  constexpr size_t kNoStar = std::numeric_limits<size_t>::max();
  size_t g = 0;
  size_t t = 0;
  size_t star = kNoStar;  // the last '*' seen, and the text position it is tried to reach up to
  size_t star_text = 0;
  while (t < text.size()) {
    if (g < glob.size() && glob[g] == '*') {
      star = g++;
      star_text = t;
    } else if (g < glob.size() && (glob[g] == '?' || glob[g] == text[t])) {
      ++g;
      ++t;
    } else if (star != kNoStar) {
      g = star + 1;
      t = ++star_text;
    } else {
      return false;
    }
  }
  while (g < glob.size() && glob[g] == '*') ++g;
  return g == glob.size();
}

}  // namespace reflex::builtin

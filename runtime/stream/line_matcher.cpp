// Literal prefilter over RE2 patterns.
#include "runtime/stream/line_matcher.h"

#include <algorithm>
#include <cctype>

#include "runtime/base/check.h"

namespace reflex::stream {
namespace {

constexpr int kAtomBytesMin = 3;  // Why: shorter literals stand in nearly every line

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c; }

/// How rare a byte is in log text; higher is rarer. Why: only the order matters.
int rarity(char c) {
  if (std::string_view("etaoinsrh ").find(c) != std::string_view::npos) return 0;
  if (std::string_view("jqxzvkw").find(c) != std::string_view::npos) return 3;
  if (c >= 'a' && c <= 'z') return 1;
  if (c >= '0' && c <= '9') return 0;
  if (std::string_view(":.,[]=-").find(c) != std::string_view::npos) return 1;
  return 3;
}

uint16_t pair_of(char a, char b) {
  return static_cast<uint16_t>(static_cast<unsigned char>(a) | static_cast<unsigned char>(b) << 8);
}

bool equal_lower(const char* text, std::string_view atom) {
  for (size_t i = 0; i < atom.size(); ++i) {
    if (lower(text[i]) != atom[i]) return false;
  }
  return true;
}

/// The longest run of plain word characters at the top level of a pattern, lower case: a match
/// always holds it inside one physical line. Empty when there is none.
std::string longest_word(std::string_view pattern) {
  if (pattern.find('|') != std::string_view::npos) return {};
  std::string best;
  std::string run;
  int depth = 0;
  bool in_class = false;
  const auto close_run = [&](bool quantified) {
    if (quantified && !run.empty()) run.pop_back();
    if (run.size() > best.size()) best = run;
    run.clear();
  };
  for (size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    if (c == '\\') {
      close_run(false);
      ++i;
    } else if (in_class) {
      in_class = c != ']';
    } else if (c == '[') {
      close_run(false);
      in_class = true;
      if (i + 1 < pattern.size() && pattern[i + 1] == ']') ++i;
    } else if (c == '(' || c == ')') {
      close_run(false);
      depth += c == '(' ? 1 : -1;
    } else if (c == '*' || c == '?' || c == '{' || c == '+') {
      close_run(true);
      if (c == '{') {
        while (i < pattern.size() && pattern[i] != '}') ++i;
      }
    } else if (depth == 0 && (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_')) {
      run += lower(c);
    } else {
      close_run(false);
    }
  }
  close_run(false);
  return best.size() >= 4 ? best : std::string();
}

}  // namespace

LineMatcher::LineMatcher(const abi::CompiledPack& pack)
    : filter_(kAtomBytesMin), anchors_(1), anchor_index_(65536) {
  re2::RE2::Options options;
  options.set_log_errors(false);
  std::vector<std::string> filter_atoms;
  for (const abi::DecoderPlan& decoder : pack.decoders) {
    if (decoder.input != "text" && !decoder.input.empty()) continue;
    for (const abi::DecoderLine& plan : decoder.lines) {
      Line line{&plan, std::make_unique<re2::RE2>(plan.pattern, options), -1};
      RFX_CHECK(line.pattern->ok());  // the compiler has checked it
      int id = 0;
      RFX_CHECK(filter_.Add(plan.pattern, options, &id) == re2::RE2::NoError);
      RFX_CHECK(id == static_cast<int>(lines_.size()));
      if (plan.fold_lines > 1) {
        folds_.push_back(id);
        fold_max_ = std::max(fold_max_, plan.fold_lines);
      }
      lines_.push_back(std::move(line));
    }
  }
  if (lines_.empty()) return;
  filter_.Compile(&filter_atoms);
  has_filter_ = true;
  atoms_ = std::move(filter_atoms);
  filter_atoms_ = atoms_.size();
  for (const int fold : folds_) {
    const std::string word = longest_word(lines_[fold].plan->pattern);
    if (word.empty()) continue;
    lines_[fold].guard = static_cast<int>(atoms_.size());
    atoms_.push_back(word);
  }
  for (size_t atom = 0; atom < atoms_.size(); ++atom) add_atom(atom);
  filter_.AllPotentials({}, &always_);
}

void LineMatcher::add_atom(size_t atom) {
  const std::string& text = atoms_[atom];
  size_t best = 0;
  int best_rarity = -1;
  for (size_t i = 0; i + 1 < text.size(); ++i) {
    const int value = rarity(text[i]) + rarity(text[i + 1]);
    if (value > best_rarity) {
      best_rarity = value;
      best = i;
    }
  }
  const auto upper = [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c & ~0x20) : c; };
  std::vector<uint16_t> pairs;
  for (const char a : {text[best], upper(text[best])}) {
    for (const char b : {text[best + 1], upper(text[best + 1])}) pairs.push_back(pair_of(a, b));
  }
  std::sort(pairs.begin(), pairs.end());
  pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
  for (const uint16_t pair : pairs) {
    pairs_.set(pair);
    if (anchor_index_[pair] == 0) {
      anchor_index_[pair] = static_cast<uint16_t>(anchors_.size());
      anchors_.emplace_back();
    }
    anchors_[anchor_index_[pair]].push_back(
        {static_cast<uint32_t>(atom), static_cast<uint32_t>(best)});
  }
}

void LineMatcher::find_atoms(std::string_view text, std::vector<int>& atoms) const {
  atoms.clear();
  for (size_t i = 0; i + 1 < text.size(); ++i) {
    const uint16_t pair = pair_of(text[i], text[i + 1]);
    if (!pairs_[pair]) continue;
    for (const Anchor& anchor : anchors_[anchor_index_[pair]]) {
      const std::string& atom = atoms_[anchor.atom];
      if (i < anchor.offset || i - anchor.offset + atom.size() > text.size()) continue;
      if (equal_lower(text.data() + i - anchor.offset, atom)) {
        atoms.push_back(static_cast<int>(anchor.atom));
      }
    }
  }
  if (atoms.size() < 2) return;
  std::sort(atoms.begin(), atoms.end());
  atoms.erase(std::unique(atoms.begin(), atoms.end()), atoms.end());
}

void LineMatcher::potentials(const std::vector<int>& atoms, std::vector<int>& lines) const {
  if (atoms.empty() || !has_filter_) {
    lines = always_;
    return;
  }
  std::vector<int> known;
  for (const int atom : atoms) {
    if (static_cast<size_t>(atom) < filter_atoms_) known.push_back(atom);
  }
  filter_.AllPotentials(known, &lines);
  std::sort(lines.begin(), lines.end());
}

}  // namespace reflex::stream

// Literal prefilter over RE2 patterns.
#include "runtime/stream/line_matcher.h"

#include <algorithm>
#include <cctype>
#include <cstring>

#include "runtime/base/check.h"

namespace reflex::stream {
namespace {

// Why: three bytes stand in many lines by chance, and looking for them costs a second pass; they are
// atoms only where a pattern has nothing longer.
constexpr size_t kAtomBytes = 4;
constexpr size_t kAtomBytesMin = 3;  // Why: shorter literals stand in nearly every line

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

uint32_t three_bytes(const char* p) {
  const auto byte = [p](size_t i) { return uint32_t{static_cast<unsigned char>(p[i])}; };
  return byte(0) | byte(1) << 8 | byte(2) << 16;
}

uint32_t four_bytes(const char* p) {
  uint32_t word;
  std::memcpy(&word, p, sizeof word);
  return word;
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
    : anchors_(1), bytes_(1) {
  four_.anchors.resize(four_.starts.size());
  three_.anchors.resize(three_.starts.size());
  re2::RE2::Options options;
  options.set_log_errors(false);
  std::vector<std::string> filter_atoms;
  for (const abi::DecoderPlan& decoder : pack.decoders) {
    if (decoder.input != "text" && !decoder.input.empty()) continue;
    for (const abi::DecoderLine& given : decoder.lines) {
      const abi::DecoderLine& plan = plans_.emplace_back(given);
      Line line{&plan, std::make_unique<re2::RE2>(plan.pattern, options), decoder.kernel_only, -1};
      RFX_CHECK(line.pattern->ok());  // the compiler has checked it
      const int id = static_cast<int>(lines_.size());
      if (plan.fold_lines > 1) {
        folds_.push_back(id);
        fold_max_ = std::max(fold_max_, plan.fold_lines);
      }
      lines_.push_back(std::move(line));
    }
  }
  if (lines_.empty()) return;
  make_filter(kAtomBytes, filter_atoms);
  if (!always_.empty()) make_filter(kAtomBytesMin, filter_atoms);
  atoms_ = std::move(filter_atoms);
  filter_atoms_ = atoms_.size();
  for (const int fold : folds_) {
    const std::string word = longest_word(lines_[fold].plan->pattern);
    if (word.empty()) continue;
    lines_[fold].guard = static_cast<int>(atoms_.size());
    atoms_.push_back(word);
  }
  for (size_t atom = 0; atom < atoms_.size(); ++atom) add_atom(atom);
}

void LineMatcher::make_filter(size_t atom_bytes, std::vector<std::string>& atoms) {
  re2::RE2::Options options;
  options.set_log_errors(false);
  filter_ = std::make_unique<re2::FilteredRE2>(static_cast<int>(atom_bytes));
  for (size_t i = 0; i < lines_.size(); ++i) {
    int id = 0;
    RFX_CHECK(filter_->Add(lines_[i].plan->pattern, options, &id) == re2::RE2::NoError);
    RFX_CHECK(id == static_cast<int>(i));
  }
  atoms.clear();
  filter_->Compile(&atoms);
  filter_->AllPotentials({}, &always_);
}

void LineMatcher::add_atom(size_t atom) {
  const std::string& text = atoms_[atom];
  RFX_CHECK(text.size() >= kAtomBytesMin);
  const size_t width = std::min<size_t>(text.size(), 4);
  size_t best = 0;
  int best_rarity = -1;
  for (size_t i = 0; i + width <= text.size(); ++i) {
    int value = 0;
    for (size_t k = i; k < i + width; ++k) value += rarity(text[k]);
    if (value > best_rarity) {
      best_rarity = value;
      best = i;
    }
  }
  Anchor anchor;
  anchor.atom = static_cast<uint32_t>(atom);
  anchor.offset = static_cast<uint32_t>(best);
  anchor.size = static_cast<uint32_t>(text.size());
  // The window covers the rarest bytes and what is around them.
  const size_t window = text.size() <= 8 ? 0 : std::min(best < 3 ? 0 : best - 3, text.size() - 8);
  anchor.window = static_cast<uint32_t>(window);
  for (size_t i = 0; i < std::min<size_t>(8, text.size()); ++i) {
    const char c = text[window + i];
    anchor.word |= uint64_t{static_cast<unsigned char>(c)} << i * 8;
    anchor.mask |= uint64_t{0xFF} << i * 8;
    if (c >= 'a' && c <= 'z') anchor.fold |= uint64_t{0x20} << i * 8;
  }
  Index& index = width == 4 ? four_ : three_;
  const uint32_t hash = width == 4 ? hash_of(four_bytes(text.data() + best))
                                   : hash_of_three(three_bytes(text.data() + best));
  has_short_ = has_short_ || width < 4;
  index.starts.set(hash);
  const uint32_t bytes = width == 4 ? four_bytes(text.data() + best) | kFold : 0;
  if (index.anchors[hash] == 0) {
    index.anchors[hash] = static_cast<uint16_t>(anchors_.size());
    anchors_.emplace_back();
    bytes_.push_back(bytes);
  } else if (uint32_t& known = bytes_[index.anchors[hash]]; known != bytes) {
    known = 0;
  }
  anchors_[index.anchors[hash]].push_back(anchor);
}

inline bool LineMatcher::stands_at(const Anchor& anchor, std::string_view text, size_t at) const {
  if (at < anchor.offset || at - anchor.offset + anchor.size > text.size()) return false;
  const size_t start = at - anchor.offset;
  if (start + anchor.window + 8 <= text.size()) {
    uint64_t word;
    std::memcpy(&word, text.data() + start + anchor.window, 8);
    if (((word | anchor.fold) & anchor.mask) != anchor.word) return false;
    if (anchor.size <= 8) return true;
  }
  return equal_lower(text.data() + start, atoms_[anchor.atom]);
}

void LineMatcher::check(uint16_t anchors, std::string_view text, size_t at,
                        std::vector<int>& atoms) const {
  for (const Anchor& anchor : anchors_[anchors]) {
    if (stands_at(anchor, text, at)) atoms.push_back(static_cast<int>(anchor.atom));
  }
}

void LineMatcher::find_short_atoms(std::string_view text, std::vector<int>& atoms) const {
  for (size_t i = 0; i + kAtomBytesMin <= text.size(); ++i) {
    const uint32_t hash = hash_of_three(three_bytes(text.data() + i));
    if (three_.starts[hash]) check(three_.anchors[hash], text, i, atoms);
  }
}

void LineMatcher::find_atoms(std::string_view text, std::vector<int>& atoms) const {
  atoms.clear();
  for (size_t i = 0; i + 4 <= text.size(); ++i) {
    const uint32_t bytes = four_bytes(text.data() + i);
    const uint32_t hash = hash_of(bytes);
    if (!four_.starts[hash]) continue;
    const uint16_t anchors = four_.anchors[hash];
    const uint32_t expected = bytes_[anchors];
    if (expected == 0 || expected == (bytes | kFold)) check(anchors, text, i, atoms);
  }
  if (has_short_) find_short_atoms(text, atoms);
  if (atoms.size() < 2) return;
  std::sort(atoms.begin(), atoms.end());
  atoms.erase(std::unique(atoms.begin(), atoms.end()), atoms.end());
}

void LineMatcher::potentials(const std::vector<int>& atoms, std::vector<int>& lines) const {
  if (atoms.empty() || !filter_) {
    lines = always_;
    return;
  }
  std::vector<int> known;
  for (const int atom : atoms) {
    if (static_cast<size_t>(atom) < filter_atoms_) known.push_back(atom);
  }
  filter_->AllPotentials(known, &lines);
  std::sort(lines.begin(), lines.end());
}

}  // namespace reflex::stream

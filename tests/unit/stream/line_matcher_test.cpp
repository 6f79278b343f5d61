// The prefilter of line patterns: it may let too much through, but never loses a match.
#include "runtime/stream/line_matcher.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>

#include "tests/unit/stream/pack_fixture.h"

namespace reflex::stream {
namespace {

/// Patterns whose literals are short, long, in mixed case, at the ends of the text, overlapping.
LineMatcher make_matcher(abi::CompiledPack& pack, bool with_short = true) {
  abi::DecoderPlan decoder;
  decoder.input = "text";
  std::vector<const char*> patterns = {"NVRM: Xid",
                                       "nvrm.*fallen off the bus",
                                       "link (up|down)",
                                       "(?i)mlx5_core.*health",
                                       "fatal",
                                       "Fatal error 0x[0-9a-f]+",
                                       "Out of memory: Killed process"};
  if (with_short) patterns.insert(patterns.end(), {"Xid", "qzx"});  // no literal of four bytes
  for (const char* pattern : patterns) {
    abi::DecoderLine line;
    line.pattern = pattern;
    decoder.lines.push_back(line);
  }
  pack.decoders = {decoder};
  return LineMatcher(pack);
}

std::string random_text() {
  std::string text;
  for (int i = *rc::gen::inRange(0, 6); i > 0; --i) {
    text += *rc::gen::element<std::string>(
        "Xid", "NVRM: ", "nvrm", "fallen off the bus", "link ", "up", "down", "MLX5_core", "health",
        "fatal", "Fatal error 0x1f", "qzx", "QZX", "Out of memory: Killed process", "Out of memo",
        " ", "[", "\xff", "0123456789");
  }
  if (!text.empty() && *rc::gen::arbitrary<bool>()) {
    text[*rc::gen::inRange<size_t>(0, text.size())] ^= 0x20;
  }
  return text;
}

void expect_no_match_lost(bool with_short) {
  abi::CompiledPack pack;
  const LineMatcher matcher = make_matcher(pack, with_short);
  EXPECT_TRUE(rc::check([&] {
    // Exactly as large as the text: a read behind its end is seen by the sanitizer.
    const std::string text = random_text();
    const std::vector<char> exact(text.begin(), text.end());
    std::vector<int> atoms;
    std::vector<int> lines;
    matcher.find_atoms({exact.data(), exact.size()}, atoms);
    matcher.potentials(atoms, lines);
    for (int id = 0; id < static_cast<int>(matcher.lines().size()); ++id) {
      if (!re2::RE2::PartialMatch(text, *matcher.lines()[id].pattern)) continue;
      RC_ASSERT(std::find(lines.begin(), lines.end(), id) != lines.end());
    }
  }));
}

TEST(LineMatcher, Never_loses_a_match) {
  expect_no_match_lost(false);
  expect_no_match_lost(true);
}

TEST(LineMatcher, Text_without_any_literal_has_no_candidates) {
  abi::CompiledPack pack;
  const LineMatcher matcher = make_matcher(pack);
  for (const char* text :
       {"", "x", "usb 1-14.1: new device", "Xi", "NVRM: Xi d", "killed process"}) {
    std::vector<int> atoms;
    std::vector<int> lines;
    matcher.find_atoms(text, atoms);
    matcher.potentials(atoms, lines);
    EXPECT_TRUE(lines.empty()) << text;
  }
}

}  // namespace
}  // namespace reflex::stream

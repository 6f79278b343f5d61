// Hostile and broken files: one clear diagnostic, never a crash. Fuzzing with fixed seeds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <random>
#include <sstream>

#include "tests/unit/parse/parse_fixture.h"

namespace reflex::parse_test {
namespace {

using testing::HasSubstr;

std::string repeat(const std::string& text, size_t count) {
  std::string out;
  for (size_t i = 0; i < count; ++i) {
    out += text;
  }
  return out;
}

void expect_single(const std::string& text, const char* id) {
  const Parsed p(text);
  ASSERT_EQ(p.sink.sorted().size(), 1u) << p.errors().substr(0, 2000);
  EXPECT_THAT(p.errors(), HasSubstr(id));
}

TEST(DepthBombs, AreOneErrorEach) {
  constexpr size_t kMany = 30'000;
  const std::string head = "signal s on node { when ";
  expect_single(head + repeat("(", kMany) + "a" + repeat(")", kMany) + " }", "[R403]");
  expect_single(head + repeat("(", kMany), "[R403]");
  expect_single(head + "a in " + repeat("[", kMany), "[R403]");
  expect_single(head + repeat("f(", kMany), "[R403]");
  expect_single(repeat("{", kMany), "[R403]");
  expect_single(head + repeat("not ", kMany) + "a }", "[R403]");
  expect_single(head + repeat("- ", kMany) + "a > 1 }", "[R403]");
  expect_single(head + repeat("5% of ", kMany) + "a > 1 }", "[R403]");
  expect_single("event e { x: " + repeat("set<", kMany) + "u8 }", "[R403]");
}

TEST(DepthBombs, LongChainsAreBounded) {
  const std::string head = "signal s on node { when ";
  expect_single(head + "a" + repeat(" + a", 30'000) + " > 1 }", "[R415]");
  expect_single(head + "a" + repeat(" or a", 30'000) + " }", "[R415]");
  expect_single(head + "f(a)" + repeat(".a", 30'000) + " > 1 }", "[R415]");
  expect_single(head + "f(a)" + repeat("[1]", 30'000) + " > 1 }", "[R415]");
}

TEST(DepthBombs, WhatIsAllowedParses) {
  EXPECT_EQ(Parsed("signal s on node { when " + repeat("(", 190) + "a" + repeat(")", 190) + " }")
                .errors(),
            "");
  EXPECT_EQ(Parsed("signal s on node { when a" + repeat(" or a", 900) + " }").errors(), "");
}

TEST(Texts, NotUtf8NulSizeAndEmpty) {
  expect_single("event e { \xFF }", "byte 10 is not valid UTF-8 [R404]");
  expect_single("\xC0\x80", "[R404]");
  expect_single("\xED\xA0\x80", "[R404]");
  expect_single("\xF4\x90\x80\x80", "[R404]");
  expect_single("event \xE2\x82", "[R404]");
  expect_single(std::string("event e\0 { }", 12), "is NUL");
  expect_single(
      "\xEF\xBB\xBF\xEF\xBB\xBF"
      "event e { }",
      "[R404]");
  expect_single(std::string(9u << 20, ' '), "[R401]");
  EXPECT_EQ(Parsed("").errors(), "");
  EXPECT_EQ(Parsed("\xEF\xBB\xBF").errors(), "");
  EXPECT_EQ(Parsed("# only a comment").errors(), "");
}

TEST(Texts, TokenLimit) {
  parse::Limits limits;
  limits.tokens_max = 100;
  const Parsed p(repeat("; ", 200), limits);
  EXPECT_THAT(p.errors(), HasSubstr("[R402]"));
}

std::string examples() {
  std::ifstream file(REFLEX_SOURCE_DIR "/tests/unit/parse/language_examples.rfx");
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

/// Pieces of the text: words, numbers, runs of blanks, single characters.
std::vector<std::string> pieces(const std::string& text) {
  std::vector<std::string> result;
  for (size_t i = 0; i < text.size();) {
    size_t end = i + 1;
    const auto word = [&](size_t k) {
      return std::isalnum(static_cast<unsigned char>(text[k])) != 0 || text[k] == '_';
    };
    if (word(i)) {
      while (end < text.size() && word(end)) {
        ++end;
      }
    }
    result.push_back(text.substr(i, end - i));
    i = end;
  }
  return result;
}

/// Whatever the text: no crash, spans inside the file, printable.
void must_survive(const std::string& text) {
  const Parsed p(text);
  const size_t size = p.map.text(0).size();
  for (const auto& d : p.sink.all()) {
    ASSERT_LE(d.span.begin, d.span.end);
    ASSERT_LE(d.span.end, size);
    ASSERT_NE(d.id, diag::Id::kParserInternal) << d.message << "\n" << text;
  }
  (void)p.errors();
  (void)diag::render_json(p.sink.sorted(), p.map);
  (void)p.printed();
}

TEST(Fuzz, RandomBytes) {
  std::mt19937 random(20260301);
  for (int round = 0; round < 1500; ++round) {
    std::string text(random() % 200, ' ');
    for (char& c : text) {
      c = static_cast<char>(round % 2 == 0 ? random() % 256 : 32 + random() % 95);
    }
    must_survive(text);
  }
}

TEST(Fuzz, MutatedExamples) {
  const std::string text = examples();
  // One declaration at a time keeps a round cheap.
  std::vector<std::string> declarations;
  for (size_t begin = 0; begin < text.size();) {
    size_t end = text.find("\n", begin + 1);
    while (end != std::string::npos && end + 1 < text.size() &&
           std::isalpha(static_cast<unsigned char>(text[end + 1])) == 0) {
      end = text.find("\n", end + 1);
    }
    end = end == std::string::npos ? text.size() : end;
    declarations.push_back(text.substr(begin, end - begin) + "\n");
    begin = end;
  }
  ASSERT_GT(declarations.size(), 30u);
  const std::vector<std::string> words = pieces(text);
  std::mt19937 random(7);
  for (int round = 0; round < 3000; ++round) {
    std::string mutated;
    for (int k = 0; k < 2; ++k) {
      auto parts = pieces(declarations[random() % declarations.size()]);
      for (size_t changes = 1 + random() % 3; changes > 0 && !parts.empty(); --changes) {
        const size_t at = random() % parts.size();
        switch (random() % 4) {
          case 0:
            parts.erase(parts.begin() + static_cast<long>(at));
            break;
          case 1:
            parts.insert(parts.begin() + static_cast<long>(at), words[random() % words.size()]);
            break;
          case 2:
            parts[at] = words[random() % words.size()];
            break;
          default:
            std::swap(parts[at], parts[random() % parts.size()]);
        }
      }
      for (const auto& part : parts) {
        mutated += part;
      }
    }
    must_survive(mutated);
  }
}

TEST(Fuzz, EveryPrefixOfTheExamples) {
  const std::string text = examples();
  for (size_t size = 0; size < text.size(); size += 97) {
    must_survive(text.substr(0, size));
  }
}

}  // namespace
}  // namespace reflex::parse_test

// What an author is told about a broken file: place, text, help. One root cause, one error.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/parse/parse_fixture.h"

namespace reflex::parse_test {
namespace {

using testing::HasSubstr;

struct Case {
  const char* text;
  const char* first_line;  // "line:col: error: message"
  const char* help;        // "" = none
};

class BrokenInput : public testing::TestWithParam<Case> {};

TEST_P(BrokenInput, GivesOneErrorWithPlaceTextAndHelp) {
  const Parsed p(GetParam().text);
  const auto all = p.sink.sorted();
  ASSERT_EQ(all.size(), 1u) << p.errors();
  EXPECT_THAT(p.errors(), HasSubstr(std::string("t.rfx:") + GetParam().first_line));
  EXPECT_EQ(all[0].help, GetParam().help);
}

INSTANTIATE_TEST_SUITE_P(
    All, BrokenInput,
    testing::Values(
        Case{"singal s on node { e: k }", "1:1: error: 'singal' does not begin a declaration",
             "did you mean 'signal'?"},
        Case{"signal s on node { e: k wheer it.x == 3 }", "1:25: error: 'wheer' is not expected",
             "did you mean 'where'?"},
        Case{"signal s on node { e: k where it.x = 3 }", "1:36: error: '=' is not a comparison",
             "write '=='"},
        Case{"signal s on node { count k >= 2 witin 24h }",
             "1:33: error: 'witin' is not expected here", "did you mean 'within'?"},
        Case{"signal s on node { count k >= 2 }",
             "1:33: error: expected 'within' after '2', found '}'", ""},
        Case{"signal s on node { e: k where it.x == 3 == 4 }",
             "1:41: error: comparisons do not chain: '==' follows a complete comparison",
             "join two comparisons with 'and', or use parentheses"},
        Case{"signal s on node { when a > 90 && b }", "1:33: error: '&&' is not an operator",
             "write 'and'"},
        Case{"signal s on node { when !a }",
             "1:25: error: the character '!' has no meaning in the language", "write 'not'"},
        Case{"signal s on node { when a > (90 + 3 for 2m }",
             "1:37: error: expected ')' after '3', found 'for'", ""},
        Case{"signal s on node { e: k where it.op == \"abc }",
             "1:40: error: the string has no closing '\"' on its line",
             "close it, or write \"\"\" .. \"\"\" for a text of several lines"},
        Case{"signal s { e: k }", "1:10: error: expected 'on' after 's', found '{'", ""},
        Case{"event gpu.x { code u16 }", "1:20: error: expected ':' after 'code', found 'u16'", ""},
        Case{"f causes s p 0.6 lagg -24h .. 1h", "1:18: error: 'lagg' is not expected here",
             "did you mean 'lag'?"},
        Case{"fault f on node { prior 2e-4 severty critical }",
             "1:30: error: 'severty' is not expected here", "did you mean 'severity'?"},
        Case{"incident j on job { opens on x settle 30 s }",
             "1:42: error: a blank between the number and the unit of a duration", "write '30s'"},
        Case{"signal s on node { when a > 90 celcius }",
             "1:32: error: 'celcius' is not expected here", "did you mean 'celsius'?"},
        Case{"decoder d for text { line /abc -> k { a = b } }",
             "1:22: error: the regular expression has no closing '/' on its line",
             "close it; write '\\/' for a slash inside of it"},
        Case{"feature f on node rate(k, 6h)",
             "1:19: error: expected '=' after 'node', found 'rate'", ""},
        Case{"profile hw.x extends { }", "1:22: error: expected a name after 'extends', found '{'",
             ""},
        Case{"test \"t\" { at 1h gpu.xid n1 }",
             "1:18: error: expected '..', ':' or 'every' after '1h', found 'gpu'", ""},
        Case{"test \"t\" { at 1h: gpu.xid n1/0 code }",
             "1:32: error: the field 'code' has no value", "write 'code' and its value"},
        Case{"}", "1:1: error: '}' closes nothing: no block is open here",
             "remove it, or look for a block above that ends too early"},
        Case{"clock { lateness 5s }", "1:1: error: 'clock' needs a pack statement before it",
             "move it to the file that holds the pack statement (pack.rfx)"},
        Case{"list l = [99999999999999999999]",
             "1:11: error: the number 99999999999999999999 does not fit in 64 bits", ""},
        Case{"signal s on node { e: a holds 1m holds 2m }", "1:34: error: 'holds' is given twice",
             "remove one of the two"},
        Case{"signal s on node { e: a f: b }", "1:25: error: a further step begins with 'then'",
             "write 'then f: ..'"}));

TEST(Errors, RenderedWithExcerptAndCaretRange) {
  EXPECT_EQ(Parsed("pack a 1.0.0\nsignal s on node { e: k wheer it.x == 3 }\n").errors(),
            "t.rfx:2:25: error: 'wheer' is not expected here [R100]\n"
            " 2 | signal s on node { e: k wheer it.x == 3 }\n"
            "   |                         ^~~~~\n"
            "help: did you mean 'where'?\n");
}

TEST(Errors, ForgottenBraceNamesWhereTheBlockOpened) {
  const Parsed p("signal d on node {\n  e: k where it.x == 31\n\nsignal e on node { e: k }\n");
  EXPECT_EQ(p.errors(),
            "t.rfx:4:1: error: '}' is missing before 'signal' [R100]\n"
            " 4 | signal e on node { e: k }\n"
            "   | ^~~~~~\n"
            "t.rfx:1:18: note: the block was opened here\n"
            " 1 | signal d on node {\n"
            "   |                  ^\n"
            "help: close the block with '}'\n");
  EXPECT_EQ(p.module.decls.size(), 1u) << "the next declaration is not lost";
}

TEST(Errors, ForgottenBraceAtTheEndOfTheFile) {
  const Parsed p("test \"t\" {\n  expect verdict j x { top n1\n");
  ASSERT_EQ(p.sink.error_count(), 1u);
  EXPECT_THAT(p.errors(), HasSubstr("'}' is missing before the end of the file"));
  EXPECT_THAT(p.errors(), HasSubstr("t.rfx:2:22: note: the block was opened here"));
}

TEST(Errors, UnfinishedDeclarationBeforeTheNextOne) {
  const Parsed p("macro m(e: k) = e.code in\nevent e { key node: node }\n");
  ASSERT_EQ(p.sink.error_count(), 1u) << p.errors();
  EXPECT_THAT(p.errors(), HasSubstr("t.rfx:2:1: error: expected an expression after 'in'"));
  EXPECT_THAT(p.printed(), HasSubstr("(event e"));
}

TEST(Errors, IndependentOnesAreAllReportedAndTheRestParses) {
  const Parsed p(
      "signal a on node { e k }\nsignal ok on node { e: k }\nevent b { x u8 }\n"
      "fault c on node { prior }\nf causes ok p 0.5\n");
  EXPECT_EQ(p.sink.error_count(), 3u) << p.errors();
  EXPECT_EQ(p.module.decls.size(), 2u);
}

TEST(Errors, TwentyAreShownThenACount) {
  std::string text;
  for (int i = 0; i < 25; ++i) {
    text += "event b" + std::to_string(i) + " { x u8 }\n";
  }
  const Parsed p(text);
  EXPECT_EQ(p.sink.error_count(), 25u);
  EXPECT_THAT(p.errors(), HasSubstr("5 more errors\n"));
}

TEST(Errors, JsonHasTheFieldsOfTheSpecification) {
  const Parsed p("singal s on node { }\n");
  EXPECT_EQ(diag::render_json(p.sink.sorted(), p.map),
            "{\"file\":\"t.rfx\",\"range\":{\"start\":{\"line\":1,\"col\":1},\"end\":{\"line\":1,"
            "\"col\":7}},\"severity\":\"error\",\"id\":\"R100\",\"message\":\"'singal' does not "
            "begin a declaration\",\"notes\":[],\"help\":\"did you mean 'signal'?\",\"fixes\":[{"
            "\"range\":{\"start\":{\"line\":1,\"col\":1},\"end\":{\"line\":1,\"col\":7}},"
            "\"newText\":\"signal\",\"safe\":false}]}\n");
}

TEST(Errors, ColumnsCountCodePoints) {
  const Parsed p("signal s on node { e: k where it.x == \"\xC3\xA4\xE2\x82\xAC\" kep latest }");
  EXPECT_THAT(p.errors(), HasSubstr("t.rfx:1:44: error: 'kep'"));
}

TEST(PackHead, OldEngineIsToldThatOnly) {
  const Parsed p("pack a 1.0.0 requires engine >= 9.4 dsl 1\nnew syntax ! here {{{\n");
  ASSERT_EQ(p.sink.all().size(), 1u);
  EXPECT_THAT(p.errors(), HasSubstr("t.rfx:1:14: error: the pack needs engine >= 9.4, this is "
                                    "engine 1.0.0 [R501]"));
  EXPECT_TRUE(p.module.decls.empty());
}

TEST(PackHead, DslVersionAndMetRequirements) {
  EXPECT_THAT(Parsed("pack a 1.0.0 dsl 2 !!").errors(), HasSubstr("[R502]"));
  for (const char* range : {">= 1.0", "1.0", "^1", "~1.0", "== 1.0.0", "< 2", "> 0.9.9"}) {
    EXPECT_EQ(Parsed("pack a 1.0.0 requires engine " + std::string(range)).errors(), "") << range;
  }
  for (const char* range :
       {">= 1.0.1", "^2", "< 1", "> 1.0.0", "!= 1.0.0", "99999999999999999999"}) {
    EXPECT_THAT(Parsed("pack a 1.0.0 requires engine " + std::string(range)).errors(),
                HasSubstr("[R501]"))
        << range;
  }
}

TEST(PackHead, SecondOrLateHeadIsRefused) {
  EXPECT_THAT(Parsed("pack a 1.0.0\npack b 1.0.0").errors(), HasSubstr("[R503]"));
  EXPECT_THAT(Parsed("event e { }\npack b 1.0.0").errors(), HasSubstr("[R503]"));
}

TEST(DidYouMean, NearWordsOnly) {
  const std::vector<std::string> words = {"signal", "severity", "temp_hot", "p"};
  EXPECT_EQ(diag::did_you_mean("singal", words), "signal");
  EXPECT_EQ(diag::did_you_mean("temp_hto", words), "temp_hot");
  EXPECT_EQ(diag::did_you_mean("Signal", words), "signal");
  EXPECT_EQ(diag::did_you_mean("banana", words), std::nullopt);
  EXPECT_EQ(diag::did_you_mean("q", words), std::nullopt);
  EXPECT_EQ(diag::did_you_mean("", words), std::nullopt);
}

TEST(DiagnosticTable, IdsAreSortedUniqueAndReadBack) {
  unsigned before = 0;
  for (const auto& row : diag::all_ids()) {
    EXPECT_LT(before, static_cast<unsigned>(row.id)) << row.title;
    before = static_cast<unsigned>(row.id);
    EXPECT_EQ(diag::parse_id(diag::to_text(row.id)), row.id);
    EXPECT_FALSE(row.title.empty());
  }
  EXPECT_EQ(diag::parse_id("R9999"), std::nullopt);
  EXPECT_EQ(diag::parse_id("X100"), std::nullopt);
}

}  // namespace
}  // namespace reflex::parse_test

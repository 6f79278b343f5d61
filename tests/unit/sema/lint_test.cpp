// Lints of A13: names that hide others, conditions that have one answer.
#include "tests/unit/sema/support.h"

namespace reflex::test {
namespace {

#define READ(signal) " incident i on node { opens on " signal " }"

struct Case {
  const char* name;
  const char* text;
  const char* ids;
  const char* underlined;  // of the first one
};

class Lints : public ::testing::TestWithParam<Case> {};

TEST_P(Lints, id_and_place) {
  const Case& c = GetParam();
  const auto out = compile_pack(c.text);
  EXPECT_EQ(ids(*out, true), c.ids) << rendered(*out);
  const auto all = out->sink.sorted();
  ASSERT_FALSE(all.empty());
  EXPECT_EQ(underlined(*out, all[0]), c.underlined);
}

const Case kCases[] = {
    {"step_hides_a_feature",
     "feature wear on node = since(node.heartbeat) signal s on node { wear: gpu.xid where "
     "wear.code == 48 } signal r on node { when wear > 5m }" READ("s or r"),
     "R221", "wear"},
    {"step_hides_the_key", "signal s on node { node: gpu.xid where node.code == 48 }" READ("s"),
     "R221", "node"},
    {"parameter_hides_a_word",
     "macro m(now: gpu.xid) = now.code == 48 signal s on node { e: gpu.xid where m(e) }" READ("s"),
     "R221", "now"},
    {"contradiction_of_reals",
     "signal s on (node, gpu) { e: gpu.temp where e.value > 90 celsius and e.value < 80 celsius "
     "}" READ("s"),
     "R209", "e.value > 90 celsius and e.value < 80 celsius"},
    {"contradiction_in_a_when",
     "signal s on (node, gpu) { when gpu.temp.value >= 90 celsius and 90 celsius > "
     "gpu.temp.value }" READ("s"),
     "R209", "gpu.temp.value >= 90 celsius and 90 celsius > gpu.temp.value"},
    {"contradiction_below_an_or",
     "signal s on node { e: gpu.xid where e.pid == 1 or e.code == 48 and e.code == 63 }" READ("s"),
     "R209", "e.code == 48 and e.code == 63"},
    {"alternatives_leave_nothing_out",
     "signal s on (node, gpu) { e: gpu.temp where e.value > 80 celsius or e.value <= 90 celsius "
     "}" READ("s"),
     "R209", "e.value > 80 celsius or e.value <= 90 celsius"},
};

INSTANTIATE_TEST_SUITE_P(sema, Lints, ::testing::ValuesIn(kCases),
                         [](const auto& row) { return std::string(row.param.name); });

TEST(Lint, ranges_that_leave_something_over_are_no_contradiction) {
  for (const char* where : {"e.value > 80 celsius and e.value < 90 celsius",
                            "e.value > 80 celsius or e.value < 80 celsius",
                            "e.value >= 80 celsius and e.value <= 80 celsius",
                            "e.value > 80 celsius and e.limit < 70 celsius",
                            "e.value > 90 celsius or e.value <= 80 celsius"}) {
    const auto out = compile_pack("signal s on (node, gpu) { e: gpu.temp where " +
                                  std::string(where) + " }" READ("s"));
    EXPECT_EQ(ids(*out, true), "") << where << rendered(*out);
  }
}

TEST(Lint, other_names_may_be_like_a_field_or_a_signal) {
  const auto out = compile_pack(
      "signal code on node { e: gpu.xid where e.code == 48 } signal s on node { code: gpu.xid "
      "where code.code == 63 }" READ("s or code"));
  EXPECT_EQ(ids(*out, true), "") << rendered(*out);
}

}  // namespace
}  // namespace reflex::test

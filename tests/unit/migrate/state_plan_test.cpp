// What becomes of state when a pack changes (language.md B6, rule 4), case by case.
#include "runtime/abi/state_plan.h"

#include "tests/unit/sema/support.h"

namespace reflex::test {
namespace {

using abi::Fate;
using abi::StateChange;

struct Both {
  std::unique_ptr<compiler::Compilation> before;
  std::unique_ptr<compiler::Compilation> after;
};

Both both(const std::string& before, const std::string& after) {
  compiler::Options options;
  options.backend = compiler::Backend::kInterp;
  options.symbols = std::make_shared<SymbolTable>();
  Both out;
  auto a = compiler::compile_text({{"t/pack.rfx", kKinds + before}}, options);
  auto b = compiler::compile_text({{"t/pack.rfx", kKinds + after}}, options);
  out.before = std::move(a).value();
  out.after = std::move(b).value();
  EXPECT_NE(out.before->pack, nullptr) << rendered(*out.before);
  EXPECT_NE(out.after->pack, nullptr) << rendered(*out.after);
  return out;
}

/// The change of `name`, after a change of the pack's text from `before` to `after`.
StateChange change_of(const std::string& before, const std::string& after,
                      const std::string& name = "t.s") {
  const Both c = both(before, after);
  for (auto& change :
       abi::state_plan(abi::state_items(*c.before->pack), abi::state_items(*c.after->pack))) {
    if (change.name == name) return change;
  }
  ADD_FAILURE() << "nothing about " << name;
  return {};
}

struct Row {
  const char* name;
  const char* before;
  const char* after;
  Fate fate;
  const char* why;
  bool incomplete = false;
};

class Migration : public ::testing::TestWithParam<Row> {};

TEST_P(Migration, of_one_signal) {
  const Row& row = GetParam();
  const StateChange change = change_of(row.before, row.after);
  EXPECT_EQ(abi::word_of(change.fate), abi::word_of(row.fate)) << change.why;
  EXPECT_EQ(change.why, row.why);
  EXPECT_EQ(change.incomplete, row.incomplete);
  EXPECT_EQ(change.changed, row.why[0] != '\0');
  EXPECT_GT(change.bytes_per_key, 0u);
}

constexpr const char* kAgain = "constants changed: evaluated again at once";
constexpr const char* kSteps = "steps, kinds, aggregate or predicates changed";

INSTANTIATE_TEST_SUITE_P(
    rules, Migration,
    ::testing::Values(
        Row{"nothing", "signal s on node { e: gpu.xid where e.code == 48 }",
            "# moved\n\nsignal  s on node { e: gpu.xid where e.code == 48 }", Fate::kKept, ""},
        Row{"literal", "signal s on node { e: gpu.xid where e.code == 48 }",
            "signal s on node { e: gpu.xid where e.code == 63 }", Fate::kKept, kAgain},
        Row{"one_value_to_a_set", "signal s on node { e: gpu.xid where e.code in [48, 50] }",
            "signal s on node { e: gpu.xid where e.code in [48, 63, 74] }", Fate::kKept, kAgain},
        Row{"threshold", "signal s on node { count gpu.xid >= 3 within 1h }",
            "signal s on node { count gpu.xid >= 5 within 1h }", Fate::kKept, kAgain},
        Row{"leak", "signal s on node { e: gpu.xid } leak 1e-3 per hour",
            "signal s on node { e: gpu.xid } leak 1e-4 per hour", Fate::kKept, kAgain},
        Row{"longer_window", "signal s on node { count gpu.xid >= 3 within 10m }",
            "signal s on node { count gpu.xid >= 3 within 1h }", Fate::kKept, "window 10m -> 1h",
            true},
        Row{"shorter_window", "signal s on node { count gpu.xid >= 3 within 1h }",
            "signal s on node { count gpu.xid >= 3 within 10m }", Fate::kTrimmed,
            "window 1h -> 10m"},
        Row{"shorter_sequence", "signal s on node within 2m { a: gpu.xid then b: gpu.ecc }",
            "signal s on node within 1m { a: gpu.xid then b: gpu.ecc }", Fate::kTrimmed,
            "window 2m -> 1m"},
        Row{"longer_for", "signal s on (node, gpu) { when gpu.temp.value > 83 celsius for 2m }",
            "signal s on (node, gpu) { when gpu.temp.value > 83 celsius for 5m }", Fate::kKept,
            kAgain},
        Row{"when", "signal s on (node, gpu) { when gpu.temp.value > 83 celsius }",
            "signal s on (node, gpu) { when gpu.temp.value > 83 celsius or gpu.temp.power > 300 "
            "watt }",
            Fate::kKept, kAgain},
        Row{"keys", "signal s on node { e: gpu.xid }", "signal s on (node, gpu) { e: gpu.xid }",
            Fate::kReset, "on node -> (node, gpu)"},
        Row{"kind", "signal s on node { count gpu.xid >= 3 within 1h }",
            "signal s on node { count gpu.ecc >= 3 within 1h }", Fate::kReset, kSteps},
        Row{"aggregate", "signal s on node { count gpu.xid >= 3 within 1h }",
            "signal s on node { count distinct gpu of gpu.xid >= 3 within 1h }", Fate::kReset,
            kSteps},
        Row{"storage", "signal s on node { count gpu.xid >= 3 within 1h }",
            "signal s on node { count gpu.xid >= 3 within 1h exact max 500 }", Fate::kReset,
            kSteps},
        Row{"predicate", "signal s on node { count gpu.xid where it.code == 48 >= 3 within 1h }",
            "signal s on node { count gpu.xid where it.code == 48 and it.pid == 1 >= 3 within 1h }",
            Fate::kReset, kSteps},
        Row{"another_step", "signal s on node within 1m { a: gpu.xid then b: gpu.ecc }",
            "signal s on node within 1m { a: gpu.xid then b: gpu.ecc then c: gpu.throttle }",
            Fate::kReset, "sequence of 2 step(s) -> sequence of 3 step(s)"},
        Row{"another_form", "signal s on node { e: gpu.xid }",
            "signal s on node { count gpu.xid >= 3 within 1h }", Fate::kReset,
            "sequence of 1 step(s) -> count"}),
    [](const auto& row) { return std::string(row.param.name); });

TEST(MigrationPlan, other_declarations_do_not_matter) {
  const std::string s =
      "feature f on node = rate(gpu.xid, 6h) signal s on node { when f > 3 per hour } ";
  const std::string more =
      "feature a on node = since(node.heartbeat) list l: set<u16> = [1, 2] "
      "signal r on node { e: gpu.xid where e.code in l } signal q on node { when a > 5m } ";
  EXPECT_FALSE(change_of(s, more + s).changed);
  EXPECT_FALSE(change_of(s, more + s, "t.f").changed);
}

TEST(MigrationPlan, a_list_that_a_signal_reads_changes_it) {
  const std::string signal = "signal s on node { e: gpu.xid where e.code in l } ";
  const auto change =
      change_of("list l: set<u16> = [48, 50] " + signal, "list l: set<u16> = [48, 63] " + signal);
  EXPECT_TRUE(change.changed);
  EXPECT_EQ(change.fate, Fate::kKept);
}

TEST(MigrationPlan, new_removed_and_renamed) {
  const std::string a = "signal s on node { count gpu.xid >= 3 within 1h }";
  const std::string b = "signal r on node { count gpu.xid >= 3 within 1h }";
  EXPECT_EQ(change_of(a, b, "t.r").fate, Fate::kNew);
  EXPECT_EQ(change_of(a, b, "t.s").fate, Fate::kRemoved);
  const auto renamed =
      change_of(a, "signal r on node { count gpu.xid >= 3 within 1h was s }", "t.r");
  EXPECT_EQ(renamed.fate, Fate::kKept);
  EXPECT_EQ(renamed.why, "was t.s");
}

TEST(MigrationPlan, features) {
  const std::string read = " signal s on node { when f > 3 } ";
  EXPECT_EQ(change_of("feature f on node = count(gpu.xid, within 6h)" + read,
                      "feature f on node = count(gpu.xid, within 3h)" + read, "t.f")
                .fate,
            Fate::kTrimmed);
  EXPECT_EQ(change_of("feature f on node = count(gpu.xid, within 6h)" + read,
                      "feature f on node = count(gpu.ecc, within 6h)" + read, "t.f")
                .fate,
            Fate::kReset);
  const auto longer = change_of("feature f on node = streak(job.step.slow)" + read,
                                "feature f on node = recurrences(gpu.xid, 1d)" + read, "t.f");
  EXPECT_EQ(longer.fate, Fate::kReset);
}

}  // namespace
}  // namespace reflex::test

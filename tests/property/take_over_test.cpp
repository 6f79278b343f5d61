// A set takes the place of another one in place: what the new engine and reorder buffer have is, to
// the byte, what they had if the state had been saved and loaded; and both go on alike.
#include <gtest/gtest.h>

#include <random>

#include "tests/property/stage.h"

namespace reflex {
namespace {

using test::Stage;
using test::compile;

/// What an author changes of a pack, by number; 0 is the pack as it was.
struct Edits {
  int threshold = 0, window = 0, samples = 0, absence = 0, count = 0, strength = 0, settle = 0,
      aggregate = 0, steps = 0, graded = 0;
};

std::string pack_of(const Edits& e) {
  return fmt::format(
      R"rfx(pack days 1.0.0
event gpu.xid {{ key node: node  code: u16 }}
event gpu.temp {{ key node: node  value: f64 }}
event ops.driver {{ key node: node  version: word }}
cohort from event ops.driver by version on node
feature heat on node = {}(gpu.temp.value, last {})
profile hw.base abstract {{
  adaptive heat_high: f64 {{ from heat quantile 0.9 over 7d default 65 floor 1 ceiling 200 min_samples 50 }}
}}
profile hw.unknown extends hw.base fallback {{ }}
profile hw.one extends hw.base matches label product like "one" {{ }}
signal xid on node {{ e: gpu.xid where e.code == 79 }} leak {}e-4 per hour
signal warn on node {{ e: gpu.xid where e.code == 63 }} holds 20m leak 1e-3 per hour
signal hot on node {{ when heat > {} for {}m }}
signal over on node {{ when heat > profile.heat_high for 5m }}
signal storm on node {{ when count(gpu.xid where it.code == 63, {}m) >= {} }}
signal wear on node {{ {} }}
signal pair on node {{ x: gpu.xid where x.code == 63 then t: gpu.temp where t.value > {}{} within 30m }}
signal silent on node {{ x: gpu.xid where x.code == 63 then absent t: gpu.temp for {}m }}
fault gpu on node {{ prior 2e-4 per job }}
fault memory on node {{ prior 2e-4 per job }}
gpu causes xid p 0.{} lag -1m .. 5m
memory causes warn p 0.7 lag -1h .. 5m
memory causes hot p 0.2 lag -1h .. 5m
memory causes wear p 0.3 lag -72h .. 5m
incident hang on job {{ opens on incident.open  settle {}s  merge for 2m }}
)rfx",
      e.aggregate % 2 == 0 ? "mean" : "max", 8 + e.samples % 3, 1 + e.strength % 3,
      70 + e.threshold % 4, e.threshold % 2, 30 + e.window % 20, 2 + e.count % 5,
      e.graded % 2 == 0 ? "count gpu.xid where it.code == 63 within 72h graded"
                        : "when count(gpu.xid where it.code == 63, 72h) >= 3",
      80 - e.threshold % 3,
      e.steps % 2 == 0 ? "" : " then v: gpu.xid where v.code == 63", 10 + e.absence % 4,
      5 + e.strength % 3, 30 + e.settle % 5);
}

class Author {
 public:
  explicit Author(uint64_t seed) : random_(seed) {}
  void edit(Edits& e) {
    for (int* part : {&e.threshold, &e.window, &e.samples, &e.absence, &e.count, &e.strength,
                      &e.settle, &e.aggregate, &e.steps, &e.graded}) {
      if (random_() % 6 == 0) *part = static_cast<int>(random_() % 60);
    }
  }

 private:
  std::mt19937_64 random_;
};

std::string start_of_events() {
  std::string out = R"({"ts":1000,"kind":"job.start","job":"j","nodes":["n0","n1","n2","n3","n4"]})"
                    "\n";
  for (int n = 0; n < 10; ++n) {
    out += fmt::format(
        R"({{"ts":1000,"kind":"node.labels","node":"n{}","labels":{{"product":"{}"}}}})"
        "\n",
        n, n < 7 ? "one" : "two");
  }
  return out;
}

/// Some hours of ten nodes from `minute` on.
std::string events(uint64_t seed, int64_t& minute, int64_t until) {
  std::mt19937_64 random(seed);
  std::string out;
  for (; minute < until; minute += 1 + static_cast<int64_t>(random() % 4)) {
    const int64_t ts = minute * 60'000 + static_cast<int64_t>(random() % 60'000);
    const auto node = random() % 10;
    const auto line = [&](const std::string& rest) {
      out += fmt::format("{{\"ts\":{},{}}}\n", ts, rest);
    };
    switch (random() % 14) {
      case 0:
      case 1:
        line(fmt::format(R"("kind":"gpu.xid","node":"n{}","code":63)", node % 3));
        break;
      case 2:
        if (random() % 5 != 0) break;
        line(fmt::format(R"("kind":"gpu.xid","node":"n{}","code":79)", node));
        out += fmt::format(
            R"({{"ts":{},"kind":"incident.open","incident":"i{}","job":"j","symptom":"hang"}})"
            "\n",
            ts + 1500, ts);
        break;
      case 3:
        if (random() % 4 == 0) line(fmt::format(R"("kind":"node.repaired","node":"n{}")", node));
        break;
      case 4:
        if (random() % 4 != 0) break;
        line(fmt::format(R"("kind":"maint.start","node":"n{}")", node));
        out += fmt::format(R"({{"ts":{},"kind":"maint.end","node":"n{}"}})"
                           "\n",
                           ts + 1'800'000, node);
        break;
      case 5:
        line(fmt::format(R"("kind":"ops.driver","node":"n{}","version":"v{}")", node % 4,
                         random() % 2));
        break;
      default:
        line(fmt::format(R"("kind":"gpu.temp","node":"n{}","value":{})", node, 40 + random() % 45));
    }
  }
  return out;
}

/// An incident that is open when the set changes: what was said of it may not hold any more.
std::string open_at(int64_t minute) {
  const int64_t ts = minute * 60'000 + 60'000;
  return fmt::format(
      R"({{"ts":{},"kind":"incident.open","incident":"o{}","job":"j","symptom":"hang"}})"
      "\n"
      R"({{"ts":{},"kind":"gpu.temp","node":"n9","value":41}})"
      "\n",
      ts, ts, ts + 12'000);
}

class TakeOver : public testing::TestWithParam<int> {};

TEST_P(TakeOver, GoesOnAsARestoredOneDoes) {
  const auto seed = static_cast<uint64_t>(GetParam());
  Author author(seed);
  Edits edits;
  auto pack = compile(pack_of(edits));
  const auto symbols = pack->symbols;
  const unsigned threads = 1 + static_cast<unsigned>(seed % 2);
  auto moved = std::make_unique<Stage>(pack, threads);
  auto restored = std::make_unique<Stage>(pack, threads);
  const std::string start = start_of_events();
  moved->feed(start);
  restored->feed(start);
  int64_t minute = 1;
  size_t changed = 0;
  int taken = 0;
  for (int reload = 0; reload < 8; ++reload) {
    std::string lines = events(seed * 100 + reload, minute, (reload + 1) * 1000);
    minute += 31;  // behind the end of a maintenance
    lines += open_at(minute++);
    moved->feed(lines);
    restored->feed(lines);
    ASSERT_EQ(moved->text(), restored->text()) << reload;
    ASSERT_EQ(moved->engine().incidents_open(), 1u);
    const std::string state = restored->save();
    ASSERT_EQ(moved->save(), state) << reload;
    author.edit(edits);
    pack = compile(pack_of(edits), symbols);
    auto loaded = std::make_unique<Stage>(pack, threads);
    const auto report = loaded->load(state);
    ASSERT_TRUE(report.ok()) << report.error().message;
    auto taker = std::make_unique<Stage>(pack, threads, moved.get());
    if (!taker->cannot_take_over(*moved).empty()) {  // a small pack is soon full of holes
      moved = std::make_unique<Stage>(pack, threads);
      ASSERT_TRUE(moved->load(state).ok());
      restored = std::move(loaded);
      continue;
    }
    ++taken;
    const LoadReport own = taker->take_over(*moved);
    ASSERT_EQ(own.rows.size(), report.value().rows.size());
    for (size_t i = 0; i < own.rows.size(); ++i) {
      EXPECT_EQ(own.rows[i].name, report.value().rows[i].name);
      EXPECT_EQ(own.rows[i].fate, report.value().rows[i].fate) << own.rows[i].name;
      changed += own.rows[i].why.empty() ? 0 : 1;
    }
    EXPECT_EQ(own.notes, report.value().notes);
    moved = std::move(taker);
    restored = std::move(loaded);
    ASSERT_EQ(moved->save(), restored->save()) << reload;
  }
  moved->finish();
  restored->finish();
  EXPECT_EQ(moved->text(), restored->text());
  EXPECT_GT(changed, 0u);
  EXPECT_GE(taken, 4);
}

INSTANTIATE_TEST_SUITE_P(Seeds, TakeOver, testing::Range(1, 9));

// What lies in memory means something else there: nothing is taken over.
TEST(TakeOverOfOtherIds, IsRefusedAndSaysWhy) {
  const auto pack = compile(pack_of({}));
  Stage old(pack);
  const auto refused = [&](const std::string& from, const std::string& to, bool same_names = true) {
    std::string text = pack_of({});
    text.replace(text.find(from), from.size(), to);
    const auto other = compile(text, same_names ? pack->symbols : nullptr);
    Stage next(other, 1, &old);
    return next.cannot_take_over(old);
  };
  EXPECT_EQ(refused("days", "days", false), "names changed");
  EXPECT_EQ(refused("code: u16", "code: u16  pid: u32"), "event kinds changed");
  EXPECT_EQ(refused("signal warn", "signal worn on node { e: gpu.xid where e.code == 64 }\nsignal warn"),
            "the list of signals changed");
  EXPECT_EQ(refused("fault memory", "fault disk on node { prior 2e-4 per job }\nfault memory"),
            "the list of causes changed");
  EXPECT_EQ(refused(R"(like "one")", R"(like "two")"), "what profiles match changed");
  EXPECT_EQ(refused("pack days 1.0.0", "pack days 1.0.0\nlimits { keys 100 }"), "limits changed");
  EXPECT_EQ(refused("heat > 70", "heat > 71"), "");
}

}  // namespace
}  // namespace reflex

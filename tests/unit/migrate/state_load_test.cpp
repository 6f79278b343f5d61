// State of one pack set in an engine of another: what SignalEngine::load() does is what
// abi::state_plan() says, and what is kept goes on by the new rules.
#include <gtest/gtest.h>

#include <sstream>

#include "runtime/eval/signal_engine.h"
#include "tests/unit/migrate/random_records.h"
#include "tests/unit/sema/support.h"

namespace reflex::test {
namespace {

using abi::Fate;
using eval::SignalEngine;
using eval::StateFate;

constexpr int64_t kSec = kNsPerSecond;
constexpr int64_t kMin = 60 * kSec;

std::unique_ptr<compiler::Compilation> compiled(const std::string& text,
                                                std::shared_ptr<SymbolTable> symbols,
                                                const std::string& kinds = kKinds) {
  compiler::Options options;
  options.backend = compiler::Backend::kInterp;
  options.symbols = std::move(symbols);
  auto result = compiler::compile_text({{"t/pack.rfx", kinds + text}}, options);
  EXPECT_NE(result.value()->pack, nullptr) << rendered(*result.value());
  return std::move(result).value();
}

/// An engine with what it fired.
struct Lane {
  std::shared_ptr<const abi::CompiledPack> pack;
  std::unique_ptr<SignalEngine> engine;
  std::vector<abi::Firing> firings;

  explicit Lane(std::shared_ptr<const abi::CompiledPack> p, unsigned threads = 1)
      : pack(std::move(p)) {
    engine = std::make_unique<SignalEngine>(pack, std::make_shared<topology::Topology>(pack),
                                            eval::Options{threads, false});
  }
  void feed(const RecordFeed& feed, int64_t until_ns) {
    engine->process(feed.records(), until_ns, firings);
  }
  void until(int64_t ns) { engine->process({}, ns, firings); }
  [[nodiscard]] std::string save() const {
    StateWriter out(*pack->symbols);
    engine->save(out);
    return out.take();
  }
  bool load(const std::string& bytes, std::vector<StateFate>* report = nullptr) {
    StateReader in(bytes, *pack->symbols);
    return engine->load(in, report);
  }
  /// "start 120 (60)": change, second and second of the onset.
  [[nodiscard]] std::string told() const {
    std::string text;
    for (const auto& f : firings) {
      text += (text.empty() ? "" : ", ") +
              std::string(f.change == abi::FiringChange::kEnd ? "end " : "start ") +
              std::to_string(f.ts_ns / kSec) + " (" + std::to_string(f.onset_ns / kSec) + ")" +
              (f.incomplete ? " incomplete" : "");
    }
    return text;
  }
};

/// Compiles before and after with one table, or with two that number names differently.
struct Pair {
  std::unique_ptr<compiler::Compilation> before, after;
  Pair(const std::string& a, const std::string& b, const std::string& kinds_after = kKinds) {
    before = compiled(a, std::make_shared<SymbolTable>());
    auto other = std::make_shared<SymbolTable>();
    for (int i = 0; i < 100; ++i) other->intern("other " + std::to_string(i));
    after = compiled(b, other, kinds_after);
  }
};

std::string what(const StateFate& f) {
  return std::string(f.is_feature ? "feature " : "signal ") + f.name + ": " +
         std::string(abi::word_of(f.fate)) + " '" + f.why + "' " + f.old_name +
         (f.changed ? " changed" : "") + (f.incomplete ? " incomplete" : "");
}
std::string what(const abi::StateChange& f) {
  return what(
      StateFate{f.name, f.is_feature, f.fate, f.why, f.old_name, f.changed, f.incomplete, 0});
}

const char* const kPacks[] = {
    "signal s on node { e: gpu.xid where e.code == 48 }",
    "signal s on node { e: gpu.xid where e.code == 63 }",
    "signal s on node { count gpu.xid >= 3 within 1h }",
    "signal s on node { count gpu.xid >= 5 within 10m }",
    "signal s on node { count gpu.xid >= 100 within 10m }",
    "signal s on node { count distinct gpu of gpu.xid >= 2 within 10m }",
    "signal s on node { count distinct gpu of gpu.xid >= 2 within 30m }",
    "signal s on (node, gpu) { count gpu.xid >= 3 within 1h exact max 500 }",
    "signal s on node within 2m { a: gpu.xid then b: gpu.ecc }",
    "signal s on node within 1m { a: gpu.xid then b: gpu.ecc }",
    "signal s on node within 1m { a: gpu.xid then b: gpu.ecc then c: gpu.throttle }",
    "signal s on node { a: gpu.xid then absent b: node.heartbeat for 2m }",
    "signal s on node { a: gpu.xid then absent b: node.heartbeat for 1m }",
    "signal s on (node, gpu) { when gpu.temp.value > 50 celsius for 2m }",
    "signal s on (node, gpu) { when gpu.temp.value > 10 celsius for 5m }",
    "feature f on node = rate(gpu.xid, 6h) signal s on node { when f > 3 per hour }",
    "feature f on node = rate(gpu.xid, 1h) signal s on node { when f > 9 per hour }",
    "feature f on node = mean(gpu.temp.power, last 8) signal s on node { when f > 30 watt }",
    "feature f on node = mean(gpu.temp.power, last 2) signal s on node { when f > 30 watt }",
    "feature f on node = mean(gpu.temp.power, within 1h) signal s on node { when f > 30 watt }",
    "signal r on node { count gpu.xid >= 3 within 1h was s }",
};

TEST(StateLoad, says_and_does_what_the_state_plan_says) {
  const auto symbols = std::make_shared<SymbolTable>();
  std::vector<std::unique_ptr<compiler::Compilation>> packs;
  for (const char* text : kPacks) packs.push_back(compiled(text, symbols));
  size_t kept_bytes = 0;
  for (size_t a = 0; a < packs.size(); ++a) {
    Lane before(packs[a]->pack, 1 + a % 2);
    RandomRecords random(*packs[a], a);
    RecordFeed feed(packs[a]->pack);
    for (int i = 0; i < 400; ++i) random.add(feed, 10 * kSec);
    before.feed(feed, random.now_ns());
    const std::string bytes = before.save();
    for (size_t b = 0; b < packs.size(); ++b) {
      Lane after(packs[b]->pack, 1 + b % 2);
      std::vector<StateFate> report;
      ASSERT_TRUE(after.load(bytes, &report)) << kPacks[a] << "\n" << kPacks[b];
      const auto plan =
          abi::state_plan(abi::state_items(*packs[a]->pack), abi::state_items(*packs[b]->pack));
      ASSERT_EQ(report.size(), plan.size());
      for (size_t i = 0; i < plan.size(); ++i) EXPECT_EQ(what(report[i]), what(plan[i]));
      for (const StateFate& fate : report) {
        if (fate.fate != Fate::kNew) kept_bytes += fate.bytes;
      }
      // It goes on, and is sound enough to be saved and loaded again.
      RandomRecords more(*packs[b], b + 100);
      RecordFeed rest(packs[b]->pack, feed.next_order());
      for (int i = 0; i < 100; ++i) more.add(rest, 10 * kSec);
      std::vector<const abi::Record*> later;
      for (const abi::Record* r : rest.records()) {
        const_cast<abi::Record*>(r)->ts_ns += 100 * kMin;
        later.push_back(r);
      }
      after.engine->process(later, more.now_ns() + 100 * kMin, after.firings);
      Lane again(packs[b]->pack);
      EXPECT_TRUE(again.load(after.save()));
      EXPECT_EQ(again.save(), after.save());
    }
  }
  EXPECT_GT(kept_bytes, 10'000u);
}

TEST(StateLoad, a_count_goes_on_under_another_threshold) {
  const Pair p("signal s on node { count gpu.xid >= 5 within 1h }",
               "signal s on node { count gpu.xid >= 3 within 1h }");
  Lane before(p.before->pack);
  RecordFeed old(p.before->pack);
  for (int i = 0; i < 3; ++i) old.add(i * kMin, "gpu.xid", {{"node", "n"}, {"code", int64_t{1}}});
  before.feed(old, 2 * kMin);
  EXPECT_EQ(before.told(), "");
  Lane after(p.after->pack);
  ASSERT_TRUE(after.load(before.save()));
  RecordFeed more(p.after->pack, old.next_order());
  more.add(3 * kMin, "gpu.xid", {{"node", "n"}, {"code", int64_t{1}}});
  after.feed(more, 4 * kMin);
  EXPECT_EQ(after.told(), "start 180 (0)");  // of the event two counts before
}

TEST(StateLoad, a_higher_threshold_needs_more_than_was_kept) {
  const Pair p("signal s on node { count gpu.xid >= 2 within 1h }",
               "signal s on node { count gpu.xid >= 4 within 1h }");
  Lane before(p.before->pack);
  RecordFeed old(p.before->pack);
  for (int i = 0; i < 3; ++i) old.add(i * kMin, "gpu.xid", {{"node", "n"}, {"code", int64_t{1}}});
  before.feed(old, 3 * kMin);
  Lane after(p.after->pack);
  ASSERT_TRUE(after.load(before.save()));
  RecordFeed more(p.after->pack, old.next_order());
  for (const int64_t at : {4 * kMin, 5 * kMin}) {
    more.add(at, "gpu.xid", {{"node", "n"}, {"code", int64_t{1}}});
  }
  after.feed(more, 5 * kMin);
  EXPECT_EQ(after.told(), "start 300 (0) incomplete");  // the oldest of five was not kept
}

TEST(StateLoad, a_longer_window_is_flagged_until_it_is_full) {
  const Pair p("signal s on node { count gpu.xid >= 2 within 10m each }",
               "signal s on node { count gpu.xid >= 2 within 20m each }");
  Lane before(p.before->pack);
  RecordFeed old(p.before->pack);
  old.add(0, "gpu.xid", {{"node", "n"}, {"code", int64_t{1}}});
  before.feed(old, kMin);
  Lane after(p.after->pack);
  std::vector<StateFate> report;
  ASSERT_TRUE(after.load(before.save(), &report));
  EXPECT_EQ(after.engine->incomplete_until(0), 11 * kMin);
  EXPECT_TRUE(report[0].incomplete);
  Lane twice(p.after->pack);  // the flag lives on
  ASSERT_TRUE(twice.load(after.save()));
  RecordFeed more(p.after->pack, old.next_order());
  for (const int64_t at : {5 * kMin, 12 * kMin}) {
    more.add(at, "gpu.xid", {{"node", "n"}, {"code", int64_t{1}}});
  }
  twice.feed(more, 12 * kMin);
  EXPECT_EQ(twice.told(), "start 300 (0) incomplete, start 720 (0)");
}

TEST(StateLoad, a_shorter_window_forgets) {
  const Pair p("signal s on node within 10m { a: gpu.xid then b: gpu.ecc }",
               "signal s on node within 2m { a: gpu.xid then b: gpu.ecc }");
  for (const int64_t at : {90 * kSec, 5 * kMin}) {
    Lane before(p.before->pack);
    RecordFeed old(p.before->pack);
    old.add(0, "gpu.xid", {{"node", "n"}, {"code", int64_t{1}}});
    before.feed(old, kMin);
    Lane after(p.after->pack);
    ASSERT_TRUE(after.load(before.save()));
    RecordFeed more(p.after->pack, old.next_order());
    more.add(at, "gpu.ecc", {{"node", "n"}, {"kind", "corrected"}});
    after.feed(more, at);
    EXPECT_EQ(after.told(), at < 2 * kMin ? "start 90 (0)" : "");
  }
}

/// 90 degrees from second 0; then the other pack takes over at 10 min and hears nothing more.
std::string told_after(const std::string& a, const std::string& b, int64_t until_ns,
                       const std::string& want_before) {
  const Pair p(a, b);
  Lane before(p.before->pack);
  RecordFeed old(p.before->pack);
  old.add(0, "gpu.temp", {{"node", "n"}, {"gpu", int64_t{0}}, {"value", 90.0}});
  before.feed(old, 10 * kMin);
  EXPECT_EQ(before.told(), want_before);
  Lane after(p.after->pack);
  EXPECT_TRUE(after.load(before.save()));
  after.until(until_ns);
  return after.told();
}

TEST(StateLoad, a_condition_is_looked_at_again_at_once) {
  const std::string on = "signal s on (node, gpu) { when gpu.temp.value ";
  const std::string old = on + "> 83 celsius for 2m }";
  EXPECT_EQ(told_after(old, old, 11 * kMin, "start 120 (0)"), "");
  // No longer true: it ends at the time of the state.
  EXPECT_EQ(told_after(old, on + "> 95 celsius for 2m }", 11 * kMin, "start 120 (0)"),
            "end 600 (0)");
  // A longer `for` counts from the kept onset: not yet over, it ends and comes again.
  EXPECT_EQ(told_after(old, on + "> 83 celsius for 15m }", 20 * kMin, "start 120 (0)"),
            "end 600 (0), start 900 (0)");
  EXPECT_EQ(told_after(old, on + "> 83 celsius for 5m }", 20 * kMin, "start 120 (0)"), "");
  // A shorter one may be over already.
  EXPECT_EQ(told_after(on + "> 83 celsius for 1h }", old, 20 * kMin, ""), "start 600 (0)");
  // Not true before, true now.
  EXPECT_EQ(told_after(on + "> 95 celsius for 2m }", old, 20 * kMin, ""), "start 720 (600)");
}

TEST(StateLoad, an_absence_keeps_its_start) {
  const Pair p("signal s on node { a: gpu.xid then absent b: node.heartbeat for 20m }",
               "signal s on node { a: gpu.xid then absent b: node.heartbeat for 15m }");
  Lane before(p.before->pack);
  RecordFeed old(p.before->pack);
  old.add(0, "gpu.xid", {{"node", "n"}, {"code", int64_t{1}}});
  before.feed(old, 10 * kMin);
  Lane after(p.after->pack);
  ASSERT_TRUE(after.load(before.save()));
  after.until(30 * kMin);
  EXPECT_EQ(after.told(), "start 900 (0)");
  // Overdue: it fires at the time of the state, with its own onset and event.
  const Pair sooner("signal s on node { a: gpu.xid then absent b: node.heartbeat for 20m }",
                    "signal s on node { a: gpu.xid then absent b: node.heartbeat for 5m }");
  Lane late(sooner.after->pack);
  ASSERT_TRUE(late.load(before.save()));
  late.until(30 * kMin);
  EXPECT_EQ(late.told(), "start 600 (0)");
  ASSERT_EQ(late.firings[0].events.size(), 1u);
}

TEST(StateLoad, fields_are_found_by_their_names) {
  const std::string rule =
      "signal s on node within 10m { a: gpu.xid then b: gpu.ecc where b.gpu == a.gpu "
      "unless c: gpu.throttle where c.gpu == b.gpu between a and b }";
  std::string moved = kKinds;  // one more field in front: every slot moves
  const std::string at = "event gpu.base abstract { key node: node ";
  moved.replace(moved.find(at), at.size(), "event gpu.base abstract { site: word  key node: node ");
  for (const int64_t cancelled : {0, 1}) {
    const Pair p(rule, rule, moved);
    Lane before(p.before->pack);
    RecordFeed old(p.before->pack);
    old.add(0, "gpu.xid", {{"node", "n"}, {"gpu", int64_t{1}}, {"code", int64_t{1}}});
    old.add(kSec, "gpu.throttle", {{"node", "n"}, {"gpu", cancelled}});
    before.feed(old, 2 * kSec);
    Lane after(p.after->pack);
    std::vector<StateFate> report;
    ASSERT_TRUE(after.load(before.save(), &report));
    EXPECT_EQ(what(report[0]), "signal t.s: kept '' ");
    RecordFeed more(p.after->pack, old.next_order());
    more.add(3 * kSec, "gpu.ecc", {{"node", "n"}, {"gpu", int64_t{0}}, {"kind", "corrected"}});
    more.add(4 * kSec, "gpu.ecc", {{"node", "n"}, {"gpu", int64_t{1}}, {"kind", "corrected"}});
    after.feed(more, 5 * kSec);
    EXPECT_EQ(after.told(), cancelled != 0 ? "" : "start 4 (0)");
  }
}

TEST(StateLoad, renamed_and_removed) {
  const Pair p(
      "signal s on node { count gpu.xid >= 2 within 1h } signal gone on node { e: gpu.ecc }",
      "signal r on node { count gpu.xid >= 2 within 1h was s }");
  Lane before(p.before->pack);
  RecordFeed old(p.before->pack);
  old.add(0, "gpu.xid", {{"node", "n"}, {"code", int64_t{1}}});
  before.feed(old, kMin);
  Lane after(p.after->pack);
  ASSERT_TRUE(after.load(before.save()));
  RecordFeed more(p.after->pack, old.next_order());
  more.add(2 * kMin, "gpu.xid", {{"node", "n"}, {"code", int64_t{1}}});
  after.feed(more, 3 * kMin);
  EXPECT_EQ(after.told(), "start 120 (0)");
}

TEST(StateLoad, features_keep_what_the_new_ones_can_use) {
  const auto told = [](const std::string& a, const std::string& b) {
    const Pair p(
        "feature f on node = mean(gpu.temp.power, " + a + ") signal s on node { when f > 0 watt }",
        "feature f on node = mean(gpu.temp.power, " + b + ") signal s on node { when f > 0 watt }");
    Lane before(p.before->pack);
    RecordFeed old(p.before->pack);
    for (int i = 1; i <= 8; ++i) {
      old.add(i * kMin, "gpu.temp",
              {{"node", "n"}, {"gpu", int64_t{0}}, {"power", static_cast<double>(i)}});
    }
    before.feed(old, 8 * kMin);
    Lane after(p.after->pack);
    EXPECT_TRUE(after.load(before.save()));
    double value = -1;
    after.engine->sample_features(
        {{abi::FeatureId{0}}}, 8 * kMin,
        [&](abi::FeatureId, const abi::EntityKey&, abi::ClassId, double v) { value = v; });
    return value;
  };
  EXPECT_EQ(told("last 8", "last 8"), 4.5);
  EXPECT_EQ(told("last 8", "last 2"), 7.5);
  EXPECT_EQ(told("last 4", "last 8"), 6.0);  // incomplete: what there is, 4 and the current one
  EXPECT_EQ(told("within 1h", "within 2m"), 7.5);
  EXPECT_EQ(told("within 4m", "within 1h"), 6.5);
  EXPECT_EQ(told("last 8", "within 1h"), -1);  // reset: samples have no times
}

TEST(StateLoad, the_new_cap_of_keys_holds) {
  const std::string rule = "signal s on node { count gpu.xid >= 2 within 1h }";
  const Pair p(rule, rule);
  auto small = std::make_shared<abi::CompiledPack>(*p.after->pack);
  small->limits.keys_max = 2;
  Lane before(p.before->pack);
  RecordFeed old(p.before->pack);
  for (const char* node : {"a", "b", "c", "a"}) {
    old.add(0, "gpu.xid", {{"node", node}, {"code", int64_t{1}}});
  }
  before.feed(old, kMin);
  Lane after(small);
  ASSERT_TRUE(after.load(before.save()));
  EXPECT_EQ(after.engine->counters().keys, 2u);
  EXPECT_EQ(after.engine->counters().evictions, 1u);  // b, the least recently touched
  RecordFeed more(small, old.next_order());
  for (const char* node : {"c", "b"}) {
    more.add(2 * kMin, "gpu.xid", {{"node", node}, {"code", int64_t{1}}});
  }
  after.feed(more, 3 * kMin);
  EXPECT_EQ(after.told(), "start 120 (0)");  // of c alone
}

/// Every signal of the packs that we ship, cut twice, over threads and backends.
TEST(StateLoad, shipped_packs_go_on_exactly) {
  const std::string root = REFLEX_SOURCE_DIR;
  compiler::Options options;
  options.symbols = std::make_shared<SymbolTable>();
  options.backend = compiler::Backend::kInterp;
  auto interp = compiler::compile({root + "/rules", root + "/hwprofiles"}, options);
  ASSERT_TRUE(interp.ok());
  const compiler::Compilation& c = *interp.value();
  ASSERT_NE(c.pack, nullptr) << rendered(c);
  RandomRecords random(c, 11);
  RecordFeed feed(c.pack);
  for (int i = 0; i < 20'000; ++i) random.add(feed, 4 * kSec);
  const auto& records = feed.records();
  const auto process = [&](Lane& run, size_t from, size_t to) {
    run.engine->process({records.data() + from, to - from}, records[to - 1]->ts_ns, run.firings);
  };
  Lane straight(c.pack);
  Lane stopped(c.pack, 3);
  size_t from = 0;
  for (const size_t to : {size_t{7000}, size_t{15'000}, records.size()}) {
    process(straight, from, to);
    process(stopped, from, to);
    from = to;
    const std::string bytes = stopped.save();
    EXPECT_TRUE(bytes == straight.save());
    Lane next(c.pack, from == 7000 ? 1 : 2);
    std::vector<StateFate> report;
    ASSERT_TRUE(next.load(bytes, &report));
    for (const StateFate& fate : report) {
      EXPECT_TRUE(fate.fate == Fate::kKept && !fate.changed) << what(fate);
    }
    EXPECT_TRUE(next.save() == bytes);
    next.firings = std::move(stopped.firings);
    stopped = std::move(next);
  }
  const auto text = [](const Lane& run) {
    std::ostringstream out;
    for (const auto& f : run.firings) {
      out << f.ts_ns << ' ' << f.signal << ' ' << int(f.change) << ' ' << f.entity.values[0] << '/'
          << f.entity.values[1] << ' ' << f.onset_ns << ' ' << f.value.bits << ' ' << f.limit.bits;
      for (const auto& e : f.events) out << ' ' << e.seq;
      out << '\n';
    }
    return out.str();
  };
  EXPECT_TRUE(text(stopped) == text(straight));
  const auto by_signal = straight.engine->firings_by_signal();
  const auto fired =
      std::count_if(by_signal.begin(), by_signal.end(), [](auto n) { return n > 0; });
  EXPECT_GT(fired * 3, static_cast<int64_t>(by_signal.size())) << "of " << by_signal.size();
  RecordProperty("fired", static_cast<int>(fired));
}

}  // namespace
}  // namespace reflex::test

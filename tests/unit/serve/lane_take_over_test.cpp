// A lane that took over another one's state is the lane that loaded what that one had saved, to the
// byte, and says the same from there on: events, logs, ticks, feedback, suppressions, alerts.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <sstream>

#include "compiler/driver/compile.h"
#include "runtime/base/time.h"
#include "runtime/explain/explain.h"
#include "runtime/serve/body_form.h"
#include "runtime/serve/lane.h"

namespace reflex::serve {
namespace {

std::string pack_of(int edit) {
  return fmt::format(R"rfx(pack lane 1.0.0
clock {{ lateness 2s }}
event gpu.xid {{ key node: node  code: u16 }}
event net.drop {{ key node: node  value: f64 }} dedup (node, value) for 2s
decoder kernel for text {{
  prefix auto
  line /^NVRM: Xid \(PCI:(?<pci>[0-9A-Fa-f:.]+)\): (?<code>\d+)/ -> gpu.xid {{ code = u16(code) }}
}}
signal xid on node {{ e: gpu.xid where e.code == 79 }} leak 1e-4 per hour
signal drops on node {{ when count(net.drop, 5m) >= {} }} leak 1e-2 per hour
signal pair on node {{ a: gpu.xid then b: net.drop within {}s }} leak 1e-2 per hour
fault gpu on node {{ prior 2e-4 per job }}
fault nic on node {{ prior 2e-4 per job }}
gpu causes xid p 0.{} lag -1m .. 5m
nic causes drops p 0.7 lag -1m .. 5m
incident hang on job {{ opens on incident.open  settle 20s }}
rule told on verdict v of hang where v.top.p >= 0.{} {{
  label team = "a"
  annotate summary "{{v.job}}"
  action cordon(v.top.node) limit 3 in 1h mode dry_run
  repeat every 1m  resolve after 2m
}}
)rfx",
                     2 + edit % 3, 20 + edit % 5, 7 + edit % 2, 1 + edit % 4);
}

std::shared_ptr<const abi::CompiledPack> compile(int edit,
                                                 const std::shared_ptr<SymbolTable>& symbols) {
  compiler::Options options;
  options.backend = compiler::Backend::kInterp;
  options.symbols = symbols;
  auto compiled = compiler::compile_text({{"lane/pack.rfx", pack_of(edit)}}, options);
  EXPECT_TRUE(compiled.ok());
  auto& c = *compiled.value();
  EXPECT_FALSE(c.sink.has_errors()) << diag::render_text(c.sink.sorted(), c.sources, {});
  return c.pack;
}

/// A lane and what it said.
struct Told {
  std::unique_ptr<Lane> lane;
  std::shared_ptr<std::string> said = std::make_shared<std::string>();

  Told(const std::shared_ptr<const abi::CompiledPack>& pack, unsigned threads,
       const Told* before = nullptr) {
    LaneSinks sinks;
    sinks.verdict = [said = said](abi::Verdict&& v) { *said += explain::to_json(v, false) + "\n"; };
    sinks.alert = [said = said](const policy::Alert& a) { *said += policy::to_json(a); };
    sinks.action = [said = said](const policy::ActionRequest& a) { *said += policy::to_json(a); };
    LaneOptions options;
    options.engine.threads = threads;
    if (before != nullptr) options.engine.before = &std::as_const(*before->lane).engine();
    auto made = Lane::create(pack, options, std::move(sinks));
    EXPECT_TRUE(made.ok());
    lane = std::move(made).value();
  }
  [[nodiscard]] std::string saved() const {
    StateWriter out(*lane->pack()->symbols);
    lane->save(out);
    return out.take();
  }
};

class Input {
 public:
  explicit Input(uint64_t seed) : random_(seed) {}

  /// Some entries for all of these, and a step.
  void feed(const std::vector<Told*>& lanes, int entries) {
    for (int i = 0; i < entries; ++i) {
      second_ += static_cast<int64_t>(random_() % 4);
      const auto [type, payload] = next();
      give(lanes, type, payload);
    }
  }
  /// Nothing more happens, and time goes on.
  void pass(Told& lane, int64_t seconds) {
    for (const int64_t end = second_ + seconds; second_ < end;) {
      say(lane, second_ + 10, R"("kind":"net.drop","node":"far","value":1)");
      give({&lane}, EntryType::kTick, "");
    }
  }
  /// One event at a second.
  void say(Told& lane, int64_t second, const std::string& fields) {
    second_ = second;
    const auto [type, payload] =
        body(EntryType::kEvents, "s", "",
             fmt::format("{{\"ts\":{},{}}}\n", ns(second) / 1'000'000, fields));
    give({&lane}, type, payload);
  }

 private:
  void give(const std::vector<Told*>& lanes, EntryType type, const std::string& payload) {
    const std::string padded = payload + std::string(64, '\0');
    Entry entry;
    entry.type = type;
    entry.wall_ns = ns(second_ + 1);
    entry.position = position_;
    entry.next = position_ += 1 + payload.size();
    entry.payload = {padded.data(), payload.size()};
    for (Told* told : lanes) {
      told->lane->apply(entry);
      told->lane->step();
    }
  }
  static int64_t ns(int64_t second) { return (1'700'000'000 + second) * 1'000'000'000; }

  std::pair<EntryType, std::string> next() {
    const auto node = random_() % 5;
    const int64_t ms = ns(second_) / 1'000'000 - static_cast<int64_t>(random_() % 3000);
    switch (random_() % 12) {
      case 0:
        return {EntryType::kTick, ""};
      case 1:
      case 8:
        return body(EntryType::kLog, fmt::format("n{}.log", node % 2), fmt::format("n{}", node % 2),
                    fmt::format("{} n{} kernel: NVRM: Xid (PCI:0000:0{}:00): 79, pid=1\n",
                                to_rfc3339(EventTime{ns(second_)}), node % 2, node));
      case 2: {
        Feedback feedback;
        feedback.incident = fmt::format("i{}", incidents_);
        feedback.culprits = {fmt::format("n{}", node)};
        return {EntryType::kFeedback, feedback_payload(feedback)};
      }
      case 3: {
        SuppressionOrder order;
        order.id = fmt::format("o{}", random_() % 3);
        order.node = fmt::format("n{}", node);
        order.from_ns = ns(second_);
        order.until_ns = ns(second_ + 30);
        order.lifted = random_() % 3 == 0;
        return {EntryType::kSuppression, suppression_payload(order)};
      }
      case 4:
        return events(
            fmt::format(R"({{"ts":{},"kind":"job.start","job":"j{}","nodes":["n0","n{}"]}})", ms,
                        node, 1 + node % 4));
      case 5:
        return events(fmt::format(
            R"({{"ts":{},"kind":"incident.open","incident":"i{}","job":"j{}","symptom":"hang"}})",
            ms, ++incidents_, node));
      case 6:
        return events(
            fmt::format(R"({{"ts":{},"kind":"gpu.xid","node":"n{}","code":79}})", ms, node));
      case 7:
        return events(fmt::format(R"({{"ts":{},"kind":"nobody.knows","node":"n{}"}})", ms, node));
      default:
        return events(fmt::format(R"({{"ts":{},"kind":"net.drop","node":"n{}","value":{}}})", ms,
                                  node, random_() % 2));
    }
  }
  std::pair<EntryType, std::string> events(const std::string& line) {
    return body(EntryType::kEvents, fmt::format("s{}", random_() % 2), "", line + "\n");
  }
  static std::pair<EntryType, std::string> body(EntryType type, const std::string& source,
                                                const std::string& node, const std::string& text) {
    BodyView view;
    view.source = source;
    view.node = node;
    return {type, body_head(view) + text};
  }

  std::mt19937_64 random_;
  int64_t second_ = 0;
  uint64_t position_ = 0;
  int incidents_ = 0;
};

// `repeat every 1m  resolve after 2m`: the time that comes with events that say nothing is enough.
TEST(Lane, AlertsAreRepeatedAndEndWithoutAnotherVerdict) {
  Told told(compile(0, std::make_shared<SymbolTable>()), 1);
  Input input(1);
  input.say(told, 0, R"("kind":"job.start","job":"j","nodes":["n0","n1"])");
  input.say(told, 10, R"("kind":"gpu.xid","node":"n0","code":79)");
  input.say(told, 11, R"("kind":"incident.open","incident":"i","job":"j","symptom":"hang")");
  for (int second = 60; second <= 600; second += 10) {
    input.say(told, second,
              fmt::format("\"kind\":\"net.drop\",\"node\":\"n1\",\"value\":{}", second));
  }
  const size_t last_verdict = told.said->rfind("\"final\":true");
  ASSERT_NE(last_verdict, std::string::npos);
  EXPECT_NE(told.said->find("\"repeat\"", last_verdict), std::string::npos) << *told.said;
  EXPECT_NE(told.said->find("\"expired\"", last_verdict), std::string::npos) << *told.said;
}

class LaneTakeOver : public testing::TestWithParam<int> {};

TEST_P(LaneTakeOver, IsTheLaneThatWasRestored) {
  const auto seed = static_cast<uint64_t>(GetParam());
  const auto symbols = std::make_shared<SymbolTable>();
  const unsigned threads = 1 + static_cast<unsigned>(seed % 2);
  Input input(seed);
  auto pack = compile(0, symbols);
  auto moved = std::make_unique<Told>(pack, threads);
  auto restored = std::make_unique<Told>(pack, threads);
  size_t said = 0;
  for (int reload = 1; reload <= 8; ++reload) {
    input.feed({moved.get(), restored.get()}, 150);
    ASSERT_EQ(*moved->said, *restored->said) << reload;
    said += moved->said->size();
    const std::string state = restored->saved();
    ASSERT_EQ(moved->saved(), state) << reload;
    pack = compile(reload, symbols);
    auto loaded = std::make_unique<Told>(pack, threads);
    StateReader reader(state, *symbols);
    LoadReport report;
    const auto status = loaded->lane->load(reader, report);
    ASSERT_TRUE(status.ok()) << status.error().message;
    auto taker = std::make_unique<Told>(pack, threads, moved.get());
    ASSERT_EQ(taker->lane->cannot_take_over(*moved->lane), "");
    LoadReport own;
    taker->lane->take_over(*moved->lane, own);
    EXPECT_EQ(own.rows.size(), report.rows.size());
    EXPECT_EQ(own.notes, report.notes);
    moved = std::move(taker);
    restored = std::move(loaded);
    ASSERT_EQ(moved->saved(), restored->saved()) << reload;
  }
  input.feed({moved.get(), restored.get()}, 100);
  EXPECT_EQ(*moved->said, *restored->said);
  EXPECT_EQ(moved->lane->firings(), restored->lane->firings());
  EXPECT_GT(said, 10'000u);
}

/// (incident, revision) of each verdict line, and whether it was the final one.
std::map<std::string, std::vector<std::pair<int, bool>>> revisions_in(const std::string& lines) {
  std::map<std::string, std::vector<std::pair<int, bool>>> by_incident;
  const auto after = [](const std::string& line, const std::string& key) {
    return line.substr(line.find(key) + key.size());
  };
  std::istringstream in(lines);
  for (std::string line; std::getline(in, line);) {
    if (line.find("reflex.verdict/1") == std::string::npos) continue;
    const std::string incident = after(line, "\"incident\":\"");
    by_incident[incident.substr(0, incident.find('"'))].emplace_back(
        std::stoi(after(line, "\"revision\":")), line.find("\"final\":true") != std::string::npos);
  }
  return by_incident;
}

// Over the events of a window one lane speaks and the next one, which has the state of before, does
// not: together they say of each incident its revisions 1, 2, 3 ..., the last one final, once.
TEST_P(LaneTakeOver, AMutedLaneGoesOnWhereTheOtherOneSpoke) {
  const auto seed = static_cast<uint64_t>(GetParam());
  const auto symbols = std::make_shared<SymbolTable>();
  Input input(seed);
  auto live = std::make_unique<Told>(compile(0, symbols), 1);
  std::string said;
  for (int reload = 1; reload <= 12; ++reload) {
    input.feed({live.get()}, 60);
    const std::string state = live->saved();
    auto next = std::make_unique<Told>(compile(reload, std::make_shared<SymbolTable>()), 1);
    StateReader reader(state, *next->lane->pack()->symbols);
    LoadReport report;
    ASSERT_TRUE(next->lane->load(reader, report).ok());
    input.feed({live.get(), next.get()}, 25);
    said += *live->said;
    next->said->clear();
    next->lane->follow(*live->lane);
    live = std::move(next);
  }
  input.pass(*live, 600);
  said += *live->said;
  const auto incidents = revisions_in(said);
  EXPECT_GT(incidents.size(), 10u);
  for (const auto& [incident, revisions] : incidents) {
    for (size_t i = 0; i < revisions.size(); ++i) {
      EXPECT_EQ(revisions[i].first, static_cast<int>(i) + 1) << incident;
      EXPECT_EQ(revisions[i].second, i + 1 == revisions.size()) << incident;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, LaneTakeOver, testing::Range(1, 9));

}  // namespace
}  // namespace reflex::serve

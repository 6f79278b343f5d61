// Sets that change while the daemon is killed: what a start makes of the journal (daemon_sets.cpp).
//
// The oracle is a daemon that is never stopped: the same bodies, the same changes of the set at the
// same places. Every verdict, alert and action must be the same, byte for byte.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "tests/unit/serve/daemon_world.h"

namespace reflex::serve {
namespace {

namespace fs = std::filesystem;
using Outcome = ReloadAnswer::Outcome;

/// Odd ones have a signal more: then the state goes by bytes.
std::string pack_of(unsigned variant) {
  std::string more = fmt::format(R"rfx(rule told on verdict v of hang where v.top.p >= 0.{} {{
  label team = "a"
  action cordon(v.top.node) limit 3 in 1h mode dry_run
  repeat every 1m  resolve after 2m
}}
)rfx",
                                 2 + variant % 3);
  if (variant % 2 == 1) more += "signal more on node { e: gpu.xid where e.code == 5 }\n";
  return test_pack(2 + static_cast<int>(variant), more);
}

/// One thing that happens; what only a daemon that is killed sees is left out by the other one.
struct Act {
  enum class What : uint8_t { kBody, kReload, kPromote, kSnapshot, kKill, kEditAndKill };
  What what = What::kBody;
  std::string text;
  int second = 0;  // of event time
};

std::vector<Act> acts_of(uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<Act> acts;
  const auto chance = [&](unsigned of) { return random() % of == 0; };
  const auto pack = [&] { return pack_of(static_cast<unsigned>(random() % 5)); };
  for (int job = 0; job < 24; ++job) {
    acts.push_back({Act::What::kBody, hang_of(job, job * 3)});
    if (chance(4)) acts.push_back({Act::What::kSnapshot, ""});
    if (chance(3)) acts.push_back({Act::What::kReload, pack()});
    if (chance(8)) acts.push_back({Act::What::kReload, pack()});
    if (chance(10)) acts.push_back({Act::What::kPromote, pack(), job * 3 + 1});
    if (chance(3)) acts.push_back({Act::What::kKill, ""});
    if (chance(9)) acts.push_back({Act::What::kEditAndKill, pack()});
  }
  acts.push_back({Act::What::kBody, later(1000)});
  acts.push_back({Act::What::kBody, later(2000)});
  return acts;
}

void reload(DaemonWorld& world, const std::string& text) {
  world.settle();
  world.write_pack(text);
  const auto answer = world.daemon().reload();
  EXPECT_TRUE(answer.outcome == Outcome::kSwapped || answer.outcome == Outcome::kUnchanged)
      << answer.error;
}

/// The shadow runs beside over one body.
void promote(DaemonWorld& world, const std::string& text, int second) {
  world.settle();
  const auto folder = world.write_pack_at(fmt::format("candidate{}", second), text);
  const auto started = world.daemon().start_shadow({folder});
  EXPECT_EQ(started.outcome, Outcome::kSwapped) << started.error;
  world.give(later(second));
  world.settle();
  const auto answer = world.daemon().promote();
  EXPECT_EQ(answer.outcome, Outcome::kSwapped) << answer.error;
}

void play(DaemonWorld& world, const std::vector<Act>& acts, bool kills) {
  world.start();
  for (const Act& act : acts) {
    switch (act.what) {
      case Act::What::kBody:
        world.give(act.text);
        break;
      case Act::What::kReload:
        reload(world, act.text);
        break;
      case Act::What::kPromote:
        promote(world, act.text, act.second);
        break;
      case Act::What::kSnapshot:
        if (kills) {
          EXPECT_TRUE(world.daemon().snapshot().ok());
        }
        break;
      case Act::What::kKill:
        if (!kills) break;
        world.kill();
        world.start();
        break;
      case Act::What::kEditAndKill:
        if (!kills) {
          reload(world, act.text);
          break;
        }
        world.kill();
        world.write_pack(act.text);
        world.start();
        break;
    }
  }
  world.settle();
}

/// All that was said, in the order of the store.
std::vector<std::string> all_said(DaemonWorld& world) {
  std::vector<std::string> out;
  const auto status = world.daemon().store().each_verdict({}, [&](const StoredVerdict& v) {
    out.push_back(v.json);
    return true;
  });
  EXPECT_TRUE(status.ok());
  auto alerts = world.daemon().store().alerts(0, 10'000);
  EXPECT_TRUE(alerts.ok());
  for (const auto& alert : alerts.value()) out.push_back(alert.json);
  return out;
}

/// Two worlds differ in the folder that their files name.
std::vector<std::string> without(std::vector<std::string> lines, const std::string& folder) {
  for (auto& line : lines) {
    for (size_t at; (at = line.find(folder)) != std::string::npos;) line.erase(at, folder.size());
  }
  return lines;
}

class SetSwitches : public testing::TestWithParam<int> {};

TEST_P(SetSwitches, KilledAnywhereItSaysWhatOneSaysThatNeverStops) {
  const auto acts = acts_of(static_cast<uint64_t>(GetParam()));
  DaemonWorld straight;
  play(straight, acts, /*kills=*/false);
  DaemonWorld killed;
  play(killed, acts, /*kills=*/true);
  const auto want = without(all_said(straight), straight.folder());
  EXPECT_GT(want.size(), 60u);
  const auto got = without(all_said(killed), killed.folder());
  EXPECT_EQ(got.size(), want.size());
  for (size_t i = 0; i < std::min(got.size(), want.size()); ++i)
    ASSERT_EQ(got[i].substr(0, 600), want[i].substr(0, 600)) << i;
}

INSTANTIATE_TEST_SUITE_P(Seeds, SetSwitches, testing::Range(1, 9));

/// An incident is open, the rules change, and it is killed before the next snapshot.
void reload_and_die(DaemonWorld& world) {
  world.start();
  world.give(hang_of(0, 0));
  world.settle();
  reload(world, pack_of(1));
  reload(world, pack_of(2));
  world.kill();
  world.said.clear();
}

bool was_said(const DaemonWorld& world, const std::string& part) {
  return std::any_of(world.said.begin(), world.said.end(),
                     [&](const auto& line) { return line.find(part) != std::string::npos; });
}

TEST(SetSwitch, AStartTellsWhichSetReadsWhat) {
  DaemonWorld world;
  reload_and_die(world);
  world.start();
  world.settle();
  EXPECT_TRUE(was_said(world, "on with set")) << testing::PrintToString(world.said);
  EXPECT_TRUE(world.daemon().status().ready);
  const auto same = world.daemon().reload();
  EXPECT_EQ(same.outcome, Outcome::kUnchanged);
}

// Without the copies the configured set reads all that is there, as the start says.
TEST(SetSwitch, WithoutTheKeptSetsTheConfiguredOneReadsOn) {
  DaemonWorld world;
  reload_and_die(world);
  fs::remove_all(world.folder() + "/state/sets");
  world.start();
  EXPECT_TRUE(was_said(world, "cannot be had")) << testing::PrintToString(world.said);
  world.give(later(100));
  world.settle();
  EXPECT_TRUE(world.daemon().status().ready);
  EXPECT_FALSE(world.verdicts().empty());
}

// The one in between is damaged: the one before it reads its part.
TEST(SetSwitch, ADamagedSetIsPassedOverAndTold) {
  DaemonWorld world;
  reload_and_die(world);
  size_t damaged = 0;
  for (const auto& file : fs::directory_iterator(world.folder() + "/state/sets/texts")) {
    std::ifstream in(file.path());
    const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    if (text != pack_of(1)) continue;
    std::ofstream(file.path(), std::ios::app) << "# not what it was\n";
    ++damaged;
  }
  ASSERT_EQ(damaged, 1u);
  world.start();
  world.give(later(100));
  world.settle();
  EXPECT_TRUE(was_said(world, "cannot take over")) << testing::PrintToString(world.said);
  EXPECT_TRUE(world.daemon().status().ready);
}

// With broken packs at the start, the last set that was live reads on to the end and stays.
TEST(SetSwitch, BrokenPacksAtAStartLeaveTheLastSetThatWasLive) {
  DaemonWorld world;
  world.start();
  world.give(hang_of(0, 0));
  reload(world, pack_of(1));
  const auto good = world.daemon().status().live.set_sha256;
  world.kill();
  world.write_pack("pack world 1.0.0\nsignal broken on node { e: nothing.known }\n");
  world.start();
  world.settle();
  EXPECT_EQ(world.daemon().status().live.set_sha256, good);
  EXPECT_FALSE(world.daemon().status().last_reload_ok);
  EXPECT_TRUE(was_said(world, "going on with the copy"));
}

// A reload that comes while a start still reads with the sets of before waits for it.
TEST(SetSwitch, AReloadRightAfterAStartComesBehindIt) {
  DaemonWorld world;
  reload_and_die(world);
  world.start();
  world.write_pack(pack_of(4));
  const auto answer = world.daemon().reload();
  EXPECT_EQ(answer.outcome, Outcome::kSwapped) << answer.error;
  EXPECT_EQ(world.daemon().status().live.set_sha256, answer.set_sha256);
  world.daemon().stop(true);
}

TEST(SetSwitch, AStopDuringTheStartLosesNothing) {
  DaemonWorld straight;
  reload_and_die(straight);
  straight.start();
  straight.give(later(1000));
  straight.settle();
  DaemonWorld world;
  reload_and_die(world);
  for (const bool drain : {false, true, false}) {
    world.start();
    world.daemon().stop(drain);
    world.kill();
  }
  world.start();
  world.give(later(1000));
  world.settle();
  EXPECT_EQ(without(all_said(world), world.folder()),
            without(all_said(straight), straight.folder()));
}

// Sets go when both snapshots stand behind what they read.
TEST(SetSwitch, SetsThatNoStartNeedsAreRemoved) {
  DaemonWorld world;
  world.start();
  const auto kept = [&] {
    size_t sets = 0;
    for (const auto& file : fs::directory_iterator(world.folder() + "/state/sets")) {
      sets += file.path().extension() == ".set";
    }
    return sets;
  };
  for (unsigned i = 0; i < 40; ++i) {
    world.give(hang_of(static_cast<int>(i), static_cast<int>(i) * 3, 20));
    reload(world, pack_of(i % 5) + fmt::format("# {}\n", i));
    ASSERT_TRUE(world.daemon().snapshot().ok());
  }
  EXPECT_LE(kept(), 4u);
  EXPECT_GE(kept(), 2u);
  world.kill();
  world.start();
  world.settle();
  EXPECT_TRUE(world.daemon().status().ready);
}

}  // namespace
}  // namespace reflex::serve

// The daemon: restarts, damaged state, full disks, reloads under load, shadows.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/unit/serve/daemon_world.h"

namespace reflex::serve {
namespace {

namespace fs = std::filesystem;
using Outcome = ReloadAnswer::Outcome;

/// What a daemon that never stops says of these bodies.
std::vector<std::string> straight(const std::vector<std::string>& bodies) {
  DaemonWorld world;
  world.start();
  for (const auto& body : bodies) world.give(body);
  world.settle();
  return world.verdicts();
}

std::vector<std::string> bodies_of(int jobs) {
  std::vector<std::string> bodies;
  for (int job = 0; job < jobs; ++job) bodies.push_back(hang_of(job, job * 3));
  bodies.push_back(later(jobs * 3 + 100));
  return bodies;
}

bool has_line(const std::vector<std::string>& lines, const std::string& part) {
  return std::any_of(lines.begin(), lines.end(),
                     [&](const std::string& line) { return line.find(part) != std::string::npos; });
}

TEST(Daemon, GivesVerdictsAndAnswersForEachBody) {
  const auto said = straight(bodies_of(4));
  ASSERT_GE(said.size(), 8u);
  EXPECT_NE(std::find(said.begin(), said.end(), "i0/2 final \"culprits\":[\"j0n0\"]"), said.end())
      << ::testing::PrintToString(said);
}

TEST(Daemon, KillAnywhereLosesAndDoublesNothing) {
  const auto bodies = bodies_of(12);
  const auto want = straight(bodies);
  for (const bool snapshots : {false, true}) {
    DaemonWorld world;
    world.start();
    for (size_t i = 0; i < bodies.size(); ++i) {
      world.give(bodies[i]);
      if (i % 2 == 1) {
        if (i % 4 == 1) world.settle();
        if (snapshots && i % 3 == 0) {
          const auto status = world.daemon().snapshot();
          EXPECT_TRUE(status.ok()) << status.error().message;
        }
        world.kill();
        world.start();
      }
    }
    world.settle();
    EXPECT_EQ(world.verdicts(), want) << snapshots;
  }
}

TEST(Daemon, ABodyWithAKeyCountsOnceOverRestarts) {
  DaemonWorld world;
  world.start();
  world.give(hang_of(1, 0), "a");
  world.give(hang_of(1, 0), "a");
  ASSERT_TRUE(world.daemon().snapshot().ok());
  world.kill();
  world.start();
  IngestBody again;
  again.source = "test";
  again.key = "a";
  again.text = hang_of(1, 0);
  EXPECT_EQ(world.daemon().accept(std::move(again)).outcome, IngestAnswer::Outcome::kRepeated);
  world.give(later(100));
  world.settle();
  const auto status = world.daemon().status();
  ASSERT_EQ(status.sources.size(), 1u);
  EXPECT_EQ(status.sources[0].bodies, 2u);
  EXPECT_EQ(status.sources[0].queue_bytes, 0u);
}

TEST(Daemon, DamagedSnapshotsArePassedOverAndTold) {
  const auto bodies = bodies_of(6);
  const auto want = straight(bodies);
  DaemonWorld world;
  world.start();
  for (int i = 0; i < 3; ++i) {
    world.give(bodies[static_cast<size_t>(i)]);
    world.settle();
    ASSERT_TRUE(world.daemon().snapshot().ok());
  }
  world.kill();
  std::vector<std::string> files;
  for (const auto& file : fs::directory_iterator(world.folder() + "/state/snapshots")) {
    files.push_back(file.path().string());
  }
  std::sort(files.begin(), files.end());
  ASSERT_EQ(files.size(), 2u);
  const auto damage = [](const std::string& path) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(fs::file_size(path) / 2));
    file << "damage";
  };
  damage(files[1]);
  world.start();
  EXPECT_TRUE(has_line(world.said, "(passed over)")) << ::testing::PrintToString(world.said);
  EXPECT_TRUE(has_line(world.said, "state: snapshot of"));
  world.kill();
  damage(files[0]);
  world.said.clear();
  world.start();
  EXPECT_TRUE(has_line(world.said, "no snapshot, the whole journal is read") ||
              has_line(world.said, "is forgotten"))
      << ::testing::PrintToString(world.said);
  for (size_t i = 3; i < bodies.size(); ++i) world.give(bodies[i]);
  world.settle();
  EXPECT_EQ(world.verdicts(), want);
}

/// A disk that is full while `full`.
class FullDisk final : public Disk {
 public:
  int64_t write(int fd, std::span<const iovec> parts) override {
    return full ? -ENOSPC : Disk::write(fd, parts);
  }
  std::atomic<bool> full = false;
};

TEST(Daemon, AFullDiskRefusesInputAndLosesNothingAccepted) {
  const auto bodies = bodies_of(6);
  DaemonWorld world;
  const auto disk = std::make_shared<FullDisk>();
  world.disk = disk;
  world.start();
  std::vector<std::string> accepted;
  for (size_t i = 0; i < bodies.size(); ++i) {
    if (i == 2) {
      disk->full = true;
      IngestBody body;
      body.source = "test";
      body.text = bodies[i];
      EXPECT_EQ(world.daemon().accept(std::move(body)).outcome, IngestAnswer::Outcome::kNoSpace);
      disk->full = false;
      continue;
    }
    world.give(bodies[i]);
    accepted.push_back(bodies[i]);
  }
  world.kill();
  world.start();
  world.settle();
  EXPECT_EQ(world.verdicts(), straight(accepted));
}

TEST(Daemon, AFullDiskRefusesAReloadAndTheSetInForceStays) {
  DaemonWorld world;
  const auto disk = std::make_shared<FullDisk>();
  world.disk = disk;
  world.start();
  world.give(hang_of(0, 0));
  world.settle();
  const auto before = world.daemon().status().live.set_sha256;
  for (const char* more :
       {"# comment\n", "signal more on node { e: gpu.xid where e.code == 5 }\n"}) {
    world.write_pack(test_pack(3, more));
    disk->full = true;
    const auto refused = world.daemon().reload();
    EXPECT_EQ(refused.outcome, Outcome::kFailed);
    EXPECT_NE(refused.error.find("cannot note the set"), std::string::npos) << refused.error;
    EXPECT_EQ(world.daemon().status().live.set_sha256, before);
    disk->full = false;
  }
  world.give(hang_of(1, 3));
  EXPECT_EQ(world.daemon().reload().outcome, Outcome::kSwapped);
  world.give(later(100));
  world.settle();
  EXPECT_EQ(world.verdicts().size(), straight({hang_of(0, 0), hang_of(1, 3), later(100)}).size());
}

TEST(Daemon, APipeAmongThePacksIsAFailedReload) {
  DaemonWorld world;
  world.start();
  const std::string pipe = world.folder() + "/pipe.rfx";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const auto answer = world.daemon().start_shadow({pipe});
  EXPECT_EQ(answer.outcome, Outcome::kInvalid) << "who asked has named it";
  EXPECT_EQ(answer.error, pipe + " is neither a file nor a folder");
  // A reload reads what is configured: that becomes a pipe.
  const std::string packs = world.folder() + "/rules";
  fs::remove_all(packs);
  ASSERT_EQ(::mkfifo(packs.c_str(), 0600), 0);
  EXPECT_EQ(world.daemon().reload().outcome, Outcome::kFailed);
  EXPECT_TRUE(world.daemon().status().ready);
}

TEST(Daemon, AJournalThatIsRemovedUnderItIsNoticedAndTheStateKept) {
  const auto bodies = bodies_of(6);
  DaemonWorld world;
  world.start();
  for (size_t i = 0; i < 4; ++i) world.give(bodies[i]);
  world.settle();
  EXPECT_TRUE(world.daemon().status().ready);
  fs::remove_all(world.folder() + "/state/journal");
  const auto status = world.daemon().status();
  EXPECT_FALSE(status.ready);
  EXPECT_NE(status.not_ready_because.find("removed or moved away"), std::string::npos);
  IngestBody body;
  body.source = "test";
  body.text = bodies[4];
  EXPECT_EQ(world.daemon().accept(std::move(body)).outcome, IngestAnswer::Outcome::kNoSpace);
  world.daemon().stop(true);
  world.kill();
  world.said.clear();
  world.start();
  EXPECT_TRUE(has_line(world.said, "its files are gone")) << ::testing::PrintToString(world.said);
  EXPECT_TRUE(world.daemon().status().ready);
  for (size_t i = 4; i < bodies.size(); ++i) world.give(bodies[i]);
  world.settle();
  EXPECT_EQ(world.verdicts(), straight(bodies));
}

// Its newest state was saved behind the end that is left: input that comes then is not taken for
// read.
TEST(Daemon, AJournalThatLostItsEndGoesOnBehindTheSavedState) {
  const auto bodies = bodies_of(6);
  DaemonWorld world;
  world.start();
  for (size_t i = 0; i < 4; ++i) world.give(bodies[i]);
  world.settle();
  ASSERT_TRUE(world.daemon().snapshot().ok());
  world.kill();
  const auto file = fs::directory_iterator(world.folder() + "/state/journal")->path();
  fs::resize_file(file, fs::file_size(file) - 300);
  world.start();
  EXPECT_TRUE(has_line(world.said, "a state was saved at")) << ::testing::PrintToString(world.said);
  for (size_t i = 4; i < bodies.size(); ++i) {
    world.give(bodies[i]);
    world.kill();
    world.start();
  }
  world.settle();
  EXPECT_EQ(world.verdicts(), straight(bodies));
}

TEST(Daemon, ReloadOfTheSameIsUnchangedAndOfABadSetChangesNothing) {
  DaemonWorld world;
  world.start();
  world.give(hang_of(0, 0));
  const auto same = world.daemon().reload();
  EXPECT_EQ(same.outcome, Outcome::kUnchanged);
  world.write_pack("pack world 1.0.0\nsignal broken on node { e: nothing.known }\n");
  const auto bad = world.daemon().reload();
  EXPECT_EQ(bad.outcome, Outcome::kInvalid);
  EXPECT_FALSE(bad.diagnostics.empty());
  EXPECT_EQ(bad.set_sha256, same.set_sha256);
  EXPECT_FALSE(world.daemon().status().last_reload_ok);
  // Even over a restart: the copy of the last good set is taken.
  world.kill();
  world.start();
  EXPECT_TRUE(has_line(world.said, "going on with the copy"));
  EXPECT_EQ(world.daemon().status().live.set_sha256.empty(), false);
  world.give(later(100));
  world.settle();
  EXPECT_GE(world.verdicts().size(), 2u);
  world.write_pack(test_pack(4));
  const auto good = world.daemon().reload();
  EXPECT_EQ(good.outcome, Outcome::kSwapped) << good.error;
  EXPECT_NE(good.set_sha256, same.set_sha256);
  EXPECT_TRUE(std::any_of(good.plan.begin(), good.plan.end(), [](const StateFate& row) {
    return row.name.find("drops") != std::string::npos && row.fate == "kept";
  })) << good.plan.size();
  EXPECT_TRUE(world.daemon().status().last_reload_ok);
}

// Comments change the text of the packs but not what they mean: with as many reloads as there may
// be, under load, each event is evaluated exactly once, or a count would differ.
TEST(Daemon, ReloadsUnderLoadLoseAndDoubleNoEvent) {
  const auto bodies = bodies_of(60);
  std::vector<std::pair<std::string, uint64_t>> want_firings;
  std::vector<std::pair<std::string, uint64_t>> want_events;
  std::vector<std::string> want;
  {
    DaemonWorld world;
    world.start();
    for (const auto& body : bodies) world.give(body);
    world.settle();
    want = world.verdicts();
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    want_firings = world.daemon().status().live.firings_by_signal;
    want_events = world.daemon().status().live.events_by_kind;
  }
  ASSERT_FALSE(want_firings.empty());
  DaemonWorld world;
  world.start();
  std::atomic<bool> done = false;
  std::thread giving([&] {
    for (const auto& body : bodies) world.give(body);
    done = true;
  });
  int swapped = 0;
  for (int i = 0; !done || i < 5; ++i) {
    // Each third one has one signal more, or it is gone again: then the state goes by bytes.
    const std::string more =
        i % 3 == 2 ? "signal more on node { e: gpu.xid where e.code == 5 }\n" : "";
    world.write_pack(test_pack(3, more) + fmt::format("# text {}\n", i));
    const auto answer = world.daemon().reload();
    EXPECT_EQ(answer.outcome, Outcome::kSwapped) << answer.error;
    EXPECT_EQ(answer.path, i % 3 == 1 || i == 0 ? "in place" : "restored") << i;
    EXPECT_EQ(answer.path_reason, answer.path == "restored" ? "the list of signals changed" : "");
    for (const auto& row : answer.plan) {
      const bool comes_and_goes = row.name == "world.more";
      EXPECT_TRUE(row.fate == "kept" || comes_and_goes) << row.name;
    }
    EXPECT_EQ(world.daemon().status().live.set_sha256, answer.set_sha256);
    ++swapped;
  }
  giving.join();
  EXPECT_GE(swapped, 5);
  world.settle();
  std::this_thread::sleep_for(std::chrono::milliseconds(300));  // the view is of a moment ago
  EXPECT_EQ(world.verdicts().size(), want.size());
  EXPECT_EQ(world.verdicts(), want);
  const auto status = world.daemon().status();
  EXPECT_GE(status.reloads_in_place, 2u);
  EXPECT_EQ(status.reloads_in_place + status.reloads_restored, static_cast<uint64_t>(swapped));
  EXPECT_EQ(status.live.firings_by_signal, want_firings);
  EXPECT_EQ(status.live.events_by_kind, want_events);
}

// Killed at any point after reloads in place: snapshots and journal give what there was.
TEST(Daemon, KilledAfterReloadsInPlaceItGoesOnWithTheNewSet) {
  const auto bodies = bodies_of(24);
  const auto want = straight(bodies);
  DaemonWorld world;
  world.start();
  for (size_t i = 0; i < bodies.size(); ++i) {
    world.give(bodies[i]);
    if (i % 5 == 4) {
      world.write_pack(test_pack(3) + fmt::format("# text {}\n", i));
      const auto answer = world.daemon().reload();
      EXPECT_EQ(answer.path, "in place") << answer.path_reason;
    }
    if (i % 10 == 7) {
      ASSERT_TRUE(world.daemon().snapshot().ok());
    }
    if (i % 7 == 6) {
      world.kill();
      world.start();
      EXPECT_EQ(world.daemon().status().live.packs.size(), 1u);
    }
  }
  world.settle();
  EXPECT_EQ(world.verdicts(), want);
}

TEST(Daemon, AShadowSaysWhatItWouldAndIsPromotedWarm) {
  DaemonWorld world;
  world.start();
  const auto other = world.write_pack_at("candidate", test_pack(9));
  const auto started = world.daemon().start_shadow({other});
  ASSERT_EQ(started.outcome, Outcome::kSwapped) << started.error;
  const auto bodies = bodies_of(5);
  for (const auto& body : bodies) world.give(body);
  world.settle();
  for (int i = 0; i < 100 && world.daemon().shadow_verdicts().empty(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  EXPECT_FALSE(world.daemon().shadow_verdicts().empty());
  const auto before = world.verdicts();
  ASSERT_TRUE(world.daemon().status().shadow);
  const auto promoted = world.daemon().promote();
  EXPECT_EQ(promoted.outcome, Outcome::kSwapped) << promoted.error;
  EXPECT_FALSE(world.daemon().status().shadow);
  EXPECT_EQ(world.daemon().status().live.set_sha256, started.set_sha256);
  EXPECT_EQ(world.verdicts(), before);
  // It stays in force over a restart, until the configured packs change.
  world.kill();
  world.start();
  world.settle();
  EXPECT_EQ(world.daemon().status().live.set_sha256, started.set_sha256);
  world.write_pack(test_pack(5));
  EXPECT_EQ(world.daemon().reload().outcome, Outcome::kSwapped);
  EXPECT_NE(world.daemon().status().live.set_sha256, started.set_sha256);
  EXPECT_EQ(world.daemon().promote().outcome, Outcome::kNoShadow);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));  // the view is of a moment ago
  const int64_t now_ns = world.daemon().status().live.watermark_ns;
  EXPECT_EQ(world.daemon().start_shadow({other}).outcome, Outcome::kSwapped);
  EXPECT_EQ(world.daemon().status().shadow_since_ns, now_ns);
}

TEST(Daemon, StopDrainsSnapshotsAndTheNextStartReadsNothingAgain) {
  DaemonWorld world;
  world.start();
  for (const auto& body : bodies_of(5)) world.give(body);
  world.daemon().stop(true);
  const auto said = world.verdicts();
  EXPECT_EQ(said, straight(bodies_of(5)));
  world.kill();
  world.said.clear();
  world.start();
  EXPECT_TRUE(has_line(world.said, " 0 bytes of the journal to read"))
      << ::testing::PrintToString(world.said);
}

/// More keys than are saved in place: the state comes from a forked child.
TEST(Daemon, ALargeStateIsTakenByAForkAndIsTheSame) {
  std::vector<std::string> bodies;
  for (int i = 0; i < 40; ++i) {
    std::string text;
    for (int n = 0; n < 100; ++n) {
      text += fmt::format(R"({{"ts":{},"kind":"net.drop","node":"m{}","value":1}})"
                          "\n",
                          1'700'000'000'000LL + i * 1000 + n, i * 100 + n);
    }
    bodies.push_back(text + hang_of(i, i));
  }
  bodies.push_back(later(200));
  const auto want = straight(bodies);
  DaemonWorld world;
  world.start();
  for (size_t i = 0; i < bodies.size(); ++i) {
    world.give(bodies[i]);
    if (i % 10 != 9) continue;
    world.settle();
    const auto status = world.daemon().snapshot();
    ASSERT_TRUE(status.ok()) << status.error().message;
    if (i == 19) {
      EXPECT_GT(world.daemon().status().live.keys, 1000u);
    }
    world.kill();
    world.start();
    EXPECT_TRUE(has_line(world.said, " 0 bytes of the journal to read"));
    world.said.clear();
  }
  world.settle();
  EXPECT_EQ(world.verdicts(), want);
}

TEST(Daemon, FeedbackIsTakenForVerdictsThatThereAre) {
  DaemonWorld world;
  world.start();
  for (const auto& body : bodies_of(2)) world.give(body);
  world.settle();
  Feedback feedback;
  feedback.verdict_id = "v-none";
  EXPECT_FALSE(world.daemon().feedback(feedback).ok());
  VerdictFilter filter;
  filter.incident = "i0";
  auto page = world.daemon().store().verdicts(filter);
  ASSERT_TRUE(page.ok());
  feedback.verdict_id = page.value().verdicts.at(0).id;
  const auto status = world.daemon().feedback(feedback);
  EXPECT_TRUE(status.ok()) << status.error().message;
  world.settle();
  world.kill();
  world.start();
  world.settle();
  EXPECT_EQ(world.daemon().status().live.position, world.daemon().status().journal_end);
}

TEST(Daemon, TwoInOneFolderAreRefused) {
  DaemonWorld world;
  world.start();
  auto second = Daemon::start(world.options());
  ASSERT_FALSE(second.ok());
  EXPECT_NE(second.error().message.find("another daemon runs"), std::string::npos);
}

TEST(Daemon, WithoutASetItTakesInputAndEvaluatesItWhenOneComes) {
  DaemonWorld world;
  world.write_pack("nonsense");
  world.start();
  EXPECT_FALSE(world.daemon().status().ready);
  const auto bodies = bodies_of(3);
  for (const auto& body : bodies) world.give(body);
  world.write_pack(test_pack());
  EXPECT_EQ(world.daemon().reload().outcome, Outcome::kSwapped);
  world.settle();
  EXPECT_EQ(world.verdicts(), straight(bodies));
  EXPECT_TRUE(world.daemon().status().ready);
}

}  // namespace
}  // namespace reflex::serve

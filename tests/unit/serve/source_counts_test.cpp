// What is counted of each source, over everything that changes the lane.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <thread>

#include "tests/unit/serve/daemon_world.h"

namespace reflex::serve {
namespace {

// A log's decoder counts anew when its state was loaded, a set may number its kinds otherwise.
TEST(SourceCounts, GoOnOverReloadsAndRestarts) {
  const auto give = [](DaemonWorld& world, int round) {
    world.give(hang_of(round, round * 200) + "no event\n{\"ts\":\n");
    IngestBody log;
    log.source = "a log";
    log.form = IngestBody::Form::kLog;
    log.node = "j0n0";
    log.text = std::string("\xff\xfe\x00\n", 4) + "nothing that a rule knows\n";
    EXPECT_EQ(world.daemon().accept(std::move(log)).outcome, IngestAnswer::Outcome::kAccepted);
    world.settle();
  };
  const auto counts = [](DaemonWorld& world) {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));  // the view is of a moment ago
    const Status status = world.daemon().status();
    std::vector<std::string> out;
    for (const auto& row : status.live.events_by_source_kind) {
      out.push_back(fmt::format("{} {} {}", row.first, row.second, row.count));
    }
    for (const auto& source : status.sources) {
      out.push_back(
          fmt::format("{} lines {} rejected {}", source.name, source.lines, source.rejected));
    }
    return out;
  };
  DaemonWorld straight;
  straight.start();
  for (int round = 0; round < 4; ++round) give(straight, round);
  DaemonWorld world;
  world.start();
  give(world, 0);
  // A kind before the others of the pack, and a signal more: by bytes.
  const std::string more = "event a.first { key node: node }\nsignal more on node { e: a.first }\n";
  world.write_pack(test_pack(3, more));
  const auto answer = world.daemon().reload();
  EXPECT_EQ(answer.path, "restored") << answer.error;
  give(world, 1);
  ASSERT_TRUE(world.daemon().snapshot().ok());
  give(world, 2);
  world.kill();
  world.start();
  world.write_pack(test_pack(3));
  EXPECT_EQ(world.daemon().reload().path, "restored");
  give(world, 3);
  const auto want = counts(straight);
  EXPECT_EQ(counts(world), want);
  EXPECT_EQ(want.back(), "test lines 40 rejected 8");
}

}  // namespace
}  // namespace reflex::serve

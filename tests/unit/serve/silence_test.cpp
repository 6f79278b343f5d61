// A stream in which nothing comes any more: the wall clock goes on, and with it what is open.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <thread>

#include "runtime/serve/wall_clock.h"
#include "tests/unit/serve/daemon_world.h"

namespace reflex::serve {
namespace {

TEST(Silence, AnIncidentSettlesWithoutAnotherEvent) {
  DaemonWorld world;
  world.flags.emplace_back("clock.ticks", "true");
  std::string pack = test_pack();
  const std::string clock = "clock { lateness 2s }";
  pack.replace(pack.find(clock), clock.size(), "clock { lateness 1s  idle_after 1s }");
  world.write_pack(pack);
  world.start();
  const int64_t now_ms = wall_clock_ns() / 1'000'000;
  const auto line = [&](int64_t ago_ms, const std::string& rest) {
    return fmt::format("{{\"ts\":{},{}}}\n", now_ms - ago_ms, rest);
  };
  world.give(line(3000, R"("kind":"job.start","job":"j","nodes":["a","b","c"])") +
             line(2000, R"("kind":"gpu.xid","node":"b","code":79)") +
             line(1000, R"("kind":"incident.open","incident":"i","job":"j","symptom":"hang")"));
  // Settled after 5 s; how long it takes is no matter, only that it comes.
  const std::string want = "final \"culprits\":[\"b\"]";
  const auto said = [&] {
    const auto verdicts = world.verdicts();
    return !verdicts.empty() && verdicts.back().ends_with(want);
  };
  for (int i = 0; i < 600 && !said(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  EXPECT_TRUE(said()) << ::testing::PrintToString(world.verdicts());
}

}  // namespace
}  // namespace reflex::serve

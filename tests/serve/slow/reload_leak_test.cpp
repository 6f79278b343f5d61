// A thousand reloads with machine code and a compile cache: old sets are freed, memory stays flat.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <fstream>

#include "tests/unit/serve/daemon_world.h"

namespace reflex::serve {
namespace {

size_t resident_kb() {
  ::malloc_trim(0);
  std::ifstream file("/proc/self/statm");
  size_t all = 0;
  size_t resident = 0;
  file >> all >> resident;
  return resident * 4;
}

TEST(Reload, AThousandOfThemKeepMemoryFlat) {
  DaemonWorld world;
  world.jit = true;
  world.start();
  size_t early_kb = 0;
  int in_place = 0;
  for (int i = 1; i <= 1000; ++i) {
    const std::string more =
        i % 20 < 10 ? "signal more on node { e: gpu.xid where e.code == 5 }\n" : "";
    world.write_pack(test_pack(3 + i % 50, more) + fmt::format("# text {}\n", i));
    const auto answer = world.daemon().reload();
    ASSERT_EQ(answer.outcome, ReloadAnswer::Outcome::kSwapped) << answer.error;
    // Each tenth one has a signal more or less than the one before: its state goes by bytes.
    in_place += answer.path == "in place";
    world.give(later(i * 3));  // of one node: what the rules keep does not grow
    if (i == 200) early_kb = resident_kb();
    if (i % 200 == 0) fmt::print("{} reloads: {} kB resident\n", i, resident_kb());
  }
  world.settle();
  EXPECT_GT(in_place, 850);
  // Why 8 MiB: what 800 sets would leave behind is hundreds; allocators round.
  EXPECT_LT(resident_kb(), early_kb + 8 * 1024);
}

}  // namespace
}  // namespace reflex::serve

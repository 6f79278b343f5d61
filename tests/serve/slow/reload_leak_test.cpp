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
  for (int i = 1; i <= 1000; ++i) {
    world.write_pack(test_pack(3 + i % 50) + fmt::format("# text {}\n", i));
    const auto answer = world.daemon().reload();
    ASSERT_EQ(answer.outcome, ReloadAnswer::Outcome::kSwapped) << answer.error;
    world.give(later(i * 3));  // of one node: what the rules keep does not grow
    if (i == 200) early_kb = resident_kb();
    if (i % 200 == 0) fmt::print("{} reloads: {} kB resident\n", i, resident_kb());
  }
  world.settle();
  // Why 8 MiB: what 800 sets would leave behind is hundreds; allocators round.
  EXPECT_LT(resident_kb(), early_kb + 8 * 1024);
}

}  // namespace
}  // namespace reflex::serve

// Saved sketches of distinct values live on, also when the rule's window became another.
#include <gtest/gtest.h>

#include "runtime/eval/distinct_window.h"
#include "tests/unit/eval/event_stream.h"

namespace reflex::eval {
namespace {

TEST(DistinctWindow, SketchesOfDistinctLiveOn) {
  SymbolTable symbols;
  DistinctWindow a;
  for (int64_t i = 0; i < 5000; ++i) a.add(hash_member(i), i * kSec, 4000 * kSec);
  StateWriter out(symbols);
  a.save(out, 4000 * kSec);
  const std::string bytes = out.take();
  for (const int64_t window : {int64_t{4000}, int64_t{8000}, int64_t{2000}, int64_t{0}}) {
    DistinctWindow b;
    StateReader in(bytes, symbols);
    b.load(in, window * kSec);
    ASSERT_FALSE(in.failed());
    EXPECT_TRUE(in.at_end());
    const double count = b.count(5000 * kSec, window * kSec);
    const double want = window == 4000   ? a.count(5000 * kSec, 4000 * kSec)
                        : window == 2000 ? 2500.0  // up to a quarter of 4000 s too long
                                         : 5000.0;
    EXPECT_NEAR(count, want, window == 4000 ? 0.0 : 700.0) << window;
    b.add(hash_member(int64_t{-1}), 5001 * kSec, window * kSec);  // it goes on
    EXPECT_GE(b.count(5001 * kSec, window * kSec), count * 0.5);
  }
}

}  // namespace
}  // namespace reflex::eval

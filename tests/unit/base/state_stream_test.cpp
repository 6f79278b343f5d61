// What is written is read back; what is damaged fails and ends, at every byte.
#include "runtime/base/state_stream.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace reflex {
namespace {

std::string sample(const SymbolTable& symbols, SymbolId a, SymbolId b) {
  StateWriter w(symbols);
  w.begin("outer");
  w.u64(0);
  w.u64(std::numeric_limits<uint64_t>::max());
  w.i64(std::numeric_limits<int64_t>::min());
  w.i64(-1);
  w.flag(true);
  w.f64(-0.0);
  w.symbol(a);
  w.begin("unknown");
  w.text("skipped by old readers");
  w.end();
  w.symbol(b);
  w.symbol(a);
  w.u64(2);
  w.text("x");
  w.text("");
  w.end();
  w.u64(7);
  return w.take();
}

TEST(StateStream, ReadsBackWhatWasWrittenIntoAnotherSymbolTable) {
  SymbolTable old_names;
  const SymbolId a = old_names.intern("n1");
  const SymbolId b = old_names.intern("n2");
  const std::string bytes = sample(old_names, a, b);
  SymbolTable names;
  names.intern("something else first");
  StateReader r(bytes, names);
  ASSERT_TRUE(r.enter("outer"));
  EXPECT_EQ(r.u64(), 0u);
  EXPECT_EQ(r.u64(), std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(r.i64(), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(r.i64(), -1);
  EXPECT_TRUE(r.flag());
  EXPECT_TRUE(std::signbit(r.f64()));
  EXPECT_EQ(names.name(r.symbol()), "n1");
  EXPECT_EQ(r.enter(), "unknown");
  r.leave();
  EXPECT_EQ(names.name(r.symbol()), "n2");
  EXPECT_EQ(names.name(r.symbol()), "n1");
  EXPECT_EQ(r.count(), 2u);
  EXPECT_EQ(r.text(), "x");
  EXPECT_EQ(r.text(), "");
  EXPECT_TRUE(r.at_end());
  r.leave();
  EXPECT_EQ(r.u64(), 7u);
  EXPECT_TRUE(r.at_end());
  EXPECT_FALSE(r.failed());
}

TEST(StateStream, EndsOfSectionsHold) {
  SymbolTable names;
  StateWriter w(names);
  w.begin("short");
  w.u64(1);
  w.end();
  w.u64(2);
  const std::string bytes = w.take();
  StateReader r(bytes, names);
  ASSERT_TRUE(r.enter("short"));
  EXPECT_EQ(r.u64(), 1u);
  EXPECT_EQ(r.u64(), 0u);  // belongs to the enclosing section
  EXPECT_TRUE(r.failed());
}

TEST(StateStream, ATruncatedStateFailsAndEnds) {
  SymbolTable names;
  const std::string bytes = sample(names, names.intern("n1"), names.intern("n2"));
  for (size_t size = 0; size < bytes.size(); ++size) {
    StateReader r(std::string_view(bytes).substr(0, size), names);
    if (r.enter("outer")) {
      while (!r.at_end()) (void)r.text();
      r.leave();
    }
    (void)r.u64();
    EXPECT_TRUE(r.failed()) << size;
    EXPECT_EQ(r.u64(), 0u);
    EXPECT_EQ(r.text(), "");
    EXPECT_EQ(r.count(), 0u);
    EXPECT_EQ(r.symbol(), kNoSymbol);
  }
}

TEST(StateStream, ACountThatCannotBeIsRefused) {
  SymbolTable names;
  StateWriter w(names);
  w.u64(1'000'000'000);
  w.text("only these bytes");
  const std::string bytes = w.take();
  StateReader r(bytes, names);
  EXPECT_EQ(r.count(8), 0u);
  EXPECT_TRUE(r.failed());
}

}  // namespace
}  // namespace reflex

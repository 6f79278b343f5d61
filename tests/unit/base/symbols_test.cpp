// Names as ids: identity, stability, threads.
#include "runtime/base/symbols.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>

namespace reflex {
namespace {

TEST(Symbols, Same_name_same_id_and_back) {
  SymbolTable table;
  EXPECT_EQ(table.intern(""), kNoSymbol);
  const SymbolId id = table.intern("n0417");
  EXPECT_NE(id, kNoSymbol);
  EXPECT_EQ(table.intern("n0417"), id);
  EXPECT_EQ(table.find("n0417"), id);
  EXPECT_EQ(table.find("n0418"), kNoSymbol);
  EXPECT_EQ(table.name(id), "n0417");
}

TEST(Symbols, Local_cache_agrees_with_the_table_for_all_lengths) {
  SymbolTable table;
  LocalSymbols local(table);
  for (int round = 0; round < 2; ++round) {
    for (size_t length = 0; length < 40; ++length) {
      for (char c : {'a', 'b'}) {
        std::string name(length, 'x');
        if (length != 0) name[length / 2] = c;
        EXPECT_EQ(local.intern(name), table.intern(name)) << name;
        EXPECT_EQ(table.name(local.intern(name)), name);
      }
    }
  }
}

TEST(Symbols, Local_cache_grows_without_losing_names) {
  SymbolTable table;
  LocalSymbols local(table);
  std::vector<SymbolId> ids;
  for (int i = 0; i < 20'000; ++i) ids.push_back(local.intern("node-" + std::to_string(i)));
  for (int i = 0; i < 20'000; ++i) {
    ASSERT_EQ(local.intern("node-" + std::to_string(i)), ids[static_cast<size_t>(i)]);
  }
}

TEST(Symbols, Names_that_share_both_ends_differ) {
  SymbolTable table;
  LocalSymbols local(table);
  const SymbolId a = local.intern("rack-one-AAAA-of-pod-one");
  const SymbolId b = local.intern("rack-one-BBBB-of-pod-one");
  EXPECT_NE(a, b);
  EXPECT_EQ(local.intern("rack-one-AAAA-of-pod-one"), a);
}

TEST(Symbols, Threads_agree_on_ids) {
  SymbolTable table;
  std::vector<std::vector<SymbolId>> ids(4);
  std::vector<std::thread> threads;
  for (std::vector<SymbolId>& mine : ids) {
    threads.emplace_back([&table, &mine] {
      LocalSymbols local(table);
      for (int i = 0; i < 2'000; ++i) mine.push_back(local.intern("n" + std::to_string(i)));
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& mine : ids) EXPECT_EQ(mine, ids[0]);
}

// A snapshot's child reads names while a reload compiles with the same table.
TEST(Symbols, AChildReadsNamesThoughAnotherThreadInterned) {
  SymbolTable table;
  const SymbolId known = table.intern("known");
  std::atomic<bool> done = false;
  std::thread other([&] {
    for (int i = 0; !done; ++i) table.intern("n" + std::to_string(i));
  });
  int failed = 0;
  for (int i = 0; i < 300; ++i) {
    const auto still = table.still();
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(20);  // a lock that nobody opens
      ::_exit(table.find("known") == known && table.name(known) == "known" ? 0 : 1);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    failed += WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : 1;
  }
  done = true;
  other.join();
  EXPECT_EQ(failed, 0);
}

}  // namespace
}  // namespace reflex

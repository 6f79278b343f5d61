// ReadAhead: the same pieces in the same order for any number of threads; shards run beside it.
#include "runtime/engine/read_ahead.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <string>

#include "tests/support/pack_builder.h"

namespace reflex::engine {
namespace {

class TempFile {
 public:
  explicit TempFile(const std::string& text) {
    const int fd = ::mkstemp(path_.data());
    EXPECT_GE(fd, 0);
    EXPECT_EQ(::write(fd, text.data(), text.size()), static_cast<ssize_t>(text.size()));
    ::close(fd);
  }
  ~TempFile() { ::unlink(path_.c_str()); }
  TempFile(const TempFile&) = delete;
  TempFile& operator=(const TempFile&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_ = "/tmp/reflex_read_ahead_XXXXXX";
};

/// `count` events, one each `step_ms`.
std::string events(int count, int step_ms, int start_ms) {
  std::string text;
  for (int i = 0; i < count; ++i) {
    text += R"({"ts":)" + std::to_string(1'760'000'000'000 + start_ms + int64_t{i} * step_ms) +
            R"(,"kind":"k","node":"n)" + std::to_string(i % 7) + "\"}\n";
  }
  return text;
}

struct Seen {
  std::string path;
  uint64_t first_line;
  size_t records;
  bool last;
  friend bool operator==(const Seen&, const Seen&) = default;
};

std::vector<Seen> read(const std::vector<std::string>& paths, unsigned threads, bool with_tasks) {
  test::PackBuilder b;
  b.kind("k", {{"node", test::entity_type()}});
  std::vector<std::unique_ptr<Input>> inputs;
  for (const std::string& path : paths) {
    auto input = std::make_unique<Input>();
    input->path = path;
    input->source = b.pack->symbols->intern(path);
    input->lines = stream::open_lines(path).value();
    for (unsigned i = 0; i < threads; ++i) {
      input->decoders.push_back(std::make_unique<stream::NdjsonDecoder>(b.pack));
    }
    inputs.push_back(std::move(input));
  }
  ReadAhead ahead(inputs, threads, 4096);
  std::vector<Seen> seen;
  while (const auto piece = ahead.next()) {
    EXPECT_FALSE(piece->error.has_value());
    seen.push_back(
        {piece->input->path, piece->chunk.first_line, piece->batch.records.size(), piece->last});
    if (!with_tasks) continue;
    std::atomic<int> sum = 0;
    std::vector<std::atomic<int>> calls(5);
    ahead.run(5, [&](size_t i) {
      ++calls[i];
      sum += static_cast<int>(i);
    });
    EXPECT_EQ(sum, 10);
    for (const auto& n : calls) EXPECT_EQ(n, 1);
  }
  return seen;
}

TEST(ReadAhead, Pieces_and_their_order_do_not_depend_on_threads) {
  const TempFile slow(events(3000, 100, 0));
  const TempFile fast(events(3000, 10, 50'000));
  const TempFile empty("");
  const std::vector<std::string> paths{slow.path(), fast.path(), empty.path()};
  const auto want = read(paths, 1, false);
  size_t records = 0;
  size_t last = 0;
  for (const Seen& s : want) records += s.records, last += s.last ? 1 : 0;
  EXPECT_EQ(records, 6000u);
  EXPECT_EQ(last, 3u);
  for (unsigned threads : {1u, 2u, 4u}) {
    for (bool with_tasks : {false, true}) EXPECT_EQ(read(paths, threads, with_tasks), want);
  }
}

TEST(ReadAhead, Reads_the_least_advanced_input) {
  const TempFile early(events(2000, 100, 0));
  const TempFile late(events(2000, 100, 10'000'000));
  const auto seen = read({late.path(), early.path()}, 2, false);
  // Both start in turn; when their times are known the early one is read to its end first.
  size_t late_before_early_ends = 0;
  for (const Seen& s : seen) {
    if (s.path == early.path() && s.last) break;
    late_before_early_ends += s.path == late.path() ? 1 : 0;
  }
  EXPECT_LE(late_before_early_ends, 4u);
}

}  // namespace
}  // namespace reflex::engine

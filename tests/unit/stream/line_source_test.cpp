// Files as chunks of whole lines: plain, gzip, zstd, long lines, errors.
#include "runtime/stream/line_source.h"

#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <cstdio>
#include <fstream>

#include "runtime/stream/ndjson_decoder.h"

namespace reflex::stream {
namespace {

class TempFile {
 public:
  explicit TempFile(const std::string& bytes)
      : path_(::testing::TempDir() + "line_source_" + std::to_string(::getpid())) {
    std::ofstream(path_, std::ios::binary) << bytes;
  }
  TempFile(const TempFile&) = delete;
  TempFile& operator=(const TempFile&) = delete;
  ~TempFile() { std::remove(path_.c_str()); }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

struct Read {
  std::string text;
  uint64_t too_long = 0;
  uint64_t last_chunk_line = 0;
  std::string error;
};

Read read_all(const std::string& path, size_t chunk) {
  Read out;
  auto source = open_lines(path);
  if (!source) {
    out.error = source.error().message;
    return out;
  }
  for (;;) {
    Result<Chunk> got = source.value()->next(chunk);
    if (!got) {
      out.error = got.error().message;
      return out;
    }
    out.too_long += got.value().lines_too_long;
    if (got.value().text.empty()) return out;
    out.text += got.value().text;
    out.last_chunk_line = got.value().first_line;
  }
}

std::string sample_text() {
  std::string text;
  for (int i = 0; i < 5000; ++i) text += "line " + std::to_string(i * 7919) + "\n";
  return text + "half a line";
}

std::string gzip(const std::string& text) {
  z_stream state{};
  deflateInit2(&state, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  std::string out(text.size() + 1000, '\0');
  state.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  state.avail_in = static_cast<uInt>(text.size());
  state.next_out = reinterpret_cast<Bytef*>(out.data());
  state.avail_out = static_cast<uInt>(out.size());
  deflate(&state, Z_FINISH);
  out.resize(state.total_out);
  deflateEnd(&state);
  return out;
}

std::string zstd(const std::string& text) {
  std::string out(ZSTD_compressBound(text.size()), '\0');
  out.resize(ZSTD_compress(out.data(), out.size(), text.data(), text.size(), 3));
  return out;
}

TEST(LineSource, All_compressions_and_chunk_sizes_give_the_same_text) {
  const std::string text = sample_text();
  for (const std::string& bytes :
       {text, gzip(text), gzip(text.substr(0, 999)) + gzip(text.substr(999)), zstd(text),
        zstd(text.substr(0, 999)) + zstd(text.substr(999)), gzip(text) + std::string(512, '\0')}) {
    const TempFile file(bytes);
    for (size_t chunk : {1u, 17u, 4096u, 1u << 20}) {
      const Read got = read_all(file.path(), chunk);
      EXPECT_EQ(got.error, "");
      EXPECT_TRUE(got.text == text) << chunk;
      if (chunk == 1) {
        EXPECT_EQ(got.last_chunk_line, 5001u);
      }
    }
  }
}

TEST(LineSource, Truncated_and_broken_compression_is_an_error_with_the_path) {
  const std::string text = sample_text();
  for (const std::string& whole : {gzip(text), zstd(text)}) {
    const TempFile cut(whole.substr(0, whole.size() / 2));
    EXPECT_NE(read_all(cut.path(), 1 << 16).error.find(cut.path()), std::string::npos);
    std::string broken = whole;
    for (size_t i = 20; i < 60; ++i) broken[i] = static_cast<char>(~broken[i]);
    const TempFile bad(broken);
    EXPECT_NE(read_all(bad.path(), 1 << 16).error, "");
  }
}

TEST(LineSource, Unreadable_paths) {
  EXPECT_NE(read_all("/no/such/file", 1).error.find("/no/such/file"), std::string::npos);
  EXPECT_NE(read_all("/", 1).error, "");
}

TEST(LineSource, Empty_file_has_no_lines) {
  const TempFile file("");
  EXPECT_EQ(read_all(file.path(), 100).text, "");
}

TEST(LineSource, A_line_of_50_MB_is_skipped_and_counted) {
  const std::string text = "first\n" + std::string(50 << 20, 'x') + "\nsecond\n";
  const TempFile file(text);
  auto source = open_lines(file.path());
  ASSERT_TRUE(source.ok());
  std::string seen;
  uint64_t too_long = 0;
  for (;;) {
    Result<Chunk> got = source.value()->next(1 << 16);
    ASSERT_TRUE(got.ok());
    too_long += got.value().lines_too_long;
    if (got.value().text.empty()) break;
    if (got.value().text == "second\n") {
      EXPECT_EQ(got.value().first_line, 3u);
    }
    seen += got.value().text;
  }
  EXPECT_EQ(seen, "first\nsecond\n");
  EXPECT_EQ(too_long, 1u);
}

TEST(LineSource, A_text_stays_while_its_memory_is_held) {
  std::string text;
  for (int i = 0; i < 20'000; ++i) text += "line " + std::to_string(i) + "\n";
  const TempFile file(text);
  auto source = open_lines(file.path());
  ASSERT_TRUE(source.ok());
  std::vector<Chunk> chunks;
  for (;;) {
    Result<Chunk> got = source.value()->next(10'000);
    ASSERT_TRUE(got.ok());
    if (got.value().text.empty()) break;
    chunks.push_back(std::move(got).value());
    if (chunks.size() % 3 == 0) chunks.back().memory.reset(), chunks.back().text = {};
  }
  size_t at = 0;
  uint64_t line = 1;
  for (const Chunk& chunk : chunks) {
    EXPECT_EQ(chunk.first_line, line);
    if (chunk.memory == nullptr) {  // given back: the text between its neighbours
      while (line < 20'001 && &chunk != &chunks.back() && line < (&chunk + 1)->first_line) {
        at = text.find('\n', at) + 1;
        ++line;
      }
      continue;
    }
    EXPECT_EQ(chunk.text, text.substr(at, chunk.text.size()));
    at += chunk.text.size();
    line += count_newlines(chunk.text);
  }
}

TEST(LineSource, The_limit_does_not_depend_on_the_chunk_size) {
  const std::string at_limit(kLineBytesMax, 'a');
  const std::string over(kLineBytesMax + 1, 'b');
  const TempFile file(at_limit + "\n" + over + "\nc\n" + over);
  for (size_t chunk : {1u, 1u << 16, 8u << 20}) {
    const Read got = read_all(file.path(), chunk);
    EXPECT_EQ(got.too_long, 2u) << chunk;
    EXPECT_TRUE(got.text == at_limit + "\nc\n") << chunk;
  }
}

}  // namespace
}  // namespace reflex::stream

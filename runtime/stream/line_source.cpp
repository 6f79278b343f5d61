// Bytes cut into chunks of whole lines.
//
// The buffer holds a chunk and at most one line of kLineBytesMax; a longer line is thrown away
// piece by piece, so that memory stays bounded. A chunk ends at a skipped line, so that first_line
// of the next one is exact.
#include "runtime/stream/line_source.h"

#include <emmintrin.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "runtime/stream/byte_source.h"
#include "runtime/stream/ndjson_decoder.h"

namespace reflex::stream {

// 64 bytes at a time; the byte counters of a block are summed before they can overflow.
uint64_t count_newlines(std::string_view text) {
  const __m128i newline = _mm_set1_epi8('\n');
  const __m128i zero = _mm_setzero_si128();
  const auto hits = [&](size_t at) {  // -1 for each newline
    return _mm_cmpeq_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(text.data() + at)),
                          newline);
  };
  uint64_t count = 0;
  size_t i = 0;
  while (i + 64 <= text.size()) {
    const size_t block_end = std::min(text.size() - 63, i + 64 * 63);
    __m128i counters = zero;
    for (; i < block_end; i += 64) {
      const __m128i low = _mm_add_epi8(hits(i), hits(i + 16));
      const __m128i high = _mm_add_epi8(hits(i + 32), hits(i + 48));
      counters = _mm_sub_epi8(counters, _mm_add_epi8(low, high));
    }
    const __m128i sums = _mm_sad_epu8(counters, zero);
    count += static_cast<uint64_t>(_mm_cvtsi128_si64(sums)) +
             static_cast<uint64_t>(_mm_cvtsi128_si64(_mm_srli_si128(sums, 8)));
  }
  for (; i < text.size(); ++i) count += text[i] == '\n';
  return count;
}

namespace {

constexpr size_t kPaddingBytes = 64;  // Source: SIMDJSON_PADDING of simdjson 3.0

class ByteLines final : public LineSource {
 public:
  using Buffer = std::vector<char>;
  ByteLines(std::unique_ptr<ByteSource> bytes, std::string path)
      : bytes_(std::move(bytes)), path_(std::move(path)), buffer_(free_buffer()) {}

  Result<Chunk> next(size_t bytes_wanted) override {
    reserve(std::max<size_t>(bytes_wanted, 1));
    Chunk chunk;
    for (;;) {
      chunk.first_line = line_;
      if (skipping_) {
        if (!skip_rest_of_line(chunk)) {
          chunk.first_line = line_;
          if (at_end_) return chunk;
          if (Status status = fill(); !status) return status.error();
          continue;
        }
      }
      const size_t size = may_have_line() ? whole_lines(bytes_wanted) : 0;
      if (size != 0) {
        searched_ = 0;
        chunk.text = {buffer_->data() + begin_, size};
        chunk.memory = buffer_;
        chunk.first_line = line_;
        line_ += count_newlines(chunk.text);
        begin_ += size;
        return chunk;
      }
      if (end_ - begin_ > kLineBytesMax) {
        skipping_ = true;
        continue;
      }
      if (at_end_) return chunk;
      if (Status status = fill(); !status) return status.error();
    }
  }
  [[nodiscard]] uint64_t bytes_read() const override { return bytes_->bytes_read(); }
  [[nodiscard]] uint64_t bytes_total() const override { return bytes_->bytes_total(); }
  [[nodiscard]] int64_t modified_ns() const override { return bytes_->modified_ns(); }

 private:
  /// Room for what is held plus one read, behind a compacted start.
  void reserve(size_t bytes_wanted) {
    const size_t held = end_ - begin_;
    const std::shared_ptr<Buffer> old = buffer_;       // held here, by buffer_ and by buffers_
    if (old.use_count() > 3) buffer_ = free_buffer();  // the text of a chunk is still in use
    if (buffer_->size() < held + bytes_wanted + kPaddingBytes) {
      buffer_->resize(held + bytes_wanted + kPaddingBytes);
    }
    if (held != 0 && (begin_ != 0 || buffer_ != old)) {
      std::memmove(buffer_->data(), old->data() + begin_, held);
    }
    begin_ = 0;
    end_ = held;
    read_bytes_ = bytes_wanted;
  }

  /// One that no chunk holds any more, or a new one.
  std::shared_ptr<Buffer> free_buffer() {
    for (const auto& buffer : buffers_) {
      if (buffer.use_count() == 1) return buffer;
    }
    return buffers_.emplace_back(std::make_shared<Buffer>());
  }

  Status fill() {
    if (skipping_) {
      begin_ = end_ = 0;
    } else if (buffer_->size() < end_ + read_bytes_ + kPaddingBytes) {
      reserve(read_bytes_);
    }
    Result<size_t> got = bytes_->read(buffer_->data() + end_, read_bytes_);
    if (!got) return Error(got.error()).in("reading " + path_);
    at_end_ = got.value() == 0;
    end_ += got.value();
    return ok_status();
  }

  /// True when the end of the long line has been passed.
  bool skip_rest_of_line(Chunk& chunk) {
    const char* start = buffer_->data() + begin_;
    const void* newline = end_ == begin_ ? nullptr : std::memchr(start, '\n', end_ - begin_);
    if (newline == nullptr) {
      begin_ = end_;
      if (at_end_) end_of_long_line(chunk);
      return false;
    }
    begin_ += static_cast<size_t>(static_cast<const char*>(newline) - start) + 1;
    end_of_long_line(chunk);
    return true;
  }
  void end_of_long_line(Chunk& chunk) {
    skipping_ = false;
    searched_ = 0;
    ++chunk.lines_too_long;
    ++line_;
  }

  /// False while what is held is known to be a part of one line: no byte is searched twice.
  bool may_have_line() {
    const size_t held = end_ - begin_;
    if (at_end_ || held > kLineBytesMax) return true;
    const char* start = buffer_->data() + begin_;
    if (held > searched_ && std::memchr(start + searched_, '\n', held - searched_) != nullptr) {
      return true;
    }
    searched_ = held;
    return false;
  }

  /// Bytes of whole lines at the start of the buffer, none of them too long; 0 = none (yet).
  size_t whole_lines(size_t bytes_wanted) const {
    size_t size = 0;
    while (size < bytes_wanted) {
      const char* start = buffer_->data() + begin_ + size;
      const size_t held = end_ - begin_ - size;
      const size_t window = std::min({held, kLineBytesMax + 1, bytes_wanted});
      if (window == 0) break;
      const void* last = ::memrchr(start, '\n', window);
      if (last == nullptr && window < std::min(held, kLineBytesMax + 1)) {
        last = std::memchr(start + window, '\n', std::min(held, kLineBytesMax + 1) - window);
      }
      if (last == nullptr) {
        const bool is_last_line = at_end_ && held <= kLineBytesMax;
        return is_last_line ? size + held : size;
      }
      size += static_cast<size_t>(static_cast<const char*>(last) - start) + 1;
    }
    return size;
  }

  std::unique_ptr<ByteSource> bytes_;
  std::string path_;
  std::vector<std::shared_ptr<Buffer>> buffers_;  // all that were ever needed at the same time
  std::shared_ptr<Buffer> buffer_;                // the one that is read into
  size_t begin_ = 0;                              // [begin_, end_) is read and not yet delivered
  size_t end_ = 0;
  size_t read_bytes_ = 0;
  size_t searched_ = 0;  // bytes from begin_ that hold no newline
  uint64_t line_ = 1;
  bool skipping_ = false;
  bool at_end_ = false;
};

}  // namespace

Result<std::unique_ptr<LineSource>> open_lines(const std::string& path) {
  Result<std::unique_ptr<ByteSource>> bytes = open_bytes(path);
  if (!bytes) return Error(bytes.error()).in("reading " + path);
  std::unique_ptr<LineSource> lines =
      std::make_unique<ByteLines>(std::move(bytes).value(), path == "-" ? "standard input" : path);
  return lines;
}

}  // namespace reflex::stream

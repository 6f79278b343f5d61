// Files, gzip and zstd behind one read().
//
// Source: magic numbers: RFC 1952 section 2.3.1 (1f 8b), RFC 8878 sections 3.1.1 (28 b5 2f fd) and
// 3.1.2 (skippable frames 5? 2a 4d 18).
#include "runtime/stream/byte_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <vector>

#include "runtime/base/time.h"

namespace reflex::stream {
namespace {

constexpr size_t kInputBytes = 256u << 10;  // Why: large enough to amortise a system call
constexpr size_t kMagicBytes = 4;

/// A file descriptor; the first bytes can be looked at before they are read.
class FileBytes final : public ByteSource {
 public:
  FileBytes(int fd, bool owned) : fd_(fd), owned_(owned) {
    struct stat info{};
    if (::fstat(fd, &info) == 0 && S_ISREG(info.st_mode)) {
      total_ = static_cast<uint64_t>(info.st_size);
      modified_ns_ = info.st_mtim.tv_sec * kNsPerSecond + info.st_mtim.tv_nsec;
    }
  }
  FileBytes(const FileBytes&) = delete;
  FileBytes& operator=(const FileBytes&) = delete;
  ~FileBytes() override {
    if (owned_) ::close(fd_);
  }

  Result<std::string_view> peek() {
    while (peeked_ < kMagicBytes) {
      Result<size_t> got = read_fd(head_ + peeked_, kMagicBytes - peeked_);
      if (!got) return got.error();
      if (got.value() == 0) break;
      peeked_ += got.value();
    }
    return std::string_view(head_, peeked_);
  }

  Result<size_t> read(char* out, size_t size) override {
    if (given_ < peeked_) {
      const size_t count = std::min(size, peeked_ - given_);
      std::memcpy(out, head_ + given_, count);
      given_ += count;
      read_ += count;
      return count;
    }
    Result<size_t> got = read_fd(out, size);
    if (got) read_ += got.value();
    return got;
  }
  [[nodiscard]] uint64_t bytes_read() const override { return read_; }
  [[nodiscard]] uint64_t bytes_total() const override { return total_; }
  [[nodiscard]] int64_t modified_ns() const override { return modified_ns_; }

 private:
  Result<size_t> read_fd(char* out, size_t size) {
    for (;;) {
      const ssize_t got = ::read(fd_, out, size);
      if (got >= 0) return static_cast<size_t>(got);
      if (errno != EINTR) return Error{std::strerror(errno)};
    }
  }

  int fd_;
  bool owned_;
  char head_[kMagicBytes] = {};
  size_t peeked_ = 0;
  size_t given_ = 0;
  uint64_t read_ = 0;
  uint64_t total_ = 0;
  int64_t modified_ns_ = 0;
};

/// What both decompressors share: the compressed file and its input buffer.
class CompressedBytes : public ByteSource {
 public:
  explicit CompressedBytes(std::unique_ptr<FileBytes> file)
      : file_(std::move(file)), input_(kInputBytes) {}
  [[nodiscard]] uint64_t bytes_read() const override { return file_->bytes_read(); }
  [[nodiscard]] uint64_t bytes_total() const override { return file_->bytes_total(); }
  [[nodiscard]] int64_t modified_ns() const override { return file_->modified_ns(); }

 protected:
  Result<size_t> fill() { return file_->read(input_.data(), input_.size()); }
  std::unique_ptr<FileBytes> file_;
  std::vector<char> input_;
};

class GzipBytes final : public CompressedBytes {
 public:
  explicit GzipBytes(std::unique_ptr<FileBytes> file) : CompressedBytes(std::move(file)) {
    RFX_CHECK(::inflateInit2(&state_, 16 + MAX_WBITS) == Z_OK);
  }
  GzipBytes(const GzipBytes&) = delete;
  GzipBytes& operator=(const GzipBytes&) = delete;
  ~GzipBytes() override { ::inflateEnd(&state_); }

  Result<size_t> read(char* out, size_t size) override {
    state_.next_out = reinterpret_cast<Bytef*>(out);
    state_.avail_out = static_cast<uInt>(size);
    while (state_.avail_out == size) {
      if (state_.avail_in == 0) {
        Result<size_t> got = fill();
        if (!got) return got;
        if (got.value() == 0) {
          if (member_done_) return size_t{0};
          return Error{"the gzip data ends in the middle (truncated file?)"};
        }
        state_.next_in = reinterpret_cast<Bytef*>(input_.data());
        state_.avail_in = static_cast<uInt>(got.value());
      }
      if (member_done_) {
        if (*state_.next_in == 0) {  // tape-style zero padding after the last member
          ++state_.next_in;
          --state_.avail_in;
          continue;
        }
        ::inflateReset(&state_);
        member_done_ = false;
      }
      const int code = ::inflate(&state_, Z_NO_FLUSH);
      if (code == Z_STREAM_END) {
        member_done_ = true;
      } else if (code != Z_OK && code != Z_BUF_ERROR) {
        return Error{std::string("bad gzip data: ") +
                     (state_.msg != nullptr ? state_.msg : "unknown reason")};
      }
    }
    return size - state_.avail_out;
  }

 private:
  z_stream state_{};
  bool member_done_ = false;
};

class ZstdBytes final : public CompressedBytes {
 public:
  explicit ZstdBytes(std::unique_ptr<FileBytes> file)
      : CompressedBytes(std::move(file)), state_(::ZSTD_createDStream()) {
    RFX_CHECK(state_ != nullptr);
  }
  ZstdBytes(const ZstdBytes&) = delete;
  ZstdBytes& operator=(const ZstdBytes&) = delete;
  ~ZstdBytes() override { ::ZSTD_freeDStream(state_); }

  Result<size_t> read(char* out, size_t size) override {
    ZSTD_outBuffer target{out, size, 0};
    while (target.pos == 0) {
      if (source_.pos == source_.size && !more_inside_) {
        Result<size_t> got = fill();
        if (!got) return got;
        if (got.value() == 0) {
          if (frame_done_) return size_t{0};
          return Error{"the zstd data ends in the middle (truncated file?)"};
        }
        source_ = {input_.data(), got.value(), 0};
      }
      const size_t code = ::ZSTD_decompressStream(state_, &target, &source_);
      if (::ZSTD_isError(code)) {
        return Error{std::string("bad zstd data: ") + ::ZSTD_getErrorName(code)};
      }
      frame_done_ = code == 0;
      more_inside_ = target.pos == target.size && code != 0;
    }
    return target.pos;
  }

 private:
  ZSTD_DStream* state_;
  ZSTD_inBuffer source_{nullptr, 0, 0};
  bool frame_done_ = true;
  bool more_inside_ = false;  // the decoder may hold output without needing more input
};

bool is_gzip(std::string_view head) { return head.substr(0, 2) == "\x1f\x8b"; }

bool is_zstd(std::string_view head) {
  if (head.size() < 4) return false;
  if (head == "\x28\xb5\x2f\xfd") return true;
  return (head[0] & 0xf0) == 0x50 && head.substr(1) == "\x2a\x4d\x18";
}

}  // namespace

Result<std::unique_ptr<ByteSource>> open_bytes(const std::string& path) {
  const bool is_stdin = path == "-";
  const int fd = is_stdin ? STDIN_FILENO : ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return Error{std::strerror(errno)};
  auto file = std::make_unique<FileBytes>(fd, !is_stdin);
  Result<std::string_view> head = file->peek();
  if (!head) return head.error();
  std::unique_ptr<ByteSource> source;
  if (is_gzip(head.value())) {
    source = std::make_unique<GzipBytes>(std::move(file));
  } else if (is_zstd(head.value())) {
    source = std::make_unique<ZstdBytes>(std::move(file));
  } else {
    source = std::move(file);
  }
  return source;
}

}  // namespace reflex::stream

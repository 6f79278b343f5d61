// Plain, gzip (zlib) and zstd output; see byte_sink.h.
#include "runtime/anonymize/byte_sink.h"

#include <fcntl.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <vector>

namespace reflex::anonymize {
namespace {

constexpr int kZstdLevel = 3;
constexpr int kGzipLevel = 6;

class FileSink : public ByteSink {
 public:
  FileSink(std::string path, std::FILE* file) : path_(std::move(path)), file_(file) {}
  ~FileSink() override {
    if (file_) std::fclose(file_);
  }
  void write(std::string_view bytes) override { put(bytes.data(), bytes.size()); }
  Status close() override {
    if (file_ && std::fclose(file_) != 0) failed_ = true;
    file_ = nullptr;
    if (failed_) return Error{"writing " + path_ + " failed (disk full?)"};
    return ok_status();
  }

 protected:
  void put(const char* data, size_t size) {
    if (file_ && std::fwrite(data, 1, size, file_) != size) failed_ = true;
  }
  void fail() { failed_ = true; }

 private:
  std::string path_;
  std::FILE* file_;
  bool failed_ = false;
};

class ZstdSink final : public FileSink {
 public:
  ZstdSink(std::string path, std::FILE* file)
      : FileSink(std::move(path), file), context_(ZSTD_createCCtx()), out_(ZSTD_CStreamOutSize()) {
    ZSTD_CCtx_setParameter(context_, ZSTD_c_compressionLevel, kZstdLevel);
  }
  ~ZstdSink() override { ZSTD_freeCCtx(context_); }
  void write(std::string_view bytes) override { run(bytes, ZSTD_e_continue); }
  Status close() override {
    run({}, ZSTD_e_end);
    return FileSink::close();
  }

 private:
  void run(std::string_view bytes, ZSTD_EndDirective end) {
    ZSTD_inBuffer in{bytes.data(), bytes.size(), 0};
    for (size_t left = 1; left != 0;) {
      ZSTD_outBuffer out{out_.data(), out_.size(), 0};
      left = ZSTD_compressStream2(context_, &out, &in, end);
      if (ZSTD_isError(left)) return fail();
      put(out_.data(), out.pos);
      if (end == ZSTD_e_continue && in.pos == in.size) return;
    }
  }
  ZSTD_CCtx* context_;
  std::vector<char> out_;
};

class GzipSink final : public FileSink {
 public:
  GzipSink(std::string path, std::FILE* file) : FileSink(std::move(path), file), out_(1u << 16) {
    // Why 15 + 16: the largest window, with a gzip header (Source: zlib.h, deflateInit2).
    if (deflateInit2(&z_, kGzipLevel, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK) fail();
  }
  ~GzipSink() override { deflateEnd(&z_); }
  void write(std::string_view bytes) override { run(bytes, Z_NO_FLUSH); }
  Status close() override {
    run({}, Z_FINISH);
    return FileSink::close();
  }

 private:
  void run(std::string_view bytes, int flush) {
    z_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
    z_.avail_in = static_cast<uInt>(bytes.size());
    do {
      z_.next_out = reinterpret_cast<Bytef*>(out_.data());
      z_.avail_out = static_cast<uInt>(out_.size());
      if (deflate(&z_, flush) == Z_STREAM_ERROR) return fail();
      put(out_.data(), out_.size() - z_.avail_out);
    } while (z_.avail_out == 0);
  }
  z_stream z_{};
  std::vector<char> out_;
};

}  // namespace

Packing packing_of(const std::string& path) {
  unsigned char head[4] = {};
  std::ifstream in(path, std::ios::binary);
  in.read(reinterpret_cast<char*>(head), sizeof head);
  if (head[0] == 0x1f && head[1] == 0x8b) return Packing::kGzip;
  if (head[0] == 0x28 && head[1] == 0xb5 && head[2] == 0x2f && head[3] == 0xfd) {
    return Packing::kZstd;
  }
  return Packing::kPlain;
}

std::string_view suffix(Packing packing) {
  return packing == Packing::kGzip ? ".gz" : packing == Packing::kZstd ? ".zst" : "";
}

Result<std::unique_ptr<ByteSink>> open_sink(const std::string& path, Packing packing) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (fd < 0) return Error{"cannot write " + path + ": " + std::strerror(errno)};
  std::FILE* file = fdopen(fd, "wb");
  if (!file) {
    ::close(fd);
    return Error{"cannot write " + path + ": " + std::strerror(errno)};
  }
  std::unique_ptr<ByteSink> out;
  if (packing == Packing::kZstd) out = std::make_unique<ZstdSink>(path, file);
  if (packing == Packing::kGzip) out = std::make_unique<GzipSink>(path, file);
  if (packing == Packing::kPlain) out = std::make_unique<FileSink>(path, file);
  return out;
}

}  // namespace reflex::anonymize

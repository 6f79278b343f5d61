// Following a file; see file_tail.h.
#include "runtime/stream/file_tail.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "runtime/base/crc32c.h"

namespace reflex::stream {
namespace {
constexpr size_t kLineMax = 1u << 20;
constexpr size_t kCheckBytes = 256;
}  // namespace

FileTail::FileTail(Options options) : options_(std::move(options)) {
  resume_ = parse(options_.cursor, saved_);
  first_ = !resume_;
}

FileTail::~FileTail() { close_file(); }

std::string FileTail::cursor_of(const Place& p) {
  return fmt::format("{}:{}:{}:{}:{}:{}", p.device, p.inode, p.offset, p.check, p.check_bytes,
                     p.generation);
}

bool FileTail::parse(const std::string& text, Place& p) {
  unsigned long long device = 0, inode = 0, offset = 0, bytes = 0, generation = 0;
  unsigned check = 0;
  if (std::sscanf(text.c_str(), "%llu:%llu:%llu:%u:%llu:%llu", &device, &inode, &offset, &check,
                  &bytes, &generation) < 5) {
    return false;
  }
  p = {device, inode, offset, check, bytes, generation};
  return true;
}

void FileTail::note(const std::string& line) const {
  if (options_.note) options_.note(line);
}

bool FileTail::next(Piece& out) {
  for (;;) {
    if (piece_size_ > 0) {
      give(out);
      return true;
    }
    if (fd_ < 0 && !open_file()) return false;
    if (leaving_) {
      close_file();
      continue;
    }
    if (read_some()) continue;
    if (was_cut()) {
      note("the file was truncated: read from its beginning");
      ++at_.generation;
      at_.offset = 0;
      at_.check_bytes = 0;
      part_.clear();
      continue;
    }
    if (!was_replaced()) return false;
    // Only now: what was written to the old file before the rename has been read.
    if (read_some()) continue;
    leaving_ = true;
    // The last line of a file that is left for good counts without its newline.
    if (!part_.empty()) cut_piece(part_.size());
  }
}

void FileTail::accepted() {
  part_.erase(0, piece_size_);
  piece_size_ = 0;
  at_ = behind_;
}

void FileTail::close_file() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
  part_.clear();
  piece_size_ = 0;
  leaving_ = false;
}

bool FileTail::open_file() {
  fd_ = ::open(options_.path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat info{};
  if (fd_ < 0 || ::fstat(fd_, &info) != 0) {
    note(options_.path + ": " + std::strerror(errno) + "; tried again until it is there");
    close_file();
    return false;
  }
  const uint64_t generation = info.st_ino == at_.inode ? at_.generation + 1 : 0;
  at_ = {info.st_dev, info.st_ino, 0, 0, 0, generation};
  if (resume_) {
    const bool same = saved_.device == at_.device && saved_.inode == at_.inode &&
                      static_cast<uint64_t>(info.st_size) >= saved_.offset &&
                      check_of(saved_.check_bytes) == saved_.check;
    if (same) {
      at_ = saved_;
    } else {
      if (saved_.inode == at_.inode) at_.generation = saved_.generation + 1;
      note("not the file that was read before the restart: read from its beginning");
    }
  } else if (first_ && options_.from_end) {
    at_.offset = static_cast<uint64_t>(info.st_size);
  }
  resume_ = false;
  first_ = false;
  return true;
}

uint32_t FileTail::check_of(uint64_t bytes) const {
  std::string head(bytes, '\0');
  const ssize_t got = ::pread(fd_, head.data(), head.size(), 0);
  if (got < 0 || static_cast<uint64_t>(got) != bytes) return 0;
  return crc32c(head);
}

/// Reads a chunk and makes a piece of its whole lines; false when there was nothing new.
bool FileTail::read_some() {
  const size_t have = part_.size();
  part_.resize(have + options_.chunk_bytes);
  const ssize_t got = ::pread(fd_, part_.data() + have, options_.chunk_bytes,
                              static_cast<off_t>(at_.offset + have));
  part_.resize(have + static_cast<size_t>(std::max<ssize_t>(got, 0)));
  if (got < 0) note(std::strerror(errno));
  if (got <= 0) return false;
  const size_t newline = part_.rfind('\n');
  if (newline != std::string::npos) {
    cut_piece(newline + 1);
  } else if (part_.size() > kLineMax) {
    cut_piece(part_.size());  // a line that no decoder takes anyway must not be held
  }
  return true;
}

void FileTail::cut_piece(size_t size) {
  piece_size_ = size;
  behind_ = at_;
  behind_.offset += size;
  if (behind_.check_bytes < kCheckBytes) {
    behind_.check_bytes = std::min<uint64_t>(kCheckBytes, behind_.offset);
    behind_.check = check_of(behind_.check_bytes);
  }
}

void FileTail::give(Piece& out) const {
  out.text = part_.substr(0, piece_size_);
  out.cursor = cursor_of(behind_);
  out.file = fmt::format("{}:{}:{}", at_.device, at_.inode, at_.generation);
  out.offset = at_.offset;
  struct stat info{};
  out.modified_ns = 0;
  if (::fstat(fd_, &info) == 0) {
    out.modified_ns = info.st_mtim.tv_sec * 1'000'000'000 + info.st_mtim.tv_nsec;
  }
}

bool FileTail::was_cut() const {
  struct stat info{};
  if (::fstat(fd_, &info) != 0) return false;
  return static_cast<uint64_t>(info.st_size) < at_.offset + part_.size();
}

bool FileTail::was_replaced() const {
  struct stat info{};
  if (::stat(options_.path.c_str(), &info) != 0) return false;  // until there is a new one
  return info.st_dev != at_.device || info.st_ino != at_.inode;
}

}  // namespace reflex::stream

// Tail: a file that grows, over rotation by rename (the old file is read to its end, then the new
// one from its beginning), rotation by copytruncate, and truncation (from the beginning again).
//
// Cursor: "DEVICE:INODE:OFFSET:CHECK" of the last whole line that was accepted; CHECK is a checksum
// of the file's first bytes, so that a new file with the inode of an old one is not taken for it. A
// last line without its newline is kept back until the rest comes.
// Limit: copytruncate loses what is written between its copy and its truncation; that is its
// nature.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "runtime/base/crc32c.h"
#include "runtime/serve/sources/source.h"

namespace reflex::serve {
namespace {

constexpr size_t kChunkBytes = 256u << 10;
constexpr size_t kLineMax = 1u << 20;
constexpr size_t kCheckBytes = 256;
constexpr int kPollMs = 200;

struct Place {
  uint64_t device = 0, inode = 0, offset = 0;
  uint32_t check = 0;
  uint64_t check_bytes = 0;  // that the check is of
};

std::string cursor_of(const Place& p) {
  return fmt::format("{}:{}:{}:{}:{}", p.device, p.inode, p.offset, p.check, p.check_bytes);
}

bool parse(const std::string& text, Place& p) {
  unsigned long long device, inode, offset, bytes;
  unsigned check;
  if (std::sscanf(text.c_str(), "%llu:%llu:%llu:%u:%llu", &device, &inode, &offset, &check,
                  &bytes) != 5) {
    return false;
  }
  p = {device, inode, offset, check, bytes};
  return true;
}

class Tail final : public Source {
 public:
  using Source::Source;
  ~Tail() override {
    stop();
    close_file();
  }

 private:
  void run() override {
    Place saved;
    bool resume = parse(ingest_.cursor(options_.name), saved);
    bool first = !resume;
    while (!stopping()) {
      if (fd_ < 0 && !open_file(resume ? &saved : nullptr, first && options_.from_end)) {
        pause(kPollMs);
        continue;
      }
      resume = false;
      first = false;
      if (read_some()) continue;
      if (stopping()) return;
      if (was_cut()) {
        say("the file was truncated: read from its beginning");
        at_.offset = 0;
        at_.check_bytes = 0;
        part_.clear();
        continue;
      }
      // Only now: what was written to the old file before the rename has been read.
      if (was_replaced()) {
        if (read_some()) continue;
        finish_line();
        close_file();
        continue;
      }
      pause(kPollMs);
    }
  }

  void close_file() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
    part_.clear();
  }

  bool open_file(const Place* saved, bool at_end) {
    fd_ = ::open(options_.path.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat info {};
    if (fd_ < 0 || ::fstat(fd_, &info) != 0) {
      say(std::strerror(errno));
      close_file();
      return false;
    }
    at_ = {info.st_dev, info.st_ino, 0, 0, 0};
    if (saved != nullptr) {
      const bool same = saved->device == at_.device && saved->inode == at_.inode &&
                        static_cast<uint64_t>(info.st_size) >= saved->offset &&
                        check_of(saved->check_bytes) == saved->check;
      if (same) {
        at_ = *saved;
      } else {
        say("not the file that was read before the restart: read from its beginning");
      }
    } else if (at_end) {
      at_.offset = static_cast<uint64_t>(info.st_size);
    }
    return true;
  }

  uint32_t check_of(uint64_t bytes) const {
    std::string head(bytes, '\0');
    const ssize_t got = ::pread(fd_, head.data(), head.size(), 0);
    if (got < 0 || static_cast<uint64_t>(got) != bytes) return 0;
    return crc32c(head);
  }

  /// Reads a chunk and gives its whole lines; false when there was nothing new.
  bool read_some() {
    const size_t have = part_.size();
    part_.resize(have + kChunkBytes);
    const ssize_t got =
        ::pread(fd_, part_.data() + have, kChunkBytes, static_cast<off_t>(at_.offset + have));
    part_.resize(have + static_cast<size_t>(std::max<ssize_t>(got, 0)));
    if (got < 0) say(std::strerror(errno));
    if (got <= 0) return false;
    const size_t newline = part_.rfind('\n');
    if (newline == std::string::npos) {
      // A line that no decoder takes anyway must not be held.
      return part_.size() > kLineMax ? give_lines(part_.size()) : true;
    }
    return give_lines(newline + 1);
  }

  bool give_lines(size_t size) {
    Place next = at_;
    next.offset += size;
    if (next.check_bytes < kCheckBytes) {
      next.check_bytes = std::min<uint64_t>(kCheckBytes, next.offset);
      next.check = check_of(next.check_bytes);
    }
    if (!give(part_.substr(0, size), cursor_of(next))) return false;
    part_.erase(0, size);
    at_ = next;
    return true;
  }

  /// The last line of a file that is left for good counts without its newline.
  void finish_line() {
    if (!part_.empty()) (void)give_lines(part_.size());
  }

  bool was_cut() const {
    struct stat info {};
    if (::fstat(fd_, &info) != 0) return false;
    return static_cast<uint64_t>(info.st_size) < at_.offset + part_.size();
  }

  bool was_replaced() const {
    struct stat info {};
    if (::stat(options_.path.c_str(), &info) != 0) return false;  // until there is a new one
    return info.st_dev != at_.device || info.st_ino != at_.inode;
  }

  int fd_ = -1;
  Place at_;
  std::string part_;  // read from at_.offset on, not yet given
};

}  // namespace

std::unique_ptr<Source> make_tail(SourceOptions options, Ingest& ingest,
                                  std::function<void(const std::string&)> log) {
  return std::make_unique<Tail>(std::move(options), ingest, std::move(log));
}

}  // namespace reflex::serve

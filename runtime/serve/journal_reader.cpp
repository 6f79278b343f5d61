// Reading a journal from a position; see journal.h.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "runtime/serve/journal.h"
#include "runtime/serve/journal_form.h"

namespace reflex::serve {

using namespace journal_form;

namespace {
constexpr size_t kReadBytes = 1u << 20;
constexpr size_t kPaddingBytes = 64;
}  // namespace

Journal::Reader::Reader(const Journal& journal, uint64_t position)
    : journal_(journal), position_(position) {}

Journal::Reader::~Reader() {
  if (fd_ >= 0) ::close(fd_);
}

/// The segment that holds position_; false when it is gone or cannot be read.
bool Journal::Reader::open_segment() {
  {
    const std::lock_guard lock(journal_.mutex_);
    auto next = journal_.segments_.upper_bound(position_);
    segment_end_ = next == journal_.segments_.end() ? UINT64_MAX : next->first;
    if (next == journal_.segments_.begin()) {
      error_ = fmt::format("position {} is no longer in the journal", position_);
      return false;
    }
    segment_begin_ = std::prev(next)->first;
  }
  if (fd_ >= 0) ::close(fd_);
  const std::string path = journal_.path_of(segment_begin_);
  fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  buffer_bytes_ = 0;
  buffer_at_ = position_;
  if (fd_ >= 0) return true;
  error_ = fmt::format("{}: {}", path, std::strerror(errno));
  return false;
}

size_t Journal::Reader::buffered() const {
  const uint64_t end = buffer_at_ + buffer_bytes_;
  return end > position_ ? static_cast<size_t>(end - position_) : 0;
}

/// Makes `bytes` from position_ on stand in the buffer; false when there are not as many.
bool Journal::Reader::fill(size_t bytes) {
  size_t have = buffered();
  if (have >= bytes) return true;
  const uint64_t limit = std::min(known_end_, segment_end_);
  if (position_ + bytes > limit) return false;
  if (have > 0) std::memmove(buffer_.data(), buffer_.data() + (position_ - buffer_at_), have);
  buffer_at_ = position_;
  buffer_bytes_ = have;
  const size_t want = std::max(bytes, std::min<size_t>(kReadBytes, limit - position_));
  if (buffer_.size() < want + kPaddingBytes) buffer_.resize(want + kPaddingBytes);
  while (buffer_bytes_ < want) {
    const uint64_t at = kHeaderBytes + buffer_at_ + buffer_bytes_ - segment_begin_;
    const ssize_t got =
        ::pread(fd_, buffer_.data() + buffer_bytes_, want - buffer_bytes_, static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) error_ = std::strerror(errno);
    if (got <= 0) break;
    buffer_bytes_ += static_cast<size_t>(got);
  }
  return buffer_bytes_ >= bytes;
}

bool Journal::Reader::next(Entry& out) {
  for (;;) {
    if (position_ >= known_end_) known_end_ = journal_.end();
    if (position_ >= known_end_) return false;
    if (position_ >= segment_end_ || segment_end_ == UINT64_MAX) {
      // A segment that was the last one may have got a successor.
      const std::lock_guard lock(journal_.mutex_);
      const auto next = journal_.segments_.upper_bound(segment_begin_);
      if (fd_ >= 0 && next != journal_.segments_.end()) segment_end_ = next->first;
    }
    if (fd_ < 0 || position_ >= segment_end_) {
      if (!open_segment()) return false;
    }
    Head head;
    if (fill(kEntryHeadBytes) &&
        read_head({buffer_.data() + (position_ - buffer_at_), kEntryHeadBytes}, head) &&
        fill(kEntryHeadBytes + head.payload_bytes)) {
      const std::string_view entry(buffer_.data() + (position_ - buffer_at_),
                                   kEntryHeadBytes + head.payload_bytes);
      if (is_whole(entry, head)) {
        out.type = head.type;
        out.wall_ns = head.wall_ns;
        out.position = position_;
        out.payload = entry.substr(kEntryHeadBytes);
        position_ += entry.size();
        out.next = position_;
        return true;
      }
    }
    if (!error_.empty() || !skip_damage()) return false;
  }
}

/// Goes on to the next bytes that may be an entry. False when the file could not be read.
bool Journal::Reader::skip_damage() {
  char magic[4];
  std::memcpy(magic, &kEntryMagic, 4);
  const uint64_t limit = std::min(known_end_, segment_end_);
  const uint64_t from = position_++;
  while (position_ < limit) {
    const size_t want = static_cast<size_t>(std::min<uint64_t>(kReadBytes, limit - position_));
    const bool all = fill(want);
    const size_t have = std::min(want, buffered());
    const std::string_view text(buffer_.data() + (have > 0 ? position_ - buffer_at_ : 0), have);
    const size_t at = text.find(std::string_view(magic, 4));
    if (at != std::string_view::npos) {
      position_ += at;
      break;
    }
    if (all) {
      position_ += want > 3 ? want - 3 : want;
    } else if (error_.empty()) {
      position_ = limit;  // the file ends before its successor begins
    } else {
      break;
    }
  }
  position_ = std::min(position_, limit);
  skipped_ += position_ - from;
  return error_.empty();
}

}  // namespace reflex::serve

// Group commit, segments and the check at the start; see journal.h. Reading: journal_reader.cpp.
#include "runtime/serve/journal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstring>
#include <filesystem>

#include "runtime/serve/journal_form.h"

namespace reflex::serve {

namespace fs = std::filesystem;
using namespace journal_form;

namespace {

// Why: one write of this size takes longer than the sync that follows; more only adds latency.
constexpr uint64_t kGroupBytesMax = 8u << 20;

std::string header_of(uint64_t begin) {
  std::string header(kHeaderBytes, '\0');
  std::memcpy(header.data(), kFileMagic.data(), kFileMagic.size());
  std::memcpy(header.data() + 8, &begin, 8);
  return header;
}

std::pair<uint64_t, uint64_t> identity_of(int fd) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) return {};
  return {info.st_dev, info.st_ino};
}

}  // namespace

Journal::Journal(const JournalOptions& options)
    : options_(options), disk_(options.disk ? options.disk : std::make_shared<Disk>()) {}

Journal::~Journal() {
  if (fd_ >= 0) disk_->close(fd_);
}

std::string Journal::path_of(uint64_t begin) const { return segment_path(options_.folder, begin); }

Result<std::unique_ptr<Journal>> Journal::open(const JournalOptions& options,
                                               std::vector<std::string>& found) {
  std::unique_ptr<Journal> journal(new Journal(options));
  if (auto status = journal->open_all(found); !status.ok()) {
    return Error(status.error()).in("journal " + options.folder);
  }
  return journal;
}

reflex::Status Journal::open_all(std::vector<std::string>& found) {
  std::error_code error;
  fs::create_directories(options_.folder, error);
  if (error) return Error{error.message()};
  for (const auto& file : fs::directory_iterator(options_.folder, error)) {
    const std::string name = file.path().filename().string();
    uint64_t begin = 0;
    const auto [end, wrong] = std::from_chars(name.data(), name.data() + name.size(), begin);
    if (wrong != std::errc() || std::string_view(end) != kSuffix) {
      found.push_back(fmt::format("journal: {} is not one of its files and was left alone", name));
      continue;
    }
    segments_[begin] = true;
  }
  if (error) return Error{error.message()};
  if (segments_.empty()) {
    end_ = options_.first_position;
    if (end_ > 0) {
      found.push_back(fmt::format(
          "journal: its files are gone; it goes on at position {}, up to where the state "
          "was saved: what was accepted after that is lost",
          end_));
    }
    return start_segment();
  }
  return open_last(found);
}

reflex::Status Journal::open_last(std::vector<std::string>& found) {
  segment_begin_ = segments_.rbegin()->first;
  const std::string path = path_of(segment_begin_);
  std::error_code error;
  const uint64_t size = fs::file_size(path, error);
  if (error) return Error{error.message()};
  const Checked checked = check_segment(path, segment_begin_);
  if (!checked.error.empty()) return Error{checked.error};
  if (auto status = check_name(checked); !status.ok()) return status;
  fd_ = disk_->open_append(path);
  if (fd_ < 0) return Error{fmt::format("{}: {}", path, std::strerror(-fd_))};
  uint64_t good = kHeaderBytes + checked.entry_bytes;
  if (!checked.has_header) {
    // It was made and the machine stopped before its header was on disk: nothing was accepted.
    if (const int status = disk_->truncate(fd_, 0); status < 0) {
      return Error{fmt::format("{}: {}", path, std::strerror(-status))};
    }
    const std::string header = header_of(segment_begin_);
    const iovec part{const_cast<char*>(header.data()), header.size()};
    if (disk_->write(fd_, {&part, 1}) != static_cast<int64_t>(header.size())) {
      return Error{fmt::format("{}: its header cannot be written", path)};
    }
    good = kHeaderBytes;
  } else if (size > good) {
    if (const int status = disk_->truncate(fd_, good); status < 0) {
      return Error{fmt::format("{}: {}", path, std::strerror(-status))};
    }
    const uint64_t at = segment_begin_ + checked.entry_bytes;
    found.push_back(at < options_.first_position
                        ? fmt::format("journal: {} bytes of lost entries were cut at position {}",
                                      size - good, at)
                        : fmt::format("journal: {} bytes of an unfinished write were cut at "
                                      "position {}: they were never accepted",
                                      size - good, at));
  }
  if (checked.damaged_bytes > 0) {
    found.push_back(
        fmt::format("journal: {} damaged bytes in {} are skipped", checked.damaged_bytes, path));
  }
  // What was written by a process that was killed may not be on disk yet, and is about to count.
  if (const int status = disk_->sync(fd_); status < 0) {
    return Error{fmt::format("{}: {}", path, std::strerror(-status))};
  }
  end_ = segment_begin_ + good - kHeaderBytes;
  if (end_ < options_.first_position) {
    // Entries at positions that a saved state takes for read would never be evaluated.
    found.push_back(
        fmt::format("journal: it ends at position {}, a state was saved at {}: what lay between is "
                    "gone from it, "
                    "and it goes on there",
                    end_, options_.first_position));
    end_ = options_.first_position;
    return start_segment();
  }
  const std::lock_guard lock(mutex_);
  file_ = identity_of(fd_);
  return ok_status();
}

/// A header that says another beginning than the name: either is wrong. The segment before it
/// knows.
reflex::Status Journal::check_name(const Checked& checked) const {
  if (!checked.has_header || checked.said_begin == segment_begin_) return ok_status();
  const auto last = segments_.find(segment_begin_);
  if (last == segments_.begin()) return ok_status();
  const uint64_t before = std::prev(last)->first;
  std::error_code error;
  const uint64_t size = fs::file_size(path_of(before), error);
  if (!error && before + size - kHeaderBytes == segment_begin_) return ok_status();
  return Error{fmt::format(
      "{} begins at {} by its name, at {} by its header, and the segment before it does not end at "
      "its name: it was renamed. Give it its name back; or move it away, and lose what it holds",
      path_of(segment_begin_), segment_begin_, checked.said_begin)};
}

reflex::Status Journal::start_segment() {
  const std::string path = path_of(end_);
  const int fd = disk_->open_append(path);
  if (fd < 0) return Error{fmt::format("{}: {}", path, std::strerror(-fd))};
  const std::string header = header_of(end_);
  const iovec part{const_cast<char*>(header.data()), header.size()};
  const int64_t wrote = disk_->write(fd, {&part, 1});
  int status = wrote == static_cast<int64_t>(header.size()) ? disk_->sync(fd)
               : wrote < 0                                  ? static_cast<int>(wrote)
                                                            : -ENOSPC;
  if (status >= 0) status = disk_->sync_folder(options_.folder);
  if (status < 0) {
    disk_->close(fd);
    ::unlink(path.c_str());
    return Error{fmt::format("{}: {}", path, std::strerror(-status))};
  }
  if (fd_ >= 0) disk_->close(fd_);
  fd_ = fd;
  segment_begin_ = end_;
  const std::lock_guard lock(mutex_);
  segments_[end_] = true;
  file_ = identity_of(fd_);
  return ok_status();
}

Journal::Written Journal::append(EntryType type, int64_t wall_ns,
                                 std::vector<std::string_view> parts) {
  Waiting mine;
  mine.parts = std::move(parts);
  mine.head = entry_head(type, wall_ns, mine.parts);
  mine.bytes = mine.head.size();
  for (const auto part : mine.parts) mine.bytes += part.size();
  if (mine.bytes > kEntryBytesMax) {
    return {Outcome::kNoSpace, 0, fmt::format("an entry of {} bytes is too large", mine.bytes)};
  }
  std::unique_lock lock(mutex_);
  waiting_.push_back(&mine);
  while (!mine.done) {
    if (writing_) {
      written_.wait(lock);
      continue;
    }
    writing_ = true;
    std::vector<Waiting*> group;
    for (uint64_t bytes = 0; !waiting_.empty() && bytes < kGroupBytesMax;) {
      group.push_back(waiting_.front());
      bytes += group.back()->bytes;
      waiting_.pop_front();
    }
    lock.unlock();
    write_group(group);
    lock.lock();
    for (Waiting* one : group) {
      one->done = true;
      if (one->written.outcome == Outcome::kWritten) end_ = std::max(end_, one->written.next);
    }
    writing_ = false;
    written_.notify_all();
    changed_.notify_all();
  }
  return mine.written;
}

void Journal::write_group(std::vector<Waiting*>& group) {
  Written answer;
  uint64_t wrote = 0;
  if (!broken_.empty()) {
    answer = {Outcome::kBroken, 0, broken_};
  } else if (auto missing = missing_file(); !missing.empty()) {  // 1 us; a sync is 100 times that
    answer = {Outcome::kNoSpace, 0, std::move(missing)};
  } else {
    if (end_ - segment_begin_ >= options_.segment_bytes) {
      if (auto status = start_segment(); !status.ok()) {
        answer = {Outcome::kNoSpace, 0, status.error().message};
      }
    }
    if (answer.outcome == Outcome::kWritten) answer = write_all(group, wrote);
  }
  if (answer.outcome == Outcome::kNoSpace && wrote > 0) {
    const uint64_t size = kHeaderBytes + end_ - segment_begin_;
    int status = disk_->truncate(fd_, size);
    if (status >= 0) status = disk_->sync(fd_);
    if (status < 0) {
      const std::lock_guard lock(mutex_);  // others read it
      broken_ = fmt::format("the journal could not be cut back after a failed write ({}): {}",
                            answer.error, std::strerror(-status));
      answer.outcome = Outcome::kBroken;
      answer.error = broken_;
    }
  }
  uint64_t next = end_;
  for (Waiting* one : group) {
    next += one->bytes;
    one->written = answer;
    if (answer.outcome == Outcome::kWritten) one->written.next = next;
  }
}

/// Writes and syncs all of them, or says why not.
Journal::Written Journal::write_all(const std::vector<Waiting*>& group, uint64_t& wrote) {
  std::vector<iovec> parts;
  const auto add = [&](std::string_view bytes) {
    if (!bytes.empty()) parts.push_back({const_cast<char*>(bytes.data()), bytes.size()});
  };
  for (const Waiting* one : group) {
    add(one->head);
    for (const auto part : one->parts) add(part);
  }
  size_t first = 0;
  while (first < parts.size()) {
    const int64_t count = disk_->write(fd_, std::span(parts).subspan(first));
    if (count <= 0) {
      wrote = std::max<uint64_t>(wrote, 1);  // a failed write may have left bytes
      const int number = count == 0 ? ENOSPC : static_cast<int>(-count);
      return {Outcome::kNoSpace, 0, std::strerror(number)};
    }
    wrote += static_cast<uint64_t>(count);
    auto left = static_cast<size_t>(count);
    while (first < parts.size() && left >= parts[first].iov_len) left -= parts[first++].iov_len;
    if (left > 0) {
      parts[first].iov_base = static_cast<char*>(parts[first].iov_base) + left;
      parts[first].iov_len -= left;
    }
  }
  if (const int status = disk_->sync(fd_); status < 0) {
    return {Outcome::kNoSpace, 0, fmt::format("sync: {}", std::strerror(-status))};
  }
  return {};
}

/// Whether the file that is written to still stands under its name.
std::string Journal::missing_file() const {
  FileIdentity file;
  std::string path;
  {
    const std::lock_guard lock(mutex_);
    file = file_;
    path = path_of(segments_.rbegin()->first);
  }
  struct stat named {};
  if (::stat(path.c_str(), &named) == 0 && FileIdentity(named.st_dev, named.st_ino) == file) {
    return {};
  }
  return fmt::format("{} was removed or moved away: put it back, or restart the daemon", path);
}

std::string Journal::trouble() const {
  {
    const std::lock_guard lock(mutex_);
    if (!broken_.empty()) return broken_;
  }
  return missing_file();
}

uint64_t Journal::begin() const {
  const std::lock_guard lock(mutex_);
  return segments_.begin()->first;
}

uint64_t Journal::end() const {
  const std::lock_guard lock(mutex_);
  return end_;
}

uint64_t Journal::pokes() const {
  const std::lock_guard lock(mutex_);
  return pokes_;
}

void Journal::wait_beyond(uint64_t position, uint64_t pokes, int64_t timeout_ms) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, std::chrono::milliseconds(timeout_ms),
                    [&] { return end_ > position || pokes_ != pokes; });
}

void Journal::poke() {
  {
    const std::lock_guard lock(mutex_);
    ++pokes_;
  }
  changed_.notify_all();
}

reflex::Status Journal::trim(uint64_t position) {
  for (;;) {
    std::string path;
    {
      const std::lock_guard lock(mutex_);
      // The last one is written to; it stays.
      const auto second = segments_.size() < 2 ? segments_.end() : std::next(segments_.begin());
      if (second == segments_.end() || second->first > position) return ok_status();
      path = path_of(segments_.begin()->first);
      segments_.erase(segments_.begin());
    }
    std::error_code error;
    fs::remove(path, error);
    if (error) return Error{fmt::format("{}: {}", path, error.message())};
  }
}

}  // namespace reflex::serve

// Journal: every accepted input, clock tick and control act, in order, on disk before it counts.
//
// Form: segment files NAME = 20 digits of the position of their first entry + ".journal": a header
// of 16 bytes (magic, position), then entries: magic, length, crc32c, type, wall time, payload. A
// position counts bytes of entries over all segments; it never goes back.
// Contract: append() returns after the entry is on disk (fdatasync), or refused: then it is not in
// the journal, now or after a restart. Threads that wait together share one fdatasync (the first
// of them writes for all). Entries are seen by readers only when they are on disk.
// Full disk, short write, failed sync: the file is cut back to the last entry on disk and the
// entries of that write are refused (kNoSpace); the next append tries again. If it cannot be cut
// back, the journal is broken: everything is refused until a restart, which cuts it.
// Start: the last segment is checked; bytes after its last whole entry are a write that was never
// answered: cut and told. Damage inside a segment (bytes that are no entry, then a whole entry) is
// skipped by readers, counted and told: what lies there is lost, what follows is not. Where a
// segment begins is told by its name; a header that says otherwise is damaged, unless the segment
// before it contradicts the name. Files that are removed or moved away under it: appends are
// refused (what was written would be gone with the file), trouble() tells; they go on when the file
// is back. Threads: append, trim, status from any; each Reader is of one thread.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/serve/disk.h"

namespace reflex::serve {

namespace journal_form {
struct Checked;
}

/// Numbers are on disk: never change or reuse one.
enum class EntryType : uint8_t {
  kEvents = 1,
  kLog = 2,
  kTick = 3,
  kFeedback = 4,
  kSourceEnd = 5,
  kSuppression = 6,
  kSet = 7,  // the pack set from here on
};

struct Entry {
  EntryType type = EntryType::kEvents;
  int64_t wall_ns = 0;
  uint64_t position = 0;     // of its first byte
  uint64_t next = 0;         // of what follows it
  std::string_view payload;  // readable 64 bytes past its end; valid until the reader's next call
};

struct JournalOptions {
  std::string folder;
  uint64_t segment_bytes = 64u << 20;  // Why: trimming frees whole segments
  std::shared_ptr<Disk> disk = {};     // null: the real one
  uint64_t first_position = 0;         // it goes on there at least: a state was saved there
};

class Journal {
 public:
  enum class Outcome : uint8_t { kWritten, kNoSpace, kBroken };
  struct Written {
    Outcome outcome = Outcome::kWritten;
    uint64_t next = 0;  // position after it
    std::string error;
  };

  /// Opens or creates; `found` gets a line for everything that was not as it should be.
  static Result<std::unique_ptr<Journal>> open(const JournalOptions& options,
                                               std::vector<std::string>& found);
  ~Journal();
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  /// Blocks until the entry is on disk or refused. The payload is of the parts, one after another.
  Written append(EntryType type, int64_t wall_ns, std::vector<std::string_view> parts);

  [[nodiscard]] uint64_t begin() const;  // first position that is kept
  [[nodiscard]] uint64_t end() const;    // of what is on disk
  [[nodiscard]] uint64_t bytes() const { return end() - begin(); }
  /// Why it takes nothing at the moment; "" when it does, as far as can be seen without writing.
  [[nodiscard]] std::string trouble() const;
  /// Waits until there is more than `position`, poke() was called since `pokes` or time is up.
  void wait_beyond(uint64_t position, uint64_t pokes, int64_t timeout_ms);
  /// Wakes all who wait, and those who are about to.
  void poke();
  [[nodiscard]] uint64_t pokes() const;
  /// Deletes the segments that end at or before `position`. Errors: the file that stays.
  reflex::Status trim(uint64_t position);

  class Reader {
   public:
    /// `position` must be one that an entry begins at, and not be trimmed.
    Reader(const Journal& journal, uint64_t position);
    ~Reader();
    Reader(const Reader&) = delete;
    Reader& operator=(const Reader&) = delete;

    /// False when everything on disk has been read. Errors of reading end as "nothing more", too;
    /// error() tells.
    bool next(Entry& out);
    [[nodiscard]] uint64_t position() const { return position_; }
    [[nodiscard]] uint64_t skipped_bytes() const { return skipped_; }  // damaged
    [[nodiscard]] const std::string& error() const { return error_; }

   private:
    bool fill(size_t bytes);
    [[nodiscard]] size_t buffered() const;  // bytes from position_ on
    bool open_segment();
    bool skip_damage();
    const Journal& journal_;
    uint64_t position_;
    uint64_t known_end_ = 0;
    uint64_t segment_begin_ = 0;
    uint64_t segment_end_ = UINT64_MAX;  // the beginning of the next one
    int fd_ = -1;
    std::string buffer_;
    uint64_t buffer_at_ = 0;  // position of buffer_[0]
    size_t buffer_bytes_ = 0;
    uint64_t skipped_ = 0;
    std::string error_;
  };

 private:
  using FileIdentity = std::pair<uint64_t, uint64_t>;  // device, inode
  struct Waiting {
    std::string head;
    std::vector<std::string_view> parts;
    uint64_t bytes = 0;
    bool done = false;
    Written written;
  };
  explicit Journal(const JournalOptions& options);
  reflex::Status open_all(std::vector<std::string>& found);
  reflex::Status open_last(std::vector<std::string>& found);
  reflex::Status check_name(const journal_form::Checked& checked) const;
  reflex::Status start_segment();
  void write_group(std::vector<Waiting*>& group);
  [[nodiscard]] std::string missing_file() const;
  Written write_all(const std::vector<Waiting*>& group, uint64_t& wrote);
  [[nodiscard]] std::string path_of(uint64_t begin) const;

  JournalOptions options_;
  std::shared_ptr<Disk> disk_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;    // of what is on disk
  std::condition_variable written_;    // of a group
  std::map<uint64_t, bool> segments_;  // by beginning
  FileIdentity file_;                  // the one that is written to
  std::deque<Waiting*> waiting_;
  bool writing_ = false;
  uint64_t end_ = 0;
  uint64_t pokes_ = 0;
  // Only touched by the thread that writes, or before there is one:
  int fd_ = -1;
  uint64_t segment_begin_ = 0;
  std::string broken_;  // written under the lock
};

}  // namespace reflex::serve

// FileTail: a file that grows, over rotation by rename (the old file is read to its end, then the
// new one from its beginning), rotation by copytruncate, and truncation (from the beginning again).
//
// Contract: next() gives whole lines and where they stand; they come again until accepted(). The
// cursor behind them, kept by the caller with what it does with them, lets a later FileTail go on
// exactly there. A last line without its newline is kept back until the rest comes, or until its
// file is left for good. Never waits. Threads: one.
// Cursor: "DEVICE:INODE:OFFSET:CHECK:BYTES:GENERATION"; CHECK is a checksum of the file's first
// BYTES, so that a new file with the inode of an old one is not taken for it; GENERATION counts
// truncations of one inode. One without the generation is read, too.
// Limit: copytruncate loses what is written between its copy and its truncation; that is its
// nature.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace reflex::stream {

class FileTail {
 public:
  struct Options {
    std::string path;
    bool from_end = false;  // the first time
    std::string cursor;     // "": the first time
    size_t chunk_bytes = 256u << 10;
    std::function<void(const std::string&)> note;  // one line for the operator; may be empty
  };
  struct Piece {
    std::string text;
    std::string cursor;       // behind it
    std::string file;         // which one, over all truncations
    uint64_t offset = 0;      // of the text in it
    int64_t modified_ns = 0;  // the file's time
  };

  explicit FileTail(Options options);
  ~FileTail();
  FileTail(const FileTail&) = delete;
  FileTail& operator=(const FileTail&) = delete;
  /// False: nothing new now.
  bool next(Piece& out);
  void accepted();

 private:
  struct Place {
    uint64_t device = 0, inode = 0, offset = 0;
    uint32_t check = 0;
    uint64_t check_bytes = 0;  // that the check is of
    uint64_t generation = 0;
  };
  static bool parse(const std::string& text, Place& place);
  static std::string cursor_of(const Place& place);
  void note(const std::string& line) const;
  void close_file();
  bool open_file();
  [[nodiscard]] uint32_t check_of(uint64_t bytes) const;
  bool read_some();
  void cut_piece(size_t size);
  void give(Piece& out) const;
  [[nodiscard]] bool was_cut() const;
  [[nodiscard]] bool was_replaced() const;

  Options options_;
  Place saved_;
  bool resume_ = false;
  bool first_ = false;
  bool leaving_ = false;  // the file was replaced, its last line is given
  int fd_ = -1;
  Place at_;
  std::string part_;       // read from at_.offset on, not yet accepted
  size_t piece_size_ = 0;  // of part_: given, not yet accepted
  Place behind_;           // the piece
};

}  // namespace reflex::stream

// StateWriter, StateReader: the byte form of state that outlives a process (snapshots) or a pack
// set (hot reload). Every stateful class has `void save(StateWriter&) const` and
// `bool load(StateReader&)` (or free functions of these names) that mirror each other.
//
// Form: little-endian; integers as LEB128 varints (signed ones zigzag), doubles as 8 bytes, texts
// as length + bytes. A symbol is written as its text the first time and as a number afterwards, so
// that a state does not depend on the SymbolTable of the process that wrote it. Sections carry a
// name and a length: a reader skips one that it does not know, and one that it does not understand
// to the end. Nothing in a state is a pointer, a KindId, SignalId or any other number of one
// compilation: what belongs to a plan is filed under the plan's name (see eval's save()).
// Errors: a reader never reads past its bytes; the first wrong or missing byte makes it `failed()`,
// from then on it gives zeros and empty texts, and counts are 0, so that loops end. Nothing throws.
// Trust: the container (snapshot file) is checksummed; the reader is safe for any bytes all the
// same: count() refuses a number of elements that the bytes left could not hold.
// Cost: about 2 ns a small integer.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "runtime/base/symbols.h"

namespace reflex {

class StateWriter {
 public:
  explicit StateWriter(const SymbolTable& symbols) : symbols_(&symbols) {}

  void u64(uint64_t value) {
    while (value >= 0x80) {
      bytes_.push_back(static_cast<char>(value | 0x80));
      value >>= 7;
    }
    bytes_.push_back(static_cast<char>(value));
  }
  void i64(int64_t value) {
    u64(static_cast<uint64_t>(value) << 1 ^ static_cast<uint64_t>(value >> 63));
  }
  void flag(bool value) { bytes_.push_back(value ? 1 : 0); }
  void f64(double value);
  void text(std::string_view value) {
    u64(value.size());
    bytes_.append(value);
  }
  void symbol(SymbolId id);
  /// Bytes without a length: the reader must know it.
  void raw(std::string_view value) { bytes_.append(value); }

  /// Sections nest. Every begin has its end.
  void begin(std::string_view name);
  void end();

  /// The whole; no section may be open.
  [[nodiscard]] std::string take();
  [[nodiscard]] size_t size() const { return bytes_.size(); }

 private:
  const SymbolTable* symbols_;
  std::string bytes_;
  std::unordered_map<SymbolId, uint64_t> numbers_;  // only looked up
  std::vector<size_t> open_;                        // where the length of each section stands
};

class StateReader {
 public:
  /// `bytes` must outlive the reader; symbols are interned into `symbols`.
  StateReader(std::string_view bytes, SymbolTable& symbols) : bytes_(bytes), symbols_(&symbols) {}

  [[nodiscard]] uint64_t u64();
  [[nodiscard]] int64_t i64() {
    const uint64_t value = u64();
    return static_cast<int64_t>(value >> 1) ^ -static_cast<int64_t>(value & 1);
  }
  [[nodiscard]] bool flag();
  [[nodiscard]] double f64();
  [[nodiscard]] std::string_view text();
  [[nodiscard]] SymbolId symbol();
  [[nodiscard]] std::string_view raw(size_t size);
  /// A number of elements that take at least `bytes_each` bytes each.
  [[nodiscard]] size_t count(size_t bytes_each = 1);
  /// A u64 that must be at most `max`.
  [[nodiscard]] uint64_t bounded(uint64_t max);

  /// Whether the current section has no more bytes.
  [[nodiscard]] bool at_end() const { return failed_ || at_ >= limit(); }
  /// Enters the next section, whatever its name; empty at the end of the enclosing one.
  [[nodiscard]] std::string_view enter();
  /// Enters the next section, which must have this name; else false, and the reader has failed.
  [[nodiscard]] bool enter(std::string_view name);
  /// Leaves the current section; what was not read of it is skipped. Symbols that stand in skipped
  /// bytes are lost for what follows, therefore a section that may be skipped is made with a
  /// StateWriter of its own and put in by text().
  void leave();

  void fail() { failed_ = true; }
  [[nodiscard]] bool failed() const { return failed_; }
  [[nodiscard]] SymbolTable& symbols() { return *symbols_; }

 private:
  [[nodiscard]] size_t limit() const { return ends_.empty() ? bytes_.size() : ends_.back(); }
  std::string_view bytes_;
  SymbolTable* symbols_;
  size_t at_ = 0;
  bool failed_ = false;
  std::vector<SymbolId> known_;  // by number, in the order of their first texts
  std::vector<size_t> ends_;     // of open sections
};

}  // namespace reflex

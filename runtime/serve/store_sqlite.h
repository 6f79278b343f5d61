// The few things of SQLite that the store uses: a connection, a statement, their errors as ours.
//
// Contract: nothing here throws; every failure is an Error whose message holds SQLite's own words
// and the file. `no_space` tells a full disk (or the store's own limit) from other failures.
// A connection and its statements belong to one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "runtime/base/result.h"

struct sqlite3;
struct sqlite3_stmt;

namespace reflex::serve {

/// Whether SQLite's result code says that there is no room.
bool says_no_space(int code);
/// Whether it says that the file is no (whole) database.
bool says_damaged(int code);

class Statement {
 public:
  Statement() = default;
  explicit Statement(sqlite3_stmt* stmt) : stmt_(stmt) {}
  Statement(Statement&& other) noexcept : stmt_(other.stmt_) { other.stmt_ = nullptr; }
  Statement& operator=(Statement&& other) noexcept;
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;
  ~Statement();

  /// Parameters by position from 1. Text is not copied: it must live until the next step().
  void bind(int position, int64_t value);
  void bind(int position, std::string_view text);
  void bind_null(int position);
  void bind_real(int position, double value);

  enum class Step : uint8_t { kRow, kDone, kFailed };
  Step step();
  /// Ready for the next use; bindings are cleared.
  void reset();

  [[nodiscard]] int64_t integer(int column) const;
  [[nodiscard]] double real(int column) const;
  [[nodiscard]] std::string text(int column) const;
  [[nodiscard]] bool is_null(int column) const;

 private:
  sqlite3_stmt* stmt_ = nullptr;
};

class Connection {
 public:
  enum class Mode : uint8_t { kWriter, kReader };
  /// `code` is set to SQLite's result code when it fails.
  static Result<std::unique_ptr<Connection>> open(const std::string& path, Mode mode, int& code);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection();

  Result<Statement> prepare(std::string_view sql);
  reflex::Status execute(const std::string& sql);
  /// The first column of the first row, as a number; 0 without a row.
  Result<int64_t> number(std::string_view sql);
  Result<std::string> word(std::string_view sql);
  [[nodiscard]] int64_t changes() const;
  [[nodiscard]] int64_t last_row() const;
  /// What went wrong, as an Error: call it right after the failure.
  [[nodiscard]] Error failure(std::string_view doing);
  /// SQLite's code at the last failure().
  [[nodiscard]] int failed_code() const { return failed_code_; }

 private:
  Connection(sqlite3* db, std::string path) : db_(db), path_(std::move(path)) {}
  sqlite3* db_ = nullptr;
  std::string path_;
  int failed_code_ = 0;
};

}  // namespace reflex::serve

// SQLite behind Connection and Statement (see store_sqlite.h).
#include "runtime/serve/store_sqlite.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <utility>

namespace reflex::serve {

bool says_no_space(int code) {
  // A write that fails for another reason than the disk is an I/O error too; the caller sees the
  // text. Why both: a quota or a full disk found while extending the WAL comes as IOERR_WRITE.
  return (code & 0xff) == SQLITE_FULL || code == SQLITE_IOERR_WRITE;
}

bool says_damaged(int code) {
  return (code & 0xff) == SQLITE_CORRUPT || (code & 0xff) == SQLITE_NOTADB;
}

// ---- Statement

Statement& Statement::operator=(Statement&& other) noexcept {
  std::swap(stmt_, other.stmt_);
  return *this;
}

Statement::~Statement() { sqlite3_finalize(stmt_); }

void Statement::bind(int position, int64_t value) { sqlite3_bind_int64(stmt_, position, value); }
void Statement::bind(int position, std::string_view text) {
  // An empty view may have no address, which SQLite would take for NULL.
  const char* data = text.data() == nullptr ? "" : text.data();
  sqlite3_bind_text64(stmt_, position, data, text.size(), SQLITE_STATIC, SQLITE_UTF8);
}
void Statement::bind_null(int position) { sqlite3_bind_null(stmt_, position); }
void Statement::bind_real(int position, double value) {
  sqlite3_bind_double(stmt_, position, value);
}

Statement::Step Statement::step() {
  const int code = sqlite3_step(stmt_);
  if (code == SQLITE_ROW) return Step::kRow;
  return code == SQLITE_DONE ? Step::kDone : Step::kFailed;
}

void Statement::reset() {
  sqlite3_reset(stmt_);
  sqlite3_clear_bindings(stmt_);
}

int64_t Statement::integer(int column) const { return sqlite3_column_int64(stmt_, column); }
double Statement::real(int column) const { return sqlite3_column_double(stmt_, column); }
std::string Statement::text(int column) const {
  const auto* data = reinterpret_cast<const char*>(sqlite3_column_text(stmt_, column));
  if (data == nullptr) return {};
  return {data, static_cast<size_t>(sqlite3_column_bytes(stmt_, column))};
}
bool Statement::is_null(int column) const {
  return sqlite3_column_type(stmt_, column) == SQLITE_NULL;
}

// ---- Connection

Result<std::unique_ptr<Connection>> Connection::open(const std::string& path, Mode mode,
                                                     int& code) {
  const int flags =
      SQLITE_OPEN_NOMUTEX |
      (mode == Mode::kReader ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
  sqlite3* db = nullptr;
  code = sqlite3_open_v2(path.c_str(), &db, flags, nullptr);
  std::unique_ptr<Connection> connection(new Connection(db, path));
  if (code != SQLITE_OK) return connection->failure("cannot be opened");
  sqlite3_extended_result_codes(db, 1);
  // Why 10 s: a checkpoint of another connection may hold the file that long on a slow disk.
  sqlite3_busy_timeout(db, 10'000);
  return connection;
}

Connection::~Connection() { sqlite3_close_v2(db_); }

Result<Statement> Connection::prepare(std::string_view sql) {
  sqlite3_stmt* stmt = nullptr;
  if (sqlite3_prepare_v3(db_, sql.data(), static_cast<int>(sql.size()), SQLITE_PREPARE_PERSISTENT,
                         &stmt, nullptr) != SQLITE_OK) {
    return failure("cannot be asked");
  }
  return Statement(stmt);
}

Status Connection::execute(const std::string& sql) {
  if (sqlite3_exec(db_, sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) {
    return failure("cannot be written");
  }
  return ok_status();
}

Result<int64_t> Connection::number(std::string_view sql) {
  auto statement = prepare(sql);
  if (!statement) return statement.error();
  switch (statement.value().step()) {
    case Statement::Step::kRow:
      return statement.value().integer(0);
    case Statement::Step::kDone:
      return int64_t{0};
    case Statement::Step::kFailed:
      break;
  }
  return failure("cannot be read");
}

Result<std::string> Connection::word(std::string_view sql) {
  auto statement = prepare(sql);
  if (!statement) return statement.error();
  switch (statement.value().step()) {
    case Statement::Step::kRow:
      return statement.value().text(0);
    case Statement::Step::kDone:
      return std::string();
    case Statement::Step::kFailed:
      break;
  }
  return failure("cannot be read");
}

int64_t Connection::changes() const { return sqlite3_changes64(db_); }
int64_t Connection::last_row() const { return sqlite3_last_insert_rowid(db_); }

Error Connection::failure(std::string_view doing) {
  failed_code_ = sqlite3_extended_errcode(db_);
  const char* words = db_ == nullptr ? "out of memory" : sqlite3_errmsg(db_);
  return Error{fmt::format("the store {} {}: {}", path_, doing, words)};
}

}  // namespace reflex::serve

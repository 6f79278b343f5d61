// Schema steps of the store (see store_schema.h).
#include "runtime/serve/store_schema.h"

#include <fmt/format.h>

#include <array>
#include <string_view>

namespace reflex::serve {
namespace {

// Times are int64 ns: *_ns of events, *_wall_ns of the clock. Empty text stands for "none".
constexpr std::array<std::string_view, 2> kSteps{
    // 1: verdicts, what rules said of them, what people said of them, how far each sink has come.
    R"sql(
CREATE TABLE verdicts(
  sequence INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL,
  incident TEXT NOT NULL,
  revision INTEGER NOT NULL,
  final INTEGER NOT NULL,
  job TEXT NOT NULL,
  fault TEXT NOT NULL,
  level TEXT NOT NULL,
  ts_ns INTEGER NOT NULL,
  bytes INTEGER NOT NULL,
  json TEXT NOT NULL,
  UNIQUE(incident, revision));
CREATE INDEX verdicts_by_id ON verdicts(id);
CREATE INDEX verdicts_by_job ON verdicts(job, sequence);
CREATE INDEX verdicts_by_fault ON verdicts(fault, sequence);
CREATE INDEX verdicts_by_level ON verdicts(level, sequence);
CREATE INDEX verdicts_by_final ON verdicts(final, sequence);
CREATE INDEX verdicts_by_time ON verdicts(ts_ns);
CREATE TABLE verdict_nodes(
  node TEXT NOT NULL,
  sequence INTEGER NOT NULL,
  culprit INTEGER NOT NULL,
  p REAL NOT NULL,
  PRIMARY KEY(node, sequence)) WITHOUT ROWID;
CREATE INDEX verdict_nodes_by_sequence ON verdict_nodes(sequence);
CREATE TABLE incidents(
  incident TEXT PRIMARY KEY,
  type TEXT NOT NULL,
  job TEXT NOT NULL,
  opened_ns INTEGER NOT NULL,
  revision INTEGER NOT NULL,
  final INTEGER NOT NULL,
  sequence INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX incidents_by_final ON incidents(final, opened_ns);
CREATE TABLE alerts(
  sequence INTEGER PRIMARY KEY AUTOINCREMENT,
  key TEXT NOT NULL UNIQUE,
  type TEXT NOT NULL,
  incident TEXT NOT NULL,
  ts_ns INTEGER NOT NULL,
  json TEXT NOT NULL);
CREATE INDEX alerts_by_incident ON alerts(incident, sequence);
CREATE TABLE feedback(
  sequence INTEGER PRIMARY KEY AUTOINCREMENT,
  incident TEXT NOT NULL,
  verdict_id TEXT NOT NULL,
  confirmed INTEGER NOT NULL,
  culprits TEXT NOT NULL,
  fault TEXT NOT NULL,
  by_whom TEXT NOT NULL,
  comment TEXT NOT NULL,
  wall_ns INTEGER NOT NULL);
CREATE INDEX feedback_by_incident ON feedback(incident, sequence);
CREATE TABLE suppressions(
  id TEXT PRIMARY KEY,
  node TEXT NOT NULL,
  signal TEXT NOT NULL,
  from_ns INTEGER NOT NULL,
  until_ns INTEGER NOT NULL,
  reason TEXT NOT NULL,
  by_whom TEXT NOT NULL,
  created_wall_ns INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE sinks(
  name TEXT PRIMARY KEY,
  verdicts INTEGER NOT NULL,
  alerts INTEGER NOT NULL,
  file_bytes INTEGER NOT NULL) WITHOUT ROWID;
)sql",
    // 2: keys of accepted bodies (a client that repeats itself), and suppressions that were lifted
    // stay as a record.
    R"sql(
CREATE TABLE body_keys(
  key TEXT PRIMARY KEY,
  position INTEGER NOT NULL,
  wall_ns INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX body_keys_by_time ON body_keys(wall_ns);
ALTER TABLE suppressions ADD COLUMN lifted_wall_ns INTEGER;
)sql"};

Status run_step(Connection& connection, size_t step) {
  const std::string sql =
      fmt::format("BEGIN IMMEDIATE;{}PRAGMA user_version={};PRAGMA application_id={};COMMIT",
                  kSteps[step], step + 1, kStoreApplicationId);
  auto done = connection.execute(sql);
  if (!done) (void)connection.execute("ROLLBACK");
  return done;
}

}  // namespace

int64_t store_version() { return static_cast<int64_t>(kSteps.size()); }

Result<int64_t> bring_up_to_date(Connection& connection) {
  const auto version = connection.number("PRAGMA user_version");
  if (!version) return version.error();
  const auto application = connection.number("PRAGMA application_id");
  if (!application) return application.error();
  const auto tables = connection.number("SELECT count(*) FROM sqlite_master");
  if (!tables) return tables.error();
  if (tables.value() > 0 && application.value() != kStoreApplicationId) {
    return Error{"it is a database of another program; name another file"};
  }
  if (version.value() > store_version()) {
    return Error{fmt::format(
        "it has version {}, this reflex knows versions up to {}: use the newer reflex, or another "
        "file",
        version.value(), store_version())};
  }
  for (auto step = static_cast<size_t>(version.value()); step < kSteps.size(); ++step) {
    if (auto done = run_step(connection, step); !done) return done.error();
  }
  return version.value();
}

}  // namespace reflex::serve

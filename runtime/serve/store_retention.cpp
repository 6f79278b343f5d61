// Retention of the store: what is too old or too much goes, but nothing a sink still owes.
#include <fmt/format.h>

#include <algorithm>

#include "runtime/serve/store.h"
#include "runtime/serve/store_inside.h"

namespace reflex::serve {
namespace {

// Why 2,000: a transaction of so many rows takes some milliseconds, and verdicts wait meanwhile.
constexpr unsigned kRowsAtOnce = 2'000;

/// The highest sequence that all sinks have delivered; INT64_MAX without sinks.
Result<int64_t> delivered(Connection& writer, const char* column) {
  const auto sinks = writer.number("SELECT count(*) FROM sinks");
  if (!sinks) return sinks.error();
  if (sinks.value() == 0) return INT64_MAX;
  return writer.number(fmt::format("SELECT min({}) FROM sinks", column));
}

/// The sequence up to which verdicts are too much for `bytes_max`; 0: none.
Result<int64_t> too_much(Connection& writer, uint64_t bytes_max) {
  if (bytes_max == 0) return int64_t{0};
  auto newest_first = writer.prepare("SELECT sequence,bytes FROM verdicts ORDER BY sequence DESC");
  if (!newest_first) return newest_first.error();
  uint64_t sum = 0;
  for (;;) {
    switch (newest_first.value().step()) {
      case Statement::Step::kDone:
        return int64_t{0};
      case Statement::Step::kFailed:
        return writer.failure("cannot be read");
      case Statement::Step::kRow:
        break;
    }
    sum += static_cast<uint64_t>(newest_first.value().integer(1));
    if (sum > bytes_max) return newest_first.value().integer(0);
  }
}

/// Runs `sql` (at most kRowsAtOnce rows a time) until nothing is left; the rows it changed. Each
/// piece is a transaction of its own, between which verdicts are written.
Result<uint64_t> in_pieces(std::mutex& writing, Connection& writer, const std::string& sql) {
  uint64_t rows = 0;
  for (;;) {
    const std::lock_guard lock(writing);
    if (auto done = writer.execute(sql); !done) return done.error();
    const auto changed = static_cast<uint64_t>(writer.changes());
    rows += changed;
    if (changed < kRowsAtOnce) return rows;
  }
}

}  // namespace

reflex::Status Store::keep_sinks(const std::vector<std::string>& configured) {
  const std::lock_guard lock(inside_->writing);
  Connection& writer = *inside_->writer;
  std::string marks;
  for (size_t i = 0; i < configured.size(); ++i) marks += i == 0 ? "?" : ",?";
  auto forget = writer.prepare(fmt::format("DELETE FROM sinks WHERE name NOT IN ({})", marks));
  if (!forget) return forget.error();
  int position = 1;
  for (const std::string& name : configured) forget.value().bind(position++, name);
  if (forget.value().step() == Statement::Step::kFailed) {
    return writer.failure("cannot be written");
  }
  return ok_status();
}

Result<RetentionReport> Store::apply(const Retention& retention) {
  RetentionReport report;
  Connection& writer = *inside_->writer;
  std::string old;
  std::string old_alerts;
  {
    const std::lock_guard lock(inside_->writing);
    const auto bound = too_much(writer, retention.bytes_max);
    if (!bound) return bound.error();
    const auto done = delivered(writer, "verdicts");
    const auto done_alerts = delivered(writer, "alerts");
    if (!done) return done.error();
    if (!done_alerts) return done_alerts.error();
    const std::string gone =
        fmt::format("(ts_ns<{} OR sequence<={})", retention.before_ns, bound.value());
    const auto held = writer.number(
        fmt::format("SELECT count(*) FROM verdicts WHERE {} AND sequence>{}", gone, done.value()));
    if (!held) return held.error();
    report.held_back = static_cast<uint64_t>(held.value());
    old = fmt::format("{} AND sequence<={}", gone, done.value());
    const auto newest = writer.number(
        fmt::format("SELECT ifnull(max(ts_ns),{}) FROM verdicts WHERE {}", INT64_MIN, old));
    if (!newest) return newest.error();
    gone_until_ns_ = std::max(gone_until_ns_.load(), newest.value());
    old_alerts = fmt::format("ts_ns<{} AND sequence<={}", retention.before_ns, done_alerts.value());
  }
  const struct {
    std::string sql;
    uint64_t* count;
  } steps[] = {
      {fmt::format("DELETE FROM verdicts WHERE sequence IN (SELECT sequence FROM verdicts WHERE {} "
                   "LIMIT {})",
                   old, kRowsAtOnce),
       &report.verdicts},
      {fmt::format("DELETE FROM alerts WHERE sequence IN (SELECT sequence FROM alerts WHERE {} "
                   "LIMIT {})",
                   old_alerts, kRowsAtOnce),
       &report.alerts},
      {fmt::format("DELETE FROM body_keys WHERE key IN (SELECT key FROM body_keys WHERE wall_ns<{} "
                   "LIMIT {})",
                   retention.keys_before_ns, kRowsAtOnce),
       &report.keys}};
  for (const auto& step : steps) {
    auto rows = in_pieces(inside_->writing, writer, step.sql);
    if (!rows) return rows.error();
    *step.count = rows.value();
  }
  if (report.verdicts + report.alerts + report.keys == 0) return report;
  const std::lock_guard lock(inside_->writing);
  // What hung on them, and the room in the file.
  auto tidied = writer.execute(
      "DELETE FROM verdict_nodes WHERE sequence NOT IN (SELECT sequence FROM verdicts);"
      "DELETE FROM incidents WHERE sequence NOT IN (SELECT sequence FROM verdicts);"
      "PRAGMA incremental_vacuum;PRAGMA wal_checkpoint(PASSIVE)");
  if (!tidied) return tidied.error();
  return report;
}

}  // namespace reflex::serve

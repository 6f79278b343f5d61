// The reading half of the store (see store.h). Each question has a connection of its own.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "runtime/serve/store_inside.h"

namespace reflex::serve {
namespace {

constexpr std::string_view kVerdictColumns =
    "v.sequence,v.id,v.incident,v.revision,v.final,v.ts_ns,v.json";

StoredVerdict verdict_row(const Statement& row, int from) {
  return {static_cast<uint64_t>(row.integer(from)),
          row.text(from + 1),
          row.text(from + 2),
          static_cast<uint32_t>(row.integer(from + 3)),
          row.integer(from + 4) != 0,
          row.integer(from + 5),
          row.text(from + 6)};
}

/// Conditions with their values, in the order of their question marks.
class Where {
 public:
  void text(std::string_view condition, const std::string& value) {
    if (value.empty()) return;
    add(condition);
    values_.push_back({&value, 0});
  }
  void number(std::string_view condition, int64_t value) {
    add(condition);
    values_.push_back({nullptr, value});
  }
  [[nodiscard]] const std::string& sql() const { return sql_; }
  void bind(Statement& statement) const {
    int position = 1;
    for (const Value& value : values_) {
      if (value.text != nullptr) {
        statement.bind(position++, *value.text);
      } else {
        statement.bind(position++, value.number);
      }
    }
  }

 private:
  struct Value {
    const std::string* text;
    int64_t number;
  };
  void add(std::string_view condition) {
    sql_ += sql_.empty() ? " WHERE " : " AND ";
    sql_ += condition;
  }
  std::string sql_;
  std::vector<Value> values_;
};

/// Sequences are int64 in SQLite; whatever a client sends beyond is beyond all rows.
int64_t as_sequence(uint64_t n) {
  return n > static_cast<uint64_t>(INT64_MAX) ? INT64_MAX : static_cast<int64_t>(n);
}

/// All rows of `sql` through `take`; bindings by `bind`.
template <typename Bind, typename Take>
Status rows(Connection& reader, const std::string& sql, Bind&& bind, Take&& take) {
  auto prepared = reader.prepare(sql);
  if (!prepared) return prepared.error();
  Statement& statement = prepared.value();
  bind(statement);
  for (;;) {
    switch (statement.step()) {
      case Statement::Step::kDone:
        return ok_status();
      case Statement::Step::kFailed:
        return reader.failure("cannot be read");
      case Statement::Step::kRow:
        break;
    }
    take(static_cast<const Statement&>(statement));
  }
}

}  // namespace

Result<VerdictPage> Store::verdicts(const VerdictFilter& filter) {
  auto reader = inside_->reader();
  if (!reader) return reader.error();
  Where where;
  where.text("v.incident=?", filter.incident);
  where.text("v.job=?", filter.job);
  where.text("v.fault=?", filter.fault);
  where.text("v.level=?", filter.level);
  // Not EXISTS: that would walk all verdicts for a node that has few.
  where.text("v.sequence IN(SELECT sequence FROM verdict_nodes WHERE node=? AND culprit)",
             filter.node);
  where.text("v.sequence IN(SELECT sequence FROM verdict_nodes WHERE node=?)", filter.mentions);
  if (filter.final) where.number("v.final=?", static_cast<int64_t>(*filter.final));
  if (filter.since_ns) where.number("v.ts_ns>=?", *filter.since_ns);
  if (filter.until_ns) where.number("v.ts_ns<?", *filter.until_ns);
  if (filter.after > 0) where.number("v.sequence>?", as_sequence(filter.after));
  if (filter.before > 0) where.number("v.sequence<?", as_sequence(filter.before));
  const std::string sql = fmt::format(
      "SELECT {} FROM verdicts v{} ORDER BY v.sequence{} LIMIT {}", kVerdictColumns, where.sql(),
      filter.newest_first ? " DESC" : "", static_cast<uint64_t>(filter.limit) + 1);
  VerdictPage page;
  auto status = rows(
      *reader.value(), sql, [&](Statement& s) { where.bind(s); },
      [&](const Statement& row) { page.verdicts.push_back(verdict_row(row, 0)); });
  if (!status) return status.error();
  page.more = page.verdicts.size() > filter.limit;
  if (page.more) page.verdicts.pop_back();
  return page;
}

Result<std::optional<StoredVerdict>> Store::verdict(const std::string& id) {
  auto reader = inside_->reader();
  if (!reader) return reader.error();
  std::optional<StoredVerdict> found;
  auto status = rows(
      *reader.value(),
      fmt::format("SELECT {} FROM verdicts v WHERE v.id=? LIMIT 1", kVerdictColumns),
      [&](Statement& s) { s.bind(1, id); },
      [&](const Statement& row) { found = verdict_row(row, 0); });
  if (!status) return status.error();
  return found;
}

Status Store::each_verdict(const VerdictFilter& filter,
                           const std::function<bool(const StoredVerdict&)>& take) {
  VerdictFilter next = filter;
  next.newest_first = false;
  // Why 64: an explanation of a large job is some hundred KiB.
  next.limit = 64;
  for (;;) {
    auto page = verdicts(next);
    if (!page) return page.error();
    for (const StoredVerdict& verdict : page.value().verdicts) {
      if (!take(verdict)) return ok_status();
      next.after = verdict.sequence;
    }
    if (!page.value().more) return ok_status();
  }
}

Result<std::vector<StoredIncident>> Store::incidents(bool open_only, unsigned limit) {
  auto reader = inside_->reader();
  if (!reader) return reader.error();
  std::vector<StoredIncident> found;
  const std::string sql = fmt::format(
      "SELECT i.incident,i.type,i.job,i.opened_ns,i.revision,i.final,{} FROM incidents i JOIN "
      "verdicts v ON v.sequence=i.sequence{} ORDER BY i.opened_ns DESC,i.incident LIMIT {}",
      kVerdictColumns, open_only ? " WHERE i.final=0" : "", limit);
  auto status = rows(
      *reader.value(), sql, [](Statement&) {},
      [&](const Statement& row) {
        found.push_back({row.text(0), row.text(1), row.text(2), row.integer(3),
                         static_cast<uint32_t>(row.integer(4)), row.integer(5) != 0,
                         verdict_row(row, 6)});
      });
  if (!status) return status.error();
  return found;
}

Result<std::vector<StoredAlert>> Store::alerts(uint64_t after, unsigned limit) {
  auto reader = inside_->reader();
  if (!reader) return reader.error();
  std::vector<StoredAlert> found;
  auto status = rows(
      *reader.value(),
      fmt::format("SELECT sequence,type,incident,ts_ns,json FROM alerts WHERE sequence>? ORDER BY "
                  "sequence LIMIT {}",
                  limit),
      [&](Statement& s) { s.bind(1, as_sequence(after)); },
      [&](const Statement& row) {
        found.push_back({static_cast<uint64_t>(row.integer(0)), row.text(1), row.text(2),
                         row.integer(3), row.text(4)});
      });
  if (!status) return status.error();
  return found;
}

Result<std::vector<StoredFeedback>> Store::feedback(const std::string& incident, unsigned limit) {
  auto reader = inside_->reader();
  if (!reader) return reader.error();
  std::vector<StoredFeedback> found;
  auto status = rows(
      *reader.value(),
      fmt::format("SELECT sequence,incident,verdict_id,confirmed,culprits,fault,by_whom,comment,"
                  "wall_ns FROM feedback{} ORDER BY sequence DESC LIMIT {}",
                  incident.empty() ? "" : " WHERE incident=?", limit),
      [&](Statement& s) {
        if (!incident.empty()) s.bind(1, incident);
      },
      [&](const Statement& row) {
        StoredFeedback f{static_cast<uint64_t>(row.integer(0)),
                         row.text(1),
                         row.text(2),
                         row.integer(3) != 0,
                         {},
                         row.text(5),
                         row.text(6),
                         row.text(7),
                         row.integer(8)};
        const auto culprits = nlohmann::json::parse(row.text(4), nullptr, false);
        if (culprits.is_array()) {
          for (const auto& name : culprits) {
            if (name.is_string()) f.culprits.push_back(name.get<std::string>());
          }
        }
        found.push_back(std::move(f));
      });
  if (!status) return status.error();
  return found;
}

Result<std::vector<StoredSuppression>> Store::suppressions(int64_t now_ns, bool with_past) {
  auto reader = inside_->reader();
  if (!reader) return reader.error();
  std::vector<StoredSuppression> found;
  auto status = rows(
      *reader.value(),
      fmt::format("SELECT id,node,signal,from_ns,until_ns,reason,by_whom,created_wall_ns,"
                  "lifted_wall_ns FROM suppressions{} ORDER BY created_wall_ns,id",
                  with_past ? "" : " WHERE until_ns>? AND lifted_wall_ns IS NULL"),
      [&](Statement& s) {
        if (!with_past) s.bind(1, now_ns);
      },
      [&](const Statement& row) {
        StoredSuppression s{row.text(0),    row.text(1),    row.text(2),
                            row.integer(3), row.integer(4), row.text(5),
                            row.text(6),    row.integer(7), std::nullopt};
        if (!row.is_null(8)) s.lifted_wall_ns = row.integer(8);
        found.push_back(std::move(s));
      });
  if (!status) return status.error();
  return found;
}

Result<std::optional<SinkCursor>> Store::cursor(const std::string& name) {
  auto reader = inside_->reader();
  if (!reader) return reader.error();
  std::optional<SinkCursor> found;
  auto status = rows(
      *reader.value(), "SELECT verdicts,alerts,file_bytes FROM sinks WHERE name=?",
      [&](Statement& s) { s.bind(1, name); },
      [&](const Statement& row) {
        found = SinkCursor{name, static_cast<uint64_t>(row.integer(0)),
                           static_cast<uint64_t>(row.integer(1)),
                           static_cast<uint64_t>(row.integer(2))};
      });
  if (!status) return status.error();
  return found;
}

Result<std::optional<BodyKey>> Store::body_key(const std::string& key) {
  auto reader = inside_->reader();
  if (!reader) return reader.error();
  std::optional<BodyKey> found;
  auto status = rows(
      *reader.value(), "SELECT position,wall_ns FROM body_keys WHERE key=?",
      [&](Statement& s) { s.bind(1, key); },
      [&](const Statement& row) {
        found = BodyKey{key, static_cast<uint64_t>(row.integer(0)), row.integer(1)};
      });
  if (!status) return status.error();
  return found;
}

Result<std::vector<BodyKey>> Store::body_keys_from(uint64_t position) {
  auto reader = inside_->reader();
  if (!reader) return reader.error();
  std::vector<BodyKey> found;
  auto status = rows(
      *reader.value(),
      "SELECT key,position,wall_ns FROM body_keys WHERE position>=? ORDER BY position,key",
      [&](Statement& s) { s.bind(1, as_sequence(position)); },
      [&](const Statement& row) {
        found.push_back({row.text(0), static_cast<uint64_t>(row.integer(1)), row.integer(2)});
      });
  if (!status) return status.error();
  return found;
}

uint64_t Store::file_bytes() const {
  uint64_t sum = 0;
  for (const char* end : {"", "-wal"}) {
    std::error_code ignored;
    const auto size = std::filesystem::file_size(inside_->path + end, ignored);
    if (!ignored) sum += size;
  }
  return sum;
}

Result<StoreCounts> Store::counts() {
  auto reader = inside_->reader();
  if (!reader) return reader.error();
  StoreCounts counts;
  const auto whole = [](int64_t n) { return static_cast<uint64_t>(n); };
  auto status = rows(
      *reader.value(),
      "SELECT (SELECT count(*) FROM verdicts),(SELECT coalesce(max(sequence),0) FROM verdicts),"
      "(SELECT count(*) FROM alerts),"
      "(SELECT coalesce(max(sequence),0) FROM alerts),(SELECT count(*) FROM feedback)",
      [](Statement&) {},
      [&](const Statement& row) {
        counts.verdicts = whole(row.integer(0));
        counts.last_verdict = whole(row.integer(1));
        counts.alerts = whole(row.integer(2));
        counts.last_alert = whole(row.integer(3));
        counts.feedback = whole(row.integer(4));
      });
  if (!status) return status.error();
  counts.file_bytes = file_bytes();
  return counts;
}

}  // namespace reflex::serve

// The writing half of the store: opening, transactions, retention (see store.h).
#include "runtime/serve/store.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "runtime/serve/store_inside.h"
#include "runtime/serve/store_schema.h"

namespace reflex::serve {
namespace {

namespace fs = std::filesystem;

// Why 8: more idle readers than HTTP threads ask at one time only hold memory.
constexpr size_t kIdleReadersMax = 8;

/// A name beside `path` that is not taken: PATH.damaged-1, -2, ..
std::string free_name(const std::string& path, std::string_view word) {
  for (unsigned n = 1;; ++n) {
    std::string name = fmt::format("{}.{}-{}", path, word, n);
    std::error_code ignored;
    if (!fs::exists(name, ignored)) return name;
  }
}

/// Copies (or moves) the file and its WAL; the name that it has now.
Result<std::string> keep_aside(const std::string& path, std::string_view word, bool move) {
  const std::string aside = free_name(path, word);
  for (const char* end : {"", "-wal", "-shm"}) {
    std::error_code error;
    if (!fs::exists(path + end, error)) continue;
    if (move) {
      fs::rename(path + end, aside + end, error);
    } else {
      fs::copy_file(path + end, aside + end, error);
    }
    if (error) {
      return Error{fmt::format("{} could not be kept aside: {}", path + end, error.message())};
    }
  }
  return aside;
}

struct Opened {
  std::unique_ptr<Connection> writer;
  int64_t version = 0;  // that was found
};

/// Opens and checks; `damaged` tells why it failed.
Result<Opened> open_checked(const StoreOptions& options, bool& damaged) {
  damaged = false;
  int code = 0;
  auto opened = Connection::open(options.path, Connection::Mode::kWriter, code);
  if (!opened) {
    damaged = says_damaged(code);
    return opened.error();
  }
  Opened out{std::move(opened).value()};
  Connection& writer = *out.writer;
  // auto_vacuum counts for a file without tables only, and must come first.
  auto done = writer.execute(
      "PRAGMA auto_vacuum=INCREMENTAL;PRAGMA journal_mode=WAL;PRAGMA synchronous=FULL;"
      "PRAGMA foreign_keys=OFF;PRAGMA cache_size=-16384;PRAGMA wal_autocheckpoint=1000");
  auto check = done ? writer.word("PRAGMA quick_check(3)") : Result<std::string>(done.error());
  if (!check) {
    damaged = says_damaged(writer.failed_code());
    return check.error();
  }
  if (check.value() != "ok") {
    damaged = true;
    return Error{fmt::format("the store {} is damaged: {}", options.path, check.value())};
  }
  const auto version = writer.number("PRAGMA user_version");
  if (version && version.value() > 0 && version.value() < store_version()) {
    // An upgrade that goes wrong must not cost months of verdicts.
    if (auto copy = keep_aside(options.path, fmt::format("version-{}", version.value()), false);
        !copy) {
      return copy.error();
    }
  }
  auto found = bring_up_to_date(writer);
  if (!found) {
    return Error{fmt::format("the store {}: {}", options.path, found.error().message)};
  }
  out.version = found.value();
  if (options.bytes_max > 0) {
    const auto page = writer.number("PRAGMA page_size");
    if (!page) return page.error();
    const auto pages = options.bytes_max / static_cast<uint64_t>(page.value());
    if (auto set = writer.execute(fmt::format("PRAGMA max_page_count={}", pages)); !set) {
      return set.error();
    }
  }
  return out;
}

int64_t wall_now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

/// BEGIN .. COMMIT around `work`; anything that fails takes all of it back.
template <typename Work>
Status transaction(Connection& writer, bool* no_space, Work&& work) {
  if (no_space != nullptr) *no_space = false;
  auto status = writer.execute("BEGIN IMMEDIATE");
  if (status) {
    status = work();
    if (status) status = writer.execute("COMMIT");
  }
  if (status) return status;
  if (no_space != nullptr) *no_space = says_no_space(writer.failed_code());
  // Fails harmlessly when SQLite took it back by itself (disk full).
  (void)writer.execute("ROLLBACK");
  return status;
}

/// The cause that a verdict names first; empty: none.
std::string_view fault_of(const abi::Verdict& verdict) {
  if (verdict.answer == abi::Answer::kNone || verdict.hypotheses.empty()) return {};
  return verdict.hypotheses.front().cause;
}

class BatchWriter {
 public:
  BatchWriter(Connection& writer, Written& written) : writer_(writer), written_(written) {}

  Status run(const WriteBatch& batch) {
    Status status = ok_status();
    if (!batch.verdicts.empty()) status = put_verdicts(batch.verdicts);
    if (status && !batch.alerts.empty()) status = put_alerts(batch.alerts);
    if (status && !batch.cursors.empty()) status = put_cursors(batch.cursors);
    if (status && !batch.keys.empty()) status = put_keys(batch.keys);
    return status;
  }

 private:
  Status put_verdicts(const std::vector<NewVerdict>& verdicts) {
    auto insert = writer_.prepare(
        "INSERT OR IGNORE INTO verdicts(id,incident,revision,final,job,fault,level,ts_ns,bytes,"
        "json) VALUES(?,?,?,?,?,?,?,?,?,?)");
    auto node = writer_.prepare("INSERT OR REPLACE INTO verdict_nodes VALUES(?,?,?,?)");
    auto incident = writer_.prepare(
        "INSERT INTO incidents VALUES(?,?,?,?,?,?,?) ON CONFLICT(incident) DO UPDATE SET "
        "revision=excluded.revision,final=excluded.final,sequence=excluded.sequence "
        "WHERE excluded.revision>incidents.revision");
    auto same = writer_.prepare("SELECT id FROM verdicts WHERE incident=? AND revision=?");
    for (const auto* prepared : {&insert, &node, &incident, &same}) {
      if (!*prepared) return prepared->error();
    }
    for (const NewVerdict& fresh : verdicts) {
      const abi::Verdict& v = *fresh.verdict;
      auto sequence = put_row(insert.value(), v, fresh.json);
      if (!sequence) return sequence.error();
      written_.verdicts.push_back(sequence.value());
      if (sequence.value() == 0) {
        if (auto status = compare(same.value(), v); !status) return status;
        continue;
      }
      if (auto status = put_nodes(node.value(), v, sequence.value()); !status) return status;
      if (auto status = put_incident(incident.value(), v, sequence.value()); !status) {
        return status;
      }
    }
    return ok_status();
  }

  Result<uint64_t> put_row(Statement& insert, const abi::Verdict& v, std::string_view json) {
    insert.bind(1, v.id);
    insert.bind(2, v.incident);
    insert.bind(3, static_cast<int64_t>(v.revision));
    insert.bind(4, static_cast<int64_t>(v.final_revision));
    insert.bind(5, v.job);
    insert.bind(6, fault_of(v));
    insert.bind(7, v.level);
    insert.bind(8, v.ts_ns);
    insert.bind(9, static_cast<int64_t>(json.size()));
    insert.bind(10, json);
    if (!run_once(insert)) return failed();
    return writer_.changes() == 0 ? uint64_t{0} : static_cast<uint64_t>(writer_.last_row());
  }

  Status compare(Statement& same, const abi::Verdict& v) {
    same.bind(1, v.incident);
    same.bind(2, static_cast<int64_t>(v.revision));
    const auto step = same.step();
    if (step == Statement::Step::kRow && same.text(0) != v.id) ++written_.differing;
    same.reset();
    return step == Statement::Step::kFailed ? Status(failed()) : ok_status();
  }

  Status put_nodes(Statement& node, const abi::Verdict& v, uint64_t sequence) {
    for (const abi::NodeProbability& n : v.nodes) {
      const bool culprit =
          std::find(v.culprits.begin(), v.culprits.end(), n.node) != v.culprits.end();
      if (!put_node(node, n.node, sequence, culprit, n.p)) return failed();
    }
    // A culprit is listed even when its probability is not.
    for (const std::string& name : v.culprits) {
      const bool listed = std::any_of(v.nodes.begin(), v.nodes.end(),
                                      [&](const auto& n) { return n.node == name; });
      if (!listed && !put_node(node, name, sequence, true, 0)) return failed();
    }
    return ok_status();
  }

  bool put_node(Statement& node, const std::string& name, uint64_t sequence, bool culprit,
                double p) {
    node.bind(1, name);
    node.bind(2, static_cast<int64_t>(sequence));
    node.bind(3, static_cast<int64_t>(culprit));
    node.bind_real(4, p);
    return run_once(node);
  }

  Status put_incident(Statement& incident, const abi::Verdict& v, uint64_t sequence) {
    incident.bind(1, v.incident);
    incident.bind(2, v.incident_type);
    incident.bind(3, v.job);
    incident.bind(4, v.opened_ns);
    incident.bind(5, static_cast<int64_t>(v.revision));
    incident.bind(6, static_cast<int64_t>(v.final_revision));
    incident.bind(7, static_cast<int64_t>(sequence));
    return run_once(incident) ? ok_status() : Status(failed());
  }

  Status put_alerts(const std::vector<NewAlert>& alerts) {
    auto insert = writer_.prepare(
        "INSERT OR IGNORE INTO alerts(key,type,incident,ts_ns,json) VALUES(?,?,?,?,?)");
    if (!insert) return insert.error();
    for (const NewAlert& alert : alerts) {
      insert.value().bind(1, alert.key);
      insert.value().bind(2, alert.type);
      insert.value().bind(3, alert.incident);
      insert.value().bind(4, alert.ts_ns);
      insert.value().bind(5, alert.json);
      if (!run_once(insert.value())) return failed();
      written_.alerts.push_back(writer_.changes() == 0 ? 0
                                                       : static_cast<uint64_t>(writer_.last_row()));
    }
    return ok_status();
  }

  Status put_cursors(const std::vector<SinkCursor>& cursors) {
    auto put = writer_.prepare("INSERT OR REPLACE INTO sinks VALUES(?,?,?,?)");
    if (!put) return put.error();
    for (const SinkCursor& cursor : cursors) {
      put.value().bind(1, cursor.name);
      put.value().bind(2, static_cast<int64_t>(cursor.verdicts));
      put.value().bind(3, static_cast<int64_t>(cursor.alerts));
      put.value().bind(4, static_cast<int64_t>(cursor.file_bytes));
      if (!run_once(put.value())) return failed();
    }
    return ok_status();
  }

  Status put_keys(const std::vector<BodyKey>& keys) {
    auto put = writer_.prepare("INSERT OR IGNORE INTO body_keys VALUES(?,?,?)");
    if (!put) return put.error();
    for (const BodyKey& key : keys) {
      put.value().bind(1, key.key);
      put.value().bind(2, static_cast<int64_t>(key.position));
      put.value().bind(3, key.wall_ns);
      if (!run_once(put.value())) return failed();
    }
    return ok_status();
  }

  static bool run_once(Statement& statement) {
    const bool ok = statement.step() != Statement::Step::kFailed;
    if (ok) statement.reset();
    return ok;
  }
  Error failed() { return writer_.failure("cannot be written"); }

  Connection& writer_;
  Written& written_;
};

}  // namespace

Store::Store(std::unique_ptr<Inside> inside) : inside_(std::move(inside)) {}
Store::~Store() = default;

Result<std::unique_ptr<Store>> Store::open(const StoreOptions& options) {
  bool damaged = false;
  std::string kept;
  auto opened = open_checked(options, damaged);
  if (!opened && damaged) {
    auto aside = keep_aside(options.path, "damaged", options.anew_when_damaged);
    if (!aside) return Error{opened.error().message + "; " + aside.error().message};
    if (!options.anew_when_damaged) {
      return Error{fmt::format(
          "{}; a copy is kept as {}. Move the file away to begin a new store (verdicts that are "
          "only there are lost with it), or repair it: sqlite3 {} .recover",
          opened.error().message, aside.value(), aside.value())};
    }
    kept = fmt::format("the old file was damaged and is kept as {} ({}); ", aside.value(),
                       opened.error().message);
    opened = open_checked(options, damaged);
  }
  if (!opened) return opened.error();
  auto inside = std::make_unique<Inside>();
  inside->path = options.path;
  inside->writer = std::move(opened.value().writer);
  std::unique_ptr<Store> store(new Store(std::move(inside)));
  const auto counts = store->counts();
  if (!counts) return counts.error();
  const int64_t version = opened.value().version;
  store->found_ = version == 0 ? kept + "a new store"
                               : fmt::format("{}{} verdicts, version {}", kept,
                                             counts.value().verdicts, store_version());
  if (version != 0 && version != store_version()) {
    store->found_ += fmt::format(" (brought up from {})", version);
  }
  return store;
}

Store::Inside::Reader::~Reader() {
  if (connection_ == nullptr) return;
  const std::lock_guard lock(inside_->lending);
  if (inside_->idle_readers.size() < kIdleReadersMax) {
    inside_->idle_readers.push_back(std::move(connection_));
  }
}

Result<Store::Inside::Reader> Store::Inside::reader() {
  {
    const std::lock_guard lock(lending);
    if (!idle_readers.empty()) {
      Reader out(*this, std::move(idle_readers.back()));
      idle_readers.pop_back();
      return out;
    }
  }
  int code = 0;
  auto opened = Connection::open(path, Connection::Mode::kReader, code);
  if (!opened) return opened.error();
  return Reader(*this, std::move(opened).value());
}

Result<Written> Store::write(const WriteBatch& batch, bool* no_space) {
  const std::lock_guard lock(inside_->writing);
  Written written;
  auto status = transaction(*inside_->writer, no_space,
                            [&] { return BatchWriter(*inside_->writer, written).run(batch); });
  if (!status) return status.error();
  return written;
}

Result<uint64_t> Store::add_feedback(const StoredFeedback& feedback) {
  const std::lock_guard lock(inside_->writing);
  Connection& writer = *inside_->writer;
  auto put = writer.prepare(
      "INSERT INTO feedback(incident,verdict_id,confirmed,culprits,fault,by_whom,comment,wall_ns)"
      " VALUES(?,?,?,?,?,?,?,?)");
  if (!put) return put.error();
  const std::string culprits = nlohmann::json(feedback.culprits)
                                   .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  Statement& row = put.value();
  row.bind(1, feedback.incident);
  row.bind(2, feedback.verdict_id);
  row.bind(3, static_cast<int64_t>(feedback.confirmed));
  row.bind(4, culprits);
  row.bind(5, feedback.fault);
  row.bind(6, feedback.by);
  row.bind(7, feedback.comment);
  row.bind(8, feedback.wall_ns);
  if (row.step() == Statement::Step::kFailed) return writer.failure("cannot be written");
  return static_cast<uint64_t>(writer.last_row());
}

Result<std::string> Store::add_suppression(const StoredSuppression& suppression) {
  const std::lock_guard lock(inside_->writing);
  Connection& writer = *inside_->writer;
  std::string id = suppression.id;
  if (id.empty()) {
    const auto before = writer.number("SELECT count(*) FROM suppressions");
    if (!before) return before.error();
    id = fmt::format("s{}", before.value() + 1);  // rows are never removed
  }
  auto put = writer.prepare("INSERT INTO suppressions VALUES(?,?,?,?,?,?,?,?,NULL)");
  if (!put) return put.error();
  Statement& row = put.value();
  row.bind(1, id);
  row.bind(2, suppression.node);
  row.bind(3, suppression.signal);
  row.bind(4, suppression.from_ns);
  row.bind(5, suppression.until_ns);
  row.bind(6, suppression.reason);
  row.bind(7, suppression.by);
  row.bind(8, suppression.created_wall_ns == 0 ? wall_now_ns() : suppression.created_wall_ns);
  if (row.step() == Statement::Step::kFailed) return writer.failure("cannot be written");
  return id;
}

Status Store::lift_suppression(const std::string& id, int64_t wall_ns) {
  const std::lock_guard lock(inside_->writing);
  Connection& writer = *inside_->writer;
  auto put = writer.prepare(
      "UPDATE suppressions SET lifted_wall_ns=? WHERE id=? AND lifted_wall_ns IS NULL");
  if (!put) return put.error();
  put.value().bind(1, wall_ns);
  put.value().bind(2, id);
  if (put.value().step() == Statement::Step::kFailed) return writer.failure("cannot be written");
  if (writer.changes() == 0) return Error{fmt::format("no suppression '{}' is in force", id)};
  return ok_status();
}

}  // namespace reflex::serve

// Store: what the daemon has said and been told, in one SQLite file (WAL).
//
// Contract: a verdict is identified by (incident, revision); one that comes again (replay after a
// crash) changes nothing, so nothing is ever doubled. Sequence numbers grow with each new verdict
// (each new alert line), with gaps, and are never used twice: sinks and SSE clients resume by them.
// write() is one transaction, on disk when it returns (synchronous=FULL): all of it or nothing. A
// full disk is an Error with `no_space` and nothing half.
// Threads: all functions may be called from any thread; one writer at a time, readers do not wait
// for it (a snapshot each).
// Start: a damaged file is an Error that says what is wrong; a copy is kept aside either way.
// Not here: the journal of inputs (journal.h), state of the engine (snapshots).
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/abi/verdict.h"
#include "runtime/base/result.h"

namespace reflex::serve {

struct StoreOptions {
  std::string path;
  /// A damaged file is moved aside and a new one begun; false: the start fails (a copy is kept).
  bool anew_when_damaged = false;
  /// The file never grows beyond; 0: as far as the disk goes. At the limit: like a full disk.
  uint64_t bytes_max = 0;
};

/// A verdict and its JSON line (reflex.verdict/1, without '\n'). Pointers live during write().
struct NewVerdict {
  const abi::Verdict* verdict = nullptr;
  std::string_view json;
};

/// A line of the policy: an alert or a requested action. `key` tells it from all others: a line
/// that comes again is left out.
struct NewAlert {
  std::string key;
  std::string type;  // "alert" | "action"
  std::string incident;
  int64_t ts_ns = 0;
  std::string json;
};

/// How far a sink has come: all verdicts and alerts up to these sequences are delivered.
struct SinkCursor {
  std::string name;
  uint64_t verdicts = 0;
  uint64_t alerts = 0;
  uint64_t file_bytes = 0;  // of a file sink: what is valid of its file; the rest is cut at start
};

/// The key of an accepted body and where it stands in the journal.
struct BodyKey {
  std::string key;
  uint64_t position = 0;
  int64_t wall_ns = 0;
};

struct WriteBatch {
  std::vector<NewVerdict> verdicts;
  std::vector<NewAlert> alerts;
  std::vector<SinkCursor> cursors;
  std::vector<BodyKey> keys;
};

struct Written {
  std::vector<uint64_t> verdicts;  // sequence of each; 0: it was there before
  std::vector<uint64_t> alerts;
  /// Verdicts that were there before under another id: the packs of the replay are not those of
  /// then. The old one stands.
  uint64_t differing = 0;
};

/// Everything that is set must hold.
struct VerdictFilter {
  std::string incident{}, job{}, fault{}, level{};
  std::string node{};      // a culprit
  std::string mentions{};  // listed with a probability
  std::optional<bool> final{};
  std::optional<int64_t> since_ns{}, until_ns{};  // event time, [since, until)
  uint64_t after = 0;                             // sequence > after
  uint64_t before = 0;                            // sequence < before; 0: no bound
  bool newest_first = false;
  unsigned limit = 100;
};

struct StoredVerdict {
  uint64_t sequence = 0;
  std::string id;
  std::string incident;
  uint32_t revision = 0;
  bool final = false;
  int64_t ts_ns = 0;
  std::string json;
};

struct VerdictPage {
  std::vector<StoredVerdict> verdicts;
  bool more = false;
};

struct StoredAlert {
  uint64_t sequence = 0;
  std::string type;
  std::string incident;
  int64_t ts_ns = 0;
  std::string json;
};

struct StoredIncident {
  std::string incident, type, job;
  int64_t opened_ns = 0;
  uint32_t revision = 0;
  bool final = false;
  StoredVerdict latest;
};

struct StoredFeedback {
  uint64_t sequence = 0;
  std::string incident, verdict_id;
  bool confirmed = true;
  std::vector<std::string> culprits;
  std::string fault, by, comment;
  int64_t wall_ns = 0;
};

struct StoredSuppression {
  std::string id;
  std::string node, signal;  // empty: every one
  int64_t from_ns = 0, until_ns = 0;
  std::string reason, by;
  int64_t created_wall_ns = 0;
  std::optional<int64_t> lifted_wall_ns;
};

struct Retention {
  int64_t before_ns = INT64_MIN;       // verdicts and alerts of events before it go
  uint64_t bytes_max = 0;              // of verdicts; the oldest go; 0: no bound
  int64_t keys_before_ns = INT64_MIN;  // body keys that are older (wall clock) go
};
struct RetentionReport {
  uint64_t verdicts = 0, alerts = 0, keys = 0;  // removed
  uint64_t held_back = 0;  // verdicts that would go, but that a sink has not delivered yet
};

struct StoreCounts {
  uint64_t verdicts = 0, alerts = 0, feedback = 0;
  uint64_t last_verdict = 0, last_alert = 0;  // sequences; 0: none
  uint64_t file_bytes = 0;
};

class Store {
 public:
  static Result<std::unique_ptr<Store>> open(const StoreOptions& options);
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  /// What the start found, in words: "new", "1,204 verdicts, version 2".
  [[nodiscard]] const std::string& found() const { return found_; }

  // ---- writing; `no_space` (may be null) tells a full disk from other failures
  Result<Written> write(const WriteBatch& batch, bool* no_space = nullptr);
  Result<uint64_t> add_feedback(const StoredFeedback& feedback);
  /// The id is made here when it is empty.
  Result<std::string> add_suppression(const StoredSuppression& suppression);
  /// Error when there is none of this id, or it was lifted before.
  reflex::Status lift_suppression(const std::string& id, int64_t wall_ns);
  Result<RetentionReport> apply(const Retention& retention);
  /// Forgets the cursors of sinks that are configured no more: else they would hold back retention
  /// for ever. One that comes back begins anew. Call at the start.
  reflex::Status keep_sinks(const std::vector<std::string>& configured);

  // ---- reading
  Result<VerdictPage> verdicts(const VerdictFilter& filter);
  Result<std::optional<StoredVerdict>> verdict(const std::string& id);
  /// Calls `take` for each in order of sequence until it says false; memory: one page.
  reflex::Status each_verdict(const VerdictFilter& filter,
                              const std::function<bool(const StoredVerdict&)>& take);
  /// Newest first. `open_only`: without a final revision.
  Result<std::vector<StoredIncident>> incidents(bool open_only, unsigned limit);
  Result<std::vector<StoredAlert>> alerts(uint64_t after, unsigned limit);
  Result<std::vector<StoredFeedback>> feedback(const std::string& incident, unsigned limit);
  /// Those in force at `now_ns` and later; all when `with_past`.
  Result<std::vector<StoredSuppression>> suppressions(int64_t now_ns, bool with_past);
  Result<std::optional<SinkCursor>> cursor(const std::string& name);
  Result<std::optional<BodyKey>> body_key(const std::string& key);
  Result<std::vector<BodyKey>> body_keys_from(uint64_t position);
  /// Cost: walks the smallest index of each table.
  Result<StoreCounts> counts();
  [[nodiscard]] uint64_t file_bytes() const;
  /// Event time of the newest verdict that retention took since open(); INT64_MIN: none.
  [[nodiscard]] int64_t gone_until_ns() const { return gone_until_ns_.load(); }

 private:
  struct Inside;
  explicit Store(std::unique_ptr<Inside> inside);
  std::unique_ptr<Inside> inside_;
  std::string found_;
  std::atomic<int64_t> gone_until_ns_ = INT64_MIN;
};

}  // namespace reflex::serve

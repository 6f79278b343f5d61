// Accepting; see ingest.h.
#include "runtime/serve/ingest.h"

#include <algorithm>
#include <utility>

#include "runtime/serve/wall_clock.h"
#include "runtime/stream/line_source.h"

namespace reflex::serve {

using Outcome = IngestAnswer::Outcome;

reflex::Status Ingest::begin(const IngestBook& book, uint64_t position) {
  const std::lock_guard lock(mutex_);
  book_ = book;
  Journal::Reader reader(journal_, position);
  for (Entry entry; reader.next(entry);) {
    if (const auto body = read_body(entry.payload)) book_.apply(entry.type, *body);
  }
  if (!reader.error().empty()) return Error{reader.error()};
  return ok_status();
}

IngestAnswer Ingest::refuse(Outcome outcome, std::string error) {
  ++refused_;
  IngestAnswer answer;
  answer.outcome = outcome;
  answer.error = std::move(error);
  answer.position = journal_.end();
  answer.retry_after_s = outcome == Outcome::kOverloaded ? 1 : 0;
  return answer;
}

/// Whether the caller is the one to write the body of this key; else `answer` is its fate.
bool Ingest::claim(const std::string& key, IngestAnswer& answer) {
  if (key.empty()) return true;
  std::unique_lock lock(mutex_);
  settled_.wait(lock, [&] { return !claimed_.contains(key); });
  if (book_.has_key(key)) {
    answer.outcome = Outcome::kRepeated;
    return false;
  }
  claimed_.insert(key);
  return true;
}

void Ingest::settle(const std::string& key) {
  if (key.empty()) return;
  {
    const std::lock_guard lock(mutex_);
    claimed_.erase(key);
  }
  settled_.notify_all();
}

IngestAnswer Ingest::accept(IngestBody&& body, const std::string& cursor) {
  if (stopping_) return refuse(Outcome::kStopping, "the daemon is shutting down");
  const uint64_t end = journal_.end();
  if (end - std::min(end, evaluated_()) + body.text.size() > limits_.backlog_bytes_max) {
    return refuse(Outcome::kOverloaded, "more input is waiting than journal.backlog_max allows");
  }
  if (journal_.bytes() + body.text.size() > limits_.journal_bytes_max) {
    return refuse(Outcome::kNoSpace, "the journal has reached journal.max");
  }
  const uint64_t size = body.text.size();
  if (in_flight_.fetch_add(size) > limits_.in_flight_bytes_max) {
    in_flight_ -= size;
    return refuse(Outcome::kOverloaded, "too many bodies wait for the disk");
  }
  IngestAnswer answer = write(std::move(body), cursor);
  in_flight_ -= size;
  return answer;
}

IngestAnswer Ingest::write(IngestBody&& body, const std::string& cursor) {
  IngestAnswer answer;
  if (!claim(body.key, answer)) return answer;
  BodyView view;
  view.source = body.source;
  view.node = body.node;
  view.key = body.key;
  view.cursor = cursor;
  const std::string head = body_head(view);
  const bool is_log = body.form == IngestBody::Form::kLog;
  const EntryType type = is_log ? EntryType::kLog : EntryType::kEvents;
  const auto written = journal_.append(type, wall_clock_ns(), {head, body.text});
  if (written.outcome == Journal::Outcome::kWritten) {
    view.text = body.text;
    const std::lock_guard lock(mutex_);
    book_.apply(type, view);
  }
  settle(body.key);
  if (written.outcome != Journal::Outcome::kWritten) {
    return refuse(Outcome::kNoSpace, written.error);
  }
  answer.position = written.next;
  answer.lines =
      stream::count_newlines(body.text) + (!body.text.empty() && body.text.back() != '\n' ? 1 : 0);
  return answer;
}

IngestAnswer Ingest::append(EntryType type, const std::string& payload) {
  const auto written = journal_.append(type, wall_clock_ns(), {payload});
  if (written.outcome != Journal::Outcome::kWritten) {
    return refuse(Outcome::kNoSpace, written.error);
  }
  IngestAnswer answer;
  answer.position = written.next;
  return answer;
}

std::map<std::string, IngestBook::Source, std::less<>> Ingest::sources() const {
  const std::lock_guard lock(mutex_);
  return book_.sources();
}

std::string Ingest::cursor(const std::string& source) const {
  const std::lock_guard lock(mutex_);
  return book_.cursor(source);
}

}  // namespace reflex::serve

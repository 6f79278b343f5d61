// Ingest: the accepting side: keys, bounds, the journal, and what each source has given.
//
// Contract: accept() returns when the body is on disk, or refused; a body with the key of one that
// is being written waits for its fate. Threads: any.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <set>
#include <string>

#include "runtime/serve/ingest_book.h"
#include "runtime/serve/journal.h"
#include "runtime/serve/port.h"

namespace reflex::serve {

struct IngestLimits {
  uint64_t backlog_bytes_max = 1ull << 30;
  uint64_t journal_bytes_max = 16ull << 30;
  uint64_t in_flight_bytes_max = 256ull << 20;  // of bodies that wait for the disk at one time
};

class Ingest {
 public:
  /// `evaluated` gives the position up to which the live lane has read.
  Ingest(Journal& journal, const IngestLimits& limits, std::function<uint64_t()> evaluated)
      : journal_(journal), limits_(limits), evaluated_(std::move(evaluated)) {}

  /// What the journal holds from `position` on, on top of `book`.
  reflex::Status begin(const IngestBook& book, uint64_t position);

  IngestAnswer accept(IngestBody&& body) { return accept(std::move(body), ""); }
  /// With what the source needs to go on after it.
  IngestAnswer accept(IngestBody&& body, const std::string& cursor);
  /// Entries that are no input.
  IngestAnswer append(EntryType type, const std::string& payload);
  /// From now on everything is refused.
  void stop() { stopping_ = true; }

  [[nodiscard]] std::map<std::string, IngestBook::Source, std::less<>> sources() const;
  [[nodiscard]] std::string cursor(const std::string& source) const;
  [[nodiscard]] uint64_t refused() const { return refused_; }

 private:
  IngestAnswer refuse(IngestAnswer::Outcome outcome, std::string error);
  IngestAnswer write(IngestBody&& body, const std::string& cursor);
  bool claim(const std::string& key, IngestAnswer& answer);
  void settle(const std::string& key);

  Journal& journal_;
  IngestLimits limits_;
  std::function<uint64_t()> evaluated_;
  std::atomic<bool> stopping_ = false;
  std::atomic<uint64_t> refused_ = 0;
  std::atomic<uint64_t> in_flight_ = 0;  // bytes
  mutable std::mutex mutex_;
  std::condition_variable settled_;
  IngestBook book_;
  std::set<std::string> claimed_;  // keys of bodies that are being written
};

}  // namespace reflex::serve

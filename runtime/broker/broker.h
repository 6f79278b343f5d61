// Broker: durable, ordered streams of messages between processes.
//
// What every broker guarantees: publish() returns when the broker has the message on disk. A reader
// gets the messages of one subject in the order in which they were published, from a position on,
// and waits for new ones. A process that repeats what it is not sure of may be read twice:
// JetStream leaves out an id that it has seen within its window (two minutes), Kafka only what its
// own client sends again. So messages of ours are numbered, and a reader ignores a number that it
// has seen. What has been removed by retention is gone: numbers show the gap. Errors: the broker
// cannot be reached for longer than `outage`, or refuses. A lost connection is taken up again by
// itself. Threads: a Broker may be used from several threads; a reader from one. Readers must not
// outlive their broker.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "runtime/base/result.h"

namespace reflex::broker {

struct Message {
  uint64_t position = 0;  // grows within a subject; reading goes on behind it
  std::string bytes;
};

class Reader {
 public:
  virtual ~Reader() = default;
  /// True when `out` has the next message; false when none came in time.
  virtual Result<bool> next(Message& out, std::chrono::milliseconds patience) = 0;
};

/// A share of numbered units of work that several processes divide among themselves. A unit has one
/// process at a time, but for moments: one that was taken for dead may still believe in it.
class Shares {
 public:
  virtual ~Shares() = default;  // gives all of it back
  /// The units to serve from now on. To be called at least once a second: who does not is taken for
  /// dead after the lease, and its units go to others.
  virtual Result<std::set<uint32_t>> mine(std::chrono::milliseconds patience) = 0;
};

class Broker {
 public:
  virtual ~Broker() = default;
  virtual Status publish(const std::string& subject, const std::string& id,
                         std::string_view bytes) = 0;
  /// From the first message behind `position` on; 0: from the oldest that is kept.
  virtual Result<std::unique_ptr<Reader>> read(const std::string& subject, uint64_t position) = 0;
  /// The oldest message of a subject that is kept; nothing when there is none.
  virtual Result<std::optional<Message>> oldest(const std::string& subject) = 0;
  /// The newest value of a name, of any size; kept however old it is. Names are like subjects, and
  /// none is one. put_value() returns when it is on disk; a torn one leaves the old value.
  virtual Status put_value(const std::string& name, std::string_view bytes) = 0;
  virtual Result<std::optional<std::string>> value(const std::string& name) = 0;
  /// Joins those who divide the units 0 .. count - 1, which are the subjects `subject`.N .
  virtual Result<std::unique_ptr<Shares>> share(const std::string& subject, uint32_t count) = 0;
};

}  // namespace reflex::broker

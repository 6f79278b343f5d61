// Broker: durable, ordered streams of messages between processes.
//
// Contract: publish() returns when the broker has the message on disk; a message with an id that
// was published before (within the broker's window of duplicates, two minutes or more) is kept
// once, so that a sender may repeat what it is not sure of. A reader gets the messages of one
// subject in the order in which they were published, from a position on, and waits for new ones.
// Readers must expect a message twice: messages of ours are numbered, a seen number is ignored.
// Errors: the broker cannot be reached, or refuses. A lost connection is taken up again by itself.
// Threads: a Broker may be used from several threads; a reader from one.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
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

class Broker {
 public:
  virtual ~Broker() = default;
  virtual Status publish(const std::string& subject, const std::string& id,
                         std::string_view bytes) = 0;
  /// From the first message behind `position` on; 0: from the oldest that is kept.
  virtual Result<std::unique_ptr<Reader>> read(const std::string& subject, uint64_t position) = 0;
};

}  // namespace reflex::broker

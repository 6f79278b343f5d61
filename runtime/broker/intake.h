// Intake: what others publish, taken once.
//
// Contract: a batch that was taken comes again (here or at another member of the group) until
// accepted() is called, which must be when it is on disk together with its `cursor`. The cursor is
// what has been accepted: what the broker gives a second time (an acknowledgement was lost, the
// process was killed between disk and acknowledgement) is left out by it. So at-least-once becomes
// once, for one place where cursors are kept; between two members of a group with a place each, a
// message that was on disk and not acknowledged when it moved may be in both.
// Order: Kafka's of a partition; JetStream's, but for what comes again after a crash.
// Errors of take(): the intake is of no use any more; open a new one with the newest cursor.
// Threads: one; behind() any.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/broker/connect.h"

namespace reflex::broker {

struct IntakeBatch {
  std::string text;    // payloads, each with '\n' at its end
  std::string cursor;  // with the batch
  uint64_t messages = 0;
};

struct IntakeOptions {
  Address address;                      // NATS: `name` is the stream; "": the one of the subject
  std::string credentials;              // NATS
  std::vector<std::string> properties;  // Kafka: KEY=VALUE of librdkafka
  std::string subject;                  // NATS: may have wildcards; Kafka: the topic
  std::string group;                    // durable consumer; consumer group
  bool from_end = false;                // the first time
  size_t batch_bytes = 256u << 10;
  // NATS: what a killed process had taken and not acknowledged comes again after it.
  std::chrono::milliseconds ack_wait{5'000};
  std::function<void(const std::string&)> note;  // one line for the operator; may be empty
};

class Intake {
 public:
  virtual ~Intake() = default;
  /// The next messages; `messages` is 0 when none came in time.
  virtual Status take(IntakeBatch& out, std::chrono::milliseconds patience) = 0;
  /// The batch cannot be accepted yet: keeps its place, takes nothing; to be called every second
  /// or so. False: the batch is another member's now and must not be accepted.
  virtual bool hold() = 0;
  virtual Status accepted() = 0;
  /// Messages that the broker has and that are not accepted, as last known.
  [[nodiscard]] uint64_t behind() const { return behind_; }

 protected:
  std::atomic<uint64_t> behind_ = 0;
};

Result<std::unique_ptr<Intake>> open_intake(const IntakeOptions& options,
                                            const std::string& cursor);
Result<std::unique_ptr<Intake>> open_nats_intake(const IntakeOptions& options,
                                                 const std::string& cursor);
Result<std::unique_ptr<Intake>> open_kafka_intake(const IntakeOptions& options,
                                                  const std::string& cursor);

}  // namespace reflex::broker

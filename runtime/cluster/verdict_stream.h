// The verdicts of one share of the jobs on the broker: numbered lines, and an end.
#pragma once

#include <memory>
#include <string>

#include "runtime/base/result.h"
#include "runtime/broker/broker.h"

namespace reflex::cluster {

class VerdictWriter {
 public:
  VerdictWriter(broker::Broker& broker, std::string subject, uint64_t said)
      : broker_(broker), subject_(std::move(subject)), number_(said) {}
  /// A line has no '\n'; "" is the end.
  Status say(const std::string& line);
  [[nodiscard]] uint64_t number() const { return number_; }

 private:
  broker::Broker& broker_;
  std::string subject_;
  uint64_t number_;
};

class VerdictReader {
 public:
  static Result<std::unique_ptr<VerdictReader>> open(broker::Broker& broker,
                                                     const std::string& subject);
  enum class Got { kLine, kEnd, kNothing };
  /// The next one; those that come again are left out.
  Result<Got> next(std::string& line, std::chrono::milliseconds patience);
  /// Of the last line; 0 before the first.
  [[nodiscard]] uint64_t number() const { return number_; }

 private:
  explicit VerdictReader(std::unique_ptr<broker::Reader> reader) : reader_(std::move(reader)) {}
  std::unique_ptr<broker::Reader> reader_;
  uint64_t number_ = 0;
};

}  // namespace reflex::cluster

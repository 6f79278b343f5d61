// LogClock: stamps of one log -> event times; knows year, zone, boot and the line before.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/stream/log_decoder.h"
#include "runtime/stream/log_prefix.h"

namespace reflex::stream {

class LogClock {
 public:
  explicit LogClock(const LogOptions& options) : options_(&options), last_ns_(options.base_ns) {}
  int64_t resolve(const LogPrefix& prefix);
  [[nodiscard]] const std::vector<std::string>& notices() const { return notices_; }

 private:
  int64_t resolve_year(const LogPrefix& prefix);
  const LogOptions* options_;
  int64_t last_ns_;
  int64_t last_yearless_ns_ = INT64_MIN;
  bool said_zone_ = false;
  bool said_boot_ = false;
  std::vector<std::string> notices_;
};

}  // namespace reflex::stream

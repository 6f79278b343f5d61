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
  /// What it has to assume it says once in `notices`. Both must outlive it.
  LogClock(const LogOptions& options, std::vector<std::string>& notices)
      : options_(&options), last_ns_(options.base_ns), notices_(&notices) {}
  int64_t resolve(const LogPrefix& prefix);
  void save(StateWriter& writer) const;
  void load(StateReader& reader);

 private:
  int64_t resolve_year(const LogPrefix& prefix);
  const LogOptions* options_;
  int64_t last_ns_;
  std::vector<std::string>* notices_;
  int64_t last_yearless_ns_ = INT64_MIN;
  bool said_zone_ = false;
  bool said_boot_ = false;
};

}  // namespace reflex::stream

// Access: who may call, and how often. Tokens, roles, rate.
//
// Contract: without tokens the server only listens on loopback and every caller is "local" with all
// roles; then requests whose Host is no loopback name, or that a foreign page sends (Origin), are
// refused, as a browser on this machine would send them. With tokens each request that is not open
// needs `Authorization: Bearer TOKEN`. Tokens are compared by SHA-256 in constant time, all of them
// each time. Thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/serve/http/exchange.h"

namespace reflex::serve {

struct TokenEntry {
  std::string name;    // who; for logs, feedback, rates
  uint8_t roles = 0;   // bits of Role
  std::string sha256;  // lower-case hex of the token
};

std::string sha256_hex(std::string_view text);
/// "read", "ingest", "operate", several with commas; Error names what is wrong.
Result<uint8_t> parse_roles(std::string_view text);
/// Lines `NAME ROLES TOKEN` or `NAME ROLES sha256:HEX`; '#' begins a comment. A file that others
/// than its owner may read and that holds plain tokens is refused.
Result<std::vector<TokenEntry>> read_token_file(const std::string& path);

struct RateLimits {
  double requests_per_second = 0;  // of one token (or address, without tokens); 0: no bound
  double bytes_per_second = 0;     // of bodies
};

class Access {
 public:
  Access(std::vector<TokenEntry> tokens, const RateLimits& rates);

  [[nodiscard]] bool has_tokens() const { return !tokens_.empty(); }
  /// Error replies have status 401 or 403; 0: `caller` is set.
  HttpReply check(const HttpRequest& request, Role role, Caller& caller) const;
  /// 0, or the seconds after which to try again.
  unsigned wait_seconds(const std::string& who, size_t body_bytes);

 private:
  using Clock = std::chrono::steady_clock;
  struct Bucket {
    double requests = 0;
    double bytes = 0;
    Clock::time_point at{};
  };
  std::vector<TokenEntry> tokens_;
  RateLimits rates_;
  std::mutex mutex_;
  std::map<std::string, Bucket> buckets_;
};

}  // namespace reflex::serve

// Api: everything the routes share: the daemon, the store, access, followers, counts of requests.
//
// Each add_*_routes() adds the routes of one theme; openapi.json documents all of them, and a test
// holds the two together.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "runtime/serve/http/access.h"
#include "runtime/serve/http/exchange.h"
#include "runtime/serve/http/router.h"
#include "runtime/serve/http/verdict_stream.h"
#include "runtime/serve/port.h"
#include "runtime/serve/store.h"

namespace reflex::serve {

struct HttpConfig;

class Api {
 public:
  Api(const HttpConfig& config, DaemonPort& port, Store& store);
  ~Api();
  Api(const Api&) = delete;
  Api& operator=(const Api&) = delete;

  Router& router() { return router_; }
  Access& access() { return access_; }
  DaemonPort& port() { return port_; }
  Store& store() { return store_; }
  VerdictStreams& streams() { return streams_; }
  [[nodiscard]] const HttpConfig& config() const { return config_; }

  void count(const std::string& route, int status);
  [[nodiscard]] std::map<std::pair<std::string, int>, uint64_t> request_counts() const;
  /// Verdicts since the start, by fault and level; revisions beyond the first.
  struct VerdictCounts {
    std::map<std::pair<std::string, std::string>, uint64_t> verdicts;
    uint64_t revisions = 0;
  };
  [[nodiscard]] VerdictCounts verdict_counts() const;
  /// No verdict is told any more; followers end.
  void stop();

  /// Asks on the lane's thread; an error reply when the daemon does not answer in time.
  std::optional<HttpReply> ask(
      const std::function<void(engine::Engine&, const abi::CompiledPack&)>& look);

 private:
  void told(const LiveVerdict& verdict);

  const HttpConfig& config_;
  DaemonPort& port_;
  Store& store_;
  Router router_;
  Access access_;
  VerdictStreams streams_;
  mutable std::mutex mutex_;
  std::map<std::pair<std::string, int>, uint64_t> requests_;
  VerdictCounts verdicts_;
  uint64_t subscription_ = 0;
  bool subscribed_ = false;
};

void add_ops_routes(Api& api);
void add_reload_routes(Api& api);
void add_ingest_routes(Api& api);
void add_verdict_routes(Api& api);
void add_people_routes(Api& api);
void add_engine_routes(Api& api);
void add_page_routes(Api& api);  // console, OpenAPI

/// The outcome, plan and diagnostics of a reload; `status` is its HTTP status.
Json reload_json(const ReloadAnswer& answer, int& status);

// ---- words that several themes use

/// RFC 3339, or null for kNoTimeNs.
Json instant(int64_t ts_ns);
int64_t wall_now_ns();
/// A parameter as an instant (RFC 3339, or epoch milliseconds); false: it is there and is none.
bool instant_param(const HttpRequest& request, const std::string& name,
                   std::optional<int64_t>& out);
/// A parameter as a whole number in [low, high]; false: it is there and is none.
bool number_param(const HttpRequest& request, const std::string& name, uint64_t low, uint64_t high,
                  uint64_t& out);
HttpReply bad_param(const std::string& name, std::string_view form);
HttpReply store_error(const Error& error);

}  // namespace reflex::serve

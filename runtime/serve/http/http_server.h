// HttpServer: the daemon's HTTP side. All routes of the API, ingestion, metrics, the console.
//
// Contract: start() binds and serves until the destructor (or stop()). A listener that is no
// loopback address and has no tokens is refused unless `insecure`. No exception leaves a handler;
// no request can make it use more memory than its limits (a body, a decoded body and a header for
// each connection).
// Threads: one for each connection, up to `connections_max`; more are told 503.
// The DaemonPort and the Store must live longer than the server.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/serve/http/access.h"
#include "runtime/serve/http/wire.h"
#include "runtime/serve/port.h"
#include "runtime/serve/store.h"

namespace reflex::serve {

struct HttpConfig {
  std::string host = "127.0.0.1";
  int port = 7480;                 // 0: any free one, for tests
  bool insecure = false;           // a listener beyond loopback without tokens
  std::vector<TokenEntry> tokens;  // see read_token_file
  std::string tls_certificate;     // PEM files; both or none
  std::string tls_key;
  WireLimits wire;
  RateLimits rates;
  // Why 64 MiB: a batch of 300,000 events; a source that has more sends more bodies.
  size_t body_bytes_max = 64u << 20;       // as sent, and decoded
  uint64_t bodies_bytes_max = 512u << 20;  // of all requests at one time, as sent and decoded
  unsigned connections_max = 256;
  unsigned streams_max = 32;  // followers of verdicts at one time
  unsigned stream_heartbeat_ms = 15'000;
  bool console = true;
  std::string version;  // of reflex, for build_info and the OpenAPI document
  std::string commit;
};

/// Whether TLS could be served with these PEM files.
reflex::Status check_tls(const std::string& certificate, const std::string& key);
/// Whether a server could listen there: the name resolves to an address of this machine. Listens to
/// nothing.
reflex::Status check_host(const std::string& host);

class HttpServer {
 public:
  /// Error: the address is taken, a certificate cannot be read, the configuration is not safe.
  static Result<std::unique_ptr<HttpServer>> start(const HttpConfig& config, DaemonPort& port,
                                                   Store& store);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  [[nodiscard]] int port() const;
  /// "http://127.0.0.1:7480"
  [[nodiscard]] std::string address() const;
  /// Ends all connections and waits for their handlers.
  void stop();

 private:
  class Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace reflex::serve

// Served: a store, a fake daemon and a server on a free port, for one test.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "runtime/serve/http/http_server.h"
#include "tests/unit/serve_http/fake_daemon.h"
#include "tests/unit/serve_http/raw_http.h"
#include "tests/unit/store/store_folder.h"

namespace reflex::serve {

struct Served {
  StoreFolder folder;
  std::unique_ptr<Store> store;
  std::unique_ptr<FakeDaemon> daemon;
  std::unique_ptr<HttpServer> server;

  /// `bare`: without an engine (fast). `change` edits the configuration.
  explicit Served(bool bare = true, void (*change)(HttpConfig&) = nullptr) {
    auto opened = Store::open({folder.file()});
    if (!opened) {
      ADD_FAILURE() << opened.error().message;
      return;
    }
    store = std::move(opened).value();
    daemon = std::make_unique<FakeDaemon>(*store, bare);
    HttpConfig config;
    config.port = 0;
    config.version = "9.9.9";
    config.stream_heartbeat_ms = 200;
    if (change != nullptr) change(config);
    auto started = HttpServer::start(config, *daemon, *store);
    if (!started) {
      ADD_FAILURE() << started.error().message;
      return;
    }
    server = std::move(started).value();
  }
  [[nodiscard]] int port() const { return server->port(); }
  [[nodiscard]] RawReply get(const std::string& target, const std::string& more = "") const {
    return ask(port(), "GET", target, "", more);
  }
  [[nodiscard]] RawReply post(const std::string& target, const std::string& body,
                              const std::string& more = "") const {
    return ask(port(), "POST", target, body, more);
  }
};

inline nlohmann::json json_of(const RawReply& reply) {
  const auto json = nlohmann::json::parse(reply.body, nullptr, false);
  EXPECT_FALSE(json.is_discarded()) << reply.head << reply.body.substr(0, 300);
  return json;
}

/// A small verdict, for stores without an engine.
inline abi::Verdict small_verdict(const std::string& incident, uint32_t revision, bool final) {
  abi::Verdict v;
  v.id = "v-" + incident + "-" + std::to_string(revision);
  v.incident = incident;
  v.incident_type = "site.job_hang";
  v.job = "j1";
  v.revision = revision;
  v.final_revision = final;
  v.ts_ns = 1'772'323'200'000'000'000 + revision * kNsPerSecond;
  v.opened_ns = v.ts_ns;
  v.answer = abi::Answer::kNodes;
  v.level = "confirmed";
  v.culprits = {"n3"};
  v.nodes = {{"n3", 0.9, "confirmed", "site.gpu_dead", "n3/5"}};
  abi::Hypothesis h;
  h.what = abi::Hypothesis::What::kNode;
  h.node = "n3";
  h.entity = "n3/5";
  h.cause = "site.gpu_dead";
  h.p = 0.9;
  v.hypotheses.push_back(h);
  return v;
}

}  // namespace reflex::serve

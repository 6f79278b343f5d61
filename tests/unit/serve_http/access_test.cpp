// Who may call: loopback, tokens and roles, foreign pages, rates, TLS.
#include "runtime/serve/http/access.h"

#include <sys/stat.h>

#include <cstdlib>
#include <fstream>

#include "runtime/serve/listen_address.h"
#include "tests/unit/serve_http/served.h"

namespace reflex::serve {
namespace {

constexpr const char* kReader = "reader-token-0123456";
constexpr const char* kSender = "sender-token-0123456";
constexpr const char* kOperator = "operator-token-01234";

void with_tokens(HttpConfig& config) {
  config.tokens = {{"grafana", parse_roles("read").value(), sha256_hex(kReader)},
                   {"vector", parse_roles("ingest").value(), sha256_hex(kSender)},
                   {"ann", parse_roles("operate").value(), sha256_hex(kOperator)}};
}

std::string bearer(const std::string& token) { return "Authorization: Bearer " + token + "\r\n"; }

TEST(Access, RolesDecide) {
  const Served s(true, with_tokens);
  EXPECT_EQ(s.get("/-/healthy").status, 200);
  EXPECT_EQ(s.get("/").status, 200) << "the page itself holds nothing";
  const auto none = s.get("/api/v1/verdicts");
  EXPECT_EQ(none.status, 401);
  EXPECT_NE(none.header("WWW-Authenticate"), "");
  EXPECT_EQ(s.get("/api/v1/verdicts", bearer("wrong")).status, 401);
  EXPECT_EQ(s.get("/api/v1/verdicts", bearer(kReader)).status, 200);
  EXPECT_EQ(s.get("/api/v1/verdicts", bearer(kOperator)).status, 200) << "operate includes read";
  EXPECT_EQ(s.get("/api/v1/verdicts", bearer(kSender)).status, 403);
  EXPECT_EQ(s.get("/metrics", bearer(kReader)).status, 200);
  EXPECT_EQ(s.post("/api/v1/events", "{}", bearer(kSender)).status, 200);
  EXPECT_EQ(s.post("/api/v1/events", "{}", bearer(kReader)).status, 403);
  EXPECT_EQ(s.post("/api/v1/events", "{}", bearer(kOperator)).status, 403);
  EXPECT_EQ(s.post("/-/reload", "", bearer(kReader)).status, 403);
  EXPECT_EQ(s.post("/-/reload", "", bearer(kOperator)).status, 500) << "the fake's own answer";
  EXPECT_EQ(s.daemon->bodies.at(0).source, "http/vector");
}

TEST(Access, WithoutTokensForeignPagesCannotAct) {
  const Served s;
  EXPECT_EQ(s.post("/api/v1/events", "{}", "Origin: http://evil.example\r\n").status, 403);
  EXPECT_EQ(s.post("/api/v1/events", "{}", "Origin: http://127.0.0.1\r\n").status, 200);
  RawHttp rebound(s.port());
  rebound.send("GET /api/v1/status HTTP/1.1\r\nHost: evil.example:80\r\n\r\n");
  EXPECT_EQ(rebound.reply().status, 403) << "DNS rebinding";
  RawHttp local(s.port());
  local.send("GET /api/v1/status HTTP/1.1\r\nHost: [::1]:7480\r\n\r\n");
  EXPECT_EQ(local.reply().status, 200);
}

TEST(Access, AnOpenListenerWithoutTokensIsRefused) {
  const StoreFolder folder;
  auto store = Store::open({folder.file()});
  ASSERT_TRUE(store.ok());
  FakeDaemon daemon(*store.value(), true);
  HttpConfig config;
  config.port = 0;
  config.host = "0.0.0.0";
  const auto refused = HttpServer::start(config, daemon, *store.value());
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("no tokens"), std::string::npos);
  config.insecure = true;
  EXPECT_TRUE(HttpServer::start(config, daemon, *store.value()).ok());
  config.insecure = false;
  with_tokens(config);
  EXPECT_TRUE(HttpServer::start(config, daemon, *store.value()).ok());
  for (const char* host : {"localhost", "127.0.0.1", "127.8.8.8", "::1"}) {
    EXPECT_TRUE(is_loopback(host)) << host;
  }
  for (const char* host : {"0.0.0.0", "::", "10.0.0.1", "127.evil.example", "", "localhost.x"}) {
    EXPECT_FALSE(is_loopback(host)) << host;
  }
}

TEST(Access, AnAddressInUseIsTold) {
  const Served s;
  HttpConfig config;
  config.port = s.port();
  const auto taken = HttpServer::start(config, *s.daemon, *s.store);
  ASSERT_FALSE(taken.ok());
  EXPECT_NE(taken.error().message.find("taken"), std::string::npos);
}

TEST(Access, RatesAreKeptPerToken) {
  const Served s(true, [](HttpConfig& c) {
    with_tokens(c);
    c.rates.requests_per_second = 2;
  });
  int refused = 0;
  for (int i = 0; i < 10; ++i) {
    const auto reply = s.get("/api/v1/verdicts", bearer(kReader));
    if (reply.status != 429) continue;
    ++refused;
    EXPECT_NE(reply.header("Retry-After"), "");
  }
  EXPECT_GE(refused, 4);
  EXPECT_EQ(s.get("/api/v1/verdicts", bearer(kOperator)).status, 200) << "another token";
}

TEST(Access, BytesOfBodiesHaveARate) {
  Access access({}, {0, 1'000});
  EXPECT_EQ(access.wait_seconds("a", 5'000), 0u) << "a body is paid for after it";
  EXPECT_GE(access.wait_seconds("a", 10), 2u);
  EXPECT_EQ(access.wait_seconds("b", 10), 0u);
}

TEST(Access, TokenFiles) {
  const StoreFolder folder;
  const std::string path = (folder.path() / "tokens").string();
  const auto read = [&](const std::string& text, mode_t mode = 0600) {
    std::ofstream(path) << text;
    chmod(path.c_str(), mode);
    return read_token_file(path);
  };
  const auto good = read("# who roles token\nann operate,read " + std::string(kOperator) +
                         "\nvector ingest sha256:" + sha256_hex(kSender) + "  # collector\n\n");
  ASSERT_TRUE(good.ok()) << good.error().message;
  ASSERT_EQ(good.value().size(), 2u);
  EXPECT_EQ(good.value()[0].sha256, sha256_hex(kOperator));
  EXPECT_EQ(good.value()[1].sha256, sha256_hex(kSender));
  EXPECT_FALSE(read("ann operate short\n").ok());
  EXPECT_FALSE(read("ann admin " + std::string(kOperator) + "\n").ok());
  EXPECT_FALSE(read("ann operate\n").ok());
  EXPECT_FALSE(read("ann read sha256:12\n").ok());
  EXPECT_FALSE(read("ann read " + std::string(kReader) + "\n", 0644).ok()) << "others may read it";
  EXPECT_TRUE(read("ann read sha256:" + sha256_hex(kReader) + "\n", 0644).ok());
  EXPECT_FALSE(read_token_file("/nowhere/tokens").ok());
}

TEST(Access, Tls) {
  const StoreFolder folder;
  const std::string key = (folder.path() / "key.pem").string();
  const std::string certificate = (folder.path() / "cert.pem").string();
  const std::string make =
      "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 1 -subj "
      "/CN=localhost -addext subjectAltName=IP:127.0.0.1 -keyout " +
      key + " -out " + certificate + " 2>/dev/null";
  if (std::system("command -v openssl >/dev/null && command -v curl >/dev/null") != 0) {
    GTEST_SKIP() << "openssl or curl is not installed";
  }
  ASSERT_EQ(std::system(make.c_str()), 0);
  auto store = Store::open({folder.file()});
  ASSERT_TRUE(store.ok());
  FakeDaemon daemon(*store.value(), true);
  HttpConfig config;
  config.port = 0;
  config.tls_certificate = certificate;
  EXPECT_FALSE(HttpServer::start(config, daemon, *store.value()).ok()) << "a key is missing";
  config.tls_key = certificate;
  EXPECT_FALSE(HttpServer::start(config, daemon, *store.value()).ok()) << "that is no key";
  config.tls_key = key;
  auto server = HttpServer::start(config, daemon, *store.value());
  ASSERT_TRUE(server.ok()) << server.error().message;
  EXPECT_TRUE(server.value()->address().starts_with("https://127.0.0.1:"));
  std::ofstream(folder.path() / "body") << std::string(3'000'000, '{');
  const std::string curl = "curl -sf --cacert " + certificate + " " + server.value()->address() +
                           "/-/healthy >/dev/null && "
                           "curl -sf --cacert " +
                           certificate + " --data-binary @" + (folder.path() / "body").string() +
                           " " + server.value()->address() + "/api/v1/events >/dev/null";
  EXPECT_EQ(std::system(curl.c_str()), 0);
  ASSERT_EQ(daemon.bodies.size(), 1u);
  EXPECT_EQ(daemon.bodies[0].text.size(), 3'000'000u);
  // Plain HTTP on it ends at once and harms nobody.
  EXPECT_EQ(ask(server.value()->port(), "GET", "/-/healthy").status, 0);
  EXPECT_EQ(std::system(curl.c_str()), 0);
}

}  // namespace
}  // namespace reflex::serve

// What hostile and broken clients get: limits of size and time, framing, methods, paths.
#include <fmt/format.h>
#include <zlib.h>
#include <zstd.h>

#include <chrono>
#include <optional>
#include <thread>

#include "runtime/serve/http/body_decode.h"
#include "runtime/serve/http/router.h"
#include "tests/unit/serve_http/served.h"

namespace reflex::serve {
namespace {

std::string gzip(const std::string& text) {
  z_stream stream{};
  deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  std::string out(compressBound(text.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

std::string zstd(const std::string& text) {
  std::string out(ZSTD_compressBound(text.size()), '\0');
  out.resize(ZSTD_compress(out.data(), out.size(), text.data(), text.size(), 3));
  return out;
}

TEST(BodyDecode, FormsAndFaults) {
  const std::string text(100'000, 'x');
  std::string out;
  BodyBudget budget(1u << 30);
  const auto decode = [&](const std::string& encoding, std::string body, size_t bytes_max) {
    BodyLease lease(budget);
    return decode_body(encoding, std::move(body), bytes_max, lease, out);
  };
  for (const auto& [encoding, body] : {std::pair{"gzip", gzip(text)}, std::pair{"zstd", zstd(text)},
                                       std::pair{"", text}, std::pair{"GZIP ", gzip(text)}}) {
    EXPECT_EQ(decode(encoding, body, 100'000), BodyFault::kNone) << encoding;
    EXPECT_EQ(out, text);
    EXPECT_EQ(decode(encoding, body, 99'999), BodyFault::kTooLarge);
  }
  EXPECT_EQ(decode("gzip", gzip(text) + gzip("y"), 200'000), BodyFault::kNone);
  EXPECT_EQ(out, text + "y") << "members may follow each other";
  EXPECT_EQ(decode("gzip", gzip(text).substr(0, 60), 200'000), BodyFault::kDamaged);
  EXPECT_EQ(decode("zstd", zstd(text).substr(0, 10), 200'000), BodyFault::kDamaged);
  EXPECT_EQ(decode("gzip", "garbage", 200'000), BodyFault::kDamaged);
  EXPECT_EQ(decode("zstd", "garbage", 200'000), BodyFault::kDamaged);
  EXPECT_EQ(decode("gzip", "", 200'000), BodyFault::kDamaged);
  EXPECT_EQ(decode("br", "x", 200'000), BodyFault::kUnknownEncoding);
  // A bomb: 200 MB of zeros in 200 KB.
  EXPECT_EQ(decode("gzip", gzip(std::string(200'000'000, '\0')), 1'000'000), BodyFault::kTooLarge);
}

TEST(BodyDecode, AllBodiesTogetherAreBounded) {
  BodyBudget budget(1'300'000);
  for (const auto& [encoding, body] : {std::pair{"gzip", gzip(std::string(600'000, '{'))},
                                       std::pair{"zstd", zstd(std::string(600'000, '{'))}}) {
    std::string out;
    BodyLease first(budget);
    ASSERT_EQ(decode_body(encoding, std::string(body), 600'000, first, out), BodyFault::kNone);
    std::string more;
    BodyLease second(budget);
    EXPECT_EQ(decode_body(encoding, std::string(body), 600'000, second, more), BodyFault::kNoRoom);
    EXPECT_LT(more.capacity(), 600'000u);
  }
  EXPECT_TRUE(budget.take(1'300'000)) << "everything was given back";
  EXPECT_FALSE(budget.take(1));
}

TEST(Router, PathTricksMatchNothing) {
  Router router;
  router.add({"GET", "/a/{id}", Role::kRead, nullptr});
  router.add({"GET", "/a/b", Role::kRead, nullptr});
  router.add({"POST", "/a/b", Role::kRead, nullptr});
  EXPECT_EQ(router.match("GET", "/a/x%2Fy").named.at("id"), "x/y");
  EXPECT_EQ(router.match("GET", "/a/b").route->pattern, "/a/b");
  EXPECT_EQ(router.match("HEAD", "/a/b").route->pattern, "/a/b");
  EXPECT_EQ(router.match("DELETE", "/a/b").allowed, "GET, POST");
  for (const char* path : {"/a/..", "/a/%2e%2e", "/a/%00", "/a/x%0A", "/a/", "/a//b", "a/b", "",
                           "/a/%zz", "/a/%", "/a/b/", "/A/b", "/a/b/../b"}) {
    const auto match = router.match("GET", path);
    EXPECT_EQ(match.route, nullptr) << path;
    EXPECT_EQ(match.allowed, "") << path;
  }
}

TEST(Limits, MethodsAndPages) {
  const Served s;
  EXPECT_EQ(s.get("/-/healthy").status, 200);
  const auto wrong = s.get("/-/reload");
  EXPECT_EQ(wrong.status, 405);
  EXPECT_EQ(wrong.header("Allow"), "POST, PUT");
  EXPECT_NE(json_of(wrong)["what_to_do"], "");
  const auto missing = s.get("/nowhere");
  EXPECT_EQ(missing.status, 404);
  EXPECT_TRUE(json_of(missing).contains("error"));
  EXPECT_EQ(s.get("/api/v1/../../etc/passwd").status, 404);
  EXPECT_EQ(s.get("/api/v1/verdicts/%00").status, 404);
  EXPECT_EQ(ask(s.port(), "OPTIONS", "/api/v1/events").status, 405);
  EXPECT_EQ(ask(s.port(), "BREW", "/-/healthy").status, 400);
  const auto head = ask(s.port(), "HEAD", "/-/healthy", "", "Connection: close\r\n");
  EXPECT_EQ(head.status, 200);
  EXPECT_EQ(head.body, "");
  for (const char* name : {"X-Content-Type-Options", "Content-Security-Policy"}) {
    EXPECT_NE(missing.header(name), "") << name;
  }
}

TEST(Limits, HugeHeadersAreRefusedAndBounded) {
  const Served s;
  RawHttp line(s.port());
  line.send("GET /-/healthy HTTP/1.1\r\nHost: localhost\r\nX: ");
  const std::string piece(64 * 1024, 'x');
  bool open = true;
  for (int i = 0; i < 200 && open; ++i) open = line.send(piece);
  EXPECT_TRUE(line.ended(5)) << "a header line without end";
  std::string many = "GET /-/healthy HTTP/1.1\r\nHost: localhost\r\n";
  for (int i = 0; i < 3'000; ++i) many += fmt::format("X-{}: y\r\n", i);
  RawHttp headers(s.port());
  headers.send(many + "\r\n");
  EXPECT_EQ(headers.reply().status, 431);
  RawHttp address(s.port());
  address.send("GET /" + std::string(9'000, 'a') + " HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_EQ(address.reply().status, 414);
  EXPECT_EQ(s.get("/api/v1/entities/" + std::string(3'000, 'a')).status, 414);
  EXPECT_EQ(s.get("/-/healthy").status, 200) << "others are served";
}

TEST(Limits, SlowClientsAreCutOff) {
  const Served s(true, [](HttpConfig& c) {
    c.wire.header_seconds = 1;
    c.wire.body_seconds = 1;
    c.wire.keep_alive_seconds = 1;
  });
  RawHttp header(s.port());
  header.send("GET /-/healthy HTTP/1.1\r\nHost: ");
  RawHttp body(s.port());
  body.send("POST /api/v1/events HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nx");
  RawHttp chunks(s.port());
  chunks.send(
      "POST /api/v1/events HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n");
  RawHttp idle(s.port());
  // One byte now and then does not help.
  for (int i = 0; i < 25; ++i) {
    header.send("a");
    body.send("x");
    chunks.send("1\r\nx\r\n");
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  EXPECT_TRUE(header.ended(3));
  EXPECT_EQ(body.reply(3).status, 408);
  EXPECT_EQ(chunks.reply(3).status, 408);
  EXPECT_TRUE(idle.ended(3));
  EXPECT_TRUE(s.daemon->bodies.empty()) << "nothing half is accepted";
}

TEST(Limits, BodiesThatAreTooLarge) {
  const Served s(true, [](HttpConfig& c) { c.body_bytes_max = 10'000; });
  EXPECT_EQ(s.post("/api/v1/events", std::string(10'000, '{')).status, 200);
  EXPECT_EQ(s.post("/api/v1/events", std::string(10'001, '{')).status, 413);
  EXPECT_EQ(
      s.post("/api/v1/events", gzip(std::string(10'001, '{')), "Content-Encoding: gzip\r\n").status,
      413);
  RawHttp chunks(s.port());
  chunks.send(
      "POST /api/v1/events HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n");
  bool open = true;
  const std::string piece = "1000\r\n" + std::string(4096, '{') + "\r\n";
  for (int i = 0; i < 1'000 && open; ++i) open = chunks.send(piece);
  EXPECT_EQ(chunks.reply(3).status, 413);
  EXPECT_EQ(s.daemon->bodies.size(), 1u);
}

TEST(Limits, BodiesOfAllRequestsTogether) {
  const Served s(true, [](HttpConfig& c) {
    c.body_bytes_max = 10'000;
    c.bodies_bytes_max = 20'000;
  });
  const auto begin = [&](RawHttp& http) {
    http.send("POST /api/v1/events HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10000\r\n\r\n" +
              std::string(9'000, '{'));
  };
  {
    std::optional<RawHttp> one;
    std::optional<RawHttp> two;
    RawReply third;
    // Until both have been read before the third comes: while they have not, it may be one of them
    // that is refused.
    for (int i = 1; i < 20 && third.status != 429; ++i) {
      begin(one.emplace(s.port()));
      begin(two.emplace(s.port()));
      std::this_thread::sleep_for(std::chrono::milliseconds(20 * i));
      third = s.post("/api/v1/events", std::string(9'999, '{'));
    }
    EXPECT_EQ(third.status, 429);
    EXPECT_EQ(third.header("Retry-After"), "1");
    const auto zipped = gzip(std::string(9'000, '{'));
    EXPECT_EQ(s.post("/api/v1/events", zipped, "Content-Encoding: gzip\r\n").status, 429);
    EXPECT_EQ(s.post("/api/v1/events", std::string(100, '{')).status, 200) << "small ones fit";
    one->send(std::string(1'000, '{'));
    EXPECT_EQ(one->reply(3).status, 200) << "a body that was begun goes on";
  }
  // What broken connections held is free again.
  RawReply last;
  for (int i = 0; i < 100 && last.status != 200; ++i) {
    last = s.post("/api/v1/events", std::string(10'000, '{'));
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  EXPECT_EQ(last.status, 200);
}

TEST(Limits, LengthsThatCannotBeTrusted) {
  const Served s;
  const auto status = [&](const std::string& headers) {
    RawHttp http(s.port());
    http.send("POST /api/v1/events HTTP/1.1\r\nHost: localhost\r\n" + headers + "\r\n{a}");
    return http.reply(3).status;
  };
  EXPECT_EQ(status("Content-Length: 3\r\nTransfer-Encoding: chunked\r\n"), 400);
  EXPECT_EQ(status("Content-Length: 3\r\nContent-Length: 2\r\n"), 400);
  EXPECT_EQ(status("Content-Length: -1\r\n"), 400);
  EXPECT_EQ(status("Content-Length: 0x3\r\n"), 400);
  EXPECT_EQ(status("Content-Length: 99999999999999999999\r\n"), 400);
  EXPECT_EQ(status("Transfer-Encoding: gzip, chunked\r\n"), 400);
  EXPECT_EQ(status("Content-Length: 3\r\nContent-Type: multipart/form-data; boundary=x\r\n"), 415);
  EXPECT_EQ(status("Content-Length: 3\r\n"), 200);
  // A body where none belongs must not become the next request.
  RawHttp smuggled(s.port());
  smuggled.send(
      "GET /-/healthy HTTP/1.1\r\nHost: localhost\r\nContent-Length: 42\r\n\r\n"
      "POST /-/reload HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_EQ(smuggled.reply().status, 200);
  EXPECT_TRUE(smuggled.ended(3));
}

TEST(Limits, BadCompressionAndBadText) {
  const Served s;
  EXPECT_EQ(s.post("/api/v1/events", "garbage", "Content-Encoding: gzip\r\n").status, 400);
  EXPECT_EQ(s.post("/api/v1/events", "garbage", "Content-Encoding: br\r\n").status, 415);
  EXPECT_EQ(s.post("/api/v1/events", gzip("{}\n"), "Content-Encoding: gzip\r\n").status, 200);
  EXPECT_EQ(s.post("/api/v1/events", zstd("{}\n"), "Content-Encoding: zstd\r\n").status, 200);
  EXPECT_EQ(s.daemon->bodies.size(), 2u);
  EXPECT_EQ(s.daemon->bodies[0].text, "{}\n");
  // Bytes that are no UTF-8 in path, parameter and body come back as JSON.
  const auto name = s.get("/api/v1/entities/%ff%fe");
  EXPECT_TRUE(name.status == 404 || name.status == 503) << name.status;
  EXPECT_TRUE(json_of(name).contains("error"));
  EXPECT_EQ(s.get("/api/v1/verdicts?job=%ff%00%27").status, 200);
  EXPECT_EQ(s.post("/api/v1/feedback", "{\"incident\":\"\xff\"}").status, 400);
  const std::string deep(100'000, '[');
  EXPECT_EQ(s.post("/api/v1/feedback", deep).status, 400);
  EXPECT_EQ(s.post("/api/v1/alertmanager", deep).status, 400);
  EXPECT_EQ(s.post("/api/v1/explain", deep).status, 400);
  EXPECT_EQ(s.post("/v1/logs", deep, "Content-Type: application/json\r\n").status, 400);
  EXPECT_EQ(s.get("/-/healthy").status, 200);
}

TEST(Limits, TooManyConnectionsAreTold) {
  const Served s(true, [](HttpConfig& c) { c.connections_max = 4; });
  std::vector<std::unique_ptr<RawHttp>> open;
  for (int i = 0; i < 4; ++i) {
    open.push_back(std::make_unique<RawHttp>(s.port()));
    open.back()->send("GET /-/healthy HTTP/1.1\r\nHost: localhost\r\n\r\n");
    EXPECT_EQ(open.back()->reply().status, 200);
  }
  const auto refused = s.get("/-/healthy");
  EXPECT_EQ(refused.status, 503);
  EXPECT_TRUE(json_of(refused).contains("what_to_do"));
  open.clear();
  int status = 503;
  for (int i = 0; i < 50 && status == 503; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    status = s.get("/-/healthy").status;
  }
  EXPECT_EQ(status, 200) << "a free place is used again";
}

TEST(Limits, SeveralRequestsOnOneConnection) {
  const Served s;
  RawHttp http(s.port());
  for (int i = 0; i < 20; ++i) {
    http.send("POST /api/v1/events HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\n{}\n");
    ASSERT_EQ(http.reply().status, 200) << i;
  }
  http.send("GET /-/healthy HTTP/1.1\r\nHost: x\r\n\r\nGET /-/healthy HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(http.reply().status, 200);
  EXPECT_EQ(http.reply().status, 200) << "pipelined";
  EXPECT_EQ(s.daemon->bodies.size(), 20u);
}

TEST(Limits, StopEndsEveryConnection) {
  Served s;
  RawHttp idle(s.port());
  RawHttp follower(s.port());
  follower.send("GET /api/v1/verdicts/stream HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_NE(follower.read_until("verdicts follow"), "");
  const auto begin = std::chrono::steady_clock::now();
  s.server->stop();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
  EXPECT_TRUE(idle.ended(2));
  EXPECT_TRUE(follower.ended(2));
}

}  // namespace
}  // namespace reflex::serve

// Followers of verdicts: live, resumed, filtered, too many; each gets everything once and in order.
#include <fmt/format.h>

#include <thread>

#include "tests/unit/serve_http/served.h"

namespace reflex::serve {
namespace {

void follow(RawHttp& http, const std::string& target, const std::string& more = "") {
  http.send("GET /api/v1/verdicts/stream" + target + " HTTP/1.1\r\nHost: localhost\r\n" + more +
            "\r\n");
  EXPECT_NE(http.read_until("verdicts follow\n\n").find("text/event-stream"), std::string::npos);
}

TEST(Stream, LiveVerdictsOnceAndInOrder) {
  const Served s;
  s.daemon->publish(small_verdict("old", 1, true));
  RawHttp http(s.port());
  follow(http, "");
  std::jthread publisher([&] {
    for (uint32_t i = 1; i <= 50; ++i) s.daemon->publish(small_verdict("i1", i, i == 50));
  });
  std::string all;
  while (all.find("\"v-i1-50\"") == std::string::npos) {
    const std::string more = http.read_until("\n\n", 5);
    if (more.empty()) break;
    all += more;
  }
  EXPECT_EQ(all.find("old"), std::string::npos) << "from now on";
  size_t at = 0;
  for (uint32_t i = 1; i <= 50; ++i) {
    const std::string id = fmt::format("\"id\":\"v-i1-{}\"", i);
    const size_t found = all.find(id, at);
    ASSERT_NE(found, std::string::npos) << i;
    EXPECT_EQ(all.find(id, found + 1), std::string::npos) << i << " came twice";
    at = found;
  }
}

TEST(Stream, ResumesAfterTheLastEventId) {
  const Served s;
  for (uint32_t i = 1; i <= 100; ++i) s.daemon->publish(small_verdict("i1", i, false));
  RawHttp http(s.port());
  follow(http, "", "Last-Event-ID: 60\r\n");
  const std::string first = http.read_until("\n\n", 5);
  EXPECT_NE(first.find("id: 61\n"), std::string::npos) << first.substr(0, 200);
  EXPECT_NE(http.read_until("id: 100\n", 5), "");
  RawHttp all(s.port());
  follow(all, "?after=0");
  EXPECT_NE(all.read_until("\n\n", 5).find("id: 1\n"), std::string::npos);
  EXPECT_EQ(s.get("/api/v1/verdicts/stream?after=x").status, 400);
}

TEST(Stream, FiltersAndHeartbeats) {
  const Served s;
  RawHttp http(s.port());
  follow(http, "?incident=i2");
  EXPECT_NE(http.read_until(": still here", 5), "");
  s.daemon->publish(small_verdict("i1", 1, true));
  s.daemon->publish(small_verdict("i2", 1, true));
  const std::string got = http.read_until("\"v-i2-1\"", 5);
  EXPECT_NE(got.find("v-i2-1"), std::string::npos);
  EXPECT_EQ(got.find("v-i1-1"), std::string::npos);
}

TEST(Stream, FollowersAreBoundedAndGoAway) {
  const Served s(true, [](HttpConfig& c) { c.streams_max = 2; });
  {
    RawHttp one(s.port());
    RawHttp two(s.port());
    follow(one, "");
    follow(two, "");
    EXPECT_EQ(s.get("/api/v1/verdicts/stream").status, 503);
  }
  // A heartbeat finds that they are gone.
  bool free = false;
  for (int i = 0; i < 50 && !free; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    const std::string page = s.get("/metrics").body;
    free = page.find("reflex_verdict_followers 0\n") != std::string::npos;
  }
  EXPECT_TRUE(free);
}

TEST(Stream, AClientThatNeverReadsHoldsNobodyUp) {
  const Served s(true, [](HttpConfig& c) { c.wire.write_seconds = 1; });
  RawHttp asleep(s.port());
  asleep.send("GET /api/v1/verdicts/stream HTTP/1.1\r\nHost: localhost\r\n\r\n");
  RawHttp awake(s.port());
  follow(awake, "");
  abi::Verdict large = small_verdict("i1", 1, false);
  large.symptom = std::string(200'000, 's');
  for (uint32_t i = 1; i <= 100; ++i) {
    large.revision = i;
    large.id = fmt::format("v{}", i);
    s.daemon->publish(large);
  }
  EXPECT_NE(awake.read_until("\"id\":\"v100\"", 20).size(), 0u);
}

}  // namespace
}  // namespace reflex::serve

// The API on a real engine: verdicts, explanations, entities, thresholds, people, operation.
#include <cstring>
#include <set>

#include "tests/unit/serve_http/served.h"

namespace reflex::serve {
namespace {

/// One daemon with an engine for all tests that only read.
const Served& site() {
  static const Served served(false);
  return served;
}

TEST(Routes, VerdictsPageByPage) {
  const Served& s = site();
  std::set<std::string> ids;
  std::string cursor;
  size_t pages = 0;
  do {
    const auto page = json_of(s.get("/api/v1/verdicts?limit=2" + cursor));
    for (const auto& row : page["verdicts"]) {
      EXPECT_TRUE(ids.insert(row["verdict"]["id"].get<std::string>()).second);
    }
    cursor =
        page["next_cursor"].is_null() ? "" : "&cursor=" + page["next_cursor"].get<std::string>();
    ++pages;
  } while (!cursor.empty() && pages < 100);
  const auto all = json_of(s.get("/api/v1/verdicts?limit=1000&order=oldest"))["verdicts"];
  EXPECT_EQ(ids.size(), all.size());
  EXPECT_GE(ids.size(), 6u);
  for (size_t i = 1; i < all.size(); ++i) EXPECT_GT(all[i]["sequence"], all[i - 1]["sequence"]);
  // A third one may suspect it: it was never repaired.
  const auto finals =
      json_of(s.get("/api/v1/verdicts?node=n03&final=true&level=confirmed"))["verdicts"];
  EXPECT_EQ(finals.size(), 2u) << "the two hangs of n03";
  EXPECT_EQ(
      json_of(s.get("/api/v1/verdicts?since=2026-03-03T00:00:00Z&final=true"))["verdicts"].size(),
      1u);
  for (const char* bad : {"limit=0", "limit=x", "final=maybe", "since=yesterday", "cursor=-1",
                          "order=best", "limit=1001", "since="}) {
    EXPECT_EQ(s.get(std::string("/api/v1/verdicts?") + bad).status, 400) << bad;
  }
}

TEST(Routes, UnknownKeysOfTheQueryAreRefusedEverywhere) {
  const Served& s = site();
  const auto one = s.get("/api/v1/verdicts?nod=n03&limit=2");
  EXPECT_EQ(one.status, 400);
  EXPECT_EQ(json_of(one)["error"], "GET /api/v1/verdicts knows no parameter 'nod'");
  EXPECT_EQ(json_of(one)["what_to_do"],
            "known are limit, cursor, order, incident, job, node, mentions, fault, level, final, "
            "since, until");
  const auto none = s.get("/-/ready?verbose=1");
  EXPECT_EQ(none.status, 400);
  EXPECT_EQ(json_of(none)["what_to_do"], "leave it out; this page takes none");
  for (const char* path : {"/-/healthy", "/metrics", "/api/v1/verdicts/stream", "/api/v1/shadow",
                           "/api/v1/openapi.json", "/", "/api/v1/export"}) {
    EXPECT_EQ(s.get(std::string(path) + "?x").status, 400) << path;
  }
  // Before the body is read.
  EXPECT_EQ(s.post("/api/v1/events?sorce=mon", "{}\n").status, 400);
  EXPECT_EQ(s.post("/-/reload?force=1", "").status, 400);
  EXPECT_EQ(s.get("/api/v1/verdicts?%00%ff=1").status, 400);
}

TEST(Routes, ExplanationsInEveryForm) {
  const Served& s = site();
  const auto verdict = json_of(s.get("/api/v1/verdicts?incident=i-0001&final=true"))["verdicts"][0];
  const std::string id = verdict["verdict"]["id"];
  EXPECT_EQ(json_of(s.get("/api/v1/verdicts/" + id)), verdict["verdict"]);
  const std::string base = "/api/v1/verdicts/" + id + "/explanation";
  EXPECT_EQ(json_of(s.get(base + "?as=json"))["id"], id);
  const auto html = s.get(base + "?as=html");
  EXPECT_NE(html.body.find("<svg"), std::string::npos);
  EXPECT_EQ(html.header("Content-Type"), "text/html; charset=utf-8");
  EXPECT_NE(html.header("Content-Security-Policy").find("default-src 'none'"), std::string::npos);
  for (const char* as : {"md", "markdown", "text", "full"}) {
    EXPECT_NE(s.get(base + "?as=" + as).body.find("n03"), std::string::npos) << as;
  }
  EXPECT_LT(s.get(base + "?as=text").body.size(), s.get(base + "?as=full").body.size());
  EXPECT_EQ(s.get(base, "Accept: text/html,application/xml\r\n").body, html.body);
  EXPECT_EQ(s.get(base + "?as=pdf").status, 400);
  EXPECT_EQ(s.get("/api/v1/verdicts/none/explanation").status, 404);
  EXPECT_EQ(s.get("/api/v1/verdicts/none").status, 404);
  // A line from elsewhere is explained the same way.
  const auto posted = s.post("/api/v1/explain?as=html", verdict["verdict"].dump());
  EXPECT_EQ(posted.body, html.body);
  EXPECT_EQ(s.post("/api/v1/explain?as=md", "{\"id\":1}").status, 400);
  EXPECT_EQ(s.post("/api/v1/explain", "").status, 400);
}

TEST(Routes, OpenIncidents) {
  const auto open = json_of(site().get("/api/v1/incidents"))["incidents"];
  ASSERT_EQ(open.size(), 1u);
  EXPECT_EQ(open[0]["incident"], "i-0004");
  EXPECT_EQ(open[0]["latest"]["culprits"][0], "n06");
  EXPECT_EQ(json_of(site().get("/api/v1/incidents?state=all"))["incidents"].size(), 4u);
  EXPECT_EQ(site().get("/api/v1/incidents?state=x").status, 400);
}

TEST(Routes, PacksSignalsThresholds) {
  const Served& s = site();
  const auto packs = json_of(s.get("/api/v1/packs"));
  ASSERT_EQ(packs["packs"].size(), 2u);
  EXPECT_EQ(packs["packs"][1]["name"], "site");
  EXPECT_EQ(packs["packs"][1]["version"], "1.2.0");
  const auto signals = json_of(s.get("/api/v1/signals"))["signals"];
  EXPECT_EQ(signals.size(), 4u);
  bool stalled = false;
  for (const auto& signal : signals) {
    if (signal["name"] == "site.stall") stalled = signal["firings"] == 44 || signal["firings"] > 0;
    EXPECT_TRUE(signal["where"]["line"].is_number());
  }
  EXPECT_TRUE(stalled);
  const auto classes = json_of(s.get("/api/v1/thresholds?class=hw.h100"))["classes"];
  ASSERT_EQ(classes.size(), 1u);
  bool fixed = false;
  bool learned = false;
  for (const auto& p : classes[0]["parameters"]) {
    if (p["parameter"] == "temp_hot") {
      fixed = p["value"] == 87.0 && p["unit"] == "celsius" && p["origin"]["from"] == "profile" &&
              p["origin"]["where"]["line"] > 0;
    }
    if (p["parameter"] == "heat_limit") {
      // 62 to 74 degrees, a mean of eight: far below the author's default of 85.
      learned = p["origin"]["from"] != "profile" && p["value"] > 60 && p["value"] < 80 &&
                p["origin"]["samples"] >= 200 && p["baseline"]["quantiles"].size() >= 5;
      EXPECT_TRUE(learned) << p.dump();
    }
  }
  EXPECT_TRUE(fixed);
  EXPECT_TRUE(learned);
  EXPECT_EQ(s.get("/api/v1/thresholds?class=hw.none").status, 404);
}

TEST(Routes, EntitiesAndTheirState) {
  const Served& s = site();
  const auto list = json_of(s.get("/api/v1/entities?prefix=n0&limit=3"));
  ASSERT_EQ(list["entities"].size(), 3u);
  EXPECT_EQ(list["entities"][0]["node"], "n00");
  EXPECT_EQ(list["entities"][0]["class"], "hw.h100");
  EXPECT_EQ(list["more"], true);
  EXPECT_EQ(json_of(s.get("/api/v1/entities?after=n10"))["entities"].size(), 1u);
  const auto node = json_of(s.get("/api/v1/entities/n03"));
  EXPECT_EQ(node["class"], "hw.h100");
  EXPECT_EQ(node["job"], "llm-70b");
  EXPECT_EQ(node["labels"]["rack"], "r0");
  EXPECT_GT(node["hazard"]["factor"], 1.0) << "it failed twice";
  EXPECT_GE(node["verdicts"].size(), 2u);
  const auto job = json_of(s.get("/api/v1/entities/llm-70b"));
  EXPECT_EQ(job["job_nodes"].size(), 12u);
  const auto state = json_of(s.get("/api/v1/entities/n03/state"));
  ASSERT_EQ(state["features"].size(), 1u) << state.dump();
  EXPECT_EQ(state["features"][0]["feature"], "site.heat");
  EXPECT_GT(state["features"][0]["value"], 55.0);
  EXPECT_EQ(s.get("/api/v1/entities/nobody").status, 404);
  EXPECT_EQ(s.get("/api/v1/entities/nobody/state").status, 404);
  const auto recent = json_of(s.get("/api/v1/entities/n06/state"))["episodes"];
  ASSERT_FALSE(recent.empty());
  EXPECT_EQ(recent[0]["signal"], "site.xid_fatal");
  EXPECT_EQ(recent[0]["entity"], "n06/5");
}

TEST(Routes, ABusyEventThreadIsSaid) {
  const Served s;  // without an engine, ask() fails
  for (const char* path :
       {"/api/v1/packs", "/api/v1/signals", "/api/v1/entities", "/api/v1/thresholds",
        "/api/v1/entities/n1", "/api/v1/entities/n1/state"}) {
    EXPECT_EQ(s.get(path).status, 503) << path;
  }
  EXPECT_EQ(s.get("/metrics").status, 200) << "metrics go without what the engine would say";
}

TEST(Routes, HealthReadyStatusSnapshot) {
  const Served s;
  EXPECT_EQ(s.get("/-/ready").status, 200);
  {
    const std::lock_guard lock(s.daemon->mutex);
    s.daemon->state.ready = false;
    s.daemon->state.not_ready_because = "replaying the journal: 43 %";
  }
  const auto waiting = s.get("/-/ready");
  EXPECT_EQ(waiting.status, 503);
  EXPECT_EQ(json_of(waiting)["error"], "replaying the journal: 43 %");
  EXPECT_EQ(s.get("/-/healthy").status, 200);
  const auto status = json_of(s.get("/api/v1/status"));
  EXPECT_EQ(status["version"], "9.9.9");
  EXPECT_EQ(status["store"], "a new store");
  EXPECT_EQ(s.post("/api/v1/snapshot", "").status, 200);
  s.daemon->fails = "no room";
  EXPECT_EQ(json_of(s.post("/api/v1/snapshot", ""))["error"], "no room");
}

TEST(Routes, ReloadAnswersWithPlanOrDiagnostics) {
  const Served s;
  ReloadAnswer& answer = s.daemon->next_reload;
  answer.outcome = ReloadAnswer::Outcome::kSwapped;
  answer.plan = {{"site.hot", "signal", "reset", "its shape changed", 1024}};
  answer.pause_us = 812.5;
  auto json = json_of(s.post("/-/reload", ""));
  EXPECT_EQ(json["swapped"], true);
  EXPECT_EQ(json["plan"][0]["fate"], "reset");
  EXPECT_EQ(json["pause_us"], 812.5);
  EXPECT_EQ(ask(s.port(), "PUT", "/-/reload").status, 200);
  answer.outcome = ReloadAnswer::Outcome::kUnchanged;
  EXPECT_EQ(json_of(s.post("/-/reload", ""))["unchanged"], true);
  answer.outcome = ReloadAnswer::Outcome::kInvalid;
  answer.diagnostics = {R"({"file":"a.rfx","id":"R105","message":"no"})"};
  const auto invalid = s.post("/-/reload", "");
  EXPECT_EQ(invalid.status, 422);
  EXPECT_EQ(json_of(invalid)["diagnostics"][0]["id"], "R105");
  answer.outcome = ReloadAnswer::Outcome::kBusy;
  EXPECT_EQ(s.post("/-/reload", "").status, 409);
  answer.outcome = ReloadAnswer::Outcome::kSwapped;
  EXPECT_EQ(s.post("/api/v1/shadow", "{}").status, 400);
  EXPECT_EQ(s.post("/api/v1/shadow", R"({"paths":[1]})").status, 400);
  EXPECT_EQ(json_of(s.get("/api/v1/shadow"))["running"], false);
  EXPECT_EQ(s.post("/api/v1/shadow", R"({"paths":["/etc/reflex/next"]})").status, 200);
  EXPECT_EQ(s.daemon->shadow_paths, std::vector<std::string>{"/etc/reflex/next"});
  EXPECT_EQ(json_of(s.get("/api/v1/shadow"))["running"], true);
  EXPECT_EQ(s.post("/api/v1/promote", "").status, 200);
  EXPECT_EQ(ask(s.port(), "DELETE", "/api/v1/shadow").status, 200);
  const auto nothing = s.post("/api/v1/promote", "");
  EXPECT_EQ(nothing.status, 409);
  EXPECT_EQ(json_of(nothing)["error"], "there is no shadow set to promote");
  EXPECT_NE(json_of(nothing)["what_to_do"].get<std::string>().find("POST /api/v1/shadow"),
            std::string::npos);
  EXPECT_EQ(json_of(nothing)["swapped"], false);
  s.daemon->fails = "none is running";
  EXPECT_EQ(ask(s.port(), "DELETE", "/api/v1/shadow").status, 409);
}

TEST(Routes, FeedbackReachesJournalAndStore) {
  const Served s;
  s.daemon->publish(small_verdict("i1", 1, false));
  s.daemon->publish(small_verdict("i1", 2, true));
  EXPECT_EQ(s.post("/api/v1/feedback", R"({"incident":"i1","confirmed":true})").status, 201);
  EXPECT_EQ(s.daemon->feedbacks.at(0).verdict_id, "v-i1-2") << "the latest";
  EXPECT_EQ(
      s.post("/api/v1/feedback",
             R"({"verdict":"v-i1-1","confirmed":false,"culprits":["n7"],"fault":"x","by":"ann",
                       "comment":"it was the other one"})")
          .status,
      201);
  const auto& told = s.daemon->feedbacks.at(1);
  EXPECT_EQ(told.incident, "i1");
  EXPECT_EQ(told.culprits, std::vector<std::string>{"n7"});
  EXPECT_EQ(told.by, "ann (local)");
  const auto list = json_of(s.get("/api/v1/feedback?incident=i1"))["feedback"];
  ASSERT_EQ(list.size(), 2u);
  EXPECT_EQ(list[0]["comment"], "it was the other one");
  const auto status = [&](const char* body) { return s.post("/api/v1/feedback", body).status; };
  EXPECT_EQ(status(R"({"incident":"i1","confirmed":false})"), 400) << "what was right?";
  EXPECT_EQ(status(R"({"incident":"i1"})"), 400);
  EXPECT_EQ(status(R"({"incident":"i9","confirmed":true})"), 404);
  EXPECT_EQ(status(R"({"incident":"i9","verdict":"v-i1-1","confirmed":true})"), 404);
  EXPECT_EQ(status(R"({"incident":5,"confirmed":true})"), 400);
  EXPECT_EQ(status(R"({"incident":"i1","confirmed":false,"culprits":[5]})"), 400);
  EXPECT_EQ(status("[]"), 400);
  s.daemon->fails = "the journal is full";
  EXPECT_EQ(status(R"({"incident":"i1","confirmed":true})"), 503);
  EXPECT_EQ(json_of(s.get("/api/v1/feedback"))["feedback"].size(), 2u);
}

TEST(Routes, Suppressions) {
  const Served s;
  const auto made = s.post("/api/v1/suppressions",
                           R"({"node":"n3","until":"2099-01-01T00:00:00Z","reason":"burn-in"})");
  ASSERT_EQ(made.status, 201) << made.body;
  EXPECT_EQ(json_of(made)["id"], "s1");
  ASSERT_EQ(s.daemon->orders.size(), 1u);
  EXPECT_EQ(s.daemon->orders[0].node, "n3");
  EXPECT_GT(s.daemon->orders[0].from_ns, 0);
  const auto status = [&](const char* body) { return s.post("/api/v1/suppressions", body).status; };
  EXPECT_EQ(status(R"({"node":"n3","reason":"x"})"), 400);
  EXPECT_EQ(status(R"({"node":"n3","until":"2099-01-01T00:00:00Z"})"), 400);
  EXPECT_EQ(status(R"({"until":"2099-01-01T00:00:00Z","reason":"x"})"), 400) << "not everything";
  EXPECT_EQ(status(R"({"node":"n3","until":"2001-01-01T00:00:00Z","reason":"x"})"), 400);
  EXPECT_EQ(status(R"({"node":"n3","until":"soon","reason":"x"})"), 400);
  EXPECT_EQ(json_of(s.get("/api/v1/suppressions"))["suppressions"].size(), 1u);
  EXPECT_EQ(ask(s.port(), "DELETE", "/api/v1/suppressions/s9").status, 404);
  EXPECT_EQ(ask(s.port(), "DELETE", "/api/v1/suppressions/s1").status, 200);
  ASSERT_EQ(s.daemon->orders.size(), 2u);
  EXPECT_TRUE(s.daemon->orders[1].lifted);
  EXPECT_TRUE(json_of(s.get("/api/v1/suppressions"))["suppressions"].empty());
  EXPECT_EQ(json_of(s.get("/api/v1/suppressions?state=all"))["suppressions"].size(), 1u);
  EXPECT_EQ(s.get("/api/v1/suppressions?state=in_force").status, 200);
  EXPECT_EQ(s.get("/api/v1/suppressions?state=al").status, 400);
  s.daemon->fails = "no";
  EXPECT_EQ(status(R"({"node":"n4","until":"2099-01-01T00:00:00Z","reason":"x"})"), 503);
  EXPECT_TRUE(json_of(s.get("/api/v1/suppressions"))["suppressions"].empty()) << "taken back";
}

TEST(Routes, ExportHoldsEverything) {
  const Served s;
  for (uint32_t i = 1; i <= 40; ++i)
    s.daemon->publish(small_verdict("i/" + std::to_string(i), 1, true));
  const auto lines = s.get("/api/v1/export");
  EXPECT_EQ(lines.header("Content-Type"), "application/x-ndjson");
  EXPECT_EQ(std::count(lines.body.begin(), lines.body.end(), '\n'), 40);
  const auto tar = s.get("/api/v1/export?as=tar").body;
  ASSERT_EQ(tar.size() % 512, 0u);
  // Walk the archive: every header's checksum and size must hold.
  std::map<std::string, std::string> files;
  for (size_t at = 0; at + 512 <= tar.size() && tar[at] != '\0';) {
    unsigned sum = 0;
    for (size_t i = 0; i < 512; ++i) {
      sum += i >= 148 && i < 156 ? ' ' : static_cast<unsigned char>(tar[at + i]);
    }
    EXPECT_EQ(sum, std::strtoul(tar.substr(at + 148, 8).c_str(), nullptr, 8));
    const size_t size = std::strtoul(tar.substr(at + 124, 12).c_str(), nullptr, 8);
    files[tar.c_str() + at] = tar.substr(at + 512, size);
    at += 512 + (size + 511) / 512 * 512;
  }
  EXPECT_EQ(files.size(), 81u) << "two files each, and the count";
  EXPECT_EQ(files.at("COUNT.txt"), "40 verdicts\n");
  EXPECT_EQ(files.count("i_7/0001-v-i_7-1.json"), 1u) << "names are one part of a path";
  EXPECT_NE(files.at("i_7/0001-v-i_7-1.md").find("n3"), std::string::npos);
  EXPECT_EQ(s.get("/api/v1/export?as=zip").status, 400);
}

TEST(Routes, AlertsFromTheStore) {
  const Served s;
  WriteBatch batch;
  batch.alerts = {{"k1", "alert", "i1", 5, "{\"rule\":\"drain\"}\n"}};
  ASSERT_TRUE(s.store->write(batch).ok());
  const auto alerts = json_of(s.get("/api/v1/alerts"))["alerts"];
  ASSERT_EQ(alerts.size(), 1u);
  EXPECT_EQ(alerts[0]["line"]["rule"], "drain");
  EXPECT_TRUE(json_of(s.get("/api/v1/alerts?after=1"))["alerts"].empty());
}

}  // namespace
}  // namespace reflex::serve

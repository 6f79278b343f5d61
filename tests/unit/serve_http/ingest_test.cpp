// Ingestion: events, logs, CloudEvents, Alertmanager, OTLP, and what the answers say.
#include "tests/unit/serve_http/served.h"

namespace reflex::serve {
namespace {

using Outcome = IngestAnswer::Outcome;

TEST(Ingest, EventsAnswerWithThePosition) {
  const Served s;
  const auto reply =
      s.post("/api/v1/events", "{\"ts\":1,\"kind\":\"a\"}\n{\"ts\":2,\"kind\":\"a\"}",
             "Content-Type: application/x-ndjson\r\n");
  ASSERT_EQ(reply.status, 200) << reply.body;
  EXPECT_EQ(json_of(reply)["lines"], 2);
  EXPECT_EQ(json_of(reply)["position"], 39);
  ASSERT_EQ(s.daemon->bodies.size(), 1u);
  EXPECT_EQ(s.daemon->bodies[0].source, "http/local");
  EXPECT_EQ(s.daemon->bodies[0].form, IngestBody::Form::kEvents);
  EXPECT_EQ(s.post("/api/v1/events?source=fleet-a", "{}\n").status, 200);
  EXPECT_EQ(s.daemon->bodies[1].source, "fleet-a");
  EXPECT_EQ(s.post("/api/v1/events?source=a%20b", "{}\n").status, 400);
  EXPECT_EQ(s.post("/api/v1/events?source=%ff", "{}\n").status, 400);
  EXPECT_EQ(s.post("/api/v1/logs/%fe", "x\n").status, 400);
  EXPECT_EQ(s.post("/api/v1/events?source=" + std::string(129, 'x'), "{}\n").status, 400);
  EXPECT_EQ(s.post("/api/v1/events", "{}\n", "Content-Type: image/png\r\n").status, 415);
  EXPECT_EQ(s.post("/api/v1/events", "").status, 200) << "nothing is nothing";
  EXPECT_EQ(s.daemon->bodies.size(), 2u);
}

TEST(Ingest, ABodyWithoutAnyObjectIsRefusedAndSingleBadLinesAreNot) {
  const Served s;
  const auto log =
      s.post("/api/v1/events", "\n  kernel: NVRM: Xid (PCI:0000:3b:00): 79, fallen off\n");
  EXPECT_EQ(log.status, 400);
  EXPECT_EQ(json_of(log)["error"],
            "no line of the body is a JSON object; it begins with "
            "'kernel: NVRM: Xid (PCI:0000:3b:00): 79, '");
  EXPECT_NE(json_of(log)["what_to_do"].get<std::string>().find("/api/v1/logs/{node}"),
            std::string::npos);
  const std::string zeros(3, '\0');
  for (const std::string& bad :
       {std::string("[1,2]"), std::string("x"), zeros, std::string("\x1f\x8b\x08 \xff\n\xfe"),
        std::string("\"a\"\n[\n]\n"), std::string(100'000, 'x'),
        std::string("[\n  {},\n  {}\n]\n")}) {
    const auto reply = s.post("/api/v1/events", bad);
    EXPECT_EQ(reply.status, 400) << bad.substr(0, 40);
    EXPECT_TRUE(json_of(reply)["error"].is_string()) << bad.substr(0, 40);
  }
  EXPECT_TRUE(s.daemon->bodies.empty());
  // Half a line before, junk between, an object that does not end: the stream goes on.
  for (const std::string& good :
       {std::string("1,\"kind\":\"a\"}\n{}\n"), zeros + "\n\xff\n  {}", std::string("{}\nx\n"),
        std::string("[0.1] a log\n{}"), std::string("\r\n \n{\"ts\":"), std::string("\n \n"),
        std::string("\n")}) {
    EXPECT_EQ(s.post("/api/v1/events", good).status, 200) << good;
  }
  EXPECT_EQ(s.daemon->bodies.size(), 7u);
}

TEST(Ingest, AKeyMakesABodyCountOnce) {
  const Served s;
  const std::string key = "Idempotency-Key: batch-7\r\n";
  EXPECT_FALSE(json_of(s.post("/api/v1/events", "{}\n", key)).contains("repeated"));
  const auto again = s.post("/api/v1/events", "{}\n", key);
  EXPECT_EQ(again.status, 200);
  EXPECT_EQ(json_of(again)["repeated"], true);
  EXPECT_EQ(s.daemon->bodies.size(), 1u);
}

TEST(Ingest, RefusalsSayWhatToDo) {
  const Served s;
  s.daemon->next_ingest = {Outcome::kOverloaded, 0, 0, 7, ""};
  const auto busy = s.post("/api/v1/events", "{}\n");
  EXPECT_EQ(busy.status, 429);
  EXPECT_EQ(busy.header("Retry-After"), "7");
  s.daemon->next_ingest = {Outcome::kNoSpace, 0, 0, 0, "no space left"};
  const auto full = s.post("/api/v1/logs/n1", "x\n");
  EXPECT_EQ(full.status, 507);
  EXPECT_EQ(json_of(full)["error"], "no space left");
  s.daemon->next_ingest = {Outcome::kStopping, 0, 0, 0, ""};
  const auto stopping = s.post("/v1/logs", R"({"resourceLogs":[{"scopeLogs":[{"logRecords":[
      {"body":{"kvlistValue":{"values":[{"key":"kind","value":{"stringValue":"a"}}]}}}]}]}]})",
                               "Content-Type: application/json\r\n");
  EXPECT_EQ(stopping.status, 503);
  EXPECT_NE(stopping.header("Retry-After"), "");
}

TEST(Ingest, LogTextOfANode) {
  const Served s;
  EXPECT_EQ(s.post("/api/v1/logs/n%2F17", "[1.0] NVRM: Xid\n").status, 200);
  ASSERT_EQ(s.daemon->bodies.size(), 1u);
  EXPECT_EQ(s.daemon->bodies[0].node, "n/17");
  EXPECT_EQ(s.daemon->bodies[0].source, "http/local/n/17");
  EXPECT_EQ(s.daemon->bodies[0].form, IngestBody::Form::kLog);
  EXPECT_EQ(s.post("/api/v1/logs/" + std::string(300, 'n'), "x\n").status, 400);
}

TEST(Ingest, CloudEvents) {
  const Served s;
  const std::string one = "Content-Type: application/cloudevents+json; charset=utf-8\r\n";
  const std::string batch = "Content-Type: application/cloudevents-batch+json\r\n";
  EXPECT_EQ(
      s.post("/api/v1/events", R"({"specversion":"1.0","type":"gpu.xid","source":"/dcgm","id":"7",
      "time":"2026-03-01T12:00:00Z","subject":"n3","data":{"gpu":5,"code":79}})",
             one)
          .status,
      200);
  ASSERT_EQ(s.daemon->bodies.size(), 1u);
  auto event = nlohmann::json::parse(s.daemon->bodies[0].text);
  EXPECT_EQ(
      event,
      nlohmann::json::parse(
          R"({"gpu":5,"code":79,"kind":"gpu.xid","ts":"2026-03-01T12:00:00Z","id":"7","source":"/dcgm","node":"n3"})"));
  // Data that is our event stays as it is; only what is missing is filled in.
  const auto reply = s.post("/api/v1/events", R"([
      {"specversion":"1.0","type":"x","source":"s","id":"1","data":{"ts":5,"kind":"a","node":"n1"}},
      {"specversion":"0.3","type":"x"}, 7, {"specversion":"1.0","type":"x","data":"text"},
      {"specversion":"1.0","type":"health","source":"s","id":"2","data":{"healthEvent":{
        "generatedTimestamp":"2026-03-01T12:00:01Z","nodeName":"n9","checkName":"SysLogsXIDError",
        "isFatal":true,"isHealthy":false,"errorCode":["79"],"recommendedAction":"RESTART_BM",
        "entitiesImpacted":[{"entityType":"PCI","entityValue":"0000:3b:00"}]}}}])",
                            batch);
  ASSERT_EQ(reply.status, 200) << reply.body;
  EXPECT_EQ(json_of(reply)["rejected"], 3);
  EXPECT_EQ(json_of(reply)["first_reason"], "specversion is not 1.0");
  ASSERT_EQ(s.daemon->bodies.size(), 3u);
  event = nlohmann::json::parse(s.daemon->bodies[1].text);
  EXPECT_EQ(event["kind"], "a");
  EXPECT_EQ(event["ts"], 5);
  // The line that rules/std/adapters/README.md makes with jq.
  EXPECT_EQ(s.daemon->bodies[2].text,
            "2026-03-01T12:00:01Z nvsentinel n9 SysLogsXIDError fatal=true healthy=false codes=79 "
            "entities=PCI:0000:3b:00 action=RESTART_BM\n");
  EXPECT_EQ(s.post("/api/v1/events", "[]", one).status, 400) << "a batch is not a single event";
  EXPECT_EQ(s.post("/api/v1/events", "{", one).status, 400);
  EXPECT_EQ(s.post("/api/v1/events", R"([{"specversion":"2"}])", batch).status, 400);
  // Binary mode.
  EXPECT_EQ(s.post("/api/v1/events", R"({"code":79})",
                   "Content-Type: application/json\r\nce-specversion: 1.0\r\nce-type: gpu.xid\r\n"
                   "ce-id: 9\r\nce-source: s\r\nce-time: 2026-03-01T12:00:00Z\r\n")
                .status,
            200);
  EXPECT_EQ(nlohmann::json::parse(s.daemon->bodies.back().text)["kind"], "gpu.xid");
}

TEST(Ingest, AlertmanagerWebhook) {
  const Served s;
  const auto reply = s.post("/api/v1/alertmanager", R"({"version":"4","alerts":[
    {"status":"firing","startsAt":"2026-03-01T12:00:00Z",
     "labels":{"gpu":"5","alertname":"GpuXid","err_code":"79","Hostname":"n3","note":"two\nlines"}},
    {"status":"resolved","startsAt":"2026-03-01T12:00:00Z","labels":{"alertname":"x"}},
    {"status":"firing","labels":{}}]})");
  ASSERT_EQ(reply.status, 200) << reply.body;
  EXPECT_EQ(json_of(reply)["rejected"], 1);
  ASSERT_EQ(s.daemon->bodies.size(), 1u);
  EXPECT_EQ(s.daemon->bodies[0].form, IngestBody::Form::kLog);
  EXPECT_EQ(
      s.daemon->bodies[0].text,
      "2026-03-01T12:00:00Z alert Hostname=n3 alertname=GpuXid err_code=79 gpu=5 note=two lines\n");
  EXPECT_EQ(s.post("/api/v1/alertmanager", "{}").status, 400);
  EXPECT_EQ(s.post("/api/v1/alertmanager", "not json").status, 400);
}

TEST(Ingest, OtlpLogs) {
  const Served s;
  const std::string json = "Content-Type: application/json\r\n";
  const auto reply = s.post("/v1/logs", R"({"resourceLogs":[{"resource":{"attributes":[
      {"key":"host.name","value":{"stringValue":"n3"}}]},"scopeLogs":[{"logRecords":[
      {"timeUnixNano":"1772366400250000000","body":{"stringValue":"NVRM: Xid\nsecond\n"}},
      {"timeUnixNano":"1772366400000000000","body":{"kvlistValue":{"values":[
        {"key":"kind","value":{"stringValue":"gpu.xid"}},{"key":"code","value":{"intValue":"79"}}]}}},
      {"body":{"doubleValue":1.5}}]}]},
      {"scopeLogs":[{"logRecords":[{"timeUnixNano":"1","body":{"stringValue":"whose?"}}]}]}]})",
                            json);
  ASSERT_EQ(reply.status, 200) << reply.body;
  EXPECT_EQ(json_of(reply)["partialSuccess"]["rejectedLogRecords"], "2");
  ASSERT_EQ(s.daemon->bodies.size(), 2u);
  EXPECT_EQ(nlohmann::json::parse(s.daemon->bodies[0].text),
            nlohmann::json::parse(
                R"({"kind":"gpu.xid","code":79,"ts":"2026-03-01T12:00:00.000Z","node":"n3"})"));
  EXPECT_EQ(s.daemon->bodies[1].node, "n3");
  EXPECT_EQ(s.daemon->bodies[1].text,
            "2026-03-01T12:00:00.250Z NVRM: Xid\n2026-03-01T12:00:00.250Z second\n");
  EXPECT_EQ(s.post("/v1/logs", "x", "Content-Type: application/x-protobuf\r\n").status, 415);
  EXPECT_EQ(s.post("/v1/logs", "{}", json).status, 400);
  EXPECT_EQ(json_of(s.post("/v1/logs", R"({"resourceLogs":[]})", json))["partialSuccess"],
            nlohmann::json::object());
}

}  // namespace
}  // namespace reflex::serve

// NDJSON: meaning of members, rejections, and that both readers agree.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <set>

#include "runtime/stream/ndjson_decoder.h"
#include "tests/unit/stream/pack_fixture.h"

namespace reflex::stream {
namespace {

using testing::make_pack;
using testing::PaddedText;
using testing::show;

struct Decoded {
  std::vector<std::string> events;
  IngestCounters counters;
};

Decoded decode(std::string_view text, bool predict = true) {
  const auto pack = make_pack();
  NdjsonDecoder decoder(pack, {}, predict);
  RecordBatch batch;
  const PaddedText padded(text);
  decoder.decode(padded.view(), pack->symbols->intern("src"), 1, batch);
  Decoded out;
  for (const abi::Record* record : batch.records) out.events.push_back(show(*record, *pack));
  out.counters = decoder.counters();
  return out;
}

std::string only(std::string_view line) {
  const Decoded out = decode(std::string(line) + "\n");
  return out.events.size() == 1 ? out.events[0] : "<" + std::to_string(out.events.size()) + ">";
}

Reject rejected(std::string_view line) {
  const Decoded out = decode(std::string(line) + "\n");
  for (size_t i = 0; i < out.counters.rejected.size(); ++i) {
    if (out.counters.rejected[i] == 1) return static_cast<Reject>(i);
  }
  return Reject::kCount;
}

TEST(Ndjson, Event_with_every_member) {
  EXPECT_EQ(only(R"({"ts":"2026-03-01T12:00:00.250Z","kind":"gpu.xid","node":"n0417","gpu":3,)"
                 R"("code":79,"job":"j118","id":"dmesg/1","text":"a \"b\"","reg":[1,3.0]})"),
            "2026-03-01T12:00:00.250Z gpu.xid src=src seq=1 rep=0 id=dmesg/1 node=n0417 gpu=3 "
            "code=79 reg=[1][3] text='a \"b\"'");
}

TEST(Ndjson, No_event_is_of_a_time_after_its_arrival) {
  const auto time_of = [](std::string_view ts, std::string_view arrival) {
    const std::string line = R"({"ts":)" + std::string(ts) + R"(,"kind":"gpu.xid","node":"n1",)" +
                             R"("arrival":)" + std::string(arrival) + "}\n";
    std::set<std::string> times;  // by each of the three readers
    for (const std::string& lines : {line, line + line + line + line + line + line}) {
      for (const bool predict : {false, true}) {
        for (const std::string& event : decode(lines, predict).events) {
          times.insert(event.substr(0, 24));
        }
      }
    }
    return times.size() == 1 ? *times.begin() : std::to_string(times.size()) + " times";
  };
  EXPECT_EQ(time_of("1760003600123", "1760000000123"), "2025-10-09T08:53:20.123Z");
  EXPECT_EQ(time_of(R"("2025-10-09T09:53:20Z")", R"("2025-10-09T08:53:20.123Z")"),
            "2025-10-09T08:53:20.123Z");
  EXPECT_EQ(time_of("1760000060123", "1760000000123"), "2025-10-09T08:54:20.123Z");  // a minute
  EXPECT_EQ(time_of("1760000000123", "1760009999123"), "2025-10-09T08:53:20.123Z");  // late
  EXPECT_EQ(time_of("1760000000123", "null"), "2025-10-09T08:53:20.123Z");
  EXPECT_EQ(time_of("1760000000123", R"("soon")"), "2025-10-09T08:53:20.123Z");
  EXPECT_EQ(time_of("1760000000123", "-7"), "2025-10-09T08:53:20.123Z");
  const Decoded out = decode(
      R"({"ts":9000000,"kind":"gpu.xid","node":"n1","arrival":10000})" "\n"
      R"({"arrival":10000,"ts":9000000,"kind":"gpu.xid","node":"n1"})" "\n");
  EXPECT_EQ(out.counters.ahead_of_arrival, 2u);
  EXPECT_EQ(out.counters.unknown_fields, 0u);
}

TEST(Ndjson, Time_as_milliseconds_decimal_or_text) {
  const std::string tail = R"(,"kind":"gpu.xid","node":"n1"})";
  EXPECT_EQ(only(R"({"ts":1760000000123)" + tail).substr(0, 24), "2025-10-09T08:53:20.123Z");
  EXPECT_EQ(only(R"({"ts":1760000000123.25)" + tail).substr(0, 27), "2025-10-09T08:53:20.123250Z");
  EXPECT_EQ(only(R"({"ts":1.76e12)" + tail).substr(0, 24), "2025-10-09T08:53:20.000Z");
  EXPECT_EQ(rejected(R"({"ts":"yesterday")" + tail), Reject::kBadTs);
  EXPECT_EQ(rejected(R"({"ts":1e300)" + tail), Reject::kBadTs);
  EXPECT_EQ(rejected(R"({"ts":-5)" + tail), Reject::kNegativeTs);
  EXPECT_EQ(rejected(R"({"ts":null)" + tail), Reject::kMissingTs);
}

TEST(Ndjson, Field_forms) {
  const std::string head = R"({"ts":0,"kind":)";
  const std::string event = "1970-01-01T00:00:00.000Z ";
  EXPECT_EQ(
      only(head + R"("gpu.ecc","node":7,"gpu":"3","type":"corrected","total":3.0,"fatal":true})"),
      event + "gpu.ecc src=src seq=1 rep=0 node=7 gpu=3 type=corrected total=3 fatal=1");
  EXPECT_EQ(only(head + R"("gpu.ecc","node":"n","gpu":"0000:3b:00.0","type":"weird","total":"x"})"),
            event + "gpu.ecc src=src seq=1 rep=0 node=n gpu=1099511642880 type=other");
  EXPECT_EQ(only(head + R"("nccl.timeout","job":"j","op":"ALLREDUCE","waited":"10m","at":1500})"),
            event +
                "nccl.timeout src=src seq=1 rep=0 job=j op=ALLREDUCE waited=600000000000 "
                "at=1500000000");
  EXPECT_EQ(only(head + R"("nccl.timeout","job":"j","waited":1.5,"node":null,"source":"agent"})"),
            event + "nccl.timeout src=agent seq=1 rep=0 job=j waited=1500000000");
  EXPECT_EQ(
      only(head + R"("node.labels","node":"n","labels":{"hw":"h100","slot":3,"spare":false}})"),
      event + "node.labels src=src seq=1 rep=0 node=n labels=[hw][h100][slot][3][spare][false]");
  EXPECT_EQ(only(head + R"("job.start","job":"j","nodes":["n1","n2"]})"),
            event + "job.start src=src seq=1 rep=0 job=j nodes=[n1][n2]");
  EXPECT_EQ(only(head + R"("xid","node":"n","code":1,"code":2})"),
            event + "gpu.xid src=src seq=1 rep=0 node=n code=2");
}

// ---- a site's own names (overlays: `alias kind`)

TEST(Ndjson, Alias_reads_its_own_members) {
  const std::string event = "1970-01-01T00:00:05.000Z ";
  EXPECT_EQ(
      only(R"({"stamp":5000,"kind":"site.ecc","host":"n1","gpu":3,"count":7,"fatal":true})"),
      event + "gpu.ecc src=src seq=1 rep=0 node=n1 gpu=3 type=corrected total=7 fatal=1");
  // The old names mean nothing here, and a value of the event goes before the constant.
  EXPECT_EQ(only(R"({"stamp":5000,"ts":9,"kind":"site.ecc","host":"n1","node":"n2","total":8,)"
                 R"("type":"uncorrected"})"),
            event + "gpu.ecc src=src seq=1 rep=0 node=n1 type=uncorrected");
  EXPECT_EQ(rejected(R"({"stamp":5000,"kind":"site.ecc","node":"n1"})"), Reject::kMissingKey);
  EXPECT_EQ(rejected(R"({"ts":5000,"kind":"site.ecc","host":"n1"})"), Reject::kMissingTs);
}

TEST(Ndjson, Alias_on_the_fast_path) {
  std::string text;
  std::vector<std::string> want;
  for (int i = 0; i < 200; ++i) {
    const std::string n = std::to_string(i);
    // Two kinds by turns, so that the template of each is used.
    if (i % 2 == 0) {
      text += R"({"stamp":5000,"kind":"site.ecc","host":"n1","gpu":3,"count":)" + n + "}\n";
      want.push_back("1970-01-01T00:00:05.000Z gpu.ecc src=src seq=" + std::to_string(i + 1) +
                     " rep=0 node=n1 gpu=3 type=corrected total=" + n);
    } else {
      text += R"({"ts":5000,"kind":"gpu.ecc","node":"n1","gpu":3,"total":)" + n + "}\n";
      want.push_back("1970-01-01T00:00:05.000Z gpu.ecc src=src seq=" + std::to_string(i + 1) +
                     " rep=0 node=n1 gpu=3 total=" + n);
    }
  }
  const Decoded fast = decode(text, true);
  EXPECT_EQ(fast.events, want);
  EXPECT_EQ(fast.counters.unknown_fields, 0u);
}

TEST(Ndjson, Rejections_have_a_reason) {
  EXPECT_EQ(rejected("{"), Reject::kBadJson);
  EXPECT_EQ(rejected("hello"), Reject::kBadJson);
  EXPECT_EQ(rejected("[1]"), Reject::kNotObject);
  EXPECT_EQ(rejected(R"({"kind":"gpu.xid","node":"n"})"), Reject::kMissingTs);
  EXPECT_EQ(rejected(R"({"ts":1,"node":"n"})"), Reject::kMissingKind);
  EXPECT_EQ(rejected(R"({"ts":1,"kind":"nope"})"), Reject::kUnknownKind);
  EXPECT_EQ(rejected(R"({"ts":1,"kind":"gpu.xid"})"), Reject::kMissingKey);
  EXPECT_EQ(rejected(R"({"ts":1,"kind":"gpu.xid","node":"n","gpu":"zz"})"), Reject::kMissingKey);
  EXPECT_EQ(rejected("{\"ts\":1,\"kind\":\"gpu.xid\",\"node\":\"\xff\"}"), Reject::kBadUtf8);
  EXPECT_EQ(rejected(std::string("{\"ts\":1\0}", 9)), Reject::kBinary);
  EXPECT_EQ(rejected(R"({"ts":1,"kind":"gpu.xid","node":"n"} x)"), Reject::kBadJson);
  EXPECT_EQ(rejected(std::string(kLineBytesMax + 1, ' ') + "1"), Reject::kLineTooLong);
}

TEST(Ndjson, Sampled_rejections_reach_the_sink) {
  const auto pack = make_pack();
  std::vector<uint64_t> lines;
  NdjsonDecoder decoder(pack, [&](const RejectedLine& bad) { lines.push_back(bad.line); });
  std::string text;
  for (int i = 0; i < 2500; ++i) text += "nonsense\n";
  RecordBatch batch;
  decoder.decode(PaddedText(text).view(), 0, 1, batch);
  EXPECT_EQ(lines, (std::vector<uint64_t>{1, 2, 3, 1000, 2000}));
  EXPECT_EQ(decoder.counters().rejected_total(), 2500u);
}

// ---- both readers agree, whatever the line

const std::vector<std::string>& seeds() {
  static const std::vector<std::string> kSeeds = {
      R"({"ts":1760000000003,"node":"node-02315","job":"job-046","gpu":1,"kind":"bench.event","code":46,"value":86.75,"severity":0,"msg":"x: y"})",
      R"({"ts": 1760000000003.5, "kind": "gpu.xid", "node": "n1", "gpu": "3", "code": 79, "text": "fallen off"})",
      R"({"ts":"2026-03-01T12:00:00Z","kind":"gpu.ecc","node":"n2","type":"corrected","total":-12,"fatal":true})",
      R"({"kind":"nccl.timeout","ts":5,"job":"j1","rank":4,"op":"ALLREDUCE","waited":600.25,"extra":null})",
      R"({"ts":7,"kind":"node.labels","node":"n3","labels":{"hw":"h100"},"id":"a1"})",
      "{\"ts\":9,\"kind\":\"gpu.xid\",\"node\":\"n\xc3\xa9\",\"code\":1e2,\"code\":31}",
      R"({"ts":8,"node":"n4","kind":"gpu.xid","code":-4,"other":[1]})",
      R"({"ts":11,"node":"n5","kind":"gpu.ecc","fatal":false,"source":"agent","id":"b\/2"})",
      R"({"ts":12,"node":"a-name-of-more-than-16-bytes","job":"j2","kind":"nccl.timeout","at":12})",
      R"({"kind":"site.ecc","stamp":13,"host":"n6","gpu":2,"count":4,"total":9,"ts":1})",
      R"({"stamp":14,"kind":"site.ecc","host":"n7","count":5,"node":"other","gpu_":1})",
  };
  return kSeeds;
}

void mutate(std::string& line) {
  static const std::string kBytes =
      std::string("\"\\{}[]:,0123456789.eE+-tfn \t\r\x01\x7f\xc3\xff") + '\0';
  const int edits = *rc::gen::inRange(0, 4);
  for (int i = 0; i < edits && !line.empty(); ++i) {
    const size_t at = *rc::gen::inRange<size_t>(0, line.size());
    const char byte = kBytes[*rc::gen::inRange<size_t>(0, kBytes.size())];
    switch (*rc::gen::inRange(0, 4)) {
      case 0:
        line[at] = byte;
        break;
      case 1:
        line.insert(at, 1, byte);
        break;
      case 2:
        line.erase(at, 1);
        break;
      default:
        line.insert(at, line.substr(at, *rc::gen::inRange<size_t>(1, 12)));
        break;
    }
  }
}

std::string random_lines() {
  std::string text;
  const int count = *rc::gen::inRange(1, 30);
  for (int i = 0; i < count; ++i) {
    std::string line = seeds()[*rc::gen::inRange<size_t>(0, seeds().size())];
    mutate(line);
    text += line + "\n";
  }
  if (*rc::gen::arbitrary<bool>()) text.pop_back();
  return text;
}

TEST(Ndjson, Fast_path_equals_document_reader) {
  EXPECT_TRUE(rc::check([] {
    const std::string text = random_lines();
    const Decoded fast = decode(text, true);
    const Decoded slow = decode(text, false);
    RC_ASSERT(fast.events == slow.events);
    RC_ASSERT(fast.counters.rejected == slow.counters.rejected);
    RC_ASSERT(fast.counters.bad_fields == slow.counters.bad_fields);
    RC_ASSERT(fast.counters.unknown_fields == slow.counters.unknown_fields);
    RC_ASSERT(fast.counters.lines == slow.counters.lines);
  }));
}

std::string random_number() {
  const auto digits = [](int most) {
    std::string text;
    for (int i = *rc::gen::inRange(0, most + 1); i > 0; --i) {
      text += static_cast<char>('0' + *rc::gen::inRange(0, 10));
    }
    return text;
  };
  std::string text = *rc::gen::element<std::string>("", "", "", "-", "0") + digits(20);
  if (*rc::gen::inRange(0, 2) == 0) text += "." + digits(20);
  if (*rc::gen::inRange(0, 6) == 0) text += *rc::gen::element<std::string>("e", "E+", "e-");
  return text + (*rc::gen::inRange(0, 20) == 0 ? "x" : "");
}

TEST(Ndjson, Numbers_of_any_length_equal_document_reader) {
  EXPECT_TRUE(rc::check([] {
    const auto line = [](const std::string& ts, const std::string& code, const std::string& value) {
      return R"({"ts":)" + ts + R"(,"node":"n","gpu":2,"kind":"bench.event","code":)" + code +
             R"(,"value":)" + value + "}\n";
    };
    std::string text = line("1", "2", "3.5");
    for (int i = 0; i < 20; ++i) {
      // One odd number a line: the others let it come as far as the template goes.
      const std::string odd = random_number();
      const int where = *rc::gen::inRange(0, 3);
      text += line(where == 0 ? odd : "1760000000123", where == 1 ? odd : "46",
                   where == 2 ? odd : "86.75");
    }
    const Decoded fast = decode(text, true);
    const Decoded slow = decode(text, false);
    RC_ASSERT(fast.events == slow.events);
    RC_ASSERT(fast.counters.rejected == slow.counters.rejected);
    RC_ASSERT(fast.counters.bad_fields == slow.counters.bad_fields);
  }));
}

TEST(Ndjson, Optional_members_and_changing_kinds_keep_their_slots) {
  std::string text;
  for (int i = 0; i < 40; ++i) {
    const std::string job = i % 3 == 0 ? R"("job":"j",)" : "";
    text += R"({"ts":5,)" + job + R"("node":"n","kind":"bench.event","code":1})" + "\n";
    text += R"({"ts":5,"job":"j","node":"n","kind":"nccl.timeout","rank":2,"lost":1})"
            "\n";
    text += R"({"ts":5,"kind":"gpu.ecc","node":"n","gpu":null,"total":7})"
            "\n";
  }
  const Decoded out = decode(text);
  ASSERT_EQ(out.events.size(), 120u);
  EXPECT_EQ(out.counters.unknown_fields, 40u);
  EXPECT_EQ(out.counters.events, 120u);
  for (size_t i = 0; i < 120; i += 3) {
    const std::string line = "src=src seq=" + std::to_string(i + 1) + " rep=0 node=n";
    EXPECT_EQ(out.events[i].substr(37), line + (i % 9 == 0 ? " job=j" : "") + " code=1");
    EXPECT_NE(out.events[i + 1].find("job=j node=n rank=2"), std::string::npos);
    EXPECT_NE(out.events[i + 2].find("node=n total=7"), std::string::npos);
  }
}

TEST(Ndjson, Chunk_borders_do_not_matter) {
  EXPECT_TRUE(rc::check([] {
    const std::string text = random_lines();
    const Decoded whole = decode(text);
    const auto pack = make_pack();
    NdjsonDecoder decoder(pack);
    RecordBatch batch;
    uint64_t line = 1;
    size_t begin = 0;
    while (begin < text.size()) {
      size_t end = begin;
      for (int lines = *rc::gen::inRange(1, 5); lines > 0 && end < text.size(); --lines) {
        const size_t newline = text.find('\n', end);
        end = newline == std::string::npos ? text.size() : newline + 1;
      }
      const PaddedText chunk(std::string_view(text).substr(begin, end - begin));
      decoder.decode(chunk.view(), pack->symbols->intern("src"), line, batch);
      for (size_t i = begin; i < end; ++i) line += text[i] == '\n';
      begin = end;
    }
    std::vector<std::string> events;
    for (const abi::Record* record : batch.records) events.push_back(show(*record, *pack));
    RC_ASSERT(events == whole.events);
  }));
}

TEST(Ndjson, Random_bytes_never_crash) {
  EXPECT_TRUE(rc::check([] {
    const auto text = *rc::gen::arbitrary<std::string>();
    const Decoded out = decode(text);
    RC_ASSERT(out.counters.lines >= out.counters.events);
  }));
}

}  // namespace
}  // namespace reflex::stream

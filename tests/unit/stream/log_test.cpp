// Log text: prefix table, decoders, folds, repeats, time rules.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>

#include "runtime/stream/log_decoder.h"
#include "runtime/stream/log_prefix.h"
#include "tests/unit/stream/pack_fixture.h"

namespace reflex::stream {
namespace {

using testing::kNcclTimeout;
using testing::kXid;
using testing::make_pack;
using testing::show;

abi::DecoderAssign assign(uint16_t slot, int group,
                          abi::DecoderAssign::From from = abi::DecoderAssign::From::kGroup) {
  abi::DecoderAssign out;
  out.slot = slot;
  out.group = group;
  out.from = from;
  return out;
}

std::shared_ptr<abi::CompiledPack> log_pack() {
  using From = abi::DecoderAssign::From;
  auto pack = make_pack();
  abi::DecoderPlan decoder;
  decoder.input = "text";
  abi::DecoderLine drop;
  drop.pattern = "NVRM: Xid .* to be ignored";
  drop.ignore = true;
  abi::DecoderLine xid;
  xid.pattern = R"(NVRM: Xid \(PCI:([0-9A-Fa-f:.]+)[^)]*\)?: (\d+)(?:, pid=(\d+))?,? ?(.*))";
  xid.kind = kXid;
  xid.assigns = {assign(1, 1, From::kGpuAtGroup), assign(2, 2), assign(3, 3), assign(5, 4)};
  abi::DecoderLine lost;
  lost.pattern = R"(NVRM: The NVIDIA GPU ([0-9a-f:.]+)\n.*\nNVRM: fallen off the bus)";
  lost.kind = kXid;
  lost.fold_lines = 3;
  abi::DecoderAssign code;
  code.slot = 2;
  code.from = From::kConstantInt;
  code.constant_int = 79;
  lost.assigns = {assign(1, 1, From::kGpuAtGroup), code};
  abi::DecoderLine watchdog;
  watchdog.pattern = R"(\[rank(\d+)\].*Exception .* detected by watchdog at work: (\d+))";
  watchdog.kind = kNcclTimeout;
  watchdog.fold_lines = 2;
  abi::DecoderAssign job;
  job.slot = 0;
  job.from = From::kConstantText;
  job.constant_text = "j1";
  watchdog.assigns = {job, assign(2, 1)};
  decoder.lines = {drop, xid, lost, watchdog};
  pack->decoders = {decoder};
  return pack;
}

struct Decoded {
  std::vector<std::string> events;
  std::vector<int64_t> times;
  IngestCounters counters;
  std::vector<std::string> notices;
};

Decoded decode(const std::string& text, LogOptions options = {}, size_t chunk_lines = 1000,
               bool kernel_only = false) {
  const auto pack = log_pack();
  pack->decoders[0].kernel_only = kernel_only;
  LogDecoder decoder(pack, pack->symbols->intern("n1"), pack->symbols->intern("log"), options);
  RecordBatch batch;
  uint64_t line = 1;
  for (size_t begin = 0; begin < text.size();) {
    size_t end = begin;
    uint64_t lines = 0;
    while (lines < chunk_lines && end < text.size()) {
      const size_t newline = text.find('\n', end);
      end = newline == std::string::npos ? text.size() : newline + 1;
      ++lines;
    }
    decoder.decode(std::string_view(text).substr(begin, end - begin), line, batch);
    line += lines;
    begin = end;
  }
  decoder.finish(batch);
  EXPECT_EQ(batch.input, text.empty() ? kNoSymbol : pack->symbols->intern("log"));
  Decoded out;
  for (const abi::Record* record : batch.records) {
    out.events.push_back(show(*record, *pack));
    out.times.push_back(record->ts_ns);
  }
  out.counters = decoder.counters();
  out.notices = decoder.notices();
  return out;
}

constexpr std::string_view kXidText = "NVRM: Xid (PCI:0000:3b:00): 79, pid=2171, gone";

LogOptions options_2025() {
  LogOptions options;
  options.base_ns = parse_rfc3339("2025-06-01T00:00:00Z")->ns;
  options.boot_ns = parse_rfc3339("2025-05-01T00:00:00Z")->ns;
  return options;
}

TEST(Log, Every_prefix_form_gives_its_time_and_the_bare_message) {
  const std::pair<std::string, std::string_view> kForms[] = {
      {"[ 1108.858286] ", "2025-05-01T00:18:28.858286Z"},
      {"[ 1108.858286][  T291] ", "2025-05-01T00:18:28.858286Z"},
      {"[  +0.250000] ", "2025-06-01T00:00:00.250Z"},
      {"[Jan  2 10:15] ", "2025-01-02T10:15:00.000Z"},
      {"[Sun Feb 23 16:24:18 2025] ", "2025-02-23T16:24:18.000Z"},
      {"kern  :warn  : 2025-01-21T04:41:44,283302+00:00 ", "2025-01-21T04:41:44.283302Z"},
      {"kern  :warn  : [ 1108.858286] ", "2025-05-01T00:18:28.858286Z"},
      {"6,3964,206764307,-;", "2025-05-01T00:03:26.764307Z"},
      {"Nov 28 13:45:12 host kernel: [67890.123456] ", "2024-11-28T13:45:12.000Z"},
      {"Feb  4 05:03:41 host kernel: ", "2025-02-04T05:03:41.000Z"},
      {"Nov 28 2023 13:45:12 host kernel: ", "2023-11-28T13:45:12.000Z"},
      {"2024-08-18T01:19:31.351160+00:00 host kernel: ", "2024-08-18T01:19:31.351160Z"},
      {"2024-08-18T01:19:31+0200 host kernel[123]: ", "2024-08-17T23:19:31.000Z"},
      {"10.0.0.1: kern: warning: [2026-04-22T21:25:20.458998481Z]: ",
       "2026-04-22T21:25:20.458998481Z"},
      {"<34>1 2003-10-11T22:14:15.003Z host app 12 ID47 [a@1 x=\"1\"] ",
       "2003-10-11T22:14:15.003Z"},
      {"<4>Oct 11 22:14:15 host kernel: ", "2024-10-11T22:14:15.000Z"},
      {"2025-01-21T04:41:44.283302Z stdout F ", "2025-01-21T04:41:44.283302Z"},
      {"2025-01-21T04:41:44.283302Z stderr F [ 1108.8] ", "2025-01-21T04:41:44.283302Z"},
      {"[1,12]<stdout>:", "2025-06-01T00:00:00.000Z"},
      {"1748736000.500000 host kernel: ", "2025-06-01T00:00:00.500Z"},
      {"\x1b[33m[ 1108.858286] \x1b[0m", "2025-05-01T00:18:28.858286Z"},
      {"", "2025-06-01T00:00:00.000Z"},
  };
  for (const auto& [prefix, time] : kForms) {
    const Decoded out = decode(prefix + std::string(kXidText) + "\n", options_2025());
    ASSERT_EQ(out.events.size(), 1u) << prefix;
    EXPECT_EQ(out.events[0].substr(0, out.events[0].find(' ')), time) << prefix;
    if (prefix.find('\x1b') == std::string::npos) {
      EXPECT_EQ(read_prefix(prefix + std::string(kXidText)).message, kXidText) << prefix;
    }
  }
}

TEST(Log, Transport_tells_the_kernel_from_user_space) {
  // Source: domain_reference.md 6.4, trap 13.
  const std::pair<std::string, bool> kForms[] = {
      {"", false},
      {"[ 1108.858286] ", false},
      {"[ 1108.858286] host kernel: ", false},
      {"[ 1108.858286] host kernel[12]: ", true},
      {"host kernel[12]: ", true},
      {"6,3964,206764307,-;", false},
      {"12,3964,206764307,-;", true},
      {"kern  :warn  : [ 1108.858286] ", false},
      {"user  :warn  : [ 1108.858286] ", true},
      {"daemon:info  : 2025-01-21T04:41:44,283302+00:00 ", true},
      {"Nov 28 13:45:12 host kernel: [67890.123456] ", false},
      {"Nov 28 13:45:12 host kernel[123]: ", true},
      {"Nov 28 13:45:12 host root: ", true},
      {"Nov 28 13:45:12 host root: Nov 28 13:45:12 host kernel: ", true},
      {"2024-08-18T01:19:31.351160+00:00 host kernel: ", false},
      {"2024-08-18T01:19:31.351160+00:00 host unknown: ", true},
      {"2025-01-21T04:41:44,283302+00:00 ", false},
      {"10.0.0.1: kern: warning: [2026-04-22T21:25:20.458998481Z]: ", false},
      {"10.0.0.1: user: warning: [2026-04-22T21:25:20.458998481Z]: ", true},
      {"<4>Oct 11 22:14:15 host kernel: ", false},
      {"<13>Oct 11 22:14:15 host kernel: ", true},
      {"<4>1 2003-10-11T22:14:15.003Z host kernel - - - ", false},
      {"<4>1 2003-10-11T22:14:15.003Z host kernel 7 - - ", true},
      {"<4>1 2003-10-11T22:14:15.003Z host app - - - ", true},
      {"2025-01-21T04:41:44.283302Z stdout F ", false},
  };
  for (const auto& [prefix, user_space] : kForms) {
    EXPECT_EQ(read_prefix(prefix + std::string(kXidText)).user_space, user_space) << prefix;
  }
  // The kernel's own words are no host and tag.
  for (const char* message : {"nvme nvme0: I/O 832 QID 5 timeout, aborting",
                              "python[1234]: segfault at 0 ip 0000000000401136"}) {
    for (const char* stamp : {"", "[ 1108.858286] ", "2025-01-21T04:41:44,283302+00:00 "}) {
      const std::string line = std::string(stamp) + message;
      EXPECT_EQ(read_prefix(line).message, message) << line;
      EXPECT_FALSE(read_prefix(line).user_space) << line;
    }
  }
}

TEST(Log, Kernel_decoders_leave_out_what_user_space_wrote) {
  const std::string own = "Nov 28 13:45:12 h kernel: " + std::string(kXidText) + "\n";
  const std::string faked = "Nov 28 13:45:12 h kernel[9]: " + std::string(kXidText) + "\n";
  const auto journal = [](const std::string& fields) {
    return "{\"MESSAGE\":\"" + std::string(kXidText) + "\"" + fields + "}\n";
  };
  const std::pair<std::string, size_t> kTexts[] = {
      {own, 1},
      {faked, 0},
      {journal(""), 1},
      {journal(R"(,"_TRANSPORT":"kernel","SYSLOG_FACILITY":"0")"), 1},
      {journal(R"(,"_TRANSPORT":"syslog")"), 0},
      {journal(R"(,"_TRANSPORT":"kernel","SYSLOG_FACILITY":"3")"), 0},
      {journal(R"(,"_PID":"12")"), 0},
      {"NVRM: The NVIDIA GPU 0000:b3:00.0\nx\nNVRM: fallen off the bus\n", 1},
      {"NVRM: The NVIDIA GPU 0000:b3:00.0\nx\n12,1,5,-;NVRM: fallen off the bus\n", 0},
  };
  for (const auto& [text, events] : kTexts) {
    EXPECT_EQ(decode(text, {}, 1000, /*kernel_only=*/true).events.size(), events) << text;
    EXPECT_EQ(decode(text).events.size(), 1u) << text;
  }
  const Decoded out = decode(own + faked + faked, {}, 1000, /*kernel_only=*/true);
  EXPECT_EQ(out.counters.unmatched_lines, 2u);
  EXPECT_EQ(std::count(out.notices.begin(), out.notices.end(),
                       "line 2 looks like the kernel's but user space wrote it: such lines are "
                       "left out"),
            1);
}

TEST(Log, Json_envelopes) {
  for (
      const std::string& line :
      {std::string(
           R"({"log":"NVRM: Xid (PCI:0000:3b:00): 79, x\n","time":"2025-01-02T03:04:05Z"})"),
       std::string(
           R"({"MESSAGE":"NVRM: Xid (PCI:0000:3b:00): 79, x","__REALTIME_TIMESTAMP":"1735787045000000"})")}) {
    const Decoded out = decode(line + "\n");
    ASSERT_EQ(out.events.size(), 1u) << line;
    EXPECT_EQ(out.events[0].substr(0, 24), "2025-01-02T03:04:05.000Z");
  }
}

TEST(Log, Fields_of_the_event) {
  LogOptions options;
  options.gpu_map = {{"00000000:3B:00.0", 5}};
  EXPECT_EQ(
      decode(std::string(kXidText), options).events,
      (std::vector<std::string>{"1970-01-01T00:00:00.000Z gpu.xid src=log seq=1 rep=0 node=n1 "
                                "gpu=5 code=79 pid=2171 text='gone'"}));
  EXPECT_EQ(
      decode("NVRM: Xid (PCI:0000:48:00 GPU-I:05): 62").events,
      (std::vector<std::string>{"1970-01-01T00:00:00.000Z gpu.xid src=log seq=1 rep=0 node=n1 "
                                "gpu=1099511646208 code=62"}));
}

TEST(Log, New_year_without_a_year_is_five_seconds_apart) {
  const std::string text = "Dec 31 23:59:58 h kernel: " + std::string(kXidText) +
                           "\nJan  1 00:00:03 h kernel: " + std::string(kXidText) +
                           "\nDec 31 23:59:59 h kernel: " + std::string(kXidText) + "\n";
  LogOptions options;
  options.base_ns = parse_rfc3339("2026-01-01T08:00:00Z")->ns;
  const Decoded out = decode(text, options);
  ASSERT_EQ(out.times.size(), 3u);
  EXPECT_EQ(out.times[0], parse_rfc3339("2025-12-31T23:59:58Z")->ns);
  EXPECT_EQ(out.times[1] - out.times[0], 5 * kNsPerSecond);
  EXPECT_EQ(out.times[2] - out.times[0], 1 * kNsPerSecond);
  ASSERT_EQ(out.notices.size(), 2u);
  EXPECT_EQ(out.notices[1], "year 2025 assumed for stamps without one");
}

TEST(Log, Repeats_are_expanded) {
  const Decoded out =
      decode("Nov 28 13:45:12 h kernel: message repeated 9 times: [ " + std::string(kXidText) +
             "]\nNov 28 13:45:13 h kernel: " + "last message repeated 3 times\n");
  ASSERT_EQ(out.events.size(), 2u);
  EXPECT_NE(out.events[0].find("rep=8"), std::string::npos);
  EXPECT_NE(out.events[0].find("text='gone'"), std::string::npos);
  EXPECT_NE(out.events[1].find("rep=2"), std::string::npos);
}

TEST(Log, Folded_and_wrapped_lines) {
  const Decoded folded = decode(
      "[ 1.000000] NVRM: The NVIDIA GPU 0000:b3:00.0\n"
      "[ 1.000001] NVRM: (PCI ID: 10de:26b5) installed in this system has\n"
      "[ 1.000002] NVRM: fallen off the bus and is not responding to commands.\n");
  ASSERT_EQ(folded.events.size(), 1u);
  EXPECT_EQ(
      folded.events[0],
      "1970-01-01T00:00:01.000Z gpu.xid src=log seq=1 rep=0 node=n1 gpu=1099511673600 code=79");
  EXPECT_EQ(folded.counters.unmatched_lines, 0u);
  const std::string wrapped =
      "nodeB [stderr] [rank12]:[E909 09:55:29.313379098 ProcessGroupNCCL.cpp:1664] [PG 0 Rank 12] "
      "Exception (either an error or timeout) detected\nby watchdog at work: 2070, last\n";
  LogOptions options;
  options.year = 2024;
  const Decoded out = decode(wrapped, options);
  ASSERT_EQ(out.events.size(), 1u);
  EXPECT_EQ(out.events[0].substr(0, 30), "2024-09-09T09:55:29.313379098Z");
  EXPECT_NE(out.events[0].find("rank=12"), std::string::npos);
}

/// Codes of the events of `text` for the patterns in this order, all of them gpu.xid by place.
std::vector<int64_t> codes_of(const std::vector<std::pair<std::string, uint32_t>>& patterns,
                              std::string_view text, uint64_t& unmatched) {
  auto pack = make_pack();
  abi::DecoderPlan decoder;
  decoder.input = "text";
  for (const auto& [pattern, fold_lines] : patterns) {
    abi::DecoderLine line;
    line.pattern = pattern;
    line.fold_lines = fold_lines;
    line.kind = kXid;
    abi::DecoderAssign code;
    code.slot = 2;
    code.from = abi::DecoderAssign::From::kConstantInt;
    code.constant_int = static_cast<int64_t>(decoder.lines.size());
    line.assigns = {code};
    decoder.lines.push_back(line);
  }
  pack->decoders = {decoder};
  LogDecoder log(pack, pack->symbols->intern("n1"), pack->symbols->intern("log"), {});
  RecordBatch batch;
  log.decode(text, 1, batch);
  unmatched = log.counters().unmatched_lines;
  std::vector<int64_t> codes;
  for (const abi::Record* record : batch.records) codes.push_back(record->i64(2));
  return codes;
}

TEST(Log, The_first_pattern_in_declaration_order_wins_folded_or_not) {
  using Codes = std::vector<int64_t>;
  uint64_t unmatched = 9;
  EXPECT_EQ(codes_of({{"alpha\nbravo", 2}, {"bravo", 1}}, "alpha\nbravo\n", unmatched), Codes{0});
  EXPECT_EQ(unmatched, 0u);
  EXPECT_EQ(codes_of({{"bravo", 1}, {"alpha\nbravo", 2}}, "alpha\nbravo\n", unmatched), Codes{0});
  EXPECT_EQ(unmatched, 1u);
  // Its own first line is missing: the pattern for the last line alone.
  EXPECT_EQ(codes_of({{"alpha\nbravo", 2}, {"bravo", 1}}, "other\nbravo\n", unmatched), Codes{1});
  EXPECT_EQ(unmatched, 1u);
  // A pattern before the folded one keeps its line, and a line is part of one event.
  EXPECT_EQ(codes_of({{"bravo!", 1}, {"alpha\nbravo", 2}, {"bravo", 1}},
                     "alpha\nbravo!\nbravo\n", unmatched),
            (Codes{0, 2}));
  EXPECT_EQ(codes_of({{"alpha", 1}, {"alpha\nbravo", 2}, {"bravo", 1}}, "alpha\nbravo\n", unmatched),
            (Codes{0, 2}));
  // Of two folded ones the first again, whatever stands between.
  EXPECT_EQ(codes_of({{"bravo\ncharlie", 2}, {"charlie", 1}, {"alpha\nbravo\ncharlie", 3}},
                     "alpha\nbravo\ncharlie\n", unmatched),
            Codes{0});
  EXPECT_EQ(unmatched, 1u);
}

TEST(Log, Kmsg_continuations_junk_and_ignored_lines) {
  const Decoded out = decode("6,1,5,-;" + std::string(kXidText) + "\n SUBSYSTEM=pci\n" +
                             std::string("a\0b\n", 4) + "NVRM: Xid 3 to be ignored\nnoise\n");
  EXPECT_EQ(out.events.size(), 1u);
  EXPECT_EQ(out.counters.rejected[static_cast<size_t>(Reject::kBinary)], 1u);
  EXPECT_EQ(out.counters.unmatched_lines, 1u);
  EXPECT_EQ(out.counters.lines, 5u);
}

TEST(Log, Chunk_borders_do_not_matter_and_random_bytes_never_crash) {
  static const std::vector<std::string> kPieces = {
      std::string(kXidText),
      "[ 12.5] ",
      "[  +0.1] ",
      "\n",
      "\n",
      "Jan  1 00:00:03 h kernel: ",
      "message repeated 4 times: [ ",
      "]",
      "NVRM: The NVIDIA GPU 0000:b3:00.0\n",
      "x\n",
      "NVRM: fallen off the bus\n",
      "{\"log\":\"",
      "\"}",
      "\x1b[",
      "<34>1 ",
      "2025-01-21T04:41:44",
      "6,1,5,-;",
      "kern  :warn  : ",
      "[rank1] Exception y detected\nby watchdog at work: 3"};
  EXPECT_TRUE(rc::check([] {
    std::string text;
    const int count = *rc::gen::inRange(0, 25);
    for (int i = 0; i < count; ++i) {
      text += kPieces[*rc::gen::inRange<size_t>(0, kPieces.size())];
      if (*rc::gen::inRange(0, 6) == 0) text += *rc::gen::arbitrary<std::string>();
    }
    const Decoded whole = decode(text);
    const Decoded cut = decode(text, {}, *rc::gen::inRange<size_t>(1, 4));
    RC_ASSERT(whole.events == cut.events);
    RC_ASSERT(whole.counters.unmatched_lines == cut.counters.unmatched_lines);
  }));
}

}  // namespace
}  // namespace reflex::stream

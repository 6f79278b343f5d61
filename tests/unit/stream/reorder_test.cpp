// One total order for every arrival; lateness, clock jumps, dedup.
#include "runtime/stream/reorder.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>

#include "runtime/base/time.h"
#include "tests/unit/stream/pack_fixture.h"

namespace reflex::stream {
namespace {

using testing::kXid;
using testing::make_pack;
using testing::show;

struct Event {
  int64_t ms = 0;
  std::string node;
  std::string source = "s";
  int64_t code = 0;
  std::string id = {};
};

class Feed {
 public:
  explicit Feed(ReorderOptions options = {}, int64_t dedup_ns = 0) : pack_(make_pack()) {
    pack_->kinds[kXid].dedup_ns = dedup_ns;
    pack_->kinds[kXid].dedup_slots = {0, 2};
    reorder_ = std::make_unique<Reorder>(pack_, options);
  }
  void push(const std::vector<Event>& events) {
    RecordBatch batch;
    batch.input = input;
    for (const Event& event : events) {
      abi::Record* record = batch.slab->new_record(6);
      record->kind = kXid;
      record->ts_ns = event.ms * kNsPerMs;
      record->source = pack_->symbols->intern(event.source);
      record->set_i64(0, pack_->symbols->intern(event.node));
      record->set_i64(2, event.code);
      if (!event.id.empty()) record->id = batch.slab->new_text(event.id);
      batch.records.push_back(record);
    }
    reorder_->push(std::move(batch));
  }
  void release() {
    Released out;
    reorder_->release(out);
    take(out);
  }
  void finish() {
    Released out;
    reorder_->finish(out);
    take(out);
  }
  void take(const Released& out) {
    for (const abi::Record* record : out.records) {
      EXPECT_EQ(record->order, released.size() + 1);
      EXPECT_LE(record->ts_ns, out.watermark_ns);
      EXPECT_GT(record->ts_ns, watermark_ns);
      released.push_back(show(*record, *pack_));
    }
    for (const abi::Record* record : out.late) late.push_back(show(*record, *pack_));
    watermark_ns = out.watermark_ns;
  }
  uint64_t rejected(Reject reason) const {
    return reorder_->counters().rejected[static_cast<size_t>(reason)];
  }
  Reorder& reorder() { return *reorder_; }
  /// From now on all events come on one file.
  void read_a_file() {
    input = symbol("file");
    reorder_->add_source(input, false);
  }
  SymbolId symbol(std::string_view name) { return pack_->symbols->intern(name); }

  std::vector<std::string> released;
  std::vector<std::string> late;
  int64_t watermark_ns = INT64_MIN;
  SymbolId input = kNoSymbol;

 private:
  std::shared_ptr<abi::CompiledPack> pack_;
  std::unique_ptr<Reorder> reorder_;
};

/// Events with arrival delays below the lateness; many ties.
std::vector<Event> random_events() {
  std::vector<Event> events;
  int64_t ms = 1'000'000;
  const int count = *rc::gen::inRange(1, 80);
  for (int i = 0; i < count; ++i) {
    ms += *rc::gen::element<int64_t>(0, 0, 1, 30, 900, 3000, 200'000);
    Event event;
    event.ms = ms;
    event.node = "n" + std::to_string(*rc::gen::inRange(0, 3));
    event.code = *rc::gen::inRange(0, 3);
    events.push_back(event);
  }
  return events;
}

/// A shuffle in which no event arrives more than `slack_ms` of event time late.
std::vector<Event> shuffle_within(const std::vector<Event>& events, int slack_ms) {
  std::vector<std::pair<int64_t, size_t>> keys;
  for (size_t i = 0; i < events.size(); ++i) {
    keys.emplace_back(events[i].ms + *rc::gen::inRange(0, slack_ms), i);
  }
  std::sort(keys.begin(), keys.end());
  std::vector<Event> out;
  for (const auto& [key, i] : keys) out.push_back(events[i]);
  return out;
}

std::vector<std::string> run(const std::vector<Event>& events, bool batched, int64_t dedup_ns) {
  Feed feed({}, dedup_ns);
  // Names are met in another order in each run: symbol ids must not matter.
  if (batched) {
    for (const char* name : {"n2", "n1", "n0"}) feed.symbol(name);
  }
  for (size_t i = 0; i < events.size();) {
    const size_t size = batched ? *rc::gen::inRange<size_t>(1, 20) : 1;
    const size_t end = std::min(events.size(), i + size);
    feed.push(
        {events.begin() + static_cast<ptrdiff_t>(i), events.begin() + static_cast<ptrdiff_t>(end)});
    if (*rc::gen::arbitrary<bool>()) feed.release();
    i = end;
  }
  feed.finish();
  EXPECT_TRUE(feed.late.empty());
  return feed.released;
}

TEST(Reorder, Any_shuffle_within_lateness_gives_the_same_sequence) {
  EXPECT_TRUE(rc::check([] {
    const std::vector<Event> events = random_events();
    for (int64_t dedup_ns : {int64_t{0}, 2 * kNsPerSecond}) {
      const auto straight = run(events, false, dedup_ns);
      const auto shuffled = run(shuffle_within(events, 4999), true, dedup_ns);
      RC_ASSERT(straight == shuffled);
      if (dedup_ns == 0) RC_ASSERT(straight.size() == events.size());
    }
  }));
}

TEST(Reorder, Ties_are_ordered_by_names_not_by_ids) {
  Feed feed;
  feed.push({{5, "b"}, {5, "a"}, {5, "c", "r"}, {5, "a", "s", -1}});
  feed.finish();
  ASSERT_EQ(feed.released.size(), 4u);
  EXPECT_NE(feed.released[0].find("node=c"), std::string::npos);
  EXPECT_NE(feed.released[1].find("node=a code=-1"), std::string::npos);
  EXPECT_NE(feed.released[2].find("node=a code=0"), std::string::npos);
  EXPECT_NE(feed.released[3].find("node=b"), std::string::npos);
}

TEST(Reorder, Exactly_lateness_behind_is_in_time_and_one_more_is_late) {
  Feed feed;
  feed.push({{10'000, "a"}, {5'000, "b"}, {4'999, "c"}});
  feed.release();
  EXPECT_TRUE(feed.released.empty());
  ASSERT_EQ(feed.late.size(), 1u);
  EXPECT_NE(feed.late[0].find("node=c"), std::string::npos);
  feed.finish();
  EXPECT_EQ(feed.released.size(), 2u);
  EXPECT_EQ(feed.rejected(Reject::kLate), 1u);
}

TEST(Reorder, A_declared_source_holds_the_watermark_until_it_speaks_or_ends) {
  Feed feed;
  feed.reorder().add_source(feed.symbol("quiet"), false);
  feed.push({{1'000, "a"}, {90'000, "a"}});
  feed.release();
  EXPECT_TRUE(feed.released.empty());
  feed.push({{2'000, "q", "quiet"}});
  feed.reorder().finish_source(feed.symbol("quiet"));
  feed.release();
  EXPECT_EQ(feed.released.size(), 2u);
}

TEST(Reorder, A_silent_source_follows_the_others_and_may_speak_again) {
  Feed feed;
  feed.push({{1'000, "a", "slow"}, {2'000, "b"}, {30'000, "b"}});
  feed.release();
  EXPECT_TRUE(feed.released.empty());
  // The pace is 178 s since it spoke; it follows 70 s behind: at 109 s, less 5 s of lateness.
  feed.push({{103'000, "b"}, {104'000, "b"}, {180'000, "b"}});
  feed.release();
  EXPECT_EQ(feed.released.size(), 4u);
  feed.push({{105'000, "a", "slow"}});
  feed.finish();
  EXPECT_EQ(feed.released.size(), 7u);
  EXPECT_TRUE(feed.late.empty());
}

constexpr int64_t kHourMs = 3'600'000;

TEST(Reorder, No_source_is_late_because_another_ones_clock_is_ahead) {
  Feed feed;
  feed.read_a_file();
  for (int64_t second = 0; second < 7'200; second += 10) {
    const int64_t ms = second * 1'000;
    feed.push({{ms + kHourMs, "g", "ahead"}});
    // The scheduler is silent for twenty minutes at a time.
    if (second % 1'200 == 0) feed.push({{ms + 1, "j", "scheduler"}});
    feed.push({{ms + 2, "n"}});
    feed.release();
  }
  EXPECT_GT(feed.released.size(), 700u);  // it does not wait for the end either
  feed.finish();
  EXPECT_TRUE(feed.late.empty());
  EXPECT_EQ(feed.released.size(), 720u + 6 + 720);
}

TEST(Reorder, Files_that_are_read_at_different_paces_do_not_wait_for_each_other_in_vain) {
  Feed feed;
  feed.reorder().add_source(feed.symbol("first"), true);
  feed.reorder().add_source(feed.symbol("second"), true);
  const auto read = [&](const std::string& file, int64_t from_s, int64_t to_s) {
    feed.input = feed.symbol(file);
    for (int64_t second = from_s; second < to_s; ++second) {
      feed.push({{second * 1'000, "n", file}});
      feed.release();
    }
  };
  read("second", 0, 1);
  read("first", 0, 3'000);
  read("second", 1, 3'000);
  feed.finish();
  EXPECT_TRUE(feed.late.empty());
  EXPECT_EQ(feed.released.size(), 6'000u);
}

TEST(Reorder, A_late_event_that_progress_confirms_holds_nothing) {
  Feed feed;
  const int64_t day = 24 * kHourMs;
  feed.input = feed.symbol("file");
  feed.push({{1'000, "a", "x"}, {40 * day, "b", "x"}});  // waits for a second event
  feed.input = feed.symbol("other");
  feed.push({{50 * day, "c", "y"}, {50 * day + 1, "c", "y"}});
  feed.reorder().progress(feed.symbol("x"), 41 * day * kNsPerMs);
  feed.push({{60 * day, "d", "y"}, {60 * day + 100'000, "d", "y"}});
  feed.release();
  EXPECT_GT(feed.watermark_ns, 59 * day * kNsPerMs);
  feed.finish();
  EXPECT_EQ(feed.released.size() + feed.late.size(), 6u);
}

TEST(Reorder, One_source_in_two_files_is_read_at_two_paces) {
  Feed feed;
  feed.reorder().add_source(feed.symbol("day1"), false);
  feed.reorder().add_source(feed.symbol("day2"), false);
  const auto read = [&](const char* file, int64_t from_s, int64_t to_s) {
    feed.input = feed.symbol(file);
    for (int64_t second = from_s; second < to_s; ++second) {
      feed.push({{second * 1'000, "n", "x"}, {second * 1'000, "n", "y"}});
      feed.release();
    }
  };
  read("day2", 86'400, 86'700);
  read("day1", 0, 3'000);
  read("day2", 86'700, 87'000);
  read("day1", 3'000, 86'400);
  feed.reorder().finish_source(feed.symbol("day1"));
  read("day2", 87'000, 88'000);
  feed.finish();
  EXPECT_TRUE(feed.late.empty());
  EXPECT_EQ(feed.released.size(), 2u * 88'000);
  const auto sources = feed.reorder().sources();  // files that bring nothing of their own, x and y
  EXPECT_EQ(sources.size(), 4u);
}

TEST(Reorder, A_source_behind_by_an_hour_is_waited_for_one_behind_by_a_day_is_not) {
  Feed feed;
  feed.read_a_file();
  for (int64_t minute = 2'000; minute < 2'200; ++minute) {
    const int64_t ms = minute * 60'000;
    feed.push({{ms, "n"}, {ms - kHourMs, "h", "hour"}, {ms - 24 * kHourMs, "d", "day"}});
    feed.release();
  }
  for (const std::string& late : feed.late) EXPECT_NE(late.find("src=day"), std::string::npos);
  EXPECT_GT(feed.late.size(), 190u);
  EXPECT_GT(feed.released.size(), 200u);
  feed.finish();
  EXPECT_EQ(feed.released.size() + feed.late.size(), 600u);
}

TEST(Reorder, Clocks_of_sources_that_differ_make_nothing_late_within_lateness) {
  EXPECT_TRUE(rc::check([] {
    ReorderOptions options;
    options.lateness_ns = 5 * kNsPerSecond;
    const int64_t offsets_ms[] = {0, kHourMs, -1'200'000, 90'000};
    std::vector<Event> events = random_events();
    for (Event& event : events) {
      const int which = *rc::gen::inRange(0, 4);
      event.source = std::string(1, static_cast<char>('s' + which));
      event.code = offsets_ms[which];
    }
    for (int64_t second = 70; second >= 0; second -= 10) {  // all are heard
      for (int which = 0; which < 4; ++which) {
        events.insert(events.begin(), {1'000'000 - 70'000 + second * 1'000, "n",
                                       std::string(1, static_cast<char>('s' + which)),
                                       offsets_ms[which], {}});
      }
    }
    std::vector<Event> arrived = shuffle_within(events, 5'000);
    Feed feed(options);
    feed.read_a_file();
    for (Event& event : arrived) {
      event.ms += event.code + 2 * kHourMs;
      feed.push({event});
      feed.release();
    }
    feed.finish();
    RC_ASSERT(feed.late.empty());
    RC_ASSERT(feed.released.size() == events.size());
  }));
}

TEST(Reorder, A_live_source_ahead_does_not_make_the_others_idle) {
  ReorderOptions options;
  options.future_skew_ns = 120 * kNsPerSecond;
  Feed feed(options);
  const int64_t start_s = 1'000'000;
  for (int64_t second = start_s; second < start_s + 300; ++second) {
    feed.reorder().tick(second * kNsPerSecond);
    feed.push({{second * 1'000 + 110'000, "g", "ahead"}, {second * 1'000, "n"}});
    feed.release();
  }
  EXPECT_TRUE(feed.late.empty());
  EXPECT_GT(feed.released.size(), 450u);
}

TEST(Reorder, A_clock_jump_needs_a_second_event) {
  const int64_t far = 40LL * 24 * 3600 * 1000;
  Feed alone;
  alone.push({{1'000, "a"}, {far, "x"}, {2'000, "a"}});
  alone.finish();
  EXPECT_EQ(alone.released.size(), 2u);
  EXPECT_EQ(alone.rejected(Reject::kClockJump), 1u);
  EXPECT_TRUE(alone.late.empty());
  Feed confirmed;
  confirmed.push({{1'000, "a"}, {far, "x"}, {far + 10, "y"}});
  confirmed.finish();
  EXPECT_EQ(confirmed.released.size(), 3u);
}

TEST(Reorder, An_impossible_time_is_shown_with_its_line) {
  auto pack = make_pack();
  std::vector<std::string> seen;
  Reorder reorder(pack, {}, [&](const RejectedLine& line) {
    seen.push_back(std::string(pack->symbols->name(line.source)) + ":" + std::to_string(line.line) +
                   " " + std::string(to_text(line.reason)) + " " + line.detail);
  });
  RecordBatch batch;
  batch.input = pack->symbols->intern("file");
  const int64_t times[] = {1, -1, 40LL * 24 * 3600};
  for (uint64_t i = 0; i < 3; ++i) {
    abi::Record* record = batch.slab->new_record(6);
    record->kind = kXid;
    record->ts_ns = times[i] * kNsPerSecond;
    record->source = pack->symbols->intern("named");
    record->seq = i + 10;
    batch.records.push_back(record);
  }
  reorder.push(std::move(batch));
  Released out;
  reorder.finish(out);
  EXPECT_EQ(out.records.size(), 1u);
  EXPECT_EQ(seen,
            (std::vector<std::string>{"file:11 negative_ts its time is 1969-12-31T23:59:59.000Z",
                                      "file:12 clock_jump its time is 1970-02-10T00:00:00.000Z"}));
}

TEST(Reorder, Negative_and_future_times_are_rejected) {
  ReorderOptions options;
  options.now_limit_ns = 10 * kNsPerSecond;
  Feed feed(options);
  feed.push({{-1, "a"}, {10'001, "b"}, {10'000, "c"}});
  feed.finish();
  EXPECT_EQ(feed.released.size(), 1u);
  EXPECT_EQ(feed.rejected(Reject::kNegativeTs), 1u);
  EXPECT_EQ(feed.rejected(Reject::kFutureTs), 1u);
}

TEST(Reorder, Same_source_and_id_is_one_event_within_ten_minutes) {
  Feed feed;
  feed.push({{0, "a", "s", 1, "x"}, {100, "a", "s", 1, "x"}, {100, "a", "t", 1, "x"}});
  feed.push({{1'300'000, "a", "s", 1, "x"}, {1'300'000, "a", "t", 1, "y"}});
  feed.finish();
  EXPECT_EQ(feed.released.size(), 4u);
  EXPECT_EQ(feed.rejected(Reject::kDuplicate), 1u);
}

TEST(Reorder, A_batch_lives_one_call_longer_than_its_last_record) {
  const auto pack = make_pack();
  Reorder reorder(pack, {});
  const auto push = [&](std::vector<int64_t> seconds) {
    RecordBatch batch;
    for (int64_t second : seconds) {
      abi::Record* record = batch.slab->new_record(6);
      record->kind = kXid;
      record->ts_ns = second * kNsPerSecond;
      record->source = pack->symbols->intern("s");
      record->set_i64(0, pack->symbols->intern("n"));
      batch.records.push_back(record);
    }
    const std::weak_ptr<Slab> memory = batch.slab;
    reorder.push(std::move(batch));
    return memory;
  };
  Released out;
  const auto first = push({100, 101, 107});
  reorder.release(out);  // up to 102
  EXPECT_EQ(out.records.size(), 2u);
  const auto late = push({50});
  reorder.release(out);
  ASSERT_EQ(out.late.size(), 1u);
  EXPECT_FALSE(late.expired());
  const auto jump = push({107 + 40 * 24 * 3600});  // waits for a second event
  const auto second = push({113});                 // up to 108
  reorder.release(out);
  EXPECT_TRUE(late.expired());
  EXPECT_FALSE(first.expired());
  ASSERT_EQ(out.records.size(), 1u);
  EXPECT_EQ(out.records[0]->ts_ns, 107 * kNsPerSecond);
  reorder.release(out);
  EXPECT_TRUE(first.expired());
  EXPECT_FALSE(jump.expired());
  const auto confirmed = push({108 + 40 * 24 * 3600});
  reorder.release(out);
  reorder.finish(out);
  EXPECT_EQ(out.records.size(), 2u);
  EXPECT_FALSE(jump.expired());
  EXPECT_TRUE(second.expired());
  reorder.release(out);
  EXPECT_TRUE(jump.expired());
  EXPECT_TRUE(confirmed.expired());
}

TEST(Reorder, Events_of_other_sources_advance_the_input_that_brings_them) {
  const auto pack = make_pack();
  Reorder reorder(pack, {});
  const SymbolId input = pack->symbols->intern("file");
  reorder.add_source(input, false);
  Released out;
  size_t released = 0;
  for (int64_t second = 0; second < 100; ++second) {
    RecordBatch batch;
    batch.input = input;
    for (const char* source : {"a", "b", "file"}) {
      for (int64_t ms : {200, 100, 0}) {
        abi::Record* record = batch.slab->new_record(6);
        record->kind = kXid;
        record->ts_ns = second * kNsPerSecond + ms * kNsPerMs;
        record->source = pack->symbols->intern(source);
        batch.records.push_back(record);
      }
    }
    reorder.push(std::move(batch));
    reorder.release(out);
    released += out.records.size();
    // After a minute, complete up to (not including) 5 s before the last event.
    EXPECT_EQ(released, second < 60 ? 0u : static_cast<size_t>(second - 5) * 9 + 6);
  }
  reorder.finish(out);
  EXPECT_EQ(released + out.records.size(), 900u);
  EXPECT_TRUE(out.late.empty());
}

TEST(Reorder, Dedup_keeps_the_first_and_counts_the_rest) {
  Feed feed({}, 2 * kNsPerSecond);
  feed.push({{1'000, "a", "s", 48},
             {1'500, "a", "s", 48},
             {3'000, "a", "s", 48},
             {3'001, "a", "s", 48},
             {1'600, "a", "s", 79}});
  feed.finish();
  ASSERT_EQ(feed.released.size(), 3u);
  EXPECT_NE(feed.released[0].find("rep=2"), std::string::npos) << feed.released[0];
  EXPECT_NE(feed.released[1].find("code=79"), std::string::npos);
  EXPECT_NE(feed.released[2].find("rep=0"), std::string::npos);
  EXPECT_EQ(feed.reorder().counters().deduplicated, 2u);
}

}  // namespace
}  // namespace reflex::stream

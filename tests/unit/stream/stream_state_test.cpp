// Saved state of the reorder buffer and of log decoders: what follows a load is what would have
// followed anyway; and what ticks do to sources that are silent.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "runtime/base/time.h"
#include "runtime/stream/log_decoder.h"
#include "runtime/stream/reorder.h"
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
  std::string id = {};
  std::string input = {};
};

/// A reorder buffer in a symbol table of its own, in which ids come in another order each time.
class Buffer {
 public:
  explicit Buffer(int64_t dedup_ns, bool other_ids, ReorderOptions options = {})
      : pack_(make_pack()) {
    if (other_ids) {
      for (const char* name : {"q", "n2", "n1", "n0", "s"}) pack_->symbols->intern(name);
    }
    pack_->kinds[kXid].dedup_ns = dedup_ns;
    pack_->kinds[kXid].dedup_slots = {0, 2};
    reorder_ = std::make_unique<Reorder>(pack_, options);
  }
  void push(const Event& event, const std::string& input = {}) {
    RecordBatch batch;
    if (!input.empty()) batch.input = pack_->symbols->intern(input);
    abi::Record* record = batch.slab->new_record(6);
    record->kind = kXid;
    record->ts_ns = event.ms * kNsPerMs;
    record->source = pack_->symbols->intern(event.source);
    record->set_i64(0, pack_->symbols->intern(event.node));
    record->set_i64(2, event.ms % 3);
    record->slots()[5] = reinterpret_cast<uint64_t>(batch.slab->new_text("text of " + event.node));
    const std::vector<int64_t> items{1, event.ms};
    record->slots()[4] = reinterpret_cast<uint64_t>(batch.slab->new_array(items));
    record->present |= 1u << 5 | 1u << 4;
    if (!event.id.empty()) record->id = batch.slab->new_text(event.id);
    batch.records.push_back(record);
    reorder_->push(std::move(batch));
  }
  void release(std::string& out) {
    Released released;
    reorder_->release(released);
    take(released, out);
  }
  void finish(std::string& out) {
    Released released;
    reorder_->finish(released);
    take(released, out);
  }
  [[nodiscard]] std::string save() const {
    StateWriter writer(*pack_->symbols);
    reorder_->save(writer);
    return writer.take();
  }
  [[nodiscard]] bool load(std::string_view state) {
    StateReader reader(state, *pack_->symbols);
    return reorder_->load(reader, notes).ok() && notes.empty();
  }
  Reorder& reorder() { return *reorder_; }
  SymbolId symbol(std::string_view name) { return pack_->symbols->intern(name); }
  abi::CompiledPack& pack() { return *pack_; }
  std::vector<std::string> notes;

 private:
  void take(const Released& released, std::string& out) const {
    for (size_t i = 0; i < released.late.size(); ++i) {
      out += "late after " + std::to_string(released.late_after_ns[i]) + ": " +
             show(*released.late[i], *pack_) + "\n";
    }
    for (const abi::Record* record : released.records) {
      out += std::to_string(record->order) + " " + std::to_string(record->repeats) + " " +
             show(*record, *pack_) + "\n";
    }
    out += "to " + std::to_string(released.watermark_ns) + "\n";
  }
  std::shared_ptr<abi::CompiledPack> pack_;
  std::unique_ptr<Reorder> reorder_;
};

/// Ties, late ones, repeats, ids that come twice, sources that fall behind, clocks that jump.
std::vector<Event> random_events() {
  std::vector<Event> events;
  int64_t ms = 1'000'000;
  const int count = *rc::gen::inRange(1, 60);
  for (int i = 0; i < count; ++i) {
    ms += *rc::gen::element<int64_t>(0, 0, 1, 30, 900, 3000, 70'000);
    Event event;
    event.ms = ms - *rc::gen::element<int64_t>(0, 0, 0, 2000, 20'000);
    if (*rc::gen::inRange(0, 20) == 0) event.ms += 40LL * 24 * 3600 * 1000;
    event.node = "n" + std::to_string(*rc::gen::inRange(0, 3));
    event.source = *rc::gen::element<std::string>("s", "s", "q");
    if (*rc::gen::inRange(0, 3) == 0) event.id = std::to_string(*rc::gen::inRange(0, 5));
    event.input = *rc::gen::element<std::string>("", "", "a", "b");
    events.push_back(event);
  }
  return events;
}

TEST(StreamState, A_reorder_buffer_goes_on_from_its_state_as_if_nothing_had_happened) {
  EXPECT_TRUE(rc::check([] {
    const std::vector<Event> events = random_events();
    const int64_t dedup_ns = *rc::gen::element<int64_t>(0, 2 * kNsPerSecond, 10 * kNsPerSecond);
    Buffer straight(dedup_ns, false);
    auto moved = std::make_unique<Buffer>(dedup_ns, true);
    std::string expected;
    std::string got;
    for (size_t i = 0; i < events.size(); ++i) {
      straight.push(events[i], events[i].input);
      moved->push(events[i], events[i].input);
      if (*rc::gen::inRange(0, 3) == 0) {
        straight.reorder().tick(events[i].ms * kNsPerMs);
        moved->reorder().tick(events[i].ms * kNsPerMs);
      }
      if (*rc::gen::inRange(0, 3) == 0) {
        straight.release(expected);
        moved->release(got);
      }
      if (*rc::gen::inRange(0, 4) != 0) continue;
      const std::string state = moved->save();
      RC_ASSERT(state == straight.save());
      moved = std::make_unique<Buffer>(dedup_ns, i % 2 == 0);
      RC_ASSERT(moved->load(state));
      RC_ASSERT(moved->save() == state);
    }
    straight.finish(expected);
    moved->finish(got);
    RC_ASSERT(got == expected);
  }));
}

TEST(StreamState, A_changed_kind_keeps_the_fields_that_it_has_and_other_dedups_begin_anew) {
  Buffer before(2 * kNsPerSecond, false);
  before.push({10'000, "n1"});
  before.push({10'001, "n2"});
  const std::string state = before.save();
  Buffer after(0, true);
  after.pack().kinds[kXid].fields[5].name = "message";
  Buffer gone(0, true);
  gone.pack().kinds[kXid].name = "gpu.other";
  ASSERT_TRUE(after.load(state));
  std::string text;
  after.finish(text);
  EXPECT_NE(text.find("node=n1"), std::string::npos) << text;
  EXPECT_EQ(text.find("text of"), std::string::npos) << text;
  EXPECT_FALSE(gone.load(state));
  ASSERT_EQ(gone.notes.size(), 1u);
  EXPECT_EQ(gone.notes[0], "2 waiting events are of kinds that the new set has not");
}

TEST(StreamState, Damaged_states_of_a_buffer_never_crash) {
  Buffer before(2 * kNsPerSecond, false);
  std::string out;
  for (int64_t i = 0; i < 40; ++i) {
    before.push({10'000 + 500 * i, "n" + std::to_string(i % 3), "s", std::to_string(i % 7)});
    if (i == 20) before.release(out);
  }
  const std::string state = before.save();
  for (size_t size = 0; size < state.size(); ++size) {
    Buffer cut(2 * kNsPerSecond, false);
    EXPECT_FALSE(cut.load(std::string_view(state).substr(0, size))) << size;
  }
  for (size_t i = 0; i < state.size(); ++i) {
    std::string flipped = state;
    flipped[i] = static_cast<char>(flipped[i] ^ 0x41);
    Buffer damaged(2 * kNsPerSecond, false);
    if (damaged.load(flipped)) damaged.finish(out);
  }
}

constexpr int64_t kWall = 2'000'000'000;  // ms; far from the times of the events

void listen(Buffer& buffer, int64_t from_s, int64_t to_s) {
  for (int64_t s = from_s; s <= to_s; ++s) buffer.reorder().tick((kWall + s * 1000) * kNsPerMs);
}

TEST(Ticks, Silent_sources_are_idle_after_a_minute_and_the_watermark_follows_the_wall) {
  Buffer buffer(0, false);
  buffer.reorder().add_source(buffer.symbol("declared"), true);
  std::string out;
  buffer.push({kWall - 10'000, "n1"});
  listen(buffer, 0, 59);
  buffer.release(out);
  EXPECT_EQ(out, "to -9223372036854775808\n") << "a declared source holds it";
  out.clear();
  listen(buffer, 60, 61);  // one tick to hear of the sources, sixty seconds of silence
  buffer.release(out);
  EXPECT_NE(out.find("node=n1"), std::string::npos) << out;
  // wall - lateness - idle_after, in whole milliseconds.
  EXPECT_EQ(buffer.reorder().watermark_ns(), (kWall + 61'000 - 65'000) * kNsPerMs - 1);
  for (const SourceState& source : buffer.reorder().sources()) EXPECT_TRUE(source.idle);
  out.clear();
  buffer.push({kWall - 5'000, "n1"});  // before it: late by the normal rule
  buffer.push({kWall + 62'000, "n2"});
  buffer.release(out);
  EXPECT_NE(out.find("late after"), std::string::npos) << out;
  EXPECT_EQ(out.find("node=n2"), std::string::npos) << "it speaks again: its clock counts";
}

TEST(Ticks, A_source_that_speaks_is_not_idle_whatever_its_times_are) {
  Buffer buffer(0, false);
  std::string out;
  for (int64_t s = 0; s < 200; ++s) {
    buffer.push({1'000'000, "n1"});  // an old event, again and again: no clock moves
    listen(buffer, s, s);
  }
  buffer.release(out);
  EXPECT_FALSE(buffer.reorder().sources()[0].idle);
  EXPECT_LT(buffer.reorder().watermark_ns(), 1'000'000 * kNsPerMs);
}

TEST(Ticks, A_pause_between_ticks_is_not_taken_for_silence) {
  Buffer buffer(0, false);
  buffer.push({kWall, "n1"});
  listen(buffer, 0, 3);
  listen(buffer, 7200, 7210);  // two hours later: the daemon stood still
  EXPECT_FALSE(buffer.reorder().sources()[0].idle);
  listen(buffer, 7211, 7270);
  EXPECT_TRUE(buffer.reorder().sources()[0].idle);
}

TEST(Ticks, Stamps_beyond_the_skew_are_rejected_once_ticks_come) {
  ReorderOptions options;
  options.future_skew_ns = 120 * kNsPerSecond;
  Buffer buffer(0, false, options);
  buffer.push({kWall + 200'000, "n1"});
  listen(buffer, 0, 0);
  buffer.push({kWall + 120'000, "n1"});
  buffer.push({kWall + 120'001, "n1"});
  const auto& rejected = buffer.reorder().counters().rejected;
  EXPECT_EQ(rejected[static_cast<size_t>(Reject::kFutureTs)], 1u);
}

// ------------------------------------------------------------------------------------- log decoders

abi::DecoderAssign assign(uint16_t slot, int group) {
  abi::DecoderAssign out;
  out.slot = slot;
  out.group = group;
  return out;
}

std::shared_ptr<abi::CompiledPack> log_pack() {
  auto pack = make_pack();
  abi::DecoderPlan decoder;
  decoder.input = "text";
  abi::DecoderLine xid;
  xid.pattern = R"(Xid (\d+))";
  xid.kind = kXid;
  xid.assigns = {assign(2, 1)};
  abi::DecoderLine lost;
  lost.pattern = R"(The GPU (\d+)\n.*\nfallen off the bus)";
  lost.kind = kXid;
  lost.fold_lines = 3;
  lost.assigns = {assign(2, 1)};
  decoder.lines = {xid, lost};
  pack->decoders = {decoder};
  return pack;
}

TEST(StreamState, A_log_decoder_goes_on_between_any_two_lines) {
  const std::vector<std::string> lines = {
      "Dec 31 23:59:58 n1 kernel: Xid 31",
      "Dec 31 23:59:59 n1 kernel: The GPU 7",
      "Jan  1 00:00:01 n1 kernel: is",
      "Jan  1 00:00:02 n1 kernel: fallen off the bus",
      "Jan  1 00:00:03 n1 kernel: Xid 48",
      "Jan  1 00:00:04 n1 kernel: message repeated 3 times: [ Xid 48]",
      "Xid 13 without a stamp",
      "[   12.500000] Xid 14",
  };
  const auto run = [&](size_t break_before) {
    auto pack = log_pack();
    LogOptions options;
    options.year = 2025;
    options.base_ns = 1'767'200'000 * kNsPerSecond;
    const auto make = [&](const LogOptions& with) {
      return std::make_unique<LogDecoder>(pack, pack->symbols->intern("n1"),
                                          pack->symbols->intern("log"), with);
    };
    auto decoder = make(options);
    std::string out;
    for (size_t i = 0; i < lines.size(); ++i) {
      if (i == break_before) {
        StateWriter writer(*pack->symbols);
        decoder->save(writer);
        const std::string state = writer.take();
        pack = log_pack();
        decoder = make({});  // year and times of the file come from the state
        StateReader reader(state, *pack->symbols);
        EXPECT_TRUE(decoder->load(reader).ok());
        StateWriter again(*pack->symbols);
        decoder->save(again);
        EXPECT_EQ(again.take(), state);
      }
      RecordBatch batch;
      const testing::PaddedText text(lines[i] + "\n");
      decoder->decode(text.view(), i + 1, batch);
      for (const abi::Record* record : batch.records) {
        out += std::to_string(record->repeats) + " " + show(*record, *pack) + "\n";
      }
    }
    for (const std::string& notice : decoder->notices()) out += notice + "\n";
    return out;
  };
  const std::string expected = run(lines.size());
  ASSERT_NE(expected.find("code=7"), std::string::npos) << expected;
  for (size_t i = 0; i < lines.size(); ++i) EXPECT_EQ(run(i), expected) << "before line " << i + 1;
}

}  // namespace
}  // namespace reflex::stream

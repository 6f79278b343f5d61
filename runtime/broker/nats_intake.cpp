// Intake from JetStream: a durable pull consumer with explicit acknowledgements.
//
// Messages come in the order of the stream, but those that were under way at a crash come again
// later, behind newer ones; a new start waits for them before it takes what is new. What is
// accepted is a set of ranges: a range grows while the consumer's own numbers show that nothing was
// given to anyone in between; what stands below the server's floor of acknowledgements is
// forgotten. Cursor: "STREAM@CREATED:3-17,20-20"; a stream that was made anew counts from 1 again,
// which CREATED tells.
#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <thread>

#include "runtime/broker/intake.h"
#include "runtime/broker/nats_client.h"
#include "runtime/broker/sequence_set.h"

namespace reflex::broker {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kRequest{200};  // how long one for messages waits at the server
constexpr int kBatchMessages = 512;
constexpr size_t kRangesMax = 64;  // Why: a cursor of some 2 KB

class NatsIntake : public Intake {
 public:
  NatsIntake(IntakeOptions options, NatsClient client)
      : options_(std::move(options)), client_(std::move(client)) {}

  Status open(const std::string& cursor) {
    if (auto status = find_stream(); !status.ok()) return status;
    jsSubOptions sub;
    jsSubOptions_Init(&sub);
    sub.Stream = stream_.c_str();
    sub.Config.AckPolicy = js_AckExplicit;
    sub.Config.AckWait = std::chrono::nanoseconds(options_.ack_wait).count();
    sub.Config.MaxAckPending = 4L * kBatchMessages;
    sub.Config.DeliverPolicy = options_.from_end ? js_DeliverNew : js_DeliverAll;
    sub.Config.FilterSubject = options_.subject.c_str();
    natsSubscription* raw = nullptr;
    jsErrCode code = jsErrCode(0);
    const natsStatus status = js_PullSubscribe(&raw, client_.context(), options_.subject.c_str(),
                                               options_.group.c_str(), nullptr, &sub, &code);
    if (status != NATS_OK) {
      return nats_error(fmt::format("consumer {} of {}", options_.group, options_.subject), status,
                        code);
    }
    subscription_.reset(raw);
    if (cursor.starts_with(identity_)) {
      done_ = SequenceSet::parse(std::string_view(cursor).substr(identity_.size()));
    } else if (!cursor.empty() && options_.note) {
      options_.note("not the stream that was read before: read from the consumer's place");
    }
    // What was under way at a crash comes again when its time is up, and then before what is new:
    // newer events before it would make it late.
    // For so long the server may still give messages to the request of one that was killed.
    std::this_thread::sleep_for(kRequest + kRequest / 4);
    const int64_t under_way = ask_consumer();
    if (under_way > 0) quiet_until_ = Clock::now() + options_.ack_wait;
    if (under_way > 0 && options_.note) {
      options_.note(fmt::format("{} messages were under way when it ended: they come again first",
                                under_way));
    }
    return ok_status();
  }

  Status take(IntakeBatch& out, std::chrono::milliseconds patience) override {
    out = {};
    if (const auto wait = quiet_until_ - Clock::now(); wait > Clock::duration::zero()) {
      std::this_thread::sleep_for(std::min<Clock::duration>(wait, patience));
      return ok_status();
    }
    if (held_.empty()) {
      if (auto status = fetch(patience); !status.ok()) return status;
    }
    next_ = done_;
    for (; taken_ < held_.size() && out.text.size() < options_.batch_bytes; ++taken_) {
      natsMsg* message = held_[taken_].get();
      jsMsgMetaData* raw = nullptr;
      if (const natsStatus s = natsMsg_GetMetaData(&raw, message); s != NATS_OK) {
        return nats_error("a message without its place", s);
      }
      const NatsMetaData meta(raw);
      const bool fresh = !next_.contains(meta->Sequence.Stream);
      note_place(*meta);
      behind_ = meta->NumPending + (held_.size() - taken_ - 1);
      if (!fresh) continue;
      out.text.append(natsMsg_GetData(message),
                      static_cast<size_t>(natsMsg_GetDataLength(message)));
      if (!out.text.empty() && out.text.back() != '\n') out.text += '\n';
      ++out.messages;
    }
    behind_ += out.messages;
    if (out.messages == 0 && taken_ > 0) return accepted();  // all had been accepted before
    out.cursor = identity_ + next_.text();
    return ok_status();
  }

  bool hold() override {
    if (Clock::now() - told_ < options_.ack_wait / 3) return true;
    told_ = Clock::now();
    for (const auto& message : held_) natsMsg_InProgress(message.get(), nullptr);
    ask_consumer();
    return true;
  }

  Status accepted() override {
    done_ = next_;
    for (; taken_ > 0; --taken_) {
      // An acknowledgement that is lost brings the message again; it is known then.
      natsMsg_Ack(held_.front().get(), nullptr);
      held_.pop_front();
    }
    if (held_.empty()) behind_ = pending_;
    if (done_.ranges() > kRangesMax) ask_consumer();
    return ok_status();
  }

 private:
  Status find_stream() {
    stream_ = options_.address.name;
    if (stream_.empty()) {
      jsStreamNamesList* names = nullptr;
      jsOptions filter;
      jsOptions_Init(&filter);
      filter.Stream.Info.SubjectsFilter = options_.subject.c_str();
      jsErrCode code = jsErrCode(0);
      const natsStatus status = js_StreamNames(&names, client_.context(), &filter, &code);
      if (status == NATS_OK && names->Count > 0) stream_ = names->List[0];
      jsStreamNamesList_Destroy(names);
      if (stream_.empty()) {
        return Error{fmt::format(
            "nats: no stream holds {}: make one (nats stream add), or name it in the url",
            options_.subject)};
      }
    }
    jsStreamInfo* raw = nullptr;
    jsErrCode code = jsErrCode(0);
    const natsStatus status =
        js_GetStreamInfo(&raw, client_.context(), stream_.c_str(), nullptr, &code);
    if (status != NATS_OK) return nats_error("stream " + stream_, status, code);
    const NatsStreamInfo info(raw);
    identity_ = fmt::format("{}@{}:", stream_, info->Created);
    return ok_status();
  }

  Status fetch(std::chrono::milliseconds patience) {
    natsMsgList list{nullptr, 0};
    jsErrCode code = jsErrCode(0);
    const natsStatus status =
        natsSubscription_Fetch(&list, subscription_.get(), kBatchMessages, patience.count(), &code);
    for (int i = 0; i < list.Count; ++i) {
      held_.emplace_back(list.Msgs[i]);
      list.Msgs[i] = nullptr;
    }
    natsMsgList_Destroy(&list);
    told_ = Clock::now();
    if (status == NATS_TIMEOUT &&
        natsConnection_Status(client_.connection()) == NATS_CONN_STATUS_CONNECTED) {
      if (held_.empty()) behind_ = pending_ = 0;
      return ok_status();
    }
    if (status != NATS_OK) return nats_error("reading " + options_.subject, status, code);
    return ok_status();
  }

  void note_place(const jsMsgMetaData& meta) {
    const uint64_t at = meta.Sequence.Stream;
    pending_ = meta.NumPending;
    const bool unbroken = meta.Sequence.Consumer == consumer_ + 1 && newest_ != 0;
    consumer_ = meta.Sequence.Consumer;
    if (meta.NumDelivered > 1) return next_.add(at, at);
    next_.add(unbroken && newest_ < at ? newest_ : at, at);
    newest_ = at;
  }

  /// How many were given out and are not acknowledged.
  int64_t ask_consumer() {
    jsConsumerInfo* raw = nullptr;
    if (js_GetConsumerInfo(&raw, client_.context(), stream_.c_str(), options_.group.c_str(),
                           nullptr, nullptr) != NATS_OK) {
      return 0;
    }
    const NatsConsumerInfo info(raw);
    pending_ = info->NumPending;
    behind_ = info->NumPending + static_cast<uint64_t>(info->NumAckPending);
    done_.forget(info->AckFloor.Stream);
    return info->NumAckPending;
  }

  IntakeOptions options_;
  NatsClient client_;
  NatsSubscription subscription_;
  std::string stream_;
  std::string identity_;
  SequenceSet done_;              // accepted
  SequenceSet next_;              // with the batch at hand
  std::deque<NatsMessage> held_;  // not acknowledged
  size_t taken_ = 0;              // of held_: in the batch at hand
  uint64_t consumer_ = 0;         // number of the last message, as the consumer counts
  uint64_t newest_ = 0;           // place of the last one that came for the first time
  uint64_t pending_ = 0;          // behind the last one
  Clock::time_point quiet_until_;
  Clock::time_point told_;  // that the messages are at work
};

}  // namespace

Result<std::unique_ptr<Intake>> open_nats_intake(const IntakeOptions& options,
                                                 const std::string& cursor) {
  auto client =
      NatsClient::connect(options.address.servers, options.credentials, std::chrono::seconds(5));
  if (!client.ok()) return client.error();
  auto intake = std::make_unique<NatsIntake>(options, std::move(client).value());
  if (auto status = intake->open(cursor); !status.ok()) return status.error();
  return std::unique_ptr<Intake>(std::move(intake));
}

}  // namespace reflex::broker

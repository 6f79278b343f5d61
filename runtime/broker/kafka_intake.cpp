// Intake from Kafka: a member of a consumer group, offsets committed after accepted().
//
// Within a partition messages come in order, so what is accepted is one offset a partition. Cursor:
// "TOPIC:0=17,3=4", the next offset of each. A partition that comes to this member begins at the
// later of the group's committed offset and the cursor. When a partition goes, what was taken from
// it and is not accepted is dropped: its next owner reads it.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <deque>
#include <map>

#include "runtime/broker/intake.h"
#include "runtime/broker/kafka_client.h"

namespace reflex::broker {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int kAnswerMs = 5000;
constexpr std::chrono::seconds kMeasure{1};  // Why: asks each partition; for people to look at
using Offsets = std::map<int32_t, int64_t>;

Offsets parse(std::string_view text, const std::string& topic) {
  Offsets out;
  if (!text.starts_with(topic + ":")) return out;
  text.remove_prefix(topic.size() + 1);
  while (!text.empty()) {
    const auto part = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), part.size() + 1));
    int32_t partition = 0;
    int64_t offset = 0;
    const char* end = part.data() + part.size();
    const auto first = std::from_chars(part.data(), end, partition);
    if (first.ec != std::errc() || first.ptr == end || *first.ptr != '=') continue;
    if (std::from_chars(first.ptr + 1, end, offset).ec == std::errc()) out[partition] = offset;
  }
  return out;
}

std::string text_of(const Offsets& offsets, const std::string& topic) {
  std::string out = topic + ":";
  for (const auto& [partition, offset] : offsets) {
    out += fmt::format("{}{}={}", out.back() == ':' ? "" : ",", partition, offset);
  }
  return out;
}

class KafkaIntake : public Intake {
 public:
  explicit KafkaIntake(IntakeOptions options) : options_(std::move(options)) {}
  ~KafkaIntake() override {
    if (!consumer_) return;
    closing_ = true;
    rd_kafka_consumer_close(consumer_.get());
  }

  Status open(const std::string& cursor) {
    done_ = parse(cursor, options_.subject);
    auto more = kafka_settings(options_.properties);
    if (!more.ok()) return more.error();
    KafkaSettings all{{"bootstrap.servers", options_.address.servers},
                      {"group.id", options_.group},
                      {"enable.auto.commit", "false"},
                      {"enable.auto.offset.store", "false"},
                      // Why: a killed daemon's partitions are its successor's after it.
                      {"session.timeout.ms", "10000"},
                      {"auto.offset.reset", options_.from_end ? "latest" : "earliest"},
                      {"fetch.wait.max.ms", "100"},
                      {"client.id", "reflex"}};
    all.insert(all.end(), more.value().begin(), more.value().end());
    auto made = make_kafka(RD_KAFKA_CONSUMER, all, [this](rd_kafka_conf_t* conf) {
      rd_kafka_conf_set_opaque(conf, this);
      rd_kafka_conf_set_rebalance_cb(conf, &KafkaIntake::rebalanced);
      rd_kafka_conf_set_error_cb(conf, &KafkaIntake::told);
    });
    if (!made.ok()) return made.error();
    consumer_ = std::move(made).value();
    rd_kafka_poll_set_consumer(consumer_.get());
    const KafkaPlaces topics(rd_kafka_topic_partition_list_new(1));
    rd_kafka_topic_partition_list_add(topics.get(), options_.subject.c_str(),
                                      RD_KAFKA_PARTITION_UA);
    const auto code = rd_kafka_subscribe(consumer_.get(), topics.get());
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR) return kafka_error(options_.subject, code);
    return ok_status();
  }

  Status take(IntakeBatch& out, std::chrono::milliseconds patience) override {
    out = {};
    batch_.clear();
    pause(false);  // of a batch that was withdrawn
    size_t bytes = 0;
    auto wait = patience;
    while (bytes < options_.batch_bytes) {
      if (early_.empty() && !poll(wait)) break;
      if (failed_) return *failed_;
      wait = std::chrono::milliseconds(0);
      if (early_.empty()) continue;
      bytes += early_.front()->len;
      batch_.push_back(std::move(early_.front()));
      early_.pop_front();
    }
    withdrawn_ = false;  // what went while it was taken is not in it
    next_ = done_;
    for (const auto& message : batch_) {
      int64_t& next = next_[message->partition];
      if (message->offset < next) continue;  // accepted before
      next = message->offset + 1;
      out.text.append(static_cast<const char*>(message->payload), message->len);
      if (!out.text.empty() && out.text.back() != '\n') out.text += '\n';
      ++out.messages;
    }
    out.cursor = text_of(next_, options_.subject);
    measure(false);
    if (out.messages == 0 && !batch_.empty()) return accepted();
    return ok_status();
  }

  bool hold() override {
    pause(true);
    poll(std::chrono::milliseconds(0));  // stays a member
    measure(true);
    return !withdrawn_;
  }

  Status accepted() override {
    done_ = next_;
    withdrawn_ = false;
    batch_.clear();
    commit(1);
    pause(false);
    measure(false);
    return ok_status();
  }

 private:
  /// Puts what comes into early_; false when nothing came.
  bool poll(std::chrono::milliseconds patience) {
    KafkaMessage message(
        rd_kafka_consumer_poll(consumer_.get(), static_cast<int>(patience.count())));
    if (!message) return false;
    if (message->err == RD_KAFKA_RESP_ERR_NO_ERROR) {
      early_.push_back(std::move(message));
      return true;
    }
    const auto code = message->err;
    if (code == RD_KAFKA_RESP_ERR__FATAL || code == RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED ||
        code == RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED ||
        code == RD_KAFKA_RESP_ERR__MAX_POLL_EXCEEDED) {
      failed_ = kafka_error("reading " + options_.subject, code);
    } else if (options_.note && code != RD_KAFKA_RESP_ERR__PARTITION_EOF) {
      options_.note(
          fmt::format("{}: {}", options_.subject, rd_kafka_message_errstr(message.get())));
    }
    return true;
  }

  void pause(bool on) {
    if (paused_ == on) return;
    paused_ = on;
    rd_kafka_topic_partition_list_t* raw = nullptr;
    if (rd_kafka_assignment(consumer_.get(), &raw) != RD_KAFKA_RESP_ERR_NO_ERROR) return;
    const KafkaPlaces mine(raw);
    on ? rd_kafka_pause_partitions(consumer_.get(), raw)
       : rd_kafka_resume_partitions(consumer_.get(), raw);
  }

  /// What is accepted of the partitions that are here.
  void commit(int async) {
    rd_kafka_topic_partition_list_t* raw = nullptr;
    if (rd_kafka_assignment(consumer_.get(), &raw) != RD_KAFKA_RESP_ERR_NO_ERROR) return;
    const KafkaPlaces mine(raw);
    const KafkaPlaces ready(rd_kafka_topic_partition_list_new(raw->cnt));
    for (int i = 0; i < raw->cnt; ++i) {
      const auto at = done_.find(raw->elems[i].partition);
      if (at == done_.end() || committed_[at->first] == at->second) continue;
      committed_[at->first] = at->second;
      rd_kafka_topic_partition_list_add(ready.get(), options_.subject.c_str(), at->first)->offset =
          at->second;
    }
    // One that is lost brings messages again; they are known then.
    if (ready->cnt > 0) rd_kafka_commit(consumer_.get(), ready.get(), async);
  }

  /// What the client mends by itself, like brokers that are away. Called from poll().
  static void told(rd_kafka_t*, int code, const char* reason, void* self) {
    const auto& intake = *static_cast<KafkaIntake*>(self);
    if (!intake.options_.note || intake.closing_) return;
    intake.options_.note(
        fmt::format("{}: {}", rd_kafka_err2str(static_cast<rd_kafka_resp_err_t>(code)), reason));
  }

  static void rebalanced(rd_kafka_t* consumer, rd_kafka_resp_err_t code,
                         rd_kafka_topic_partition_list_t* places, void* self) {
    auto& intake = *static_cast<KafkaIntake*>(self);
    if (code == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS) {
      intake.come(places);
      rd_kafka_assign(consumer, places);
      // Partitions that come while a batch waits must wait with it; they may have gone paused.
      intake.paused_ ? rd_kafka_pause_partitions(consumer, places)
                     : rd_kafka_resume_partitions(consumer, places);
      intake.commit(1);  // where a partition begins that nobody has read yet
      return;
    }
    if (!intake.closing_) intake.go(places);
    if (rd_kafka_assignment_lost(consumer) == 0) intake.commit(0);
    rd_kafka_assign(consumer, nullptr);
  }

  void come(rd_kafka_topic_partition_list_t* places) {
    committed_.clear();
    if (rd_kafka_committed(consumer_.get(), places, kAnswerMs) != RD_KAFKA_RESP_ERR_NO_ERROR) {
      // The client begins at what is committed; what was accepted before is left out by done_.
      for (int i = 0; i < places->cnt; ++i) places->elems[i].offset = RD_KAFKA_OFFSET_INVALID;
      return;
    }
    for (int i = 0; i < places->cnt; ++i) {
      auto& row = places->elems[i];
      const auto mine = done_.find(row.partition);
      int64_t low = 0;
      int64_t high = 0;
      if (mine == done_.end() && row.offset >= 0) {
        done_[row.partition] = row.offset;
        continue;
      }
      const auto code = rd_kafka_query_watermark_offsets(consumer_.get(), options_.subject.c_str(),
                                                         row.partition, &low, &high, kAnswerMs);
      if (mine == done_.end()) {
        // Fixed now: else what comes before the first commit would be skipped after a restart.
        if (code == RD_KAFKA_RESP_ERR_NO_ERROR && options_.from_end) {
          row.offset = done_[row.partition] = high;
        }
      } else if (code == RD_KAFKA_RESP_ERR_NO_ERROR && mine->second > high) {
        // It was made anew: its offsets are others.
        if (options_.note) {
          options_.note(fmt::format("partition {} of {} is not the one that was read before",
                                    row.partition, options_.subject));
        }
        done_.erase(mine);
      } else if (row.offset < mine->second) {
        row.offset = mine->second;
      } else {
        mine->second = row.offset;
      }
    }
  }

  void go(const rd_kafka_topic_partition_list_t* places) {
    for (int i = 0; i < places->cnt; ++i) {
      const int32_t gone = places->elems[i].partition;
      const auto of_it = [&](const KafkaMessage& m) { return m->partition == gone; };
      withdrawn_ |= std::any_of(batch_.begin(), batch_.end(), of_it);
      std::erase_if(batch_, of_it);
      std::erase_if(early_, of_it);
    }
  }

  /// `ask`: partitions that are paused hear nothing of new messages by themselves.
  void measure(bool ask) {
    if (ask && Clock::now() - measured_ < kMeasure) return;
    rd_kafka_topic_partition_list_t* raw = nullptr;
    if (rd_kafka_assignment(consumer_.get(), &raw) != RD_KAFKA_RESP_ERR_NO_ERROR) return;
    const KafkaPlaces mine(raw);
    measured_ = Clock::now();
    int64_t sum = 0;
    for (int i = 0; i < raw->cnt; ++i) {
      const int32_t partition = raw->elems[i].partition;
      int64_t low = 0;
      int64_t high = 0;
      const char* topic = options_.subject.c_str();
      const auto code =
          ask ? rd_kafka_query_watermark_offsets(consumer_.get(), topic, partition, &low, &high,
                                                 500)
              : rd_kafka_get_watermark_offsets(consumer_.get(), topic, partition, &low, &high);
      if (code != RD_KAFKA_RESP_ERR_NO_ERROR || high < 0) continue;
      const auto at = done_.find(partition);
      sum +=
          std::max<int64_t>(0, high - (at == done_.end() ? std::max<int64_t>(low, 0) : at->second));
    }
    behind_ = static_cast<uint64_t>(sum);
  }

  IntakeOptions options_;
  KafkaHandle consumer_;  // before the messages: they must go first
  Offsets done_;          // accepted: the next offset of each partition
  Offsets next_;          // with the batch at hand
  Offsets committed_;
  std::vector<KafkaMessage> batch_;  // at hand
  std::deque<KafkaMessage> early_;   // came while a batch waited
  std::optional<Error> failed_;
  bool withdrawn_ = false;  // the batch at hand, or a part of it
  bool paused_ = false;
  bool closing_ = false;
  Clock::time_point measured_;
};

}  // namespace

Result<std::unique_ptr<Intake>> open_kafka_intake(const IntakeOptions& options,
                                                  const std::string& cursor) {
  auto intake = std::make_unique<KafkaIntake>(options);
  if (auto status = intake->open(cursor); !status.ok()) return status.error();
  return std::unique_ptr<Intake>(std::move(intake));
}

}  // namespace reflex::broker

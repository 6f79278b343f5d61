// NATS JetStream and Kafka: messages of whole lines, acknowledged when the journal has them.
//
// A body is what the broker has at hand, up to some 256 KiB; its cursor goes into the journal with
// it (broker/intake.h), so that a message that comes again after a crash is left out. A broker that
// is away is tried again for ever.
#include <algorithm>

#include "runtime/serve/sources/source.h"

namespace reflex::serve {
namespace {

constexpr std::chrono::milliseconds kPatience{200};  // Why: how soon stop() is seen
constexpr int kFirstRetryMs = 500;
constexpr int kRetryMaxMs = 10'000;

class BrokerSource final : public Source {
 public:
  using Source::Source;
  ~BrokerSource() override { stop(); }
  [[nodiscard]] std::optional<uint64_t> behind() const override { return behind_; }

 private:
  void run() override {
    options_.intake.note = [this](const std::string& line) { say(line); };
    int retry_ms = kFirstRetryMs;
    while (!stopping()) {
      auto opened = broker::open_intake(options_.intake, ingest_.cursor(options_.name));
      if (opened.ok()) {
        intake_ = std::move(opened).value();
        const auto status = read_on(retry_ms);
        intake_.reset();
        if (!status.ok()) say(status.error().message);
      } else {
        say(opened.error().message);
      }
      pause(retry_ms);
      retry_ms = std::min(retry_ms * 2, kRetryMaxMs);
    }
  }

  /// Until stopping, or an error after which the intake must be opened again.
  reflex::Status read_on(int& retry_ms) {
    broker::IntakeBatch batch;
    while (!stopping()) {
      auto status = intake_->take(batch, kPatience);
      behind_ = intake_->behind();
      if (!status.ok()) return status;
      if (batch.messages == 0) continue;
      retry_ms = kFirstRetryMs;
      const bool given = give(std::move(batch.text), batch.cursor, [this] {
        const bool ours = intake_->hold();
        behind_ = intake_->behind();
        return ours;
      });
      if (!given) continue;
      if (status = intake_->accepted(); !status.ok()) return status;
      behind_ = intake_->behind();
    }
    return ok_status();
  }

  std::unique_ptr<broker::Intake> intake_;
  std::atomic<uint64_t> behind_ = 0;
};

}  // namespace

std::unique_ptr<Source> make_broker_source(SourceOptions options, Ingest& ingest,
                                           std::function<void(const std::string&)> log) {
  return std::make_unique<BrokerSource>(std::move(options), ingest, std::move(log));
}

}  // namespace reflex::serve

// Source: something that the daemon reads by itself: a file's tail, the journal, standard input, a
// subject of NATS JetStream, a topic of Kafka.
//
// Contract: bodies of whole lines go to Ingest::accept with the cursor behind them, so that after a
// restart reading goes on exactly there. What is refused (overload, full disk) is offered again:
// a source waits, it loses nothing. One thread each.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "runtime/broker/intake.h"
#include "runtime/serve/config.h"
#include "runtime/serve/ingest.h"

namespace reflex::serve {

struct SourceOptions {
  std::string type;
  std::string name;
  std::string node;
  std::string path;
  bool events = false;  // NDJSON; else log text of `node`
  bool from_end = false;
  std::vector<std::string> match;  // of journald
  broker::IntakeOptions intake;    // of nats and kafka
};

class Source {
 public:
  Source(SourceOptions options, Ingest& ingest, std::function<void(const std::string&)> log)
      : options_(std::move(options)), ingest_(ingest), log_(std::move(log)) {}
  virtual ~Source() = default;
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;

  void start() {
    thread_ = std::thread([this] { run(); });
  }
  /// Every subclass calls it in its destructor.
  void stop() {
    stopping_ = true;
    if (thread_.joinable()) thread_.join();
  }
  [[nodiscard]] const std::string& name() const { return options_.name; }
  /// What waits outside, as the outside counts (messages); nothing when nobody can know.
  [[nodiscard]] virtual std::optional<uint64_t> behind() const { return std::nullopt; }

 protected:
  virtual void run() = 0;
  /// Until it is accepted; false when stopping first. While it waits, `hold` is called; when that
  /// says false, the text is given up.
  bool give(std::string&& text, const std::string& cursor, const std::function<bool()>& hold = {});
  void pause(int ms) const;  // or until stopping
  [[nodiscard]] bool stopping() const { return stopping_; }
  void say(const std::string& line);  // once in a row

  SourceOptions options_;
  Ingest& ingest_;

 private:
  std::function<void(const std::string&)> log_;
  std::string said_;
  std::atomic<bool> stopping_ = false;
  std::thread thread_;
};

/// Of a [[sources]] table. Errors: an unknown type, a missing path.
Result<std::unique_ptr<Source>> make_source(const ConfigTable& table, Ingest& ingest,
                                            std::function<void(const std::string&)> log);

std::unique_ptr<Source> make_tail(SourceOptions options, Ingest& ingest,
                                  std::function<void(const std::string&)> log);
std::unique_ptr<Source> make_journald(SourceOptions options, Ingest& ingest,
                                      std::function<void(const std::string&)> log);
std::unique_ptr<Source> make_stdin(SourceOptions options, Ingest& ingest,
                                   std::function<void(const std::string&)> log);
/// NATS JetStream and Kafka.
std::unique_ptr<Source> make_broker_source(SourceOptions options, Ingest& ingest,
                                           std::function<void(const std::string&)> log);

}  // namespace reflex::serve

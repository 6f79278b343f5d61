// What all sources do; see source.h.
#include "runtime/serve/sources/source.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

namespace reflex::serve {

void Source::pause(int ms) const {
  for (int waited = 0; waited < ms && !stopping_; waited += 20) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

void Source::say(const std::string& line) {
  if (line == said_) return;
  said_ = line;
  if (!line.empty() && log_) log_(fmt::format("source {}: {}", options_.name, line));
}

bool Source::give(std::string&& text, const std::string& cursor,
                  const std::function<bool()>& hold) {
  int wait_ms = 50;
  while (!stopping_) {
    IngestBody body;
    body.form = options_.events ? IngestBody::Form::kEvents : IngestBody::Form::kLog;
    body.source = options_.name;
    body.node = options_.node;
    body.text = text;
    const auto answer = ingest_.accept(std::move(body), cursor);
    if (answer.outcome == IngestAnswer::Outcome::kAccepted) {
      say("");
      return true;
    }
    if (answer.outcome == IngestAnswer::Outcome::kStopping) return false;
    say("waiting: " + answer.error);
    if (hold && !hold()) return false;
    pause(wait_ms);
    wait_ms = std::min(wait_ms * 2, 2000);
  }
  return false;
}

namespace {

/// What sources that read a broker need besides.
reflex::Status read_intake(const ConfigTable& table, SourceOptions& options) {
  const auto wrong = [&](const std::string& what) {
    return Error{fmt::format("source {}: {}", options.name, what)};
  };
  auto address = broker::parse_address(table.text("url"));
  if (!address.ok()) return wrong("url: " + address.error().message);
  broker::IntakeOptions& intake = options.intake;
  intake.address = std::move(address).value();
  const bool nats = intake.address.kind == broker::Address::Kind::kNats;
  if (nats != (options.type == "nats")) return wrong("its url is not of type " + options.type);
  intake.subject = table.text("subject");
  if (intake.subject.empty()) return wrong("subject: which subject or topic?");
  intake.group = table.text("group");
  if (intake.group.empty()) return wrong("group: a durable name is needed");
  intake.credentials = table.text("credentials");
  intake.properties = table.texts("options");
  intake.from_end = options.from_end;
  return ok_status();
}

}  // namespace

Result<std::unique_ptr<Source>> make_source(const ConfigTable& table, Ingest& ingest,
                                            std::function<void(const std::string&)> log) {
  SourceOptions options;
  options.type = table.text("type");
  options.path = table.text("path");
  options.name = source_name(table);
  options.node = table.text("node");
  if (options.node.empty()) {
    char host[256] = "localhost";
    (void)::gethostname(host, sizeof host - 1);
    options.node = host;
  }
  const std::string& form = table.text("form");
  if (form != "log" && form != "events") {
    return Error{
        fmt::format("source {}: form = '{}' is neither log nor events", options.name, form)};
  }
  options.events = form == "events";
  options.from_end = table.text("from") == "end";
  options.match = table.texts("match");
  if (options.type == "tail") {
    if (options.path.empty()) return Error{"a tail source needs a path"};
    return make_tail(std::move(options), ingest, std::move(log));
  }
  if (options.type == "journald") return make_journald(std::move(options), ingest, std::move(log));
  if (options.type == "stdin") return make_stdin(std::move(options), ingest, std::move(log));
  if (options.type == "nats" || options.type == "kafka") {
    if (auto status = read_intake(table, options); !status.ok()) return status.error();
    return make_broker_source(std::move(options), ingest, std::move(log));
  }
  return Error{fmt::format("there is no source type '{}': tail, journald, stdin, nats or kafka",
                           options.type)};
}

}  // namespace reflex::serve

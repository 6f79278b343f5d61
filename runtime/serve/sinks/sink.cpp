// The loop of a sink; see sink.h.
#include "runtime/serve/sinks/sink.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>

namespace reflex::serve {
namespace {

constexpr unsigned kBatch = 100;
constexpr auto kFirstRetry = std::chrono::milliseconds(200);

}  // namespace

Sink::Sink(Store& store, Publisher& publisher, SinkOptions options,
           std::unique_ptr<Delivery> delivery)
    : store_(store),
      publisher_(publisher),
      options_(std::move(options)),
      delivery_(std::move(delivery)) {
  status_.name = options_.name;
  cursor_.name = options_.name;
}

Sink::~Sink() { stop(); }

void Sink::start() {
  thread_ = std::thread([this] { work(); });
}

void Sink::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Sink::wait(std::chrono::milliseconds time) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, time, [&] { return stopping_; });
}

void Sink::work() {
  std::chrono::milliseconds retry = kFirstRetry;
  bool begun = false;
  for (;;) {
    {
      const std::lock_guard lock(mutex_);
      if (stopping_) return;
    }
    bool any = false;
    reflex::Status status = ok_status();
    if (!begun) {
      auto stored = store_.cursor(options_.name);
      if (!stored.ok()) {
        status = stored.error();
      } else {
        if (stored.value()) cursor_ = *stored.value();
        status = delivery_->begin(stored.value() ? &cursor_ : nullptr);
        begun = status.ok();
      }
    }
    if (status.ok()) status = deliver_next(any);
    {
      const std::lock_guard lock(mutex_);
      status_.last_error = status.ok() ? "" : status.error().message;
      status_.failed += !status.ok();
    }
    if (!status.ok()) {
      wait(retry);
      retry = std::min<std::chrono::milliseconds>(
          retry * 2, std::chrono::milliseconds(options_.retry_max_ns / 1'000'000));
      continue;
    }
    retry = kFirstRetry;
    // The store has news from its publisher only; the time bounds how long stop() takes.
    if (!any) version_ = publisher_.wait_news(version_, std::chrono::milliseconds(250));
  }
}

reflex::Status Sink::deliver_next(bool& any) {
  SinkBatch batch;
  SinkCursor next = cursor_;
  if (options_.verdicts) {
    VerdictFilter filter;
    filter.after = cursor_.verdicts;
    filter.limit = kBatch;
    if (options_.finals_only) filter.final = true;
    auto page = store_.verdicts(filter);
    if (!page.ok()) return page.error();
    batch.verdicts = std::move(page.value().verdicts);
    if (!batch.verdicts.empty()) next.verdicts = batch.verdicts.back().sequence;
  }
  if (options_.alerts) {
    auto lines = store_.alerts(cursor_.alerts, kBatch);
    if (!lines.ok()) return lines.error();
    batch.alerts = std::move(lines).value();
    if (!batch.alerts.empty()) next.alerts = batch.alerts.back().sequence;
  }
  any = !batch.verdicts.empty() || !batch.alerts.empty();
  if (!any) return ok_status();
  if (auto status = delivery_->deliver(batch, next); !status.ok()) return status;
  WriteBatch write;
  write.cursors.push_back(next);
  auto written = store_.write(write);
  if (!written.ok()) return written.error();
  const std::lock_guard lock(mutex_);
  cursor_ = next;
  status_.delivered += batch.verdicts.size() + batch.alerts.size();
  return ok_status();
}

SinkStatus Sink::status() const {
  const std::lock_guard lock(mutex_);
  SinkStatus status = status_;
  if (auto counts = store_.counts(); counts.ok()) {
    const StoreCounts& all = counts.value();
    if (options_.verdicts) {
      status.queued += all.last_verdict - std::min(all.last_verdict, cursor_.verdicts);
    }
    if (options_.alerts) status.queued += all.last_alert - std::min(all.last_alert, cursor_.alerts);
  }
  return status;
}

namespace {

Result<broker::OutboxOptions> read_outbox(const ConfigTable& table, const std::string& name) {
  const auto wrong = [&](const std::string& what) {
    return Error{fmt::format("sink {}: {}", name, what)};
  };
  broker::OutboxOptions options;
  auto address = broker::parse_address(table.text("url"));
  if (!address.ok()) return wrong("url: " + address.error().message);
  options.address = std::move(address).value();
  const bool nats = options.address.kind == broker::Address::Kind::kNats;
  if (nats != (table.text("type") == "nats")) {
    return wrong("its url is not of type " + table.text("type"));
  }
  options.subject = table.text("subject");
  if (options.subject.empty()) return wrong("subject: which subject or topic?");
  options.credentials = table.text("credentials");
  options.properties = table.texts("options");
  options.timeout = std::chrono::milliseconds(table.duration_ns("timeout") / 1'000'000);
  return options;
}

}  // namespace

Result<std::unique_ptr<Sink>> make_sink(const ConfigTable& table, Store& store,
                                        Publisher& publisher) {
  const std::string& type = table.text("type");
  const std::string& what = table.text("what");
  SinkOptions options;
  options.name = sink_name(table);
  options.retry_max_ns = table.duration_ns("retry_max");
  options.verdicts = what != "alerts";
  options.finals_only = what == "finals";
  options.alerts = what == "alerts";
  if (what != "verdicts" && what != "finals" && what != "alerts") {
    return Error{fmt::format("sink {}: what = '{}' is none of verdicts, finals, alerts",
                             options.name, what)};
  }
  WebOptions web;
  web.url = table.text("url");
  web.timeout = std::chrono::milliseconds(table.duration_ns("timeout") / 1'000'000);
  if (const auto& path = table.text("token_file"); !path.empty()) {
    std::ifstream file(path);
    if (!std::getline(file, web.token)) return Error{fmt::format("{} cannot be read", path)};
  }
  std::unique_ptr<Delivery> delivery;
  if (type == "file") {
    if (table.text("path").empty()) return Error{"a file sink needs a path"};
    delivery = file_delivery(table.text("path"));
  } else if (type == "webhook" || type == "alertmanager") {
    if (web.url.empty()) return Error{fmt::format("a {} sink needs a url", type)};
    if (type == "alertmanager") {
      options.verdicts = false;
      options.alerts = true;
      delivery = alertmanager_delivery(web);
    } else {
      delivery = webhook_delivery(web);
    }
  } else if (type == "nats" || type == "kafka") {
    auto outbox = read_outbox(table, options.name);
    if (!outbox.ok()) return outbox.error();
    delivery = broker_delivery(outbox.value());
  } else {
    return Error{fmt::format(
        "there is no sink type '{}': file, webhook, alertmanager, nats or kafka", type)};
  }
  return std::make_unique<Sink>(store, publisher, options, std::move(delivery));
}

}  // namespace reflex::serve

// What the routes share: see api.h.
#include "runtime/serve/http/api.h"

#include <fmt/format.h>

#include <charconv>
#include <chrono>

#include "runtime/base/time.h"
#include "runtime/serve/http/http_server.h"

namespace reflex::serve {

Api::Api(const HttpConfig& config, DaemonPort& port, Store& store)
    : config_(config),
      port_(port),
      store_(store),
      access_(config.tokens, config.rates),
      streams_(store, config.streams_max, std::chrono::milliseconds(config.stream_heartbeat_ms)) {
  add_ops_routes(*this);
  add_reload_routes(*this);
  add_ingest_routes(*this);
  add_verdict_routes(*this);
  add_people_routes(*this);
  add_engine_routes(*this);
  add_page_routes(*this);
  subscription_ = port_.subscribe([this](const LiveVerdict& verdict) { told(verdict); });
  subscribed_ = true;
}

Api::~Api() { stop(); }

void Api::stop() {
  if (subscribed_) port_.unsubscribe(subscription_);
  subscribed_ = false;
  streams_.stop();
}

void Api::told(const LiveVerdict& live) {
  streams_.tell(live.sequence);
  if (live.verdict == nullptr) return;
  const abi::Verdict& v = *live.verdict;
  const bool named = v.answer != abi::Answer::kNone && !v.hypotheses.empty();
  const std::lock_guard lock(mutex_);
  ++verdicts_.verdicts[{named ? v.hypotheses.front().cause : "", v.level}];
  if (v.revision > 1) ++verdicts_.revisions;
}

void Api::count(const std::string& route, int status) {
  const std::lock_guard lock(mutex_);
  ++requests_[{route, status}];
}

std::map<std::pair<std::string, int>, uint64_t> Api::request_counts() const {
  const std::lock_guard lock(mutex_);
  return requests_;
}

Api::VerdictCounts Api::verdict_counts() const {
  const std::lock_guard lock(mutex_);
  return verdicts_;
}

std::optional<HttpReply> Api::ask(
    const std::function<void(engine::Engine&, const abi::CompiledPack&)>& look) {
  // Why 5 s: a batch takes milliseconds; a daemon that replays its journal may not answer at all.
  if (port_.ask(look, std::chrono::seconds(5))) return std::nullopt;
  return reply_error(503, "the event thread did not answer in time",
                     "try again; /-/ready says whether the daemon is still starting");
}

Json instant(int64_t ts_ns) {
  return ts_ns == kNoTimeNs ? Json() : Json(to_rfc3339(EventTime{ts_ns}));
}

int64_t wall_now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

bool instant_param(const HttpRequest& request, const std::string& name,
                   std::optional<int64_t>& out) {
  if (!request.has_param(name)) return true;
  std::string text = request.param(name);
  // The '+' of an offset is a space when it was not percent-encoded.
  for (char& c : text) c = c == ' ' ? '+' : c;
  if (const auto time = parse_rfc3339(text)) {
    out = time->ns;
    return true;
  }
  int64_t ms = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), ms);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return false;
  int64_t ns = 0;
  if (__builtin_mul_overflow(ms, kNsPerMs, &ns)) return false;
  out = ns;
  return true;
}

bool number_param(const HttpRequest& request, const std::string& name, uint64_t low, uint64_t high,
                  uint64_t& out) {
  if (!request.has_param(name)) return true;
  const std::string text = request.param(name);
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return false;
  if (value < low || value > high) return false;
  out = value;
  return true;
}

HttpReply bad_param(const std::string& name, std::string_view form) {
  return reply_error(400, fmt::format("the parameter {} is malformed", name),
                     fmt::format("give {}", form));
}

HttpReply store_error(const Error& error) {
  return reply_error(503, error.message, "see the daemon's log; the disk may be full or damaged");
}

}  // namespace reflex::serve

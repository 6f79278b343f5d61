// Health, readiness, metrics, status, snapshot.
#include <fmt/format.h>

#include "runtime/engine/engine.h"
#include "runtime/serve/http/api.h"
#include "runtime/serve/http/engine_words.h"
#include "runtime/serve/http/http_server.h"
#include "runtime/serve/metrics_page.h"

namespace reflex::serve {
namespace {

/// The adaptive parameters of all classes: profiles bound their number, not the fleet.
std::vector<MetricsInput::Threshold> thresholds_in_force(engine::Engine& engine,
                                                         const abi::CompiledPack& pack) {
  std::vector<MetricsInput::Threshold> out;
  const auto tables = engine.adaptation().tables();
  for (abi::ClassId c = 0; c < pack.classes.size(); ++c) {
    for (abi::AdaptiveId a = 0; a < pack.adaptives.size() && out.size() < kLabelsMax; ++a) {
      const abi::Value value = tables->row(c)[a];
      if (value.known == 0) continue;
      out.push_back({pack.classes[c].name, pack.adaptives[a].name,
                     std::string(origin_word(tables->origin(a, c, kNoSymbol).from)),
                     adaptive_number(pack, a, value)});
    }
  }
  return out;
}

Json counts_json(const std::vector<std::pair<std::string, uint64_t>>& counts) {
  Json out = Json::object();
  for (const auto& [name, count] : counts) out[name] = count;
  return out;
}

Json lane_json(const LaneStatus& lane) {
  Json packs = Json::array();
  for (const auto& pack : lane.packs) {
    packs.push_back({{"name", pack.name}, {"version", pack.version}, {"sha256", pack.sha256}});
  }
  return Json{{"set_sha256", lane.set_sha256},
              {"packs", packs},
              {"watermark", instant(lane.watermark_ns)},
              {"position", lane.position},
              {"events", lane.events},
              {"late", lane.late},
              {"deduplicated", lane.deduplicated},
              {"incidents_open", lane.incidents_open},
              {"events_by_kind", counts_json(lane.events_by_kind)},
              {"firings_by_signal", counts_json(lane.firings_by_signal)},
              {"rejected_by_reason", counts_json(lane.rejected_by_reason)},
              {"keys", lane.keys},
              {"state_bytes", lane.state_bytes},
              {"evictions", lane.evictions},
              {"partials_dropped", lane.partials_dropped}};
}

Json sources_json(const Status& status) {
  Json out = Json::array();
  for (const SourceStatus& s : status.sources) {
    out.push_back({{"name", s.name},
                   {"bodies", s.bodies},
                   {"lines", s.lines},
                   {"bytes", s.bytes},
                   {"rejected", s.rejected},
                   {"newest", instant(s.newest_ns)},
                   {"lag_s", s.newest_ns == kNoTimeNs ? Json() : Json(s.lag_s)},
                   {"idle", s.idle},
                   {"queue_bytes", s.queue_bytes}});
  }
  return out;
}

Json sinks_json(const Status& status) {
  Json out = Json::array();
  for (const SinkStatus& s : status.sinks) {
    out.push_back({{"name", s.name},
                   {"queued", s.queued},
                   {"delivered", s.delivered},
                   {"failed", s.failed},
                   {"dropped", s.dropped},
                   {"last_error", s.last_error.empty() ? Json() : Json(s.last_error)}});
  }
  return out;
}

HttpReply status_reply(Api& api) {
  const Status status = api.port().status();
  const auto wall = [](int64_t ns) { return ns == 0 ? Json() : instant(ns); };
  Json out;
  out["ready"] = status.ready;
  out["not_ready_because"] =
      status.not_ready_because.empty() ? Json() : Json(status.not_ready_because);
  out["version"] = api.config().version;
  out["started"] = status.started;
  out["store"] = api.store().found();
  out["live"] = lane_json(status.live);
  out["shadow"] = status.shadow == nullptr ? Json() : lane_json(*status.shadow);
  out["sources"] = sources_json(status);
  out["sinks"] = sinks_json(status);
  out["journal"] = {{"bytes", status.journal_bytes},
                    {"begin", status.journal_begin},
                    {"end", status.journal_end}};
  out["snapshot"] = {
      {"last", wall(status.last_snapshot_wall_ns)},
      {"bytes", status.last_snapshot_bytes},
      {"pause_us", status.last_snapshot_pause_us},
      {"error", status.last_snapshot_error.empty() ? Json() : Json(status.last_snapshot_error)}};
  out["reload"] = {{"ok", status.reloads_ok},
                   {"failed", status.reloads_failed},
                   {"last", wall(status.last_reload_wall_ns)},
                   {"last_ok", status.last_reload_ok},
                   {"last_swap_s", status.last_swap_s},
                   {"last_compile_s", status.last_compile_s}};
  int ignored = 0;
  out["reload"]["answer"] =
      status.last_reload == nullptr ? Json() : reload_json(*status.last_reload, ignored);
  if (auto counts = api.store().counts()) {
    const StoreCounts& c = counts.value();
    out["verdicts"] = {
        {"stored", c.verdicts}, {"newest", c.last_verdict}, {"file_bytes", c.file_bytes}};
  }
  out["now"] = instant(wall_now_ns());
  return reply_json(out);
}

HttpReply ready_reply(Api& api) {
  const Status status = api.port().status();
  if (!status.ready) {
    HttpReply reply =
        reply_error(503, status.not_ready_because.empty() ? "starting" : status.not_ready_because,
                    "wait, or see the daemon's log");
    reply.headers.emplace_back("Retry-After", "1");
    return reply;
  }
  return reply_json({{"ready", true}});
}

HttpReply metrics_reply(Api& api) {
  MetricsInput input;
  input.status = api.port().status();
  input.latency = api.port().diagnosis_latency();
  input.requests = api.request_counts();
  const Api::VerdictCounts verdicts = api.verdict_counts();
  input.verdicts = verdicts.verdicts;
  input.revisions = verdicts.revisions;
  input.followers = api.streams().followers();
  input.version = api.config().version;
  input.commit = api.config().commit;
  input.store_file_bytes = api.store().file_bytes();
  // A daemon that is busy replaying gives the page without them.
  (void)api.port().ask(
      [&](engine::Engine& engine, const abi::CompiledPack& pack) {
        input.thresholds = thresholds_in_force(engine, pack);
      },
      std::chrono::milliseconds(200));
  HttpReply reply;
  // Source: prometheus/docs, exposition_formats.md, text format 0.0.4.
  reply.type = "text/plain; version=0.0.4; charset=utf-8";
  reply.body = metrics_page(input);
  return reply;
}

}  // namespace

void add_ops_routes(Api& api) {
  Router& router = api.router();
  router.add({"GET", "/-/healthy", Role::kOpen,
              [](const HttpRequest&) { return reply_json({{"healthy", true}}); }});
  router.add(
      {"GET", "/-/ready", Role::kOpen, [&api](const HttpRequest&) { return ready_reply(api); }});
  router.add(
      {"GET", "/metrics", Role::kRead, [&api](const HttpRequest&) { return metrics_reply(api); }});
  router.add({"GET", "/api/v1/status", Role::kRead,
              [&api](const HttpRequest&) { return status_reply(api); }});
  router.add({"POST", "/api/v1/snapshot", Role::kOperate, [&api](const HttpRequest&) {
                if (auto done = api.port().snapshot(); !done) {
                  return reply_error(500, done.error().message,
                                     "see that the state folder is writable and has room");
                }
                return reply_json({{"snapshot", "written"}});
              }});
}

}  // namespace reflex::serve

// Reload, shadow packs, promotion: the migration plan or the diagnostics in the answer (B6).
#include <fmt/format.h>

#include "runtime/explain/explain.h"
#include "runtime/serve/http/api.h"
#include "runtime/serve/http/shadow_comparison.h"

namespace reflex::serve {
namespace {

Json plan_json(const std::vector<StateFate>& plan) {
  Json out = Json::array();
  for (const StateFate& row : plan) {
    out.push_back({{"name", row.name},
                   {"kind", row.kind},
                   {"fate", row.fate},
                   {"why", row.why.empty() ? Json() : Json(row.why)},
                   {"bytes", row.bytes}});
  }
  return out;
}

/// The compiler's own JSON objects; what is none (never so far) is shown as text.
Json diagnostics_json(const std::vector<std::string>& diagnostics) {
  Json out = Json::array();
  for (const std::string& text : diagnostics) {
    Json object = parse_json(text);
    out.push_back(object.is_discarded() ? Json(text) : std::move(object));
  }
  return out;
}

}  // namespace

Json reload_json(const ReloadAnswer& answer, int& status) {
  using Outcome = ReloadAnswer::Outcome;
  Json out;
  status = 200;
  switch (answer.outcome) {
    case Outcome::kSwapped:
    case Outcome::kUnchanged:
      break;
    case Outcome::kInvalid:
      status = 422;
      out["error"] = "the packs have errors; the old set stays in force";
      out["what_to_do"] = "mend what the diagnostics name (`reflex check` prints the same)";
      if (answer.diagnostics.empty()) {
        out["error"] = answer.error;
        out["what_to_do"] = "name packs that can be read on the daemon's machine";
      }
      break;
    case Outcome::kBusy:
      status = 409;
      out["error"] = answer.error.empty() ? "another reload is under way" : answer.error;
      out["what_to_do"] = "wait until it has ended";
      break;
    case Outcome::kNoShadow:
      status = 409;
      out["error"] = "there is no shadow set to promote";
      out["what_to_do"] = "start one with POST /api/v1/shadow (`reflex shadow PACK ..`)";
      break;
    case Outcome::kFailed:
      status = 500;
      out["error"] = answer.error.empty() ? "the reload failed" : answer.error;
      out["what_to_do"] = "the old set stays in force; see the daemon's log";
      break;
  }
  out["unchanged"] = answer.outcome == Outcome::kUnchanged;
  out["swapped"] = answer.outcome == Outcome::kSwapped;
  out["set_sha256"] = answer.set_sha256;
  out["compile_ms"] = answer.compile_ms;
  out["restore_ms"] = answer.restore_ms;
  out["pause_us"] = answer.pause_us;
  out["path"] = answer.path;
  out["path_reason"] = answer.path_reason;
  out["state_bytes"] = answer.state_bytes;
  out["config"] = {{"applied", answer.config_applied},
                   {"needs_restart", answer.config_needs_restart}};
  out["diagnostics"] = diagnostics_json(answer.diagnostics);
  out["plan"] = plan_json(answer.plan);
  return out;
}

namespace {

HttpReply reload_reply(const ReloadAnswer& answer) {
  int status = 200;
  const Json json = reload_json(answer, status);
  return reply_json(json, status);
}

HttpReply start_shadow(Api& api, const HttpRequest& request) {
  const Json body = parse_json(request.body);
  std::vector<std::string> paths;
  if (body.is_object() && body.contains("paths") && body["paths"].is_array()) {
    for (const Json& path : body["paths"]) {
      if (path.is_string() && !path.get_ref<const std::string&>().empty())
        paths.push_back(path.get<std::string>());
    }
  }
  if (paths.empty() || paths.size() != body["paths"].size()) {
    return reply_error(400, "the body does not name the packs of the shadow",
                       R"(send {"paths": ["DIRECTORY or FILE", ..]} as on the daemon's machine)");
  }
  return reload_reply(api.port().start_shadow(paths));
}

Json comparison_json(const ShadowComparison& compared) {
  const auto text = [](const std::string& words) { return words.empty() ? Json() : Json(words); };
  Json incidents = Json::array();
  for (const auto& row : compared.incidents) {
    incidents.push_back({{"incident", row.incident},
                         {"job", row.job},
                         {"live", text(row.live)},
                         {"shadow", text(row.shadow)},
                         {"live_verdict", text(row.live_id)}});
  }
  Json firings = Json::array();
  for (const auto& row : compared.firings) {
    firings.push_back({{"signal", row.signal}, {"live", row.live}, {"shadow", row.shadow}});
  }
  return {{"since", instant(compared.since_ns)},
          {"same", compared.same},
          {"open", compared.open},
          {"incidents", incidents},
          {"firings", firings}};
}

HttpReply shadow_status(Api& api) {
  const Status status = api.port().status();
  if (status.shadow == nullptr) return reply_json({{"running", false}});
  const LaneStatus& lane = *status.shadow;
  Json firings = Json::object();
  for (const auto& [name, count] : lane.firings_by_signal) firings[name] = count;
  const auto said = api.port().shadow_verdicts();
  const auto compared = compare_shadow(status, said, api.store());
  if (!compared.ok()) return store_error(compared.error());
  Json verdicts = Json::array();
  for (const auto& verdict : said) {
    verdicts.push_back(parse_json(explain::to_json(*verdict, false)));
  }
  return reply_json(
      {{"running", true},
       {"set_sha256", lane.set_sha256},
       {"watermark", instant(lane.watermark_ns)},
       {"position", lane.position},
       {"behind", status.live.position > lane.position ? status.live.position - lane.position : 0},
       {"incidents_open", lane.incidents_open},
       {"firings_by_signal", firings},
       {"differs", comparison_json(compared.value())},
       {"verdicts", verdicts}});
}

}  // namespace

void add_reload_routes(Api& api) {
  Router& router = api.router();
  const auto reload = [&api](const HttpRequest&) { return reload_reply(api.port().reload()); };
  router.add({"POST", "/-/reload", Role::kOperate, reload});
  router.add({"PUT", "/-/reload", Role::kOperate, reload});
  router.add({"POST", "/api/v1/shadow", Role::kOperate,
              [&api](const HttpRequest& request) { return start_shadow(api, request); }});
  router.add({"GET", "/api/v1/shadow", Role::kRead,
              [&api](const HttpRequest&) { return shadow_status(api); }});
  router.add({"DELETE", "/api/v1/shadow", Role::kOperate, [&api](const HttpRequest&) {
                if (auto done = api.port().drop_shadow(); !done) {
                  return reply_error(409, done.error().message, "see GET /api/v1/shadow");
                }
                return reply_json({{"running", false}});
              }});
  router.add({"POST", "/api/v1/promote", Role::kOperate,
              [&api](const HttpRequest&) { return reload_reply(api.port().promote()); }});
}

}  // namespace reflex::serve

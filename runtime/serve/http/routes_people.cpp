// What people say: feedback on verdicts, orders of suppression.
#include <fmt/format.h>

#include "runtime/base/time.h"
#include "runtime/serve/http/api.h"

namespace reflex::serve {
namespace {

// Why 4,096: a comment is read by people; more belongs into a ticket.
constexpr size_t kTextMax = 4096;

/// A text member; false: it is there and is no text of at most `max` bytes.
bool text_member(const Json& body, const char* name, std::string& out, size_t max = kTextMax) {
  const auto it = body.find(name);
  if (it == body.end() || it->is_null()) return true;
  if (!it->is_string()) return false;
  out = it->get<std::string>();
  return out.size() <= max;
}

HttpReply bad_body(std::string_view what, std::string_view form) {
  return reply_error(400, what, form);
}

constexpr std::string_view kFeedbackForm =
    R"(send {"incident": .., "verdict": .., "confirmed": true|false, "culprits": [..], "fault": .., "comment": ..})";

/// What the body says, into `feedback`; status 0, or what is wrong with it.
HttpReply read_feedback(const HttpRequest& request, Feedback& feedback) {
  const Json body = parse_json(request.body);
  if (!body.is_object()) return bad_body("the body is no JSON object", kFeedbackForm);
  std::string by;
  const bool texts = text_member(body, "incident", feedback.incident, 256) &&
                     text_member(body, "verdict", feedback.verdict_id, 256) &&
                     text_member(body, "fault", feedback.fault, 256) &&
                     text_member(body, "comment", feedback.comment) &&
                     text_member(body, "by", by, 256);
  if (!texts) return bad_body("a member is no text, or too long", kFeedbackForm);
  if (!body.contains("confirmed") || !body["confirmed"].is_boolean()) {
    return bad_body("confirmed is not true or false", kFeedbackForm);
  }
  feedback.confirmed = body["confirmed"].get<bool>();
  const Json culprits = body.contains("culprits") ? body["culprits"] : Json::array();
  if (!culprits.is_array() || culprits.size() > 64) {
    return bad_body("culprits is no list of at most 64 nodes", kFeedbackForm);
  }
  for (const Json& node : culprits) {
    if (!node.is_string()) return bad_body("a culprit is no name", kFeedbackForm);
    feedback.culprits.push_back(node.get<std::string>());
  }
  if (!feedback.confirmed && !body.contains("culprits")) {
    return bad_body("a verdict that is wrong needs what was right",
                    "add \"culprits\": the nodes at fault, [] when no node was");
  }
  feedback.by = by.empty() ? request.caller.name : fmt::format("{} ({})", by, request.caller.name);
  HttpReply fine;
  fine.status = 0;
  return fine;
}

/// The verdict names the incident, the incident its latest verdict; status 0 when both are stored.
HttpReply find_verdict(Api& api, Feedback& feedback) {
  HttpReply fine;
  fine.status = 0;
  if (!feedback.verdict_id.empty()) {
    auto found = api.store().verdict(feedback.verdict_id);
    if (!found) return store_error(found.error());
    const bool fits = found.value() &&
                      (feedback.incident.empty() || feedback.incident == found.value()->incident);
    if (!fits) {
      return reply_error(404, "there is no such verdict of this incident",
                         "see GET /api/v1/verdicts?incident=..");
    }
    feedback.incident = found.value()->incident;
    return fine;
  }
  VerdictFilter filter;
  filter.incident = feedback.incident;
  filter.newest_first = true;
  filter.limit = 1;
  auto page = api.store().verdicts(filter);
  if (!page) return store_error(page.error());
  if (feedback.incident.empty() || page.value().verdicts.empty()) {
    return reply_error(404, "there is no such incident", "see GET /api/v1/incidents?state=all");
  }
  feedback.verdict_id = page.value().verdicts.front().id;
  return fine;
}

HttpReply give_feedback(Api& api, const HttpRequest& request) {
  Feedback feedback;
  if (auto fault = read_feedback(request, feedback); fault.status != 0) return fault;
  if (auto fault = find_verdict(api, feedback); fault.status != 0) return fault;
  // The journal first: what is learned is what is kept.
  if (auto done = api.port().feedback(feedback); !done) {
    return reply_error(503, done.error().message, "send it again");
  }
  StoredFeedback row{0,
                     feedback.incident,
                     feedback.verdict_id,
                     feedback.confirmed,
                     feedback.culprits,
                     feedback.fault,
                     feedback.by,
                     feedback.comment,
                     wall_now_ns()};
  auto sequence = api.store().add_feedback(row);
  if (!sequence) return store_error(sequence.error());
  return reply_json({{"sequence", sequence.value()}, {"incident", feedback.incident}}, 201);
}

HttpReply list_feedback(Api& api, const HttpRequest& request) {
  uint64_t limit = 100;
  if (!number_param(request, "limit", 1, 1000, limit)) {
    return bad_param("limit", "a number from 1 to 1000");
  }
  auto found = api.store().feedback(request.param("incident"), static_cast<unsigned>(limit));
  if (!found) return store_error(found.error());
  Json out = Json::array();
  for (const StoredFeedback& f : found.value()) {
    out.push_back({{"sequence", f.sequence},
                   {"incident", f.incident},
                   {"verdict", f.verdict_id},
                   {"confirmed", f.confirmed},
                   {"culprits", f.culprits},
                   {"fault", f.fault.empty() ? Json() : Json(f.fault)},
                   {"by", f.by},
                   {"comment", f.comment},
                   {"at", instant(f.wall_ns)}});
  }
  return reply_json({{"feedback", out}});
}

Json suppression_json(const StoredSuppression& s) {
  return Json{{"id", s.id},
              {"node", s.node.empty() ? Json() : Json(s.node)},
              {"signal", s.signal.empty() ? Json() : Json(s.signal)},
              {"from", instant(s.from_ns)},
              {"until", instant(s.until_ns)},
              {"reason", s.reason},
              {"by", s.by},
              {"created", instant(s.created_wall_ns)},
              {"lifted", s.lifted_wall_ns ? instant(*s.lifted_wall_ns) : Json()}};
}

constexpr std::string_view kSuppressionForm =
    R"(send {"node": .., "signal": .., "until": RFC 3339, "reason": ..}; one of node and signal may be left out)";

/// A member as an instant; false: there and malformed.
bool instant_member(const Json& body, const char* name, int64_t& out) {
  std::string text;
  if (!text_member(body, name, text, 64)) return false;
  if (text.empty()) return !body.contains(name) || body[name].is_null();
  const auto time = parse_rfc3339(text);
  if (time) out = time->ns;
  return time.has_value();
}

HttpReply suppress(Api& api, const HttpRequest& request) {
  const Json body = parse_json(request.body);
  if (!body.is_object()) return bad_body("the body is no JSON object", kSuppressionForm);
  StoredSuppression s;
  s.created_wall_ns = wall_now_ns();
  s.from_ns = s.created_wall_ns;
  const bool fine =
      text_member(body, "node", s.node, 253) && text_member(body, "signal", s.signal, 256) &&
      text_member(body, "reason", s.reason) && instant_member(body, "from", s.from_ns) &&
      instant_member(body, "until", s.until_ns);
  if (!fine) return bad_body("a member is malformed", kSuppressionForm);
  if (s.node.empty() && s.signal.empty()) {
    return bad_body("neither a node nor a signal: that would silence everything", kSuppressionForm);
  }
  // As in packs (A11): both are mandatory, so that nothing is silenced for ever or for no reason.
  if (s.reason.empty()) return bad_body("a reason is needed", kSuppressionForm);
  if (s.until_ns <= std::max(s.from_ns, s.created_wall_ns)) {
    return bad_body("until is not later than now and from", kSuppressionForm);
  }
  s.by = request.caller.name;
  auto id = api.store().add_suppression(s);
  if (!id) return store_error(id.error());
  s.id = id.value();
  const SuppressionOrder order{s.id,       s.node,   s.signal, s.from_ns,
                               s.until_ns, s.reason, s.by,     false};
  if (auto done = api.port().suppress(order); !done) {
    (void)api.store().lift_suppression(s.id, wall_now_ns());
    return reply_error(503, done.error().message, "send it again");
  }
  return reply_json(suppression_json(s), 201);
}

HttpReply list_suppressions(Api& api, const HttpRequest& request) {
  const std::string state = request.param("state");
  if (!state.empty() && state != "in_force" && state != "all") {
    return bad_param("state", "in_force or all");
  }
  auto found = api.store().suppressions(wall_now_ns(), state == "all");
  if (!found) return store_error(found.error());
  Json out = Json::array();
  for (const StoredSuppression& s : found.value()) out.push_back(suppression_json(s));
  return reply_json({{"suppressions", out}});
}

HttpReply lift(Api& api, const HttpRequest& request) {
  const std::string& id = request.named.at("id");
  SuppressionOrder order;
  order.id = id;
  order.by = request.caller.name;
  order.lifted = true;
  const int64_t now_ns = wall_now_ns();
  auto in_force = api.store().suppressions(now_ns, false);
  if (!in_force) return store_error(in_force.error());
  bool known = false;
  for (const StoredSuppression& s : in_force.value()) {
    if (s.id != id) continue;
    known = true;
    order.node = s.node;
    order.signal = s.signal;
    order.from_ns = s.from_ns;
    // What began before stays suppressed; what begins from now on counts.
    order.until_ns = std::max(s.from_ns, now_ns);
    order.reason = s.reason;
  }
  if (!known) {
    return reply_error(404, "no such suppression is in force", "see GET /api/v1/suppressions");
  }
  if (auto done = api.port().suppress(order); !done) {
    return reply_error(503, done.error().message, "send it again");
  }
  if (auto done = api.store().lift_suppression(id, now_ns); !done) return store_error(done.error());
  return reply_json({{"id", id}, {"lifted", instant(now_ns)}});
}

}  // namespace

void add_people_routes(Api& api) {
  Router& router = api.router();
  const auto with = [&api](HttpReply (*handle)(Api&, const HttpRequest&)) {
    return [&api, handle](const HttpRequest& request) { return handle(api, request); };
  };
  router.add({"POST", "/api/v1/feedback", Role::kOperate, with(give_feedback)});
  router.add({"GET", "/api/v1/feedback", Role::kRead, with(list_feedback), {"incident", "limit"}});
  router.add({"POST", "/api/v1/suppressions", Role::kOperate, with(suppress)});
  router.add({"GET", "/api/v1/suppressions", Role::kRead, with(list_suppressions), {"state"}});
  router.add({"DELETE", "/api/v1/suppressions/{id}", Role::kOperate, with(lift)});
}

}  // namespace reflex::serve

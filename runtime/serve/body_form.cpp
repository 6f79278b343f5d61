// Lengths and bytes; see body_form.h.
#include "runtime/serve/body_form.h"

#include <charconv>
#include <initializer_list>

namespace reflex::serve {
namespace {

void put(std::string& out, std::string_view text) {
  uint64_t size = text.size();
  for (; size >= 0x80; size >>= 7) out.push_back(static_cast<char>(size | 0x80));
  out.push_back(static_cast<char>(size));
  out.append(text);
}

bool get(std::string_view& rest, std::string_view& out) {
  uint64_t size = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    if (rest.empty()) return false;
    const auto byte = static_cast<uint8_t>(rest.front());
    rest.remove_prefix(1);
    size |= uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) {
      if (size > rest.size()) return false;
      out = rest.substr(0, size);
      rest.remove_prefix(size);
      return true;
    }
  }
  return false;
}

}  // namespace

std::string body_head(const BodyView& body) {
  std::string head;
  for (const auto part : {body.source, body.node, body.key, body.cursor}) put(head, part);
  return head;
}

std::optional<BodyView> read_body(std::string_view payload) {
  BodyView body;
  for (auto* part : {&body.source, &body.node, &body.key, &body.cursor}) {
    if (!get(payload, *part)) return std::nullopt;
  }
  body.text = payload;
  return body;
}

std::string feedback_payload(const Feedback& feedback) {
  std::string out;
  for (const auto& part :
       {feedback.incident, feedback.verdict_id, feedback.fault, feedback.by, feedback.comment}) {
    put(out, part);
  }
  put(out, feedback.confirmed ? "1" : "0");
  for (const auto& culprit : feedback.culprits) put(out, culprit);
  return out;
}

std::optional<Feedback> read_feedback(std::string_view payload) {
  Feedback feedback;
  std::string_view part;
  for (auto* text : {&feedback.incident, &feedback.verdict_id, &feedback.fault, &feedback.by,
                     &feedback.comment}) {
    if (!get(payload, part)) return std::nullopt;
    *text = part;
  }
  if (!get(payload, part)) return std::nullopt;
  feedback.confirmed = part == "1";
  while (!payload.empty()) {
    if (!get(payload, part)) return std::nullopt;
    feedback.culprits.emplace_back(part);
  }
  return feedback;
}

std::string set_payload(const SetEntry& entry) {
  std::string out;
  for (const auto& part : {entry.key, std::to_string(entry.base), std::string(entry.warm ? "1" : "0")})
    put(out, part);
  return out;
}

std::optional<SetEntry> read_set(std::string_view payload) {
  SetEntry entry;
  std::string_view key;
  std::string_view base;
  std::string_view warm;
  if (!get(payload, key) || !get(payload, base) || !get(payload, warm)) return std::nullopt;
  entry.key = key;
  std::from_chars(base.data(), base.data() + base.size(), entry.base);
  entry.warm = warm == "1";
  return entry;
}

std::string suppression_payload(const SuppressionOrder& order) {
  std::string out;
  for (const auto& part :
       {order.id, order.node, order.signal, std::to_string(order.from_ns),
        std::to_string(order.lifted ? order.from_ns : order.until_ns), order.reason, order.by}) {
    put(out, part);
  }
  return out;
}

std::optional<SuppressionOrder> read_suppression(std::string_view payload) {
  SuppressionOrder order;
  std::string_view from;
  std::string_view until;
  std::string_view part;
  for (auto* text : {&order.id, &order.node, &order.signal}) {
    if (!get(payload, part)) return std::nullopt;
    *text = part;
  }
  if (!get(payload, from) || !get(payload, until)) return std::nullopt;
  std::from_chars(from.data(), from.data() + from.size(), order.from_ns);
  std::from_chars(until.data(), until.data() + until.size(), order.until_ns);
  for (auto* text : {&order.reason, &order.by}) {
    if (!get(payload, part)) return std::nullopt;
    *text = part;
  }
  order.lifted = order.until_ns <= order.from_ns;
  return order;
}

}  // namespace reflex::serve

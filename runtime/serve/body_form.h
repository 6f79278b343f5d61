// The payloads of journal entries: an accepted body, feedback, suppressions.
//
// Form of a body: source, node, key, cursor, each as varint length + bytes, then the text as it
// came, to the end of the payload. `cursor` is what a source needs to go on after this body (file
// identity and offset); it is accepted together with the body, so that none is read twice.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "runtime/serve/port.h"

namespace reflex::serve {

struct BodyView {
  std::string_view source;
  std::string_view node;
  std::string_view key;
  std::string_view cursor;
  std::string_view text;
};

/// All but the text.
std::string body_head(const BodyView& body);
std::optional<BodyView> read_body(std::string_view payload);

std::string feedback_payload(const Feedback& feedback);
std::optional<Feedback> read_feedback(std::string_view payload);
std::string suppression_payload(const SuppressionOrder& order);
std::optional<SuppressionOrder> read_suppression(std::string_view payload);

}  // namespace reflex::serve

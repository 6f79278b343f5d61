// The payloads of journal entries: an accepted body, feedback, suppressions, a set that takes over.
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
/// From the end of the entry on the set that is kept under `key` is the live one.
struct SetEntry {
  std::string key;  // LoadedSet::key
  /// Where its lane began with the state of the live one; from there to the entry it read on without
  /// a word. UINT64_MAX: at the end of the entry.
  uint64_t base = UINT64_MAX;
  /// Its lane had run since long before (a shadow): its state at `base` is kept with the set.
  bool warm = false;
};
std::string set_payload(const SetEntry& entry);
std::optional<SetEntry> read_set(std::string_view payload);
std::string suppression_payload(const SuppressionOrder& order);
std::optional<SuppressionOrder> read_suppression(std::string_view payload);

}  // namespace reflex::serve

// Fields: what the members of events, inventories and labels mean, by their key.
//
// One table; a key that is not in it is unknown: its strings are dropped unless they are exactly a
// known name or a time, its numbers are kept.
#pragma once

#include <string>
#include <string_view>

#include "runtime/anonymize/pseudonyms.h"

namespace reflex::anonymize {

enum class FieldUse : uint8_t {
  kName,    // a name, or a list of names (an array, or "a,b,c")
  kTime,    // RFC 3339, or a number of s, ms, us or ns since the epoch
  kWord,    // kinds, codes, severities: kept, but names inside are replaced
  kText,    // dropped
  kLabels,  // an object of labels
  kPlace,   // a gpu, disk, dimm: an index or an address, kept; a uuid is a serial
  kUnknown,
};

struct Field {
  FieldUse use = FieldUse::kUnknown;
  NameKind kind = NameKind::kLabel;
};

/// By the key in lower case, of an event or of a label.
Field field_of(std::string_view key);
/// A site's own label: its value is a name unless it is a number or a truth value.
Field label_of(std::string_view key);
/// Whether a label's key tells whose cluster it is ("acme.com/team").
bool is_site_key(std::string_view key);
/// A word: at most 64 letters, digits, spaces and _ . : + / < > = -
bool is_word(std::string_view text);
/// A number, true, false, yes, no, none, null: nobody's name.
bool is_plain_value(std::string_view text);
bool is_digits(std::string_view text);

}  // namespace reflex::anonymize

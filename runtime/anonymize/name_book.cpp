// See name_book.h.
#include "runtime/anonymize/name_book.h"

namespace reflex::anonymize {
namespace {

uint64_t fingerprint(std::string_view text) {  // FNV-1a
  uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char c : text) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001b3ULL;
  }
  return hash;
}

}  // namespace

std::string NameBook::of(NameKind kind, std::string_view name) {
  if (kind == NameKind::kEventId) {
    ids_.insert(fingerprint(name));
    return pseudonyms_.of(kind, name);
  }
  Names& names = names_[static_cast<size_t>(kind)];
  const auto it = names.find(name);
  if (it != names.end()) return it->second;
  return names.emplace(std::string(name), pseudonyms_.of(kind, name)).first->second;
}

NameKind NameBook::known(std::string_view name) const {
  for (size_t k = 0; k < static_cast<size_t>(NameKind::kSource); ++k) {
    const auto kind = static_cast<NameKind>(k);
    // A site's label may have any word as its value: only its own field tells.
    if (kind == NameKind::kLabel || kind == NameKind::kLabelKey) continue;
    if (names_[k].find(name) != names_[k].end()) return kind;
  }
  return NameKind::kCount;
}

bool NameBook::is_id(std::string_view text) const { return ids_.count(fingerprint(text)) != 0; }

}  // namespace reflex::anonymize

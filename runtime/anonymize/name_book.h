// NameBook: every original name that is replaced, with its pseudonym.
//
// Filled in the first pass, asked in the second, searched for in the third. Event ids are too many
// to keep: of each only a 64-bit fingerprint stays. Iteration is in order of (kind, name).
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_set>

#include "runtime/anonymize/pseudonyms.h"

namespace reflex::anonymize {

class NameBook {
 public:
  explicit NameBook(const Pseudonyms& pseudonyms) : pseudonyms_(pseudonyms) {}

  /// The pseudonym of a name; learns the name when it is new.
  std::string of(NameKind kind, std::string_view name);
  /// The kind under which a name is known, the most telling first; kCount: unknown.
  [[nodiscard]] NameKind known(std::string_view name) const;
  [[nodiscard]] bool is_id(std::string_view text) const;
  [[nodiscard]] uint64_t id_count() const { return ids_.size(); }

  using Names = std::map<std::string, std::string, std::less<>>;  // name -> pseudonym
  [[nodiscard]] const Names& names(NameKind kind) const {
    return names_[static_cast<size_t>(kind)];
  }
  [[nodiscard]] const Pseudonyms& pseudonyms() const { return pseudonyms_; }

 private:
  const Pseudonyms& pseudonyms_;
  std::array<Names, static_cast<size_t>(NameKind::kCount)> names_;
  std::unordered_set<uint64_t> ids_;
};

}  // namespace reflex::anonymize

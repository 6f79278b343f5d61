// Survivors: searches the bytes of an output for original names.
//
// What is searched, by the shape of a name:
//  - 6 bytes or more with a character that no pseudonym has (upper case, - _ . : / 0 1 8 9): as a
//    substring anywhere, keys and the inside of other words included;
//  - 4 bytes or more: as a token, that is not beside another letter or digit;
//  - shorter, digits only, values of site labels, sources, and event ids: as a whole JSON string (a
//    number of 6 digits or more also as a bare number); "8" or "prod" inside other words is no
//    name.
// A whole string that the rewriter kept on purpose (a kind, a code) is not held against a label's
// value or a source of the same spelling. Names of `allow` are not searched.
// Cost: one look-up in a 64 Ki-bit filter for each byte, a hash set behind it.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "runtime/anonymize/anonymize.h"
#include "runtime/anonymize/name_book.h"

namespace reflex::anonymize {

class SurvivorSearch {
 public:
  SurvivorSearch(const NameBook& book, const std::set<std::string>& kept_words,
                 const std::set<std::string>& allow);

  /// `text` is whole lines; the first has number `first_line`. Appends what is found.
  void search(std::string_view text, uint64_t first_line, const std::string& file,
              std::vector<Survivor>& out) const;
  [[nodiscard]] uint64_t by_whole_string() const { return whole_.size(); }

 private:
  struct Name {
    NameKind kind;
    bool token;  // must stand alone; else: anywhere
  };
  void add(NameKind kind, const std::string& name);
  void search_line(std::string_view line, uint64_t number, const std::string& file,
                   std::vector<Survivor>& out) const;
  /// Names that start at `at`.
  void match_at(std::string_view line, size_t at, uint64_t number, const std::string& file,
                std::vector<Survivor>& out) const;
  /// Whole strings and bare numbers.
  void match_whole(std::string_view line, uint64_t number, const std::string& file,
                   std::vector<Survivor>& out) const;

  const NameBook& book_;
  const std::set<std::string>& kept_words_;
  std::bitset<1 << 16> first_bytes_;  // of the names in `inside_`, by a hash of 4 bytes
  std::vector<size_t> lengths_;       // of the names in `inside_`
  std::unordered_map<std::string_view, Name> inside_;
  std::unordered_map<std::string_view, NameKind> whole_;
};

}  // namespace reflex::anonymize

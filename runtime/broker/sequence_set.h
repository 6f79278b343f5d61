// SequenceSet: which sequence numbers of a stream have been accepted, as ranges.
//
// A range may hold numbers that are none of ours (of other subjects): what stands in it will not be
// accepted again. Text form: "3-17,20-20".
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace reflex::broker {

class SequenceSet {
 public:
  [[nodiscard]] bool contains(uint64_t number) const;
  /// All from `from` to `to`; joins what it touches.
  void add(uint64_t from, uint64_t to);
  /// Nothing up to `floor` comes any more. What it ends below is forgotten.
  void forget(uint64_t floor);
  [[nodiscard]] size_t ranges() const { return ends_.size(); }
  [[nodiscard]] std::string text() const;
  /// What is not of the form is left out.
  static SequenceSet parse(std::string_view text);

 private:
  std::map<uint64_t, uint64_t> ends_;  // by first number; apart by more than one
};

}  // namespace reflex::broker

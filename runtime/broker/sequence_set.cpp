// Ranges; see sequence_set.h.
#include "runtime/broker/sequence_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace reflex::broker {

bool SequenceSet::contains(uint64_t number) const {
  auto it = ends_.upper_bound(number);
  return it != ends_.begin() && std::prev(it)->second >= number;
}

void SequenceSet::add(uint64_t from, uint64_t to) {
  auto it = ends_.upper_bound(from);
  if (it != ends_.begin() && std::prev(it)->second + 1 >= from) --it;
  while (it != ends_.end() && it->first <= to + 1) {
    from = std::min(from, it->first);
    to = std::max(to, it->second);
    it = ends_.erase(it);
  }
  ends_[from] = to;
}

void SequenceSet::forget(uint64_t floor) {
  while (!ends_.empty() && ends_.begin()->second <= floor) ends_.erase(ends_.begin());
}

std::string SequenceSet::text() const {
  std::string out;
  for (const auto& [from, to] : ends_) {
    out += fmt::format("{}{}-{}", out.empty() ? "" : ",", from, to);
  }
  return out;
}

SequenceSet SequenceSet::parse(std::string_view text) {
  SequenceSet set;
  while (!text.empty()) {
    const auto part = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), part.size() + 1));
    uint64_t from = 0;
    uint64_t to = 0;
    const char* end = part.data() + part.size();
    const auto first = std::from_chars(part.data(), end, from);
    if (first.ec != std::errc() || first.ptr == end || *first.ptr != '-') continue;
    const auto second = std::from_chars(first.ptr + 1, end, to);
    if (second.ec == std::errc() && second.ptr == end && from <= to) set.add(from, to);
  }
  return set;
}

}  // namespace reflex::broker

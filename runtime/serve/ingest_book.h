// IngestBook: what has been accepted so far, by source: counts, where each source goes on, and the
// keys of the newest bodies.
//
// A function of the journal: the lane keeps one for the state it saves, the accepting side one that
// runs ahead of it by what is not evaluated yet. Bound: kKeysMax keys (a repeat that comes later
// than as many other bodies is a new one).
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <unordered_set>

#include "runtime/base/state_stream.h"
#include "runtime/serve/body_form.h"
#include "runtime/serve/journal.h"

namespace reflex::serve {

class IngestBook {
 public:
  struct Source {
    uint64_t bodies = 0;
    uint64_t bytes = 0;
    std::string cursor;
  };

  void apply(EntryType type, const BodyView& body);
  [[nodiscard]] bool has_key(std::string_view key) const;
  [[nodiscard]] const std::map<std::string, Source, std::less<>>& sources() const {
    return sources_;
  }
  [[nodiscard]] std::string cursor(std::string_view source) const;

  void save(StateWriter& out) const;
  bool load(StateReader& in);

 private:
  static constexpr size_t kKeysMax = 200'000;  // Why: minutes of retries at 1,000 bodies a second
  void add_key(uint64_t hash);
  std::map<std::string, Source, std::less<>> sources_;
  std::deque<uint64_t> order_;
  std::unordered_set<uint64_t> keys_;  // only looked up
};

}  // namespace reflex::serve

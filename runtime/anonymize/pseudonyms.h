// Pseudonyms: HMAC-SHA256 of (kind, name) as one short word, and the time shift, both from a key.
//
// Form: a letter for the kind, then 16 letters of base32 (80 bits): "nqk3v7...". One word without
// separators, so that no name of the site can be a token of it. Two names of one kind collide with
// a chance of about n^2 / 2^81.
// Not thread-safe: one object a run.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace reflex::anonymize {

/// What a name names. Names of different kinds get unrelated pseudonyms.
enum class NameKind : uint8_t {
  kNode,
  kJob,
  kIncident,
  kRack,
  kTor,
  kPod,
  kZone,
  kNic,
  kStorage,
  kSerial,    // serials, uuids, addresses: also a name of a thing
  kOwner,     // users, teams, projects, clusters
  kLabel,     // value of a site's own label
  kLabelKey,  // key of a site's own label
  kSource,    // where events came from
  kEventId,
  kCount,
};
std::string_view word(NameKind kind);

class Pseudonyms {
 public:
  explicit Pseudonyms(std::string_view key);
  ~Pseudonyms();
  [[nodiscard]] std::string of(NameKind kind, std::string_view name) const;
  /// Negative: into the past. A whole number of weeks, so that days of the week, hours of the day
  /// and every bucket of time stay what they were.
  [[nodiscard]] int64_t shift_ns() const { return shift_ns_; }

 private:
  struct Mac;
  [[nodiscard]] std::string digest(std::string_view domain, std::string_view name) const;
  std::unique_ptr<Mac> mac_;
  int64_t shift_ns_ = 0;
};

}  // namespace reflex::anonymize

// BodyBudget: memory of request bodies over all requests together, as sent and decoded.
//
// http.body_max bounds one body; with hundreds of connections that alone is tens of GiB. Each
// request takes its bytes from one budget as they come; when it is used up the request is refused
// (429) and gives back what it had. Not counted: what a route makes of a body (JSON trees).
// Threads: any.
#pragma once

#include <atomic>
#include <cstdint>

namespace reflex::serve {

class BodyBudget {
 public:
  explicit BodyBudget(uint64_t bytes) : free_(static_cast<int64_t>(bytes)) {}

  bool take(uint64_t bytes) {
    const auto wanted = static_cast<int64_t>(bytes);
    if (free_.fetch_sub(wanted) >= wanted) return true;
    free_ += wanted;
    return false;
  }
  void give(uint64_t bytes) { free_ += static_cast<int64_t>(bytes); }

 private:
  std::atomic<int64_t> free_;
};

/// What one request holds of the budget; given back with it.
class BodyLease {
 public:
  explicit BodyLease(BodyBudget& budget) : budget_(budget) {}
  ~BodyLease() { budget_.give(held_); }
  BodyLease(const BodyLease&) = delete;
  BodyLease& operator=(const BodyLease&) = delete;

  /// False: there is no room for as many more.
  bool more(uint64_t bytes) {
    if (!budget_.take(bytes)) return false;
    held_ += bytes;
    return true;
  }
  void less(uint64_t bytes) {
    budget_.give(bytes);
    held_ -= bytes;
  }

 private:
  BodyBudget& budget_;
  uint64_t held_ = 0;
};

}  // namespace reflex::serve

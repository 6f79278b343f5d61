// Result<T>: the carrier of environment errors (files, sockets, JIT memory, versions).
//
// Contract: a function that can fail for a reason outside of our code returns Result<T>; the
// caller adds context while passing it up. Rule authors' mistakes travel as diag::Diagnostic, bad
// input data is counted, our own bugs abort through RFX_CHECK. g++ 12 has no std::expected.
#pragma once

#include <string>
#include <utility>
#include <variant>

#include "runtime/base/check.h"

namespace reflex {

/// What went wrong outside of our code. `exit_code` follows language.md B2 (3 = usage or I/O).
struct Error {
  std::string message;
  int exit_code = 3;

  /// Prefixes where it happened: "reading x.ndjson: permission denied".
  [[nodiscard]] Error in(std::string_view context) && {
    message = std::string(context) + ": " + message;
    return std::move(*this);
  }
};

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  [[nodiscard]] bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  [[nodiscard]] T& value() & {
    RFX_CHECK(ok());
    return std::get<0>(state_);
  }
  [[nodiscard]] const T& value() const& {
    RFX_CHECK(ok());
    return std::get<0>(state_);
  }
  [[nodiscard]] T&& value() && {
    RFX_CHECK(ok());
    return std::get<0>(std::move(state_));
  }
  [[nodiscard]] const Error& error() const {
    RFX_CHECK(!ok());
    return std::get<1>(state_);
  }

 private:
  std::variant<T, Error> state_;
};

/// Success without a value.
struct Done {};
using Status = Result<Done>;
inline Status ok_status() { return Done{}; }

}  // namespace reflex

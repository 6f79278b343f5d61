// Decoding of request bodies: identity, gzip, deflate (zlib), zstd; never more than a bound, nor
// than the budget of all requests has room for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "runtime/serve/http/body_budget.h"

namespace reflex::serve {

enum class BodyFault : uint8_t { kNone, kTooLarge, kDamaged, kUnknownEncoding, kNoRoom };

/// `encoding` is the Content-Encoding header. What is beyond `bytes_max` decoded is kTooLarge;
/// memory stays below it. A body that ends in the middle is kDamaged. What is decoded is taken from
/// `lease`, to which `body` itself belongs already.
BodyFault decode_body(const std::string& encoding, std::string&& body, size_t bytes_max,
                      BodyLease& lease, std::string& out);

}  // namespace reflex::serve

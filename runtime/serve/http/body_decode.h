// Decoding of request bodies: identity, gzip, deflate (zlib), zstd; never more than a bound.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace reflex::serve {

enum class BodyFault : uint8_t { kNone, kTooLarge, kDamaged, kUnknownEncoding };

/// `encoding` is the Content-Encoding header. What is beyond `bytes_max` decoded is kTooLarge;
/// memory stays below it. A body that ends in the middle is kDamaged.
BodyFault decode_body(const std::string& encoding, std::string&& body, size_t bytes_max,
                      std::string& out);

}  // namespace reflex::serve

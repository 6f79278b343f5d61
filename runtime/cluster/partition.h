// Which worker a name belongs to. The same in every process and version: FNV-1a of the name.
#pragma once

#include <cstdint>
#include <string_view>

namespace reflex::cluster {

inline uint32_t partition_of(std::string_view name, uint32_t count) {
  uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char c : name) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001b3ULL;
  }
  // Why the fold: the low bits of FNV-1a of short names that differ in their last byte are close.
  return static_cast<uint32_t>((hash ^ hash >> 32) % count);
}

}  // namespace reflex::cluster

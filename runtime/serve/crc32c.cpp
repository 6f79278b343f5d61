// Table form (slicing by 8) and SSE 4.2 form; see crc32c.h.
#include "runtime/serve/crc32c.h"

#include <array>
#include <cstddef>
#include <cstring>
#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace reflex::serve {
namespace {

using Tables = std::array<std::array<uint32_t, 256>, 8>;

constexpr Tables make_tables() {
  Tables tables{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = crc & 1 ? crc >> 1 ^ 0x82F63B78u : crc >> 1;
    tables[0][i] = crc;
  }
  for (uint32_t i = 0; i < 256; ++i) {
    for (size_t t = 1; t < 8; ++t) {
      tables[t][i] = tables[t - 1][i] >> 8 ^ tables[0][tables[t - 1][i] & 0xFF];
    }
  }
  return tables;
}
constexpr Tables kTables = make_tables();

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) uint32_t crc32c_sse(std::string_view bytes, uint32_t before) {
  uint64_t crc = ~before;
  const char* p = bytes.data();
  size_t left = bytes.size();
  for (; left >= 8; left -= 8, p += 8) {
    uint64_t word;
    std::memcpy(&word, p, 8);
    crc = _mm_crc32_u64(crc, word);
  }
  auto narrow = static_cast<uint32_t>(crc);
  for (; left > 0; --left, ++p) narrow = _mm_crc32_u8(narrow, static_cast<unsigned char>(*p));
  return ~narrow;
}
#endif

}  // namespace

uint32_t crc32c_plain(std::string_view bytes, uint32_t before) {
  uint32_t crc = ~before;
  const char* p = bytes.data();
  size_t left = bytes.size();
  for (; left >= 8; left -= 8, p += 8) {
    uint64_t word;
    std::memcpy(&word, p, 8);
    word ^= crc;
    crc = 0;
    for (size_t t = 0; t < 8; ++t) crc ^= kTables[7 - t][word >> (8 * t) & 0xFF];
  }
  for (; left > 0; --left, ++p) crc = crc >> 8 ^ kTables[0][(crc ^ static_cast<uint8_t>(*p)) & 0xFF];
  return ~crc;
}

uint32_t crc32c(std::string_view bytes, uint32_t before) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("sse4.2")) return crc32c_sse(bytes, before);
#endif
  return crc32c_plain(bytes, before);
}

}  // namespace reflex::serve

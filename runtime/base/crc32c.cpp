// Castagnoli checksum, by instruction or by table: see crc32c.h.
#include "runtime/base/crc32c.h"

#include <array>
#include <cstring>

namespace reflex {
namespace {

// Source: RFC 3720 B.4, the polynomial 0x1EDC6F41 reflected.
constexpr uint32_t kPolynomial = 0x82F63B78u;

constexpr std::array<std::array<uint32_t, 256>, 8> make_tables() {
  std::array<std::array<uint32_t, 256>, 8> tables{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? kPolynomial : 0);
    tables[0][i] = crc;
  }
  for (uint32_t i = 0; i < 256; ++i) {
    for (size_t t = 1; t < 8; ++t) {
      tables[t][i] = (tables[t - 1][i] >> 8) ^ tables[0][tables[t - 1][i] & 0xff];
    }
  }
  return tables;
}

constexpr auto kTables = make_tables();

uint32_t by_table(const char* data, size_t size, uint32_t crc) {
  for (; size >= 8; data += 8, size -= 8) {
    uint64_t word;
    std::memcpy(&word, data, sizeof word);
    word ^= crc;
    crc = 0;
    for (unsigned t = 0; t < 8; ++t) crc ^= kTables[7 - t][word >> 8 * t & 0xff];
  }
  for (; size > 0; ++data, --size) {
    crc = (crc >> 8) ^ kTables[0][(crc ^ static_cast<unsigned char>(*data)) & 0xff];
  }
  return crc;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) uint32_t by_instruction(const char* data, size_t size,
                                                          uint32_t crc) {
  uint64_t wide = crc;
  for (; size >= 8; data += 8, size -= 8) {
    uint64_t word;
    std::memcpy(&word, data, sizeof word);
    wide = __builtin_ia32_crc32di(wide, word);
  }
  crc = static_cast<uint32_t>(wide);
  for (; size > 0; ++data, --size) {
    crc = __builtin_ia32_crc32qi(crc, static_cast<unsigned char>(*data));
  }
  return crc;
}
#endif

}  // namespace

uint32_t crc32c(std::string_view bytes, uint32_t before) {
  const uint32_t crc = ~before;
#if defined(__x86_64__)
  if (__builtin_cpu_supports("sse4.2")) return ~by_instruction(bytes.data(), bytes.size(), crc);
#endif
  return ~by_table(bytes.data(), bytes.size(), crc);
}

}  // namespace reflex

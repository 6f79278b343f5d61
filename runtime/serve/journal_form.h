// The bytes of a journal: what its writer and its readers agree on. See journal.h.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/serve/journal.h"

namespace reflex::serve::journal_form {

inline constexpr std::string_view kSuffix = ".journal";
inline constexpr std::string_view kFileMagic = "RFXJRNL1";
inline constexpr uint64_t kHeaderBytes = 16;  // of a file
inline constexpr uint32_t kEntryMagic = 0x31455852;
inline constexpr uint64_t kEntryHeadBytes = 28;
inline constexpr uint64_t kEntryBytesMax = 256u << 20;

/// Head of an entry, little-endian: magic u32, crc u32 (of all that follows), payload bytes u64,
/// wall time i64, type u8, 3 zero bytes.
std::string entry_head(EntryType type, int64_t wall_ns, const std::vector<std::string_view>& parts);

struct Head {
  uint32_t crc = 0;
  uint64_t payload_bytes = 0;
  int64_t wall_ns = 0;
  EntryType type = EntryType::kEvents;
};
/// False when these bytes are no head.
bool read_head(std::string_view bytes, Head& out);
/// Whether `entry` (head and payload, whole) is what was written.
bool is_whole(std::string_view entry, const Head& head);

std::string segment_path(const std::string& folder, uint64_t begin);

struct Checked {
  bool has_header = false;
  uint64_t said_begin = 0;     // by the header
  uint64_t entry_bytes = 0;    // up to the end of the last whole entry
  uint64_t damaged_bytes = 0;  // before it
  std::string error;
};
/// `begin` is what its name says.
Checked check_segment(const std::string& path, uint64_t begin);

}  // namespace reflex::serve::journal_form

// Heads, checksums and the check of a segment; see journal_form.h.
#include "runtime/serve/journal_form.h"

#include <fmt/format.h>

#include <cstring>
#include <fstream>

#include "runtime/base/crc32c.h"

namespace reflex::serve::journal_form {
namespace {

template <typename T>
T get(std::string_view bytes, size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

}  // namespace

std::string entry_head(EntryType type, int64_t wall_ns,
                       const std::vector<std::string_view>& parts) {
  uint64_t bytes = 0;
  for (const auto part : parts) bytes += part.size();
  std::string head(kEntryHeadBytes, '\0');
  std::memcpy(head.data(), &kEntryMagic, 4);
  std::memcpy(head.data() + 8, &bytes, 8);
  std::memcpy(head.data() + 16, &wall_ns, 8);
  head[24] = static_cast<char>(type);
  uint32_t crc = crc32c(std::string_view(head).substr(8));
  for (const auto part : parts) crc = crc32c(part, crc);
  std::memcpy(head.data() + 4, &crc, 4);
  return head;
}

bool read_head(std::string_view bytes, Head& out) {
  if (bytes.size() < kEntryHeadBytes || get<uint32_t>(bytes, 0) != kEntryMagic) return false;
  out.crc = get<uint32_t>(bytes, 4);
  out.payload_bytes = get<uint64_t>(bytes, 8);
  out.wall_ns = get<int64_t>(bytes, 16);
  out.type = static_cast<EntryType>(bytes[24]);
  return out.payload_bytes <= kEntryBytesMax;
}

bool is_whole(std::string_view entry, const Head& head) {
  return crc32c(entry.substr(8)) == head.crc;
}

std::string segment_path(const std::string& folder, uint64_t begin) {
  return fmt::format("{}/{:020}{}", folder, begin, kSuffix);
}

// The whole segment is read: some 64 MiB, once a start.
Checked check_segment(const std::string& path, uint64_t begin) {
  Checked checked;
  std::ifstream file(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (!file) {
    checked.error = fmt::format("{} cannot be read", path);
    return checked;
  }
  if (text.size() < kHeaderBytes) return checked;
  // Name and header both tell where it begins: a damaged magic alone says nothing new.
  const bool magic_damaged = text.compare(0, kFileMagic.size(), kFileMagic) != 0;
  checked.said_begin = get<uint64_t>(text, 8);
  checked.has_header = true;
  const std::string_view entries = std::string_view(text).substr(kHeaderBytes);
  uint64_t at = 0;
  uint64_t good = 0;  // bytes of whole entries
  char magic[4];
  std::memcpy(magic, &kEntryMagic, 4);
  while (at < entries.size()) {
    Head head;
    const std::string_view rest = entries.substr(at);
    if (read_head(rest, head) && head.payload_bytes <= rest.size() - kEntryHeadBytes &&
        is_whole(rest.substr(0, kEntryHeadBytes + head.payload_bytes), head)) {
      at += kEntryHeadBytes + head.payload_bytes;
      good += kEntryHeadBytes + head.payload_bytes;
      checked.entry_bytes = at;
      continue;
    }
    const size_t next = rest.find(std::string_view(magic, 4), 1);
    if (next == std::string_view::npos) break;
    at += next;
  }
  if (magic_damaged && good == 0) {  // not ours to cut
    checked.error = fmt::format("{} is no journal segment: move it away", path);
  }
  checked.damaged_bytes = checked.entry_bytes - good + (magic_damaged ? kFileMagic.size() : 0) +
                          (checked.said_begin == begin ? 0 : sizeof begin);
  return checked;
}

}  // namespace reflex::serve::journal_form

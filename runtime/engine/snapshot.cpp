// Blocks with checksums, and a rename: see snapshot.h.
#include "runtime/engine/snapshot.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "runtime/base/crc32c.h"
#include "runtime/base/state_stream.h"
#include "runtime/engine/engine_version.h"

namespace reflex::engine {
namespace {

// A text file never begins so; the line ends find a copy that was "converted".
constexpr std::string_view kMagic("RFXSNAP\r\n\x1a\n\0", 12);
constexpr std::string_view kEndMark("RFXEND\r\n", 8);
// Why 1 MiB: a flipped bit is found before much of it was read; a header costs nothing.
constexpr size_t kBlockBytes = 1u << 20;
// Why: a header names packs; more is no header.
constexpr uint32_t kHeaderBytesMax = 16u << 20;

void append_u32(std::string& out, uint32_t value) {
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  out.append(bytes, sizeof bytes);
}

std::string encode(const SnapshotHeader& header, uint64_t state_bytes) {
  const SymbolTable none;
  StateWriter w(none);
  w.text(header.engine);
  w.text(header.set_sha256);
  w.u64(header.packs.size());
  for (const abi::PackIdentity& pack : header.packs) {
    w.text(pack.name);
    w.text(pack.version);
    w.text(pack.sha256);
  }
  w.u64(header.position);
  w.i64(header.wall_ns);
  w.u64(state_bytes);
  w.text(header.set_key);
  return w.take();
}

bool decode(std::string_view bytes, SnapshotHeader& header, uint64_t& state_bytes) {
  SymbolTable none;
  StateReader r(bytes, none);
  header.engine = r.text();
  header.set_sha256 = r.text();
  for (size_t left = r.count(3); left > 0 && !r.failed(); --left) {
    abi::PackIdentity& pack = header.packs.emplace_back();
    pack.name = r.text();
    pack.version = r.text();
    pack.sha256 = r.text();
  }
  header.position = r.u64();
  header.wall_ns = r.i64();
  state_bytes = r.u64();
  if (!r.at_end()) header.set_key = r.text();  // engines before 0.1 of 2026-11-30 wrote none
  return !r.failed();
}

std::string_view major_of(std::string_view version) { return version.substr(0, version.find('.')); }

Error system_error(const std::string& path, const char* what) {
  return Error{fmt::format("{}: cannot {}: {}", path, what, std::strerror(errno))};
}

/// A descriptor that closes itself.
class File {
 public:
  explicit File(int fd) : fd_(fd) {}
  ~File() {
    if (fd_ >= 0) ::close(fd_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  [[nodiscard]] bool is_open() const { return fd_ >= 0; }
  [[nodiscard]] int fd() const { return fd_; }

  [[nodiscard]] bool write(std::string_view bytes) const {
    while (!bytes.empty()) {
      const ssize_t done = ::write(fd_, bytes.data(), bytes.size());
      if (done < 0 && errno == EINTR) continue;
      if (done < 0) return false;
      bytes.remove_prefix(static_cast<size_t>(done));
    }
    return true;
  }
  /// Exactly so many bytes; false at an error (errno) or the end of the file (errno 0).
  [[nodiscard]] bool read(char* to, size_t size) const {
    while (size > 0) {
      const ssize_t done = ::read(fd_, to, size);
      if (done < 0 && errno == EINTR) continue;
      if (done <= 0) {
        if (done == 0) errno = 0;
        return false;
      }
      to += done;
      size -= static_cast<size_t>(done);
    }
    return true;
  }

 private:
  int fd_;
};

Status write_all(const File& file, const std::string& path, const SnapshotHeader& header,
                 std::string_view state) {
  const std::string encoded = encode(header, state.size());
  std::string begin(kMagic);
  append_u32(begin, kSnapshotFormat);
  append_u32(begin, static_cast<uint32_t>(encoded.size()));
  begin += encoded;
  append_u32(begin, crc32c(begin));
  if (!file.write(begin)) return system_error(path, "write");
  for (size_t at = 0; at < state.size(); at += kBlockBytes) {
    const std::string_view block = state.substr(at, kBlockBytes);
    std::string head;
    append_u32(head, static_cast<uint32_t>(block.size()));
    append_u32(head, crc32c(block));
    if (!file.write(head) || !file.write(block)) return system_error(path, "write");
  }
  if (!file.write(kEndMark)) return system_error(path, "write");
  if (::fsync(file.fd()) != 0) return system_error(path, "write to disk");
  return ok_status();
}

Status sync_folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  const File file(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!file.is_open() || ::fsync(file.fd()) != 0) return system_error(folder, "write to disk");
  return ok_status();
}

/// Why a read ended: the disk, or a file that is too short.
Error short_read(const std::string& path) {
  if (errno != 0) return system_error(path, "read");
  return Error{path + ": the snapshot is truncated"};
}

struct Opened {
  SnapshotHeader header;
  uint64_t state_bytes = 0;
};

Result<Opened> read_header(const File& file, const std::string& path) {
  std::string begin(kMagic.size() + 2 * sizeof(uint32_t), '\0');
  if (!file.read(begin.data(), begin.size())) return short_read(path);
  if (!begin.starts_with(kMagic)) return Error{path + ": not a snapshot of reflex"};
  uint32_t format;
  uint32_t size;
  std::memcpy(&format, begin.data() + kMagic.size(), sizeof format);
  std::memcpy(&size, begin.data() + kMagic.size() + sizeof format, sizeof size);
  if (format > kSnapshotFormat) {
    return Error{fmt::format("{}: snapshot format {}: this engine ({}) reads formats up to {}", path,
                             format, kEngineVersion, kSnapshotFormat)};
  }
  if (format == 0 || size > kHeaderBytesMax) {
    return Error{path + ": the snapshot is damaged: its header"};
  }
  const size_t at = begin.size();
  begin.resize(at + size);
  uint32_t checksum;
  char tail[sizeof checksum];
  if (!file.read(begin.data() + at, size) || !file.read(tail, sizeof tail)) {
    return short_read(path);
  }
  std::memcpy(&checksum, tail, sizeof checksum);
  Opened opened;
  const std::string_view encoded = std::string_view(begin).substr(at);
  if (crc32c(begin) != checksum || !decode(encoded, opened.header, opened.state_bytes)) {
    return Error{path + ": the snapshot is damaged: its header"};
  }
  opened.header.format = format;
  if (major_of(opened.header.engine) != major_of(kEngineVersion)) {
    return Error{fmt::format("{}: written by engine {}: engine {} reads snapshots of its own major "
                             "version only",
                             path, opened.header.engine, kEngineVersion)};
  }
  return opened;
}

Result<std::string> read_state(const File& file, const std::string& path, uint64_t state_bytes) {
  struct stat info {};
  if (::fstat(file.fd(), &info) != 0) return system_error(path, "read");
  // Before memory is asked for: a header may say anything.
  if (state_bytes > static_cast<uint64_t>(info.st_size)) {
    return Error{path + ": the snapshot is truncated"};
  }
  std::string state(state_bytes, '\0');
  for (size_t at = 0; at < state.size();) {
    char head[2 * sizeof(uint32_t)];
    if (!file.read(head, sizeof head)) return short_read(path);
    uint32_t size;
    uint32_t checksum;
    std::memcpy(&size, head, sizeof size);
    std::memcpy(&checksum, head + sizeof size, sizeof checksum);
    if (size != std::min(kBlockBytes, state.size() - at)) {
      return Error{fmt::format("{}: the snapshot is damaged: block at byte {} of its state", path, at)};
    }
    if (!file.read(state.data() + at, size)) return short_read(path);
    if (crc32c({state.data() + at, size}) != checksum) {
      return Error{fmt::format("{}: the snapshot is damaged: block at byte {} of its state", path, at)};
    }
    at += size;
  }
  char mark[kEndMark.size() + 1];
  if (!file.read(mark, kEndMark.size())) return short_read(path);
  if (std::string_view(mark, kEndMark.size()) != kEndMark || file.read(mark, 1)) {
    return Error{path + ": the snapshot is damaged: its end"};
  }
  return state;
}

}  // namespace

Status write_snapshot(const std::string& path, SnapshotHeader header, std::string_view state) {
  header.format = kSnapshotFormat;
  header.engine = kEngineVersion;
  const std::string part = path + ".part";
  Status status = ok_status();
  {
    const File file(::open(part.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    if (!file.is_open()) return system_error(part, "create");
    status = write_all(file, part, header, state);
  }
  if (status.ok() && ::rename(part.c_str(), path.c_str()) != 0) {
    status = system_error(path, "replace");
  }
  if (!status.ok()) {
    ::unlink(part.c_str());
    return status;
  }
  return sync_folder_of(path);
}

Result<Snapshot> read_snapshot(const std::string& path) {
  const File file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.is_open()) return system_error(path, "open");
  auto opened = read_header(file, path);
  if (!opened.ok()) return opened.error();
  auto state = read_state(file, path, opened.value().state_bytes);
  if (!state.ok()) return state.error();
  return Snapshot{std::move(opened.value().header), std::move(state).value()};
}

Result<SnapshotHeader> read_snapshot_header(const std::string& path) {
  const File file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.is_open()) return system_error(path, "open");
  auto opened = read_header(file, path);
  if (!opened.ok()) return opened.error();
  return std::move(opened.value().header);
}

}  // namespace reflex::engine

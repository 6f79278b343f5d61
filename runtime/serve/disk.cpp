// The real calls; see disk.h.
#include "runtime/serve/disk.h"

#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <sstream>
#include <utility>

namespace reflex::serve {

int Disk::open_append(const std::string& path) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
  return fd < 0 ? -errno : fd;
}

int64_t Disk::write(int fd, std::span<const iovec> parts) {
  const auto count = static_cast<int>(std::min<size_t>(parts.size(), IOV_MAX));
  for (;;) {
    const ssize_t wrote = ::writev(fd, parts.data(), count);
    if (wrote >= 0) return wrote;
    if (errno != EINTR) return -errno;
  }
}

int Disk::sync(int fd) { return ::fdatasync(fd) == 0 ? 0 : -errno; }

int Disk::sync_folder(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return -errno;
  const int status = ::fsync(fd) == 0 ? 0 : -errno;
  ::close(fd);
  return status;
}

int Disk::truncate(int fd, uint64_t size) {
  return ::ftruncate(fd, static_cast<off_t>(size)) == 0 ? 0 : -errno;
}

void Disk::close(int fd) { ::close(fd); }

Result<std::string> read_whole(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  if (!file) return Error{path + " cannot be read"};
  return std::move(text).str();
}

}  // namespace reflex::serve

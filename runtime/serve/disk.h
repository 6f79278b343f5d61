// Disk: the system calls by which the journal writes, so that a test can make them fail. And whole
// files.
//
// Contract: every function returns 0 or more, or -errno. Threads: as the calls themselves.
#pragma once

#include <sys/uio.h>

#include <cstdint>
#include <span>
#include <string>

#include "runtime/base/result.h"

namespace reflex::serve {

class Disk {
 public:
  virtual ~Disk() = default;
  /// Creates or opens for writing at the end.
  virtual int open_append(const std::string& path);
  /// All of the parts; fewer bytes than asked for is possible, as with writev(2).
  virtual int64_t write(int fd, std::span<const iovec> parts);
  virtual int sync(int fd);
  virtual int sync_folder(const std::string& path);
  virtual int truncate(int fd, uint64_t size);
  virtual void close(int fd);
};

/// Errors: with the path.
Result<std::string> read_whole(const std::string& path);

}  // namespace reflex::serve

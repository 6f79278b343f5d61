// Fork, write, wait; see state_capture.h.
#include "runtime/serve/state_capture.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>

namespace reflex::serve {
namespace {

using Clock = std::chrono::steady_clock;

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr bool kMayFork = false;
#else
constexpr bool kMayFork = true;
#endif

// Why: below it the state is written in less than the fork of a process takes, some ms.
constexpr uint64_t kKeysInPlaceMax = 500;
constexpr auto kAskMax = std::chrono::seconds(30);

/// In the child: nothing but the state and the file.
[[noreturn]] void write_and_leave(const Lane& lane, int fd) {
  // Sockets and files of the parent must not stay open here when it is killed.
  if (fd != 3) ::dup2(fd, 3);
  ::close_range(4, ~0u, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  StateWriter out(*lane.pack()->symbols);
  lane.save(out);
  const std::string bytes = out.take();
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t wrote = ::write(3, bytes.data() + done, bytes.size() - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) ::_exit(1);
    done += static_cast<size_t>(wrote);
  }
  ::_exit(0);
}

Result<std::string> read_all(int fd) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) return Error{std::strerror(errno)};
  std::string bytes(static_cast<size_t>(info.st_size), '\0');
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t got =
        ::pread(fd, bytes.data() + done, bytes.size() - done, static_cast<off_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return Error{"the state could not be read back"};
    done += static_cast<size_t>(got);
  }
  return bytes;
}

Result<std::string> bytes_of_child(pid_t child, int fd) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return Error{fmt::format("waitpid: {}", std::strerror(errno))};
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    return Error{fmt::format("the process that wrote the state ended with status {}", status)};
  }
  return read_all(fd);
}

}  // namespace

Result<CapturedState> capture_state(LaneRunner& runner) {
  CapturedState state;
  pid_t child = -1;
  const int fd = ::memfd_create("reflex-state", MFD_CLOEXEC);
  if (fd < 0) return Error{fmt::format("memfd_create: {}", std::strerror(errno))};
  const bool asked = runner.ask(
      [&](Lane& lane) {
        const auto began = Clock::now();
        state.set_sha256 = lane.pack()->set_sha256;
        state.set_key = lane.set_key();
        state.packs = lane.pack()->packs;
        state.position = lane.position();
        if (kMayFork && lane.engine().counters().keys > kKeysInPlaceMax) {
          // Another thread may be compiling with the same names.
          const auto still = lane.pack()->symbols->still();
          child = ::fork();
          if (child == 0) write_and_leave(lane, fd);
        }
        if (child < 0) {
          StateWriter out(*lane.pack()->symbols);
          lane.save(out);
          state.bytes = out.take();
        }
        state.pause_us = std::chrono::duration<double, std::micro>(Clock::now() - began).count();
      },
      kAskMax);
  Result<std::string> bytes = std::string();
  if (asked && child > 0) bytes = bytes_of_child(child, fd);
  ::close(fd);
  if (!asked) return Error{"the stream did not come to a stop in time"};
  if (!bytes.ok()) return bytes.error();
  if (child > 0) state.bytes = std::move(bytes).value();
  return state;
}

}  // namespace reflex::serve

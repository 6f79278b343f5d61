// journald (by a child `journalctl -o json -f`) and standard input: bytes from a pipe.
//
// journald's cursor is its own (`__CURSOR` of the last line); standard input has none: what a crash
// cut off there is the writer's to send again.
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "runtime/serve/sources/source.h"

namespace reflex::serve {
namespace {

constexpr size_t kChunkBytes = 256u << 10;
constexpr size_t kLineMax = 1u << 20;  // as of decoders: a longer one is cut off there anyway
constexpr int kPollMs = 200;

/// Lines of a descriptor, as bodies.
class PipeSource : public Source {
 public:
  using Source::Source;

 protected:
  virtual std::string cursor_after(std::string_view lines) {
    (void)lines;
    return {};
  }

  /// Until the end of the pipe or stopping; true at the end.
  bool read_all(int fd) {
    std::string part;
    std::string chunk(kChunkBytes, '\0');
    while (!stopping()) {
      pollfd ready{fd, POLLIN, 0};
      if (::poll(&ready, 1, kPollMs) <= 0) continue;
      const ssize_t got = ::read(fd, chunk.data(), chunk.size());
      if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      if (got <= 0) {
        if (!part.empty()) (void)give_lines(std::move(part));
        return true;
      }
      part.append(chunk, 0, static_cast<size_t>(got));
      const size_t newline = part.rfind('\n');
      const size_t size = newline != std::string::npos ? newline + 1
                          : part.size() > kLineMax     ? part.size()
                                                       : 0;
      if (size == 0) continue;
      std::string lines = part.substr(0, size);
      part.erase(0, size);
      if (!give_lines(std::move(lines))) return false;
    }
    return false;
  }

 private:
  bool give_lines(std::string&& lines) {
    const std::string cursor = cursor_after(lines);
    return give(std::move(lines), cursor);
  }
};

class Stdin final : public PipeSource {
 public:
  using PipeSource::PipeSource;
  ~Stdin() override { stop(); }

 private:
  void run() override {
    if (read_all(STDIN_FILENO)) say("end of input");
  }
};

class Journald final : public PipeSource {
 public:
  using PipeSource::PipeSource;
  ~Journald() override { stop(); }

 private:
  void run() override {
    cursor_ = ingest_.cursor(options_.name);
    while (!stopping()) {
      int fd = -1;
      const pid_t child = start_child(fd);
      if (child < 0) {
        say(fmt::format("journalctl: {}", std::strerror(errno)));
        pause(5000);
        continue;
      }
      const bool ended = read_all(fd);
      ::close(fd);
      ::kill(child, SIGTERM);
      int status = 0;
      while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
      }
      if (ended && !stopping()) {
        say(fmt::format("journalctl ended with status {}", WEXITSTATUS(status)));
        pause(2000);
      }
    }
  }

  /// -1: errno says why.
  pid_t start_child(int& out) {
    std::vector<std::string> words{"journalctl", "-o", "json", "-f", "--all"};
    if (!cursor_.empty()) {
      words.push_back("--after-cursor=" + cursor_);
    } else {
      words.emplace_back(options_.from_end ? "--lines=0" : "--no-tail");
    }
    words.insert(words.end(), options_.match.begin(), options_.match.end());
    std::vector<char*> arguments;
    for (auto& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return -1;
    const pid_t child = ::fork();
    if (child == 0) {
      ::dup2(ends[1], STDOUT_FILENO);
      sigset_t none;
      ::sigemptyset(&none);
      ::sigprocmask(SIG_SETMASK, &none, nullptr);
      ::execvp(arguments[0], arguments.data());
      ::_exit(127);
    }
    ::close(ends[1]);
    if (child < 0) ::close(ends[0]);
    out = ends[0];
    return child;
  }

  std::string cursor_after(std::string_view lines) override {
    constexpr std::string_view kKey = "\"__CURSOR\":\"";
    const size_t at = lines.rfind(kKey);
    if (at == std::string_view::npos) return cursor_;
    const size_t begin = at + kKey.size();
    cursor_ = lines.substr(begin, lines.find('"', begin) - begin);
    return cursor_;
  }

  std::string cursor_;
};

}  // namespace

std::unique_ptr<Source> make_journald(SourceOptions options, Ingest& ingest,
                                      std::function<void(const std::string&)> log) {
  return std::make_unique<Journald>(std::move(options), ingest, std::move(log));
}
std::unique_ptr<Source> make_stdin(SourceOptions options, Ingest& ingest,
                                   std::function<void(const std::string&)> log) {
  return std::make_unique<Stdin>(std::move(options), ingest, std::move(log));
}

}  // namespace reflex::serve

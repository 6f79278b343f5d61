// A nats-server with JetStream for a test, in a folder of its own.
#pragma once

#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>

namespace reflex {

class NatsServer {
 public:
  NatsServer() {
    char name[] = "/tmp/reflex_nats_XXXXXX";
    folder_ = ::mkdtemp(name);
    port_ = free_port();
    start();
  }
  ~NatsServer() {
    kill();
    std::filesystem::remove_all(folder_);
  }
  NatsServer(const NatsServer&) = delete;
  NatsServer& operator=(const NatsServer&) = delete;

  static bool is_installed() { return std::system("command -v nats-server >/dev/null 2>&1") == 0; }
  [[nodiscard]] std::string url() const { return "nats://127.0.0.1:" + std::to_string(port_); }

  void start() {
    process_ = ::fork();
    if (process_ == 0) {
      const int null = ::open("/dev/null", O_WRONLY);
      ::dup2(null, 1);
      ::dup2(null, 2);
      const std::string port = std::to_string(port_);
      ::execlp("nats-server", "nats-server", "-js", "-sd", folder_.c_str(), "-a", "127.0.0.1", "-p",
               port.c_str(), nullptr);
      ::_exit(127);
    }
    for (int i = 0; i < 200 && !answers(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  }
  void kill() {
    if (process_ <= 0) return;
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
    process_ = -1;
  }

 private:
  static sockaddr_in address(int port) {
    sockaddr_in out{};
    out.sin_family = AF_INET;
    out.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    out.sin_port = htons(static_cast<uint16_t>(port));
    return out;
  }
  static int free_port() {
    const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in any = address(0);
    socklen_t size = sizeof any;
    ::bind(fd, reinterpret_cast<sockaddr*>(&any), size);
    ::getsockname(fd, reinterpret_cast<sockaddr*>(&any), &size);
    ::close(fd);
    return ntohs(any.sin_port);
  }
  [[nodiscard]] bool answers() const {
    const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
    const sockaddr_in to = address(port_);
    const bool ok = ::connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0;
    ::close(fd);
    return ok;
  }

  std::string folder_;
  int port_ = 0;
  pid_t process_ = -1;
};

}  // namespace reflex

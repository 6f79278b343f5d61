// Wire: the bytes of one accepted connection, plain or TLS, under limits of size and time.
//
// Contract: a request must have its header whole within `header_seconds` and `header_bytes`, its
// body within `body_seconds` plus a second for each `body_bytes_per_second`: a client that trickles
// is cut off. Writes that make no progress for `write_seconds` fail.
// One thread at a time; close_from_outside() from any.
#pragma once

#include <openssl/ssl.h>
#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace reflex::serve {

struct WireLimits {
  // Source: the order of nginx's and Apache's defaults (8 KiB lines, 10 to 60 s); a request of ours
  // has a token and little else.
  size_t header_bytes = 16 * 1024;
  unsigned header_seconds = 10;
  unsigned body_seconds = 30;
  size_t body_bytes_per_second = 64 * 1024;
  unsigned write_seconds = 20;
  unsigned keep_alive_seconds = 60;
};

class Wire {
 public:
  /// `ssl` may be null; both are closed with it.
  Wire(int fd, SSL* ssl, const WireLimits& limits);
  ~Wire();
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;

  /// TLS handshake; true at once without TLS.
  bool handshake();
  /// Waits for the first byte of the next request; false: none came, or it ended.
  bool wait_for_request();
  void begin_header();
  void begin_body();

  /// Bytes read, 0 at the end, -1 when a limit or the network ended it.
  ssize_t read(char* out, size_t size);
  /// All of it, or -1.
  ssize_t write(const char* data, size_t size);

  enum class Ended : uint8_t { kNo, kHeaderTooLarge, kTooSlow };
  [[nodiscard]] Ended ended() const { return ended_; }
  [[nodiscard]] const std::string& remote() const { return remote_; }
  [[nodiscard]] int remote_port() const { return remote_port_; }
  void close_from_outside();

 private:
  using Clock = std::chrono::steady_clock;
  bool wait(short events, Clock::time_point until);
  ssize_t receive();

  int fd_;
  SSL* ssl_;
  WireLimits limits_;
  std::string remote_;
  int remote_port_ = 0;
  std::vector<char> buffer_;
  size_t begin_ = 0, end_ = 0;
  bool in_header_ = true;
  size_t header_left_ = 0;
  size_t body_read_ = 0;
  Clock::time_point body_begun_{};
  Clock::time_point until_{};
  Ended ended_ = Ended::kNo;
};

}  // namespace reflex::serve

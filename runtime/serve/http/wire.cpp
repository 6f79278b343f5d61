// Bytes of a connection under limits: see wire.h. The socket is non-blocking; poll() keeps the
// time.
#include "runtime/serve/http/wire.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace reflex::serve {
namespace {

// Why 64 KiB: a body of some MiB costs some tens of system calls, not thousands.
constexpr size_t kBufferBytes = 64 * 1024;

void peer_of(int fd, std::string& address, int& port) {
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;
  if (getpeername(fd, reinterpret_cast<sockaddr*>(&storage), &size) != 0) return;
  char text[INET6_ADDRSTRLEN] = "";
  if (storage.ss_family == AF_INET) {
    const auto* in = reinterpret_cast<const sockaddr_in*>(&storage);
    inet_ntop(AF_INET, &in->sin_addr, text, sizeof text);
    port = ntohs(in->sin_port);
  } else if (storage.ss_family == AF_INET6) {
    const auto* in = reinterpret_cast<const sockaddr_in6*>(&storage);
    inet_ntop(AF_INET6, &in->sin6_addr, text, sizeof text);
    port = ntohs(in->sin6_port);
  }
  address = text;
}

}  // namespace

Wire::Wire(int fd, SSL* ssl, const WireLimits& limits)
    : fd_(fd), ssl_(ssl), limits_(limits), buffer_(kBufferBytes) {
  peer_of(fd, remote_, remote_port_);
  fcntl(fd_, F_SETFL, fcntl(fd_, F_GETFL) | O_NONBLOCK);
  fcntl(fd_, F_SETFD, FD_CLOEXEC);
  const int on = 1;
  setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (ssl_ != nullptr) SSL_set_fd(ssl_, fd_);
}

Wire::~Wire() {
  if (ssl_ != nullptr) {
    SSL_shutdown(ssl_);
    SSL_free(ssl_);
  }
  // What the peer still sends would turn our last reply into a reset before it is read: take some
  // of it. Why 16 x 64 KiB: enough for a refused header or the rest of a small body.
  ::shutdown(fd_, SHUT_WR);
  for (int i = 0; i < 16; ++i) {
    if (!wait(POLLIN, Clock::now() + std::chrono::milliseconds(50))) break;
    if (recv(fd_, buffer_.data(), buffer_.size(), 0) <= 0) break;
  }
  ::close(fd_);
}

void Wire::close_from_outside() { ::shutdown(fd_, SHUT_RDWR); }

bool Wire::wait(short events, Clock::time_point until) {
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
    if (left <= 0) return false;
    pollfd entry{fd_, events, 0};
    const int ready = poll(&entry, 1, static_cast<int>(std::min<int64_t>(left, 60'000)));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
  }
}

bool Wire::handshake() {
  if (ssl_ == nullptr) return true;
  const auto until = Clock::now() + std::chrono::seconds(limits_.header_seconds);
  for (;;) {
    ERR_clear_error();
    const int result = SSL_accept(ssl_);
    if (result == 1) return true;
    const int why = SSL_get_error(ssl_, result);
    const bool again = why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE;
    if (!again || !wait(why == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT, until)) {
      // No shutdown message on a connection that never was one.
      SSL_set_quiet_shutdown(ssl_, 1);
      return false;
    }
  }
}

bool Wire::wait_for_request() {
  if (begin_ < end_) return true;
  until_ = Clock::now() + std::chrono::seconds(limits_.keep_alive_seconds);
  in_header_ = false;
  return receive() > 0;
}

void Wire::begin_header() {
  in_header_ = true;
  header_left_ = limits_.header_bytes;
  ended_ = Ended::kNo;
  until_ = Clock::now() + std::chrono::seconds(limits_.header_seconds);
}

void Wire::begin_body() {
  in_header_ = false;
  body_read_ = 0;
  body_begun_ = Clock::now();
  until_ = body_begun_ + std::chrono::seconds(limits_.body_seconds);
}

/// Fills the empty buffer; bytes, 0 at the end, -1.
ssize_t Wire::receive() {
  for (;;) {
    short wanted = POLLIN;
    ssize_t got;
    if (ssl_ != nullptr) {
      ERR_clear_error();
      got = SSL_read(ssl_, buffer_.data(), static_cast<int>(buffer_.size()));
      if (got <= 0) {
        const int why = SSL_get_error(ssl_, static_cast<int>(got));
        if (why == SSL_ERROR_ZERO_RETURN) return 0;
        if (why == SSL_ERROR_WANT_WRITE) wanted = POLLOUT;
        if (why != SSL_ERROR_WANT_READ && why != SSL_ERROR_WANT_WRITE) return -1;
      }
    } else {
      got = recv(fd_, buffer_.data(), buffer_.size(), 0);
      if (got == 0) return 0;
      if (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) return -1;
    }
    if (got > 0) {
      begin_ = 0;
      end_ = static_cast<size_t>(got);
      return got;
    }
    if (!wait(wanted, until_)) {
      ended_ = Ended::kTooSlow;
      return -1;
    }
  }
}

ssize_t Wire::read(char* out, size_t size) {
  if (ended_ != Ended::kNo) return -1;
  if (in_header_ && header_left_ == 0) {
    ended_ = Ended::kHeaderTooLarge;
    return -1;
  }
  if (begin_ == end_) {
    if (!in_header_) {
      until_ = body_begun_ + std::chrono::seconds(limits_.body_seconds +
                                                  body_read_ / limits_.body_bytes_per_second);
    }
    const ssize_t got = receive();
    if (got <= 0) return got;
  }
  size_t n = std::min(size, end_ - begin_);
  if (in_header_) {
    n = std::min(n, header_left_);
    header_left_ -= n;
  } else {
    body_read_ += n;
  }
  std::memcpy(out, buffer_.data() + begin_, n);
  begin_ += n;
  return static_cast<ssize_t>(n);
}

ssize_t Wire::write(const char* data, size_t size) {
  size_t done = 0;
  while (done < size) {
    short wanted = POLLOUT;
    ssize_t put;
    if (ssl_ != nullptr) {
      ERR_clear_error();
      put = SSL_write(ssl_, data + done, static_cast<int>(std::min(size - done, kBufferBytes)));
      if (put <= 0) {
        const int why = SSL_get_error(ssl_, static_cast<int>(put));
        if (why == SSL_ERROR_WANT_READ) wanted = POLLIN;
        if (why != SSL_ERROR_WANT_READ && why != SSL_ERROR_WANT_WRITE) return -1;
      }
    } else {
      put = send(fd_, data + done, size - done, MSG_NOSIGNAL);
      if (put < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) return -1;
    }
    if (put > 0) {
      done += static_cast<size_t>(put);
    } else if (!wait(wanted, Clock::now() + std::chrono::seconds(limits_.write_seconds))) {
      return -1;
    }
  }
  return static_cast<ssize_t>(size);
}

}  // namespace reflex::serve

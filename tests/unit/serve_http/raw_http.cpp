// RawHttp: see raw_http.h.
#include "tests/unit/serve_http/raw_http.h"

#include <arpa/inet.h>
#include <poll.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>

namespace reflex::serve {

std::string RawReply::header(const std::string& name) const {
  size_t at = 0;
  while ((at = head.find("\r\n", at)) != std::string::npos) {
    at += 2;
    if (strncasecmp(head.c_str() + at, name.c_str(), name.size()) != 0) continue;
    if (head[at + name.size()] != ':') continue;
    const size_t begin = head.find_first_not_of(' ', at + name.size() + 1);
    return head.substr(begin, head.find("\r\n", begin) - begin);
  }
  return {};
}

RawHttp::RawHttp(int port) {
  fd_ = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  inet_pton(AF_INET, "127.0.0.1", &address.sin_addr);
  if (connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    close(fd_);
    fd_ = -1;
  }
}

RawHttp::~RawHttp() {
  if (fd_ >= 0) close(fd_);
}

bool RawHttp::send(const std::string& bytes) {
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n = ::send(fd_, bytes.data() + done, bytes.size() - done, MSG_NOSIGNAL);
    if (n <= 0) return false;
    done += static_cast<size_t>(n);
  }
  return true;
}

bool RawHttp::fill(double seconds) {
  pollfd entry{fd_, POLLIN, 0};
  if (poll(&entry, 1, static_cast<int>(seconds * 1000)) <= 0) return false;
  char piece[65536];
  const ssize_t n = recv(fd_, piece, sizeof piece, 0);
  if (n <= 0) return false;
  buffer_.append(piece, static_cast<size_t>(n));
  return true;
}

std::string RawHttp::read_until(const std::string& until, double seconds) {
  while (buffer_.find(until) == std::string::npos && fill(seconds)) {
  }
  const size_t at = buffer_.find(until);
  const size_t end = at == std::string::npos ? buffer_.size() : at + until.size();
  std::string out = buffer_.substr(0, end);
  buffer_.erase(0, end);
  return out;
}

RawReply RawHttp::reply(double seconds) {
  RawReply out;
  out.head = read_until("\r\n\r\n", seconds);
  if (!out.head.starts_with("HTTP/1.")) return out;
  out.status = atoi(out.head.c_str() + 9);
  if (out.status == 100) return reply(seconds);
  if (out.header("Transfer-Encoding") == "chunked") {
    for (;;) {
      const std::string line = read_until("\r\n", seconds);
      const size_t size = strtoul(line.c_str(), nullptr, 16);
      while (buffer_.size() < size + 2 && fill(seconds)) {
      }
      out.body += buffer_.substr(0, size);
      buffer_.erase(0, std::min(buffer_.size(), size + 2));
      if (size == 0) return out;
    }
  }
  const std::string length = out.header("Content-Length");
  const size_t size = length.empty() ? SIZE_MAX : strtoul(length.c_str(), nullptr, 10);
  while (buffer_.size() < size && fill(seconds)) {
  }
  out.body = buffer_.substr(0, size);
  buffer_.erase(0, std::min(buffer_.size(), size));
  return out;
}

bool RawHttp::ended(double seconds) {
  pollfd entry{fd_, POLLIN, 0};
  char piece[4096];
  for (;;) {
    if (poll(&entry, 1, static_cast<int>(seconds * 1000)) <= 0) return false;
    const ssize_t n = recv(fd_, piece, sizeof piece, 0);
    if (n <= 0) return true;
  }
}

RawReply ask(int port, const std::string& method, const std::string& target,
             const std::string& body, const std::string& more) {
  RawHttp http(port);
  std::string request = method + " " + target + " HTTP/1.1\r\nHost: 127.0.0.1\r\n" + more;
  if (!body.empty()) request += "Content-Length: " + std::to_string(body.size()) + "\r\n";
  http.send(request + "\r\n" + body);
  return http.reply();
}

}  // namespace reflex::serve

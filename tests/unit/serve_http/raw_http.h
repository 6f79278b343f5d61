// RawHttp: a client that sends any bytes at all and reads what comes back. For hostile tests.
#pragma once

#include <string>

namespace reflex::serve {

struct RawReply {
  int status = 0;  // 0: the connection ended without a reply
  std::string head, body;
  [[nodiscard]] std::string header(const std::string& name) const;  // "" when it is not there
};

class RawHttp {
 public:
  explicit RawHttp(int port);
  ~RawHttp();
  RawHttp(const RawHttp&) = delete;
  RawHttp& operator=(const RawHttp&) = delete;
  /// False when the peer has closed.
  bool send(const std::string& bytes);
  /// One reply: by Content-Length, chunks, or the end. Waits at most `seconds`.
  RawReply reply(double seconds = 10);
  /// Whatever comes within `seconds`, until `until` is in it.
  std::string read_until(const std::string& until, double seconds = 10);
  /// Whether the peer ends the connection within `seconds`.
  bool ended(double seconds);

 private:
  bool fill(double seconds);
  int fd_ = -1;
  std::string buffer_;
};

/// One request on a connection of its own. `more` are header lines, each with "\r\n".
RawReply ask(int port, const std::string& method, const std::string& target,
             const std::string& body = "", const std::string& more = "");

}  // namespace reflex::serve

// http.listen as host and port: one reading for the check of the configuration and the server.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

namespace reflex::serve {

struct ListenAddress {
  std::string host;  // without the brackets of IPv6
  int port = 0;      // 0: any free one
};

/// "127.0.0.1:7480", "[::1]:7480"; nothing on anything else.
inline std::optional<ListenAddress> parse_listen(std::string_view text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  std::string_view host = text.substr(0, colon);
  const std::string port(text.substr(colon + 1));
  if (port.empty() || port.size() > 5 ||
      port.find_first_not_of("0123456789") != std::string::npos || std::stoi(port) > 65535) {
    return std::nullopt;
  }
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  return ListenAddress{std::string(host), std::stoi(port)};
}

/// Whether nobody but this machine reaches it.
inline bool is_loopback(std::string_view host) {
  if (host == "localhost" || host == "::1") return true;
  if (!host.starts_with("127.")) return false;
  return std::all_of(host.begin(), host.end(),
                     [](char c) { return c == '.' || (c >= '0' && c <= '9'); });
}

}  // namespace reflex::serve

// Network addresses in their public spellings: see node_address.h.
#include "runtime/engine/node_address.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>

namespace reflex::engine {
namespace {

// Why 64: the longest address (45 characters) with a zone; longer texts are no addresses.
constexpr size_t kTextMax = 64;

std::optional<std::string> canonical(int family, const std::string& text) {
  std::array<unsigned char, sizeof(in6_addr)> bytes{};
  if (inet_pton(family, text.c_str(), bytes.data()) != 1) return std::nullopt;
  // ::ffff:a.b.c.d is the IPv4 address that it carries.
  const bool mapped = family == AF_INET6 && bytes[10] == 0xff && bytes[11] == 0xff &&
                      std::all_of(bytes.begin(), bytes.begin() + 10,
                                  [](unsigned char b) { return b == 0; });
  const void* from = mapped ? bytes.data() + 12 : bytes.data();
  std::array<char, INET6_ADDRSTRLEN> out{};
  if (inet_ntop(mapped ? AF_INET : family, from, out.data(), out.size()) == nullptr) {
    return std::nullopt;
  }
  return std::string(out.data());
}

}  // namespace

std::optional<std::string> node_address(std::string_view text) {
  if (const size_t port = text.find('<'); port != std::string_view::npos) {
    text = text.substr(0, port);
  }
  if (!text.empty() && text.front() == '[') {
    const size_t end = text.find(']');
    if (end == std::string_view::npos) return std::nullopt;
    text = text.substr(1, end - 1);
  }
  text = text.substr(0, text.find_first_of("%/"));
  // Hex digits, dots and colons only; at least one separator. Most names end here.
  if (text.size() > kTextMax || text.find_first_of(".:") == std::string_view::npos ||
      text.find_first_not_of("0123456789abcdefABCDEF.:") != std::string_view::npos) {
    return std::nullopt;
  }
  if (std::count(text.begin(), text.end(), ':') > 1) return canonical(AF_INET6, std::string(text));
  return canonical(AF_INET, std::string(text.substr(0, text.find(':'))));
}

}  // namespace reflex::engine

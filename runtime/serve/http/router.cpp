// Matching of paths: see router.h.
#include "runtime/serve/http/router.h"

#include <algorithm>
#include <optional>
#include <string_view>

namespace reflex::serve {
namespace {

std::vector<std::string_view> split(std::string_view path) {
  std::vector<std::string_view> parts;
  while (!path.empty()) {
    const size_t end = std::min(path.find('/', 1), path.size());
    parts.push_back(path.substr(1, end - 1));
    path.remove_prefix(end);
  }
  return parts;
}

int hex(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool has_control(const std::string& text) {
  return std::any_of(text.begin(), text.end(),
                     [](unsigned char c) { return c < 0x20 || c == 0x7f; });
}

/// The parts, decoded; nothing when one of them is a trick.
std::optional<std::vector<std::string>> clean_parts(const std::string& raw_path) {
  if (!raw_path.starts_with('/')) return std::nullopt;
  std::vector<std::string> out;
  for (const std::string_view part : split(raw_path)) {
    std::string decoded;
    if (!percent_decode(part, decoded)) return std::nullopt;
    if (decoded == "." || decoded == ".." || has_control(decoded)) {
      return std::nullopt;
    }
    out.push_back(std::move(decoded));
  }
  return out;
}

bool is_named(std::string_view part) { return part.starts_with('{') && part.ends_with('}'); }

bool fits(const std::string& pattern, const std::vector<std::string>& parts,
          std::map<std::string, std::string>& named) {
  const auto wanted = split(pattern);
  if (wanted.size() != parts.size()) return false;
  named.clear();
  for (size_t i = 0; i < parts.size(); ++i) {
    if (is_named(wanted[i])) {
      if (parts[i].empty()) return false;
      named[std::string(wanted[i].substr(1, wanted[i].size() - 2))] = parts[i];
    } else if (wanted[i] != parts[i]) {
      return false;
    }
  }
  return true;
}

}  // namespace

bool percent_decode(std::string_view text, std::string& out) {
  out.clear();
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    if (i + 2 >= text.size() || hex(text[i + 1]) < 0 || hex(text[i + 2]) < 0) return false;
    out += static_cast<char>(hex(text[i + 1]) * 16 + hex(text[i + 2]));
    i += 2;
  }
  return true;
}

Router::Match Router::match(const std::string& method, const std::string& raw_path) const {
  Match match;
  const auto parts = clean_parts(raw_path);
  if (!parts) return match;
  const std::string wanted = method == "HEAD" ? "GET" : method;
  bool literal = false;  // a route without {..} goes before one with
  for (const Route& route : routes_) {
    std::map<std::string, std::string> named;
    if (!fits(route.pattern, *parts, named)) continue;
    if (route.method != wanted) {
      if (match.allowed.find(route.method) == std::string::npos) {
        match.allowed += (match.allowed.empty() ? "" : ", ") + route.method;
      }
      continue;
    }
    if (match.route == nullptr || (!literal && named.empty())) {
      match.route = &route;
      match.named = std::move(named);
      literal = match.named.empty();
    }
  }
  return match;
}

}  // namespace reflex::serve

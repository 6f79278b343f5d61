// Framing of JSON-RPC; see rpc.h.
#include "compiler/lsp/rpc.h"

#include <algorithm>
#include <cctype>
#include <charconv>

namespace reflex::lsp {
namespace {

// Why: the compiler takes files of 8 MiB; JSON may write a byte as six.
constexpr size_t kBodyMax = 64u << 20;
// Why: a stream that is not LSP must not be kept in memory while a line end is waited for.
constexpr size_t kHeaderMax = 4096;
constexpr size_t kShrinkAt = 1u << 20;

bool starts_with_word(std::string_view line, std::string_view lower) {
  if (line.size() < lower.size()) return false;
  return std::equal(lower.begin(), lower.end(), line.begin(), [](char a, char b) {
    return a == static_cast<char>(std::tolower(static_cast<unsigned char>(b)));
  });
}

}  // namespace

/// One line of the header; false: more bytes are needed.
bool Frames::read_header() {
  const size_t end = buffer_.find('\n', used_);
  if (end == std::string::npos) {
    if (buffer_.size() - used_ > kHeaderMax) used_ = buffer_.size();
    return false;
  }
  std::string_view line = std::string_view(buffer_).substr(used_, end - used_);
  used_ = end + 1;
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  if (line.empty()) {
    if (has_length_) in_body_ = true;
    return true;
  }
  constexpr std::string_view kName = "content-length:";
  if (!starts_with_word(line, kName)) return true;
  line.remove_prefix(kName.size());
  while (!line.empty() && line.front() == ' ') line.remove_prefix(1);
  size_t value = 0;
  const auto parsed = std::from_chars(line.data(), line.data() + line.size(), value);
  has_length_ = parsed.ec == std::errc() && parsed.ptr == line.data() + line.size();
  length_ = has_length_ ? value : 0;
  return true;
}

Frames::Next Frames::next(std::string& body) {
  for (;;) {
    if (used_ > kShrinkAt) {
      buffer_.erase(0, used_);
      used_ = 0;
    }
    if (!in_body_) {
      if (!read_header()) return Next::kNone;
      continue;
    }
    if (length_ > kBodyMax) skipping_ = true;
    const size_t there = buffer_.size() - used_;
    if (skipping_) {
      const size_t part = std::min(there, length_);
      used_ += part;
      length_ -= part;
      if (length_ > 0) return Next::kNone;
      skipping_ = in_body_ = has_length_ = false;
      return Next::kTooBig;
    }
    if (there < length_) return Next::kNone;
    body.assign(buffer_, used_, length_);
    used_ += length_;
    in_body_ = has_length_ = false;
    return Next::kBody;
  }
}

std::string framed(const Json& message) {
  const std::string body = message.dump(-1, ' ', false, Json::error_handler_t::replace);
  return "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

Json response(const Json& id, Json result) {
  return {{"jsonrpc", "2.0"}, {"id", id}, {"result", std::move(result)}};
}

Json error_response(const Json& id, int code, const std::string& message) {
  return {{"jsonrpc", "2.0"}, {"id", id}, {"error", {{"code", code}, {"message", message}}}};
}

Json notification(const std::string& method, Json params) {
  return {{"jsonrpc", "2.0"}, {"method", method}, {"params", std::move(params)}};
}

}  // namespace reflex::lsp

// JSON-RPC 2.0 over a byte stream as LSP frames it: `Content-Length: N`, an empty line, N bytes.
//
// Contract: Frames takes bytes as they come and gives whole bodies. A header that makes no sense is
// skipped up to the next line; a body over the limit is skipped and told. Messages are only built
// here; what they mean is the server's matter.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace reflex::lsp {

using Json = nlohmann::json;

/// Source: JSON-RPC 2.0 section 5.1, LSP 3.17 "ErrorCodes" and "LSPErrorCodes".
enum RpcError : int {
  kParseError = -32700,
  kInvalidRequest = -32600,
  kMethodNotFound = -32601,
  kInvalidParams = -32602,
  kInternalError = -32603,
  kServerNotInitialized = -32002,
  kRequestCancelled = -32800,
  kRequestFailed = -32803,
};

class Frames {
 public:
  void push(std::string_view bytes) { buffer_.append(bytes); }
  enum class Next : uint8_t { kNone, kBody, kTooBig };
  /// The next whole body, if it is there.
  Next next(std::string& body);

 private:
  bool read_header();
  std::string buffer_;
  size_t used_ = 0;  // of the buffer
  bool in_body_ = false;
  size_t length_ = 0;
  bool has_length_ = false;
  bool skipping_ = false;  // a body that is too big
};

/// The bytes on the wire. Text that is not UTF-8 is replaced, never an exception.
std::string framed(const Json& message);

Json response(const Json& id, Json result);
Json error_response(const Json& id, int code, const std::string& message);
Json notification(const std::string& method, Json params);

}  // namespace reflex::lsp

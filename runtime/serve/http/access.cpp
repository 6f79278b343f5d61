// Tokens, roles and rates: see access.h.
#include "runtime/serve/http/access.h"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/sha.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <sstream>

#include "runtime/serve/listen_address.h"

namespace reflex::serve {
namespace {

// Why: without tokens every address has a bucket; the oldest go beyond so many.
constexpr size_t kBucketsMax = 4096;
// A caller may save up so many seconds of its rate.
constexpr double kBurstSeconds = 2;

HttpReply passed() {
  HttpReply reply;
  reply.status = 0;
  return reply;
}

/// "[::1]:80" -> "::1", "localhost:80" -> "localhost".
std::string host_part(std::string_view host) {
  if (host.starts_with('[')) {
    const size_t end = host.find(']');
    return std::string(host.substr(1, end == std::string_view::npos ? end : end - 1));
  }
  return std::string(host.substr(0, host.find(':')));
}

/// What a browser would let a foreign page do to a server without tokens on this machine.
HttpReply check_local(const HttpRequest& request) {
  const std::string host = request.header("host");
  if (!host.empty() && !is_loopback(host_part(host))) {
    return reply_error(403, "the Host header names another machine than this one",
                       "ask for http://127.0.0.1 or http://localhost, or configure tokens");
  }
  const std::string origin = request.header("origin");
  const bool same = origin.empty() || origin == "http://" + host || origin == "https://" + host;
  if (!same && request.method != "GET" && request.method != "HEAD") {
    return reply_error(403, "the request comes from a page of another site",
                       "call from the console of this daemon, or configure tokens");
  }
  return passed();
}

std::string_view role_word(Role role) {
  switch (role) {
    case Role::kRead:
      return "read";
    case Role::kIngest:
      return "ingest";
    case Role::kOperate:
      return "operate";
    case Role::kOpen:
      break;
  }
  return "open";
}

}  // namespace

std::string sha256_hex(std::string_view text) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data());
  std::string out;
  for (const unsigned char byte : digest) out += fmt::format("{:02x}", byte);
  return out;
}

Result<uint8_t> parse_roles(std::string_view text) {
  uint8_t roles = 0;
  while (!text.empty()) {
    const size_t end = std::min(text.find(','), text.size());
    const std::string_view word = text.substr(0, end);
    bool known = false;
    for (const Role role : {Role::kRead, Role::kIngest, Role::kOperate}) {
      if (word != role_word(role)) continue;
      roles |= static_cast<uint8_t>(role);
      known = true;
    }
    if (!known) {
      return Error{fmt::format("'{}' is no role; roles are read, ingest and operate", word)};
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  if (roles == 0) return Error{"no role is given; roles are read, ingest and operate"};
  return roles;
}

Result<std::vector<TokenEntry>> read_token_file(const std::string& path) {
  std::ifstream file(path);
  if (!file) return Error{fmt::format("the token file {} cannot be read", path)};
  std::vector<TokenEntry> tokens;
  std::string line;
  bool plain = false;
  for (unsigned number = 1; std::getline(file, line); ++number) {
    line.resize(std::min(line.find('#'), line.size()));
    std::istringstream words(line);
    std::string name;
    std::string roles;
    std::string token;
    std::string rest;
    if (!(words >> name)) continue;
    if (!(words >> roles >> token) || (words >> rest)) {
      return Error{fmt::format("{}:{}: a line is: NAME ROLES TOKEN, or NAME ROLES sha256:HEX", path,
                               number)};
    }
    auto bits = parse_roles(roles);
    if (!bits) return Error{fmt::format("{}:{}: {}", path, number, bits.error().message)};
    TokenEntry entry{name, bits.value(), ""};
    if (token.starts_with("sha256:")) {
      entry.sha256 = token.substr(7);
      const bool hex = std::all_of(entry.sha256.begin(), entry.sha256.end(), [](char c) {
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
      });
      if (!hex || entry.sha256.size() != 64) {
        return Error{
            fmt::format("{}:{}: after sha256: come 64 hex digits in lower case", path, number)};
      }
    } else {
      // Why 16: shorter ones can be tried out over the network.
      if (token.size() < 16) {
        return Error{fmt::format("{}:{}: the token is shorter than 16 characters", path, number)};
      }
      entry.sha256 = sha256_hex(token);
      plain = true;
    }
    tokens.push_back(std::move(entry));
  }
  if (tokens.empty()) {
    return Error{fmt::format("the token file {} has no token in it: a line is NAME ROLES TOKEN", path)};
  }
  struct stat info{};
  if (plain && stat(path.c_str(), &info) == 0 && (info.st_mode & (S_IRGRP | S_IROTH)) != 0) {
    return Error{
        fmt::format("{} holds plain tokens and others may read it: chmod 600 it, or write "
                    "sha256:HEX in place of each token",
                    path)};
  }
  return tokens;
}

Access::Access(std::vector<TokenEntry> tokens, const RateLimits& rates)
    : tokens_(std::move(tokens)), rates_(rates) {}

HttpReply Access::check(const HttpRequest& request, Role role, Caller& caller) const {
  if (tokens_.empty()) {
    caller.name = "local";
    caller.roles = 7;
    return role == Role::kOpen ? passed() : check_local(request);
  }
  if (role == Role::kOpen) return passed();
  const std::string header = request.header("authorization");
  const bool bearer =
      header.size() > 7 && (header.starts_with("Bearer ") || header.starts_with("bearer "));
  const TokenEntry* found = nullptr;
  const std::string digest = sha256_hex(bearer ? header.substr(7) : std::string());
  for (const TokenEntry& token : tokens_) {
    const bool same = token.sha256.size() == digest.size() &&
                      CRYPTO_memcmp(token.sha256.data(), digest.data(), digest.size()) == 0;
    if (same) found = &token;
  }
  if (!bearer || found == nullptr) {
    HttpReply reply = reply_error(
        401, bearer ? "the token is not known" : "a token is needed",
        "send 'Authorization: Bearer TOKEN' with a token of the daemon's configuration");
    reply.headers.emplace_back("WWW-Authenticate", "Bearer realm=\"reflex\"");
    return reply;
  }
  caller.name = found->name;
  caller.roles = found->roles;
  if (caller.may(role)) return passed();
  return reply_error(
      403, fmt::format("the token '{}' has not the role {}", found->name, role_word(role)),
      "use a token that has it, or add the role in the daemon's configuration");
}

unsigned Access::wait_seconds(const std::string& who, size_t body_bytes) {
  if (rates_.requests_per_second <= 0 && rates_.bytes_per_second <= 0) return 0;
  const auto now = Clock::now();
  const std::lock_guard lock(mutex_);
  if (buckets_.size() >= kBucketsMax && !buckets_.contains(who)) {
    auto oldest = buckets_.begin();
    for (auto it = buckets_.begin(); it != buckets_.end(); ++it) {
      if (it->second.at < oldest->second.at) oldest = it;
    }
    buckets_.erase(oldest);
  }
  const auto [it, fresh] = buckets_.try_emplace(who);
  Bucket& bucket = it->second;
  const double passed_s =
      fresh ? kBurstSeconds : std::chrono::duration<double>(now - bucket.at).count();
  bucket.at = now;
  const auto fill = [&](double& level, double rate) {
    // At least one request fits, however small the rate.
    level = std::min(level + passed_s * rate, std::max(kBurstSeconds * rate, 1.0));
  };
  fill(bucket.requests, rates_.requests_per_second);
  fill(bucket.bytes, rates_.bytes_per_second);
  double wait = 0;
  if (rates_.requests_per_second > 0 && bucket.requests < 1) {
    wait = (1 - bucket.requests) / rates_.requests_per_second;
  }
  // A body is paid for after it: one that is larger than the burst passes, the next one waits.
  if (rates_.bytes_per_second > 0 && bucket.bytes < 0) {
    wait = std::max(wait, -bucket.bytes / rates_.bytes_per_second);
  }
  if (wait > 0) return static_cast<unsigned>(std::ceil(std::min(wait, 3600.0)));
  bucket.requests -= 1;
  bucket.bytes -= static_cast<double>(body_bytes);
  return 0;
}

}  // namespace reflex::serve

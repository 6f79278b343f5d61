// HMAC-SHA256 through OpenSSL; see pseudonyms.h.
#include "runtime/anonymize/pseudonyms.h"

#include <openssl/evp.h>
#include <openssl/params.h>

#include <array>

#include "runtime/base/check.h"
#include "runtime/base/time.h"

namespace reflex::anonymize {
namespace {

constexpr std::array<std::string_view, static_cast<size_t>(NameKind::kCount)> kWords{
    "node",    "job",    "incident", "rack",  "tor",       "pod",    "zone",    "nic",
    "storage", "serial", "owner",    "label", "label key", "source", "event id"};
constexpr std::string_view kLetters = "njirtpzcsuolkwe";
constexpr std::string_view kBase32 = "abcdefghijklmnopqrstuvwxyz234567";
constexpr size_t kDigits = 16;
// Why: half a year to four and a half years back: never into the future, and no year is a hint.
constexpr int64_t kWeeksMin = 26;
constexpr uint64_t kWeeksSpan = 208;

}  // namespace

std::string_view word(NameKind kind) { return kWords[static_cast<size_t>(kind)]; }

struct Pseudonyms::Mac {
  EVP_MAC* algorithm = EVP_MAC_fetch(nullptr, "HMAC", nullptr);
  EVP_MAC_CTX* keyed = nullptr;
  ~Mac() {
    EVP_MAC_CTX_free(keyed);
    EVP_MAC_free(algorithm);
  }
};

Pseudonyms::Pseudonyms(std::string_view key) : mac_(std::make_unique<Mac>()) {
  RFX_CHECK(mac_->algorithm != nullptr);
  mac_->keyed = EVP_MAC_CTX_new(mac_->algorithm);
  std::string name = "SHA256";
  const OSSL_PARAM params[] = {OSSL_PARAM_construct_utf8_string("digest", name.data(), 0),
                               OSSL_PARAM_construct_end()};
  RFX_CHECK(mac_->keyed != nullptr);
  RFX_CHECK(EVP_MAC_init(mac_->keyed, reinterpret_cast<const unsigned char*>(key.data()),
                         key.size(), params) == 1);
  const std::string d = digest("time shift", "");
  uint64_t bits = 0;
  for (int i = 0; i < 8; ++i) bits = bits << 8 | static_cast<unsigned char>(d[i]);
  const int64_t weeks = kWeeksMin + static_cast<int64_t>(bits % kWeeksSpan);
  shift_ns_ = -weeks * 7 * kNsPerDay;
}

Pseudonyms::~Pseudonyms() = default;

std::string Pseudonyms::digest(std::string_view domain, std::string_view name) const {
  EVP_MAC_CTX* one = EVP_MAC_CTX_dup(mac_->keyed);
  RFX_CHECK(one != nullptr);
  const auto add = [&](std::string_view s) {
    RFX_CHECK(EVP_MAC_update(one, reinterpret_cast<const unsigned char*>(s.data()), s.size()) == 1);
  };
  add(domain);
  add(std::string_view("\0", 1));  // "no" + "de" is not "node" + ""
  add(name);
  std::string out(32, '\0');
  size_t size = 0;
  RFX_CHECK(EVP_MAC_final(one, reinterpret_cast<unsigned char*>(out.data()), &size, out.size()) ==
            1);
  EVP_MAC_CTX_free(one);
  return out;
}

std::string Pseudonyms::of(NameKind kind, std::string_view name) const {
  const std::string d = digest(word(kind), name);
  std::string out(1, kLetters[static_cast<size_t>(kind)]);
  uint32_t bits = 0;
  unsigned have = 0;
  for (size_t i = 0; out.size() <= kDigits; ++i) {
    bits = bits << 8 | static_cast<unsigned char>(d[i]);
    for (have += 8; have >= 5 && out.size() <= kDigits; have -= 5) {
      out += kBase32[bits >> (have - 5) & 31];
    }
  }
  return out;
}

}  // namespace reflex::anonymize

// Values in a bucket; see nats_values.h.
#include "runtime/broker/nats_values.h"

#include <fmt/format.h>

#include <charconv>
#include <thread>

#include "runtime/base/crc32c.h"

namespace reflex::broker {
namespace {

// Why: half of what a server takes unless it is configured (max_payload 1 MiB).
constexpr size_t kPieceBytes = 512u << 10;

struct Head {
  int slot = 0;  // 0: the value follows
  size_t size = 0;
  uint32_t sum = 0;
};

std::string text_of(const Head& head) {
  return fmt::format("{} {} {:08x}\n", head.slot, head.size, head.sum);
}

bool parse(const std::string& text, Head& head, size_t& behind) {
  const size_t end = text.find('\n');
  if (end == std::string::npos) return false;
  behind = end + 1;
  return std::sscanf(text.c_str(), "%d %zu %x", &head.slot, &head.size, &head.sum) == 3;
}

}  // namespace

Result<NatsValues> NatsValues::open(const NatsClient& client, const NatsOptions& options) {
  auto bucket = open_bucket(client, options.stream + "_values", std::chrono::milliseconds(0));
  if (!bucket.ok()) return bucket.error();
  return NatsValues(options, std::move(bucket).value());
}

Status NatsValues::put_one(const std::string& key, std::string_view bytes) {
  const natsStatus status = until_back(
      [&] {
        return kvStore_Put(nullptr, bucket_.get(), key.c_str(), bytes.data(),
                           static_cast<int>(bytes.size()));
      },
      options_->outage, options_->stopped);
  if (status != NATS_OK) return nats_error("keeping " + key, status);
  return ok_status();
}

Result<std::optional<std::string>> NatsValues::get_one(const std::string& key) {
  kvEntry* raw = nullptr;
  const natsStatus status =
      until_back([&] { return kvStore_Get(&raw, bucket_.get(), key.c_str()); }, options_->outage,
                 options_->stopped);
  if (status == NATS_NOT_FOUND) return std::optional<std::string>();
  if (status != NATS_OK) return nats_error("reading " + key, status);
  const NatsOwned<kvEntry, kvEntry_Destroy> entry(raw);
  return std::optional(std::string(static_cast<const char*>(kvEntry_Value(raw)),
                                   static_cast<size_t>(kvEntry_ValueLen(raw))));
}

Status NatsValues::put(const std::string& name, std::string_view bytes) {
  Head head{0, bytes.size(), crc32c(bytes)};
  if (bytes.size() <= kPieceBytes) return put_one(name, text_of(head) + std::string(bytes));
  auto before = get_one(name);
  if (!before.ok()) return before.error();
  Head old;
  size_t behind = 0;
  if (before.value() && !parse(*before.value(), old, behind)) old = {};
  head.slot = old.slot == 1 ? 2 : 1;
  for (size_t at = 0, piece = 0; at < bytes.size(); at += kPieceBytes, ++piece) {
    const auto status =
        put_one(fmt::format("{}.slot{}.{}", name, head.slot, piece), bytes.substr(at, kPieceBytes));
    if (!status.ok()) return status;
  }
  return put_one(name, text_of(head));
}

Result<std::optional<std::string>> NatsValues::get_whole(const std::string& name, bool& torn) {
  auto first = get_one(name);
  if (!first.ok() || !first.value()) return first;
  Head head;
  size_t behind = 0;
  torn = !parse(*first.value(), head, behind);
  if (torn) return first;
  std::string bytes = first.value()->substr(behind);
  for (size_t piece = 0; head.slot != 0 && bytes.size() < head.size; ++piece) {
    auto next = get_one(fmt::format("{}.slot{}.{}", name, head.slot, piece));
    if (!next.ok()) return next.error();
    if (!next.value() || next.value()->empty()) break;
    bytes += *next.value();
  }
  torn = bytes.size() != head.size || crc32c(bytes) != head.sum;
  return std::optional(std::move(bytes));
}

Result<std::optional<std::string>> NatsValues::get(const std::string& name) {
  for (int attempt = 0; attempt < 5; ++attempt) {
    bool torn = false;
    auto value = get_whole(name, torn);
    if (!value.ok() || !torn) return value;
    // Someone is writing it.
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
  return Error{"nats: the value " + name + " is damaged"};
}

}  // namespace reflex::broker

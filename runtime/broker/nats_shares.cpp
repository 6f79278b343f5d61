// Leases on units; see nats_values.h.
//
// The bucket forgets a key that is not renewed within the lease. A unit that is free is taken by
// create(), which one succeeds in; who holds it renews it by its revision, which fails when it has
// run out and gone to another.
#include <fmt/format.h>
#include <unistd.h>

#include <map>
#include <random>
#include <set>
#include <thread>

#include "runtime/broker/nats_values.h"

namespace reflex::broker {
namespace {

using Clock = std::chrono::steady_clock;

class NatsShares : public Shares {
 public:
  NatsShares(const NatsOptions& options, NatsBucket bucket, std::string subject, uint32_t count)
      : options_(options), bucket_(std::move(bucket)), subject_(std::move(subject)), count_(count) {
    std::random_device random;
    me_ = fmt::format("{}.member.{:08x}{:08x}", subject_, random(), random());
  }
  ~NatsShares() override {
    for (const auto& [unit, revision] : held_) kvStore_Delete(bucket_.get(), key_of(unit).c_str());
    kvStore_Delete(bucket_.get(), me_.c_str());
  }

  Result<std::set<uint32_t>> mine(std::chrono::milliseconds patience) override {
    if (Clock::now() - renewed_ < options_.lease / 4) {
      std::this_thread::sleep_for(std::min(patience, options_.lease / 4));
      return units();
    }
    renewed_ = Clock::now();
    const natsStatus status = renew();
    if (status == NATS_OK) {
      out_.reset();
      return units();
    }
    // Nobody can take what is mine while the server is away, but for its own clock: when it is back
    // what has run out is lost by renew().
    if (!out_) out_ = Clock::now();
    if (!is_outage(status) || Clock::now() - *out_ > options_.outage) {
      return nats_error("leases of " + subject_, status);
    }
    return units();
  }

 private:
  [[nodiscard]] std::string key_of(uint32_t unit) const {
    return fmt::format("{}.unit.{}", subject_, unit);
  }
  [[nodiscard]] std::set<uint32_t> units() const {
    std::set<uint32_t> out;
    for (const auto& [unit, revision] : held_) out.insert(unit);
    return out;
  }

  natsStatus renew() {
    natsStatus status = kvStore_PutString(nullptr, bucket_.get(), me_.c_str(), "");
    if (status != NATS_OK) return status;
    for (auto it = held_.begin(); it != held_.end();) {
      const natsStatus kept = kvStore_UpdateString(
          &it->second, bucket_.get(), key_of(it->first).c_str(), me_.c_str(), it->second);
      if (kept != NATS_OK && is_outage(kept)) return kept;
      it = kept == NATS_OK ? std::next(it) : held_.erase(it);
    }
    std::set<std::string> keys;
    if (status = read_keys(keys); status != NATS_OK) return status;
    // Parts differ by one at most; who comes first by name has the larger one.
    size_t members = 0;
    size_t before_me = 0;
    for (const auto& key : keys) {
      if (!key.starts_with(subject_ + ".member.")) continue;
      ++members;
      before_me += key < me_;
    }
    members = std::max<size_t>(1, members);
    const size_t part = count_ / members + (before_me < count_ % members ? 1 : 0);
    while (held_.size() > part) {
      const auto last = std::prev(held_.end());
      kvStore_Delete(bucket_.get(), key_of(last->first).c_str());
      held_.erase(last);
    }
    for (uint32_t unit = 0; unit < count_ && held_.size() < part; ++unit) {
      const std::string key = key_of(unit);
      if (held_.contains(unit) || keys.contains(key)) continue;
      uint64_t revision = 0;
      if (kvStore_CreateString(&revision, bucket_.get(), key.c_str(), me_.c_str()) == NATS_OK) {
        held_[unit] = revision;
      }
    }
    return NATS_OK;
  }

  natsStatus read_keys(std::set<std::string>& out) {
    kvKeysList list{nullptr, 0};
    const natsStatus status = kvStore_Keys(&list, bucket_.get(), nullptr);
    for (int i = 0; i < list.Count; ++i) out.emplace(list.Keys[i]);
    kvKeysList_Destroy(&list);
    return status == NATS_NOT_FOUND ? NATS_OK : status;
  }

  NatsOptions options_;
  NatsBucket bucket_;
  std::string subject_;
  uint32_t count_;
  std::string me_;
  std::map<uint32_t, uint64_t> held_;  // unit, revision of its key
  Clock::time_point renewed_;
  std::optional<Clock::time_point> out_;  // since when the server is away
};

}  // namespace

Result<std::unique_ptr<Shares>> nats_shares(const NatsClient& client, const NatsOptions& options,
                                            const std::string& subject, uint32_t count) {
  auto bucket = open_bucket(client, options.stream + "_leases", options.lease);
  if (!bucket.ok()) return bucket.error();
  return std::unique_ptr<Shares>(
      std::make_unique<NatsShares>(options, std::move(bucket).value(), subject, count));
}

}  // namespace reflex::broker

// Units: the units of work that this process serves at the moment, a thread each.
//
// Which they are, the broker says (broker::Shares): a unit that goes is stopped (it saves its
// state), one that comes is begun from its newest state. A process stays until all units of the run
// have ended, its own or not: it may be the one that has to take over.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>

#include "runtime/cluster/roles.h"

namespace reflex::cluster {

/// A message is not there any more that should be.
Error missing_message(const std::string& subject, uint64_t before_number);

class Units {
 public:
  using Serve = std::function<Result<bool>(const RoleContext& own, uint32_t unit)>;
  /// `subject`.N are the units; `role` is their name in states.
  Units(const RoleContext& context, std::string subject, uint32_t count, std::string role,
        Serve serve);
  ~Units();
  Units(const Units&) = delete;
  Units& operator=(const Units&) = delete;
  Status run();

 private:
  struct Unit {
    RoleContext context;
    std::atomic<bool> stop = false;
    std::atomic<bool> finished = false;
    std::optional<Error> error;
    bool ended = false;
    std::jthread thread;
  };
  void begin(uint32_t number);
  /// Takes away what has finished. Errors: a unit's.
  Status reap();
  /// Whether all have ended; asks the broker for those of others.
  Result<bool> all_ended();
  [[nodiscard]] std::string ended_name(uint32_t number) const;

  const RoleContext& context_;
  std::string subject_;
  uint32_t count_;
  std::string role_;
  Serve serve_;
  std::map<uint32_t, std::unique_ptr<Unit>> running_;
  std::set<uint32_t> ended_;
  std::chrono::steady_clock::time_point asked_;
};

}  // namespace reflex::cluster

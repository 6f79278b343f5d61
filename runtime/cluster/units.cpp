// Serving what the broker hands out: see units.h.
#include "runtime/cluster/units.h"

#include <fmt/format.h>

#include "runtime/cluster/subjects.h"

namespace reflex::cluster {
namespace {
constexpr std::chrono::milliseconds kPatience{500};
constexpr std::chrono::seconds kAsk{2};  // Why: how often an idle process looks whether all is done
}  // namespace

Error missing_message(const std::string& subject, uint64_t before_number) {
  return Error{
      fmt::format("messages of {} before number {} are not kept any more, and there is no state "
                  "behind them: begin the run again with another --stream, or keep messages longer",
                  subject, before_number)};
}

Units::Units(const RoleContext& context, std::string subject, uint32_t count, std::string role,
             Serve serve)
    : context_(context),
      subject_(std::move(subject)),
      count_(count),
      role_(std::move(role)),
      serve_(std::move(serve)) {}

Units::~Units() {
  for (auto& [number, unit] : running_) unit->stop = true;
}

std::string Units::ended_name(uint32_t number) const {
  return Subjects(context_.stream, *context_.pack, context_.partitions).ended(role_, number);
}

void Units::begin(uint32_t number) {
  auto unit = std::make_unique<Unit>();
  Unit* self = unit.get();
  self->context = context_;
  self->context.stop = &self->stop;
  if (context_.note) context_.note(fmt::format("{} {}: begun here", role_, number));
  self->thread = std::jthread([this, self, number] {
    auto ended = serve_(self->context, number);
    if (!ended.ok()) {
      self->error = ended.error();
    } else {
      self->ended = ended.value();
    }
    self->finished = true;
  });
  running_[number] = std::move(unit);
}

Status Units::reap() {
  for (auto it = running_.begin(); it != running_.end();) {
    Unit& unit = *it->second;
    if (!unit.finished) {
      ++it;
      continue;
    }
    unit.thread.join();
    if (unit.error) return *unit.error;
    if (unit.ended) {
      if (auto told = context_.broker->put_value(ended_name(it->first), "1"); !told.ok()) {
        return told;
      }
      ended_.insert(it->first);
    }
    if (context_.note) {
      context_.note(fmt::format("{} {}: {}", role_, it->first,
                                unit.ended ? "ended" : "given to another process"));
    }
    it = running_.erase(it);
  }
  return ok_status();
}

Result<bool> Units::all_ended() {
  if (ended_.size() == count_) return true;
  if (!running_.empty() || std::chrono::steady_clock::now() - asked_ < kAsk) return false;
  asked_ = std::chrono::steady_clock::now();
  for (uint32_t number = 0; number < count_; ++number) {
    if (ended_.contains(number)) continue;
    auto value = context_.broker->value(ended_name(number));
    if (!value.ok()) return value.error();
    if (!value.value()) return false;
    ended_.insert(number);
  }
  return true;
}

Status Units::run() {
  auto shares = context_.broker->share(subject_, count_);
  if (!shares.ok()) return shares.error();
  while (!context_.stop->load()) {
    auto mine = shares.value()->mine(kPatience);
    if (!mine.ok()) return mine.error();
    for (auto& [number, unit] : running_) {
      if (!mine.value().contains(number)) unit->stop = true;
    }
    if (auto status = reap(); !status.ok()) return status;
    // One that is still stopping is begun again when it has stopped.
    for (const uint32_t number : mine.value()) {
      if (!running_.contains(number) && !ended_.contains(number)) begin(number);
    }
    auto all = all_ended();
    if (!all.ok()) return all.error();
    if (all.value()) return ok_status();
  }
  for (auto& [number, unit] : running_) unit->stop = true;
  for (auto& [number, unit] : running_) unit->thread.join();
  return ok_status();
}

}  // namespace reflex::cluster

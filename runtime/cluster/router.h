// Router: decoded records -> one EventBatch for each partition of signal workers.
//
// Every partition hears how far each source is, whether or not it gets a record of it: else the
// watermark of a partition without events would stand still. A stamp far ahead (a broken clock)
// moves nobody before a second one of its source confirms it, as in stream::Reorder.
// Records that go to several partitions are copied by the codec; a batch given to split() is used
// up.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/cluster/messages.h"
#include "runtime/cluster/route.h"

namespace reflex::cluster {

class Router {
 public:
  Router(std::shared_ptr<const abi::CompiledPack> pack, uint32_t partitions);
  /// One message for each partition, in their order.
  std::vector<std::string> split(const stream::RecordBatch& batch,
                                 const std::vector<SymbolId>& finished = {});
  /// Sources that the watermark waits for until they are finished (batch runs).
  std::vector<std::string> declare(const std::vector<EventBatch::Declared>& sources);
  std::vector<std::string> tick(int64_t wall_ns);
  /// Nothing comes any more (batch runs).
  std::vector<std::string> end();
  /// Of the messages that were made last.
  [[nodiscard]] uint64_t number() const { return number_; }
  void save(StateWriter& out) const;
  void load(StateReader& in);
  /// Time of the newest event so far; kNoTimeNs before the first.
  [[nodiscard]] int64_t newest_ns() const { return newest_ns_; }

 private:
  struct Clock {
    SymbolId source = kNoSymbol;
    int64_t newest_ns = kNoTimeNs;
    int64_t doubted_ns = kNoTimeNs;  // far ahead, not confirmed
    bool moved = false;
  };
  void note(SymbolId source, int64_t ts_ns);
  std::vector<std::string> encode(std::vector<EventBatch>& batches);

  std::shared_ptr<const abi::CompiledPack> pack_;
  MessageCodec codec_;
  Route route_;
  uint32_t partitions_;
  uint64_t number_ = 0;
  std::map<std::string, Clock, std::less<>> clocks_;  // by name: the order is visible
  std::vector<Clock*> clock_of_;                      // [SymbolId]
  int64_t newest_ns_ = kNoTimeNs;
};

}  // namespace reflex::cluster

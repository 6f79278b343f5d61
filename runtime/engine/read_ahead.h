// ReadAhead: the inputs of a run as decoded pieces, in one order, with all threads reading and
// decoding ahead of the caller.
//
// Contract: next() gives the pieces one after the other. Which input a piece is read from depends
// on the files alone, never on timing or on the number of threads: the one that was least advanced
// in event time kAhead pieces before. Every thread does what is there to do: the caller, too, when
// the next piece is not ready; with one thread all happens inside next().
// It is also the crew of the shards (eval/crew.h): threads run a shard before they decode more, and
// the caller decodes while it waits for the last shard.
// Bounds: kAhead pieces are read and not yet handed out.
// Not here: order between records, watermarks (Reorder), what a bad source means (Run).
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/base/time.h"
#include "runtime/eval/crew.h"
#include "runtime/stream/line_source.h"
#include "runtime/stream/log_decoder.h"
#include "runtime/stream/ndjson_decoder.h"

namespace reflex::engine {

/// One input with its decoders: one a thread for NDJSON; a log has one, its lines depend on those
/// before them.
struct Input {
  std::string path;
  SymbolId source = kNoSymbol;
  std::unique_ptr<stream::LineSource> lines;
  std::vector<std::unique_ptr<stream::NdjsonDecoder>> decoders;  // [thread]
  std::unique_ptr<stream::LogDecoder> log;
  uint64_t bytes_read = 0;  // up to the last piece that was handed out

  // ReadAhead's own:
  int64_t progress_ns = kNoTimeNs;  // largest ts of the pieces that count for the choice
  size_t pending = 0;               // pieces that do not count yet
  bool read_to_end = false;
  bool decoding = false;  // a piece of a log
};

class ReadAhead final : public eval::Crew {
 public:
  struct Piece {
    Input* input = nullptr;
    stream::Chunk chunk;         // its text is empty in the last piece of an input
    std::optional<Error> error;  // of reading: then it is the last piece
    bool last = false;
    uint64_t bytes_read = 0;  // of the input, with this piece
    stream::RecordBatch batch;
  };

  /// `inputs` and what they own stay alive and are touched by no one else.
  ReadAhead(std::vector<std::unique_ptr<Input>>& inputs, unsigned threads, size_t piece_bytes);
  ~ReadAhead() override;
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;

  /// The next piece; null after the last one.
  std::unique_ptr<Piece> next();
  void run(size_t count, const std::function<void(size_t)>& task) override;

 private:
  // Why 8: 2 MiB of text, so that all threads find something to do while one evaluates; more costs
  // memory and makes the choice of the input older. Not tuned.
  static constexpr size_t kAhead = 8;
  enum class State : uint8_t { kRead, kDecoding, kDone };
  struct Slot {
    std::unique_ptr<Piece> piece;
    State state = State::kRead;
  };
  struct Progress {
    Input* input = nullptr;
    int64_t ts_ns = kNoTimeNs;
  };
  using Lock = std::unique_lock<std::mutex>;

  void work(size_t thread);
  /// Does one thing that is there to do; false when there is none.
  bool help(size_t thread, Lock& lock);
  bool decode_one(size_t thread, Lock& lock);
  bool run_one(size_t thread, Lock& lock);
  [[nodiscard]] Slot* undecoded();
  [[nodiscard]] bool can_read(size_t thread) const;
  [[nodiscard]] Input* least_advanced() const;
  void read(Lock& lock);
  void decode(Slot& slot, size_t thread, Lock& lock);
  void wake();

  std::vector<std::unique_ptr<Input>>& inputs_;
  size_t piece_bytes_;
  std::shared_ptr<stream::BlockPool> memory_ = std::make_shared<stream::BlockPool>();
  std::mutex mutex_;
  std::condition_variable changed_;
  size_t waiting_ = 0;
  bool stopping_ = false;
  bool reading_ = false;
  size_t inputs_left_ = 0;         // not read to the end
  std::deque<Slot> slots_;         // read, not handed out; in order
  std::deque<Progress> progress_;  // of pieces that were handed out and do not count yet
  const std::function<void(size_t)>* task_ = nullptr;  // of run(); tasks [begin, end) are left
  size_t tasks_begin_ = 0;
  size_t tasks_end_ = 0;
  size_t tasks_running_ = 0;
  std::vector<std::thread> workers_;
};

}  // namespace reflex::engine

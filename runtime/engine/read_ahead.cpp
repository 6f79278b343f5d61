// ReadAhead: what a thread does next; see read_ahead.h.
#include "runtime/engine/read_ahead.h"

#include <algorithm>
#include <utility>

namespace reflex::engine {

ReadAhead::ReadAhead(std::vector<std::unique_ptr<Input>>& inputs, unsigned threads,
                     size_t piece_bytes)
    : inputs_(inputs), piece_bytes_(piece_bytes), inputs_left_(inputs.size()) {
  for (size_t i = 1; i < threads; ++i) {
    workers_.emplace_back([this, i] { work(i); });
  }
}

ReadAhead::~ReadAhead() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

std::unique_ptr<ReadAhead::Piece> ReadAhead::next() {
  Lock lock(mutex_);
  for (;;) {
    if (!slots_.empty() && slots_.front().state == State::kDone) {
      std::unique_ptr<Piece> piece = std::move(slots_.front().piece);
      slots_.pop_front();
      if (inputs_.size() > 1) {
        Progress progress{piece->input, kNoTimeNs};
        for (const abi::Record* record : piece->batch.records) {
          progress.ts_ns = std::max(progress.ts_ns, record->ts_ns);
        }
        progress_.push_back(progress);
      }
      wake();
      return piece;
    }
    if (slots_.empty() && inputs_left_ == 0 && !reading_) return nullptr;
    if (help(0, lock)) continue;
    ++waiting_;
    changed_.wait(lock);
    --waiting_;
  }
}

void ReadAhead::work(size_t thread) {
  Lock lock(mutex_);
  while (!stopping_) {
    if (help(thread, lock)) continue;
    ++waiting_;
    changed_.wait(lock);
    --waiting_;
  }
}

void ReadAhead::wake() {
  if (waiting_ != 0) changed_.notify_all();
}

void ReadAhead::run(size_t count, const std::function<void(size_t)>& task) {
  Lock lock(mutex_);
  task_ = &task;
  tasks_begin_ = 0;
  tasks_end_ = count;
  wake();
  while (run_one(0, lock)) {
  }
  while (tasks_running_ != 0) {
    if (decode_one(0, lock)) continue;
    ++waiting_;
    changed_.wait(lock);
    --waiting_;
  }
  task_ = nullptr;
}

/// The caller takes tasks from the front, the others from the back, so that a shard is mostly run
/// by the thread whose cache has its state.
bool ReadAhead::run_one(size_t thread, Lock& lock) {
  if (task_ == nullptr || tasks_begin_ == tasks_end_) return false;
  const size_t number = thread == 0 ? tasks_begin_++ : --tasks_end_;
  const auto& task = *task_;
  ++tasks_running_;
  lock.unlock();
  task(number);
  lock.lock();
  --tasks_running_;
  wake();
  return true;
}

bool ReadAhead::decode_one(size_t thread, Lock& lock) {
  Slot* slot = undecoded();
  if (slot == nullptr) return false;
  decode(*slot, thread, lock);
  return true;
}

bool ReadAhead::help(size_t thread, Lock& lock) {
  if (run_one(thread, lock) || decode_one(thread, lock)) return true;
  if (!can_read(thread)) return false;
  read(lock);
  return true;
}

ReadAhead::Slot* ReadAhead::undecoded() {
  // The first one of a log in order is the one that is next in it.
  for (Slot& slot : slots_) {
    if (slot.state == State::kRead && !slot.piece->input->decoding) return &slot;
  }
  return nullptr;
}

bool ReadAhead::can_read(size_t thread) const {
  if (reading_ || inputs_left_ == 0 || slots_.size() >= kAhead) return false;
  if (thread != 0 || slots_.empty()) return true;
  // The caller must not wait for new data of a pipe while there is a piece for it to take.
  return std::all_of(inputs_.begin(), inputs_.end(),
                     [](const auto& input) { return input->lines->bytes_total() != 0; });
}

Input* ReadAhead::least_advanced() const {
  Input* best = nullptr;
  for (const auto& input : inputs_) {
    if (input->read_to_end) continue;
    if (best == nullptr || input->progress_ns < best->progress_ns ||
        (input->progress_ns == best->progress_ns && input->pending < best->pending)) {
      best = input.get();
    }
  }
  return best;
}

void ReadAhead::read(Lock& lock) {
  // The pieces up to kAhead before this one count: all of them were handed out by now, however
  // many threads there are, and none of the younger ones is looked at.
  while (slots_.size() + progress_.size() >= kAhead) {
    Input& input = *progress_.front().input;
    input.progress_ns = std::max(input.progress_ns, progress_.front().ts_ns);
    --input.pending;
    progress_.pop_front();
  }
  Input& input = *least_advanced();
  ++input.pending;
  reading_ = true;
  lock.unlock();
  auto piece = std::make_unique<Piece>();
  piece->input = &input;
  piece->batch.slab = std::make_shared<stream::Slab>(memory_);
  if (auto chunk = input.lines->next(piece_bytes_); chunk.ok()) {
    piece->chunk = std::move(chunk).value();
  } else {
    piece->error = chunk.error();
  }
  piece->last = piece->chunk.text.empty();
  piece->bytes_read = input.lines->bytes_read();
  lock.lock();
  reading_ = false;
  if (piece->last) {
    input.read_to_end = true;
    --inputs_left_;
  }
  slots_.push_back({std::move(piece), State::kRead});
  wake();
}

void ReadAhead::decode(Slot& slot, size_t thread, Lock& lock) {
  slot.state = State::kDecoding;
  Piece& piece = *slot.piece;  // stays where it is; the slot moves with the deque's ends only
  Input& input = *piece.input;
  input.decoding = input.log != nullptr;
  lock.unlock();
  if (!piece.last) {
    if (input.log != nullptr) {
      input.log->decode(piece.chunk.text, piece.chunk.first_line, piece.batch);
    } else {
      input.decoders[thread]->decode(piece.chunk.text, input.source, piece.chunk.first_line,
                                     piece.batch);
    }
  } else if (input.log != nullptr) {
    input.log->finish(piece.batch);
  }
  piece.chunk.memory.reset();
  lock.lock();
  input.decoding = false;
  slot.state = State::kDone;
  wake();
}

}  // namespace reflex::engine

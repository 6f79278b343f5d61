// Indexed binary heap of the active sources; for each input a heap of its quiet ones.
#include "runtime/stream/source_clocks.h"

#include <algorithm>

namespace reflex::stream {

uint32_t SourceClocks::add(SymbolId id) {
  const auto index = static_cast<uint32_t>(sources_.size());
  sources_.emplace_back();
  sources_.back().id = id;
  sources_.back().heard_ns = listened_ns_;
  heap_.push_back(index);
  place(heap_.size() - 1, index);
  sift_up(heap_.size() - 1);
  return index;
}

void SourceClocks::enter(uint32_t index, uint32_t input) {
  Source& source = sources_[index];
  source.input = input;
  index_[key_of(source.id, input)] = index;
  by_name_[source.id].push_back(index);
}

uint32_t SourceClocks::find(SymbolId id, uint32_t input) {
  const auto known = index_.find(key_of(id, input));
  last_id_ = id;
  last_input_ = input;
  last_index_ = known != index_.end() ? known->second : add(id);
  if (known == index_.end()) enter(last_index_, input);
  return last_index_;
}

uint32_t SourceClocks::source_alone(SymbolId id) {
  const auto own = input_index_.find(id);
  const bool declared = own != input_index_.end() && inputs_[own->second].declared;
  return source(id, declared ? own->second : input(kNoSymbol));
}

std::vector<uint32_t> SourceClocks::all_of(SymbolId id) {
  if (by_name_[id].empty()) source(id, input(id));
  return by_name_[id];
}

std::optional<uint32_t> SourceClocks::own_of(SymbolId id) const {
  const auto input = input_index_.find(id);
  if (input == input_index_.end()) return std::nullopt;
  const auto own = index_.find(key_of(id, input->second));
  if (own == index_.end()) return std::nullopt;
  return own->second;
}

uint32_t SourceClocks::input(SymbolId id) {
  const auto [entry, is_new] = input_index_.try_emplace(id, static_cast<uint32_t>(inputs_.size()));
  if (is_new) inputs_.emplace_back().id = id;
  return entry->second;
}

void SourceClocks::declare(SymbolId id, bool is_log) {
  Source& source = sources_[this->source(id, input(id))];
  source.declared = true;
  source.finished = false;  // it was, in a state that was loaded: now it goes on
  Input& own = inputs_[source.input];
  own.declared = true;
  if (is_log || own.opening || own.pace_ns >= idle_after_ns_) return;
  own.opening = true;
  ++opening_;
}

void SourceClocks::open(Input& input) {
  if (!input.opening) return;
  input.opening = false;
  --opening_;
}

void SourceClocks::join(uint32_t index) {
  Source& source = sources_[index];
  Input& on = inputs_[source.input];
  if (on.sources.empty()) hold_no_more(on.id);
  source.progress_ns = on.pace_ns;
  on.sources.push_back(index);
}

/// A declared source that only brings events of others does not wait for one of its own.
void SourceClocks::hold_no_more(SymbolId input) {
  const auto own = own_of(input);
  if (!own) return;
  const Source& source = sources_[*own];
  if (source.max_ns == kNothing && source.heap_position != SIZE_MAX) remove(source.heap_position);
}

void SourceClocks::advance(uint32_t index, int64_t ts_ns) {
  if (sources_[index].max_ns == kNothing) join(index);
  Source& source = sources_[index];
  Input& on = inputs_[source.input];
  furthest_ns_ = std::max(furthest_ns_, ts_ns);
  on.furthest_ns = std::max(on.furthest_ns, ts_ns);
  if (ts_ns > source.max_ns) {
    if (source.max_ns != kNothing) {
      const int64_t others_ns = on.pace_ns - source.heard_pace_ns;
      source.progress_ns += std::min(ts_ns - source.max_ns, others_ns + kStepMaxNs);
    }
    on.pace_ns = std::max(on.pace_ns, source.progress_ns);
    source.max_ns = ts_ns;
    if (on.pace_ns >= idle_after_ns_) open(on);
  }
  source.heard_pace_ns = on.pace_ns;
  source.quiet_entry = 0;
  if (source.heap_position != SIZE_MAX) {
    sift_down(source.heap_position);
  } else if (!source.finished) {  // idle: it speaks again
    heap_.push_back(index);
    place(heap_.size() - 1, index);
    sift_up(heap_.size() - 1);
  }
}

void SourceClocks::finish(SymbolId id) {
  const uint32_t own = source(id, input(id));
  sources_[own].finished = true;
  make_idle(own);
  open(inputs_[sources_[own].input]);
  for (const uint32_t member : inputs_[sources_[own].input].sources) make_idle(member);
}

void SourceClocks::make_idle(uint32_t index) {
  sources_[index].quiet_entry = 0;
  if (sources_[index].heap_position != SIZE_MAX) remove(sources_[index].heap_position);
}

void SourceClocks::tick(int64_t wall_ns) {
  if (last_tick_ns_ != kNothing) {
    listened_ns_ += std::clamp<int64_t>(wall_ns - last_tick_ns_, 0, kTickGapMaxNs);
  }
  last_tick_ns_ = std::max(last_tick_ns_, wall_ns);
  for (uint32_t i = 0; i < sources_.size(); ++i) {
    Source& source = sources_[i];
    if (source.spoke) source.heard_ns = listened_ns_;
    source.spoke = false;
    if (listened_ns_ - source.heard_ns < idle_after_ns_) continue;
    make_idle(i);
    if (source.declared) open(inputs_[input(source.id)]);
  }
  if (heap_.empty() && !sources_.empty() && listened_ns_ >= idle_after_ns_) {
    watermark_ns_ = std::max(watermark_ns_, last_tick_ns_ - lateness_ns_ - idle_after_ns_);
  }
}

void SourceClocks::save(StateWriter& writer, abi::RecordWriter& records,
                        const abi::CompiledPack& pack) const {
  writer.u64(sources_.size());
  for (const Source& source : sources_) {
    writer.symbol(source.id);
    writer.i64(source.max_ns);
    writer.flag(source.finished);
    writer.flag(source.declared);
    writer.flag(source.heap_position != SIZE_MAX);
    writer.i64(source.heard_ns);
    writer.flag(source.spoke);
    writer.u64(source.late);
    writer.flag(source.held != nullptr);
    if (source.held == nullptr) continue;
    writer.symbol(source.held_input);
    records.write(*source.held, pack.kinds[source.held->kind]);
  }
  writer.i64(furthest_ns_);
  writer.i64(watermark_ns_);
  writer.i64(last_tick_ns_);
  writer.i64(listened_ns_);
}

void SourceClocks::save_paces(StateWriter& writer) const {
  writer.begin("paces");
  writer.u64(inputs_.size());
  for (const Input& input : inputs_) {
    writer.flag(input.id != kNoSymbol);
    if (input.id != kNoSymbol) writer.symbol(input.id);
    writer.flag(input.declared);
    writer.flag(input.opening);
    writer.i64(input.pace_ns);
    writer.i64(input.furthest_ns);
  }
  writer.u64(sources_.size());
  for (const Source& source : sources_) {  // in the order of save()
    writer.u64(source.input);
    writer.i64(source.progress_ns);
    writer.i64(source.heard_pace_ns);
    writer.flag(source.quiet_entry != 0);
  }
  writer.end();
}

void SourceClocks::load_paces(StateReader& reader) {
  if (reader.at_end()) return assume_paces();  // a state of before there were any
  if (!reader.enter("paces")) return;
  for (size_t left = reader.count(4); left > 0 && !reader.failed(); --left) {
    Input& in = inputs_[input(reader.flag() ? reader.symbol() : kNoSymbol)];
    in.declared = reader.flag();
    in.opening = reader.flag();
    opening_ += in.opening;
    in.pace_ns = reader.i64();
    in.furthest_ns = reader.i64();
    if (in.pace_ns < 0 || (in.furthest_ns != kNothing && in.furthest_ns < 0)) reader.fail();
  }
  if (reader.count(4) != sources_.size()) reader.fail();
  if (inputs_.empty() && !sources_.empty()) reader.fail();
  for (uint32_t i = 0; i < sources_.size() && !reader.failed(); ++i) {
    const auto input = static_cast<uint32_t>(reader.bounded(inputs_.size() - 1));
    Source& source = sources_[i];
    source.progress_ns = reader.i64();
    source.heard_pace_ns = reader.i64();
    const bool quiet = reader.flag();
    if (reader.failed() || index_.contains(key_of(source.id, input))) return reader.fail();
    enter(i, input);
    Input& on = inputs_[input];
    if (source.progress_ns < 0 || source.heard_pace_ns < 0 || source.heard_pace_ns > on.pace_ns) {
      reader.fail();
    }
    if (source.max_ns == kNothing) continue;
    on.sources.push_back(i);
    if (quiet && source.heap_position == SIZE_MAX && !reader.failed()) {
      source.quiet_entry = ++quiet_entries_;
      if (on.quiet.empty()) inputs_with_quiet_.push_back(source.input);
      on.quiet.push({source.max_ns - source.heard_pace_ns, i, source.quiet_entry});
    }
  }
  reader.leave();
}

/// Each source came on an input of its own name.
void SourceClocks::assume_paces() {
  for (uint32_t i = 0; i < sources_.size(); ++i) {
    Source& source = sources_[i];
    const uint32_t own = input(source.id);
    if (index_.contains(key_of(source.id, own))) continue;
    enter(i, own);
    inputs_[own].declared = source.declared;
    if (source.max_ns == kNothing) continue;
    inputs_[own].furthest_ns = source.max_ns;
    inputs_[own].sources.push_back(i);
  }
}

void SourceClocks::load(StateReader& reader, abi::RecordReader& records,
                        const std::shared_ptr<Slab>& slab) {
  for (size_t left = reader.count(8); left > 0 && !reader.failed(); --left) {
    const uint32_t index = add(reader.symbol());  // its input stands in the paces
    Source& source = sources_[index];
    source.max_ns = reader.i64();
    source.finished = reader.flag();
    source.declared = reader.flag();
    const bool active = reader.flag();
    source.heard_ns = reader.i64();
    source.spoke = reader.flag();
    source.late = reader.u64();
    if (!active && source.heap_position != SIZE_MAX) remove(source.heap_position);
    if (active && source.heap_position != SIZE_MAX) {
      sift_down(source.heap_position);
      sift_up(source.heap_position);
    }
    if (!reader.flag()) continue;
    source.held_input = reader.symbol();
    abi::RecordParts parts;
    if (!records.read(parts)) continue;
    source.held = slab->add(parts);
    source.held_slab = slab;
  }
  furthest_ns_ = reader.i64();
  watermark_ns_ = reader.i64();
  last_tick_ns_ = reader.i64();
  listened_ns_ = reader.i64();
  const auto is_time = [](int64_t ns) { return ns == kNothing || ns >= 0; };
  bool good = listened_ns_ >= 0 && is_time(last_tick_ns_) && is_time(furthest_ns_);
  for (const Source& source : sources_) {
    good = good && is_time(source.max_ns) && source.heard_ns >= 0 && source.heard_ns <= listened_ns_;
  }
  if (!good) reader.fail();
}

bool SourceClocks::is_behind(const Input& input, int64_t clock_ns) const {
  if (input.declared) return clock_ns < input.furthest_ns - kBehindMaxNs;
  if (last_tick_ns_ == kNothing) return clock_ns < furthest_ns_ - kBehindMaxNs;
  // Not behind the furthest: that one may be ahead of the wall clock.
  return clock_ns < std::min(furthest_ns_, last_tick_ns_) - idle_after_ns_;
}

void SourceClocks::make_quiet(uint32_t index) {
  Source& source = sources_[index];
  remove(source.heap_position);
  source.quiet_entry = ++quiet_entries_;
  Input& input = inputs_[source.input];
  if (input.quiet.empty()) inputs_with_quiet_.push_back(source.input);
  // Entries of sources that have spoken since stand behind the first one: they are left out at times.
  if (input.quiet.size() > 2 * input.sources.size() + 64) {
    decltype(input.quiet) valid;
    for (; !input.quiet.empty(); input.quiet.pop()) {
      const Quiet& top = input.quiet.top();
      if (sources_[top.source].quiet_entry == top.entry) valid.push(top);
    }
    input.quiet.swap(valid);
  }
  input.quiet.push({source.max_ns - source.heard_pace_ns, index, source.quiet_entry});
}

/// Leaves the least advanced active source on top; false: a declared one has not spoken.
bool SourceClocks::settle_active() {
  while (!heap_.empty()) {
    const uint32_t index = heap_[0];
    const Source& source = sources_[index];
    if (source.max_ns == kNothing) return false;
    const Input& input = inputs_[source.input];
    if (is_behind(input, source.max_ns)) {
      make_idle(index);
    } else if (input.pace_ns - source.heard_pace_ns > quiet_after_ns()) {
      make_quiet(index);
    } else {
      break;
    }
  }
  return true;
}

/// Of the least advanced quiet source; INT64_MAX when there is none.
int64_t SourceClocks::quiet_clock_ns(Input& input) {
  while (!input.quiet.empty()) {
    const Quiet top = input.quiet.top();
    if (sources_[top.source].quiet_entry == top.entry) {
      const int64_t clock_ns =
          std::min(top.key_ns + input.pace_ns - quiet_after_ns(), input.furthest_ns);
      if (!is_behind(input, clock_ns)) return clock_ns;
      sources_[top.source].quiet_entry = 0;
    }
    input.quiet.pop();
  }
  return INT64_MAX;
}

int64_t SourceClocks::watermark_ns() {
  if (opening_ > 0 || !settle_active()) return watermark_ns_;
  int64_t least_ns = heap_.empty() ? INT64_MAX : time(0);
  for (size_t i = 0; i < inputs_with_quiet_.size();) {
    Input& input = inputs_[inputs_with_quiet_[i]];
    least_ns = std::min(least_ns, quiet_clock_ns(input));
    if (input.quiet.empty()) {
      inputs_with_quiet_[i] = inputs_with_quiet_.back();
      inputs_with_quiet_.pop_back();
    } else {
      ++i;
    }
  }
  // Every source is finished or idle: only what is already here can be released.
  if (least_ns == INT64_MAX) least_ns = furthest_ns_;
  if (last_tick_ns_ != kNothing) least_ns = std::min(least_ns, last_tick_ns_ + kAheadOfWallMaxNs);
  if (least_ns != kNothing) watermark_ns_ = std::max(watermark_ns_, least_ns - lateness_ns_);
  return watermark_ns_;
}

void SourceClocks::remove(size_t position) {
  sources_[heap_[position]].heap_position = SIZE_MAX;
  const uint32_t last = heap_.back();
  heap_.pop_back();
  if (position == heap_.size()) return;
  place(position, last);
  sift_down(position);
  sift_up(sources_[last].heap_position);
}

void SourceClocks::sift_down(size_t position) {
  for (;;) {
    size_t child = 2 * position + 1;
    if (child >= heap_.size()) return;
    if (child + 1 < heap_.size() && before(child + 1, child)) ++child;
    if (before(position, child)) return;
    const uint32_t index = heap_[position];
    place(position, heap_[child]);
    place(child, index);
    position = child;
  }
}

void SourceClocks::sift_up(size_t position) {
  while (position > 0) {
    const size_t parent = (position - 1) / 2;
    if (before(parent, position)) return;
    const uint32_t index = heap_[position];
    place(position, heap_[parent]);
    place(parent, index);
    position = parent;
  }
}

}  // namespace reflex::stream

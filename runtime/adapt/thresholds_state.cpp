// Thresholds as a saved state: sketches by class, cohort and node, each with its parameters in the
// order of the names of the state.
#include "runtime/adapt/thresholds.h"

namespace reflex::adapt {

void Thresholds::Level::save(StateWriter& writer) const {
  for (const QuantileSketch* sketch : {&slow, &fast, &fresh, &fresh_loners}) sketch->save(writer);
  for (const double x : {upper, lower, limit, high, low, seen, high_share, low_share}) writer.f64(x);
  writer.i64(shifted_ns);
}

void Thresholds::Level::load(StateReader& reader) {
  for (QuantileSketch* sketch : {&slow, &fast, &fresh, &fresh_loners}) sketch->load(reader);
  for (double* x : {&upper, &lower, &limit, &high, &low, &seen, &high_share, &low_share}) {
    *x = reader.f64();
  }
  shifted_ns = reader.i64();
}

void Thresholds::Own::save(StateWriter& writer) const {
  writer.f64(seen);
  writer.f64(over);
  writer.flag(sketched);
  if (sketched) sketch.save(writer);
}

void Thresholds::Own::load(StateReader& reader) {
  seen = reader.f64();
  over = reader.f64();
  sketched = reader.flag();
  if (sketched) sketch.load(reader);
}

void Thresholds::save(StateWriter& writer) const {
  writer.begin("thresholds");
  for (const auto& levels : classes_) {
    for (const Level& level : levels) level.save(writer);
  }
  writer.u64(cohorts_.size());
  for (const auto& [key, sketches] : cohorts_) {
    writer.u64(key.first);
    writer.text(key.second);
    for (const QuantileSketch& sketch : sketches) sketch.save(writer);
  }
  writer.u64(nodes_.size());
  for (const auto& [name, state] : nodes_) {
    writer.symbol(state.node);
    writer.u64(state.hw_class);
    writer.symbol(state.cohort);
    for (const Own& own : state.own) own.save(writer);
  }
  save_shifts(writer, shifts_);
  writer.end();
}

void Thresholds::load(StateReader& reader, const abi::LoadNames& names,
                      const std::function<abi::ClassId(SymbolId)>& class_of) {
  const size_t count = pack_->adaptives.size();
  if (!reader.enter("thresholds")) return;
  for (const uint32_t hw_class : names.classes()) {
    for (const uint32_t adaptive : names.adaptives()) {
      Level level;
      level.load(reader);
      const bool known = hw_class < classes_.size() && adaptive != abi::LoadNames::kGone;
      if (known) classes_[hw_class][adaptive] = std::move(level);
    }
  }
  for (size_t left = reader.count(2); left > 0 && !reader.failed(); --left) {
    const uint32_t hw_class = names.hw_class(reader);
    std::vector<QuantileSketch> sketches(count);
    const std::string value(reader.text());
    for (const uint32_t adaptive : names.adaptives()) {
      QuantileSketch sketch;
      sketch.load(reader);
      if (adaptive != abi::LoadNames::kGone) sketches[adaptive] = std::move(sketch);
    }
    if (hw_class >= classes_.size()) continue;
    cohorts_[{static_cast<abi::ClassId>(hw_class), value}] = std::move(sketches);
  }
  load_nodes(reader, names, class_of);
  shifts_ = load_shifts(reader, names);
  reader.leave();
  if (!reader.failed()) rebuild();
}

void Thresholds::load_nodes(StateReader& reader, const abi::LoadNames& names,
                            const std::function<abi::ClassId(SymbolId)>& class_of) {
  for (size_t left = reader.count(3); left > 0 && !reader.failed(); --left) {
    const SymbolId node = reader.symbol();
    NodeState& state = nodes_[std::string(pack_->symbols->name(node))];
    state.node = node;
    const uint32_t was = names.hw_class(reader);
    if (reader.failed()) return;
    state.hw_class = names.same_set() ? static_cast<abi::ClassId>(was) : class_of(node);
    if (state.hw_class >= classes_.size()) return reader.fail();
    state.cohort = reader.symbol();
    state.own.resize(pack_->adaptives.size());
    for (const uint32_t adaptive : names.adaptives()) {
      Own own;
      own.load(reader);
      // What a node differs in, it differs in from its class.
      if (adaptive != abi::LoadNames::kGone && was == state.hw_class) {
        state.own[adaptive] = std::move(own);
      }
    }
  }
}

void Thresholds::take_over(Thresholds& old, const abi::SetChange& change) {
  classes_ = std::move(old.classes_);
  cohorts_ = std::move(old.cohorts_);
  nodes_ = std::move(old.nodes_);
  shifts_ = std::move(old.shifts_);
  for (abi::AdaptiveId a = 0; change.any_adaptive() && a < change.new_adaptives.size(); ++a) {
    if (change.new_adaptives[a] == 0) continue;
    for (auto& levels : classes_) levels[a] = Level();
    for (auto& [key, sketches] : cohorts_) {
      if (a < sketches.size()) sketches[a] = QuantileSketch();
    }
    for (auto& [name, state] : nodes_) {
      if (a < state.own.size()) state.own[a] = Own();
    }
  }
  rebuild();
}

}  // namespace reflex::adapt

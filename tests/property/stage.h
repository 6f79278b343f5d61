// Stage: a decoder, a reorder buffer and an engine of one pack set, fed with lines, whose state can
// be taken and put into another stage. For tests of saved state; a lane without a daemon.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "compiler/driver/compile.h"
#include "runtime/engine/engine.h"
#include "runtime/explain/explain.h"
#include "runtime/stream/ndjson_decoder.h"
#include "runtime/stream/reorder.h"

namespace reflex::test {

/// `symbols`: of the set that it takes the place of, when ids must mean the same.
inline std::shared_ptr<const abi::CompiledPack> compile(
    const std::string& text, const std::shared_ptr<SymbolTable>& symbols = nullptr) {
  compiler::Options options;
  options.symbols = symbols;
  auto compiled = compiler::compile_text({{"stage/pack.rfx", text}}, options);
  EXPECT_TRUE(compiled.ok());
  auto& c = *compiled.value();
  EXPECT_FALSE(c.sink.has_errors()) << diag::render_text(c.sink.sorted(), c.sources, {});
  return c.pack;
}

class Stage {
 public:
  /// `before`: whose place it is to take (take_over).
  explicit Stage(std::shared_ptr<const abi::CompiledPack> pack, unsigned threads = 1,
                 const Stage* before = nullptr)
      : pack_(std::move(pack)), decoder_(pack_) {
    engine::EngineSinks sinks;
    sinks.verdict = [this](abi::Verdict&& v) { verdicts.push_back(std::move(v)); };
    sinks.firing = [this](const abi::Firing& f) { firings.push_back(f); };
    engine::EngineOptions options;
    options.threads = threads;
    if (before != nullptr) options.before = before->engine_.get();
    auto created = engine::Engine::create(pack_, options, sinks);
    EXPECT_TRUE(created.ok());
    engine_ = std::move(created).value();
    reorder_ = std::make_unique<stream::Reorder>(pack_, stream::ReorderOptions());
  }

  void feed(const std::string& lines) {
    std::string padded = lines;
    padded.append(64, '\0');
    stream::RecordBatch batch;
    decoder_.decode({padded.data(), lines.size()}, pack_->symbols->intern("s"), ++fed_ * 1000, batch);
    reorder_->push(std::move(batch));
    reorder_->release(released_);
    evaluate();
  }
  void finish() {
    reorder_->finish(released_);
    evaluate();
    engine_->finish();
  }

  [[nodiscard]] std::string save() const {
    StateWriter writer(*pack_->symbols);
    engine_->save(writer);
    reorder_->save(writer);
    return writer.take();
  }
  Result<LoadReport> load(std::string_view state) {
    StateReader reader(state, *pack_->symbols);
    auto report = engine_->load(reader);
    if (!report.ok()) return report.error();
    auto status = reorder_->load(reader, report.value().notes);
    if (!status.ok()) return status.error();
    return report;
  }

  /// "" when it can take the place of `old`; else why not.
  std::string cannot_take_over(const Stage& old) { return engine_->cannot_take_over(*old.engine_); }
  LoadReport take_over(Stage& old) {
    LoadReport report;
    engine_->take_over(*old.engine_, report);
    reorder_->take_over(*old.reorder_);
    return report;
  }

  /// Verdicts and firings as text: what has to be the same.
  [[nodiscard]] std::string text() const {
    std::string out;
    for (const auto& v : verdicts) out += explain::to_json(v, false) + "\n";
    for (const auto& f : firings) {
      out += fmt::format("{} {} {} {} {}\n", f.ts_ns, f.onset_ns, pack_->signals[f.signal].name,
                         pack_->symbols->name(static_cast<SymbolId>(f.entity.values[0])),
                         static_cast<int>(f.change));
    }
    return out;
  }

  [[nodiscard]] const abi::CompiledPack& pack() const { return *pack_; }
  engine::Engine& engine() { return *engine_; }
  stream::Reorder& reorder() { return *reorder_; }

  std::vector<abi::Verdict> verdicts;
  std::vector<abi::Firing> firings;

 private:
  void evaluate() {
    engine_->count_late(released_.late);
    if (!released_.records.empty()) {
      engine_->process(released_.records, released_.records.back()->ts_ns);
    }
    // Not at the end: nothing is known of the time after the last event.
    const bool later = released_.records.empty() ||
                       released_.watermark_ns > released_.records.back()->ts_ns;
    if (released_.watermark_ns > 0 && released_.watermark_ns < INT64_MAX && later) {
      engine_->process({}, released_.watermark_ns);
    }
  }

  std::shared_ptr<const abi::CompiledPack> pack_;
  stream::NdjsonDecoder decoder_;
  std::unique_ptr<engine::Engine> engine_;
  std::unique_ptr<stream::Reorder> reorder_;
  stream::Released released_;
  uint64_t fed_ = 0;
};

}  // namespace reflex::test

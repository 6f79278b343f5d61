// The routing process: files -> event messages. See roles.h.
//
// The source that is least advanced in event time is read next, as in engine/pipeline.cpp.
#include <algorithm>
#include <chrono>

#include "runtime/cluster/roles.h"
#include "runtime/cluster/router.h"
#include "runtime/cluster/run_identity.h"
#include "runtime/cluster/subjects.h"
#include "runtime/engine/inventory_names.h"
#include "runtime/stream/line_source.h"
#include "runtime/stream/log_decoder.h"
#include "runtime/stream/ndjson_decoder.h"

namespace reflex::cluster {
namespace {

// Why: well below the megabyte that brokers take unless told otherwise, also when every event of a
// piece goes to one partition and grows a little by its names.
constexpr size_t kPieceBytes = 192u << 10;

struct Input {
  SymbolId source = kNoSymbol;
  std::unique_ptr<stream::LineSource> lines;
  std::unique_ptr<stream::NdjsonDecoder> events;
  std::unique_ptr<stream::LogDecoder> log;
  int64_t newest_ns = INT64_MIN;
  bool done = false;
};

int year_of(int64_t ts_ns) {
  const auto days = std::chrono::floor<std::chrono::days>(
      std::chrono::sys_time<std::chrono::nanoseconds>(std::chrono::nanoseconds(ts_ns)));
  return static_cast<int>(std::chrono::year_month_day(days).year());
}

class Routing {
 public:
  Routing(const RoleContext& context, const engine::PipelineOptions& input)
      : context_(context),
        options_(input),
        topology_(context.pack),
        subjects_(context.stream, *context.pack, context.partitions),
        router_(context.pack, context.partitions) {}

  Result<stream::IngestCounters> run() {
    if (auto status = context_.inventory(topology_); !status.ok()) return status.error();
    names_ = std::make_unique<engine::InventoryNames>(context_.pack, topology_);
    std::vector<std::string> paths = options_.events;
    for (const auto& log : options_.logs) paths.push_back(log.path);
    if (auto status = join_input(*context_.broker, context_.stream, paths); !status.ok()) {
      return status.error();
    }
    if (auto status = open_all(); !status.ok()) return status.error();
    while (!context_.stop->load()) {
      Input* next = least_advanced();
      if (!next) {
        if (auto status = send(router_.end()); !status.ok()) return status.error();
        break;
      }
      if (auto status = step(*next); !status.ok()) return status.error();
    }
    stream::IngestCounters counters;
    for (const auto& input : inputs_) {
      counters.add(input->events ? input->events->counters() : input->log->counters());
    }
    return counters;
  }

 private:
  Status open_all() {
    std::vector<EventBatch::Declared> declared;
    for (const auto& path : options_.events) {
      auto input = std::make_unique<Input>();
      input->source = context_.pack->symbols->intern(path == "-" ? "stdin" : path);
      input->events = std::make_unique<stream::NdjsonDecoder>(context_.pack);
      if (auto status = open(*input, path); !status.ok()) return status;
      declared.push_back({input->source, false, kNoSymbol});
      inputs_.push_back(std::move(input));
    }
    const auto patterns = stream::compile_line_patterns(*context_.pack);
    for (const auto& log : options_.logs) {
      auto input = std::make_unique<Input>();
      input->source = context_.pack->symbols->intern(log.path);
      if (auto status = open(*input, log.path); !status.ok()) return status;
      stream::LogOptions log_options = options_.log_options;
      log_options.base_ns = input->lines->modified_ns();
      if (!options_.year_given) log_options.year = year_of(log_options.base_ns);
      const SymbolId node = names_->node(context_.pack->symbols->intern(log.node));
      input->log = std::make_unique<stream::LogDecoder>(
          context_.pack, node, input->source, log_options, stream::RejectSink{}, patterns);
      declared.push_back({input->source, true, node});
      inputs_.push_back(std::move(input));
    }
    return send(router_.declare(declared));
  }

  static Status open(Input& input, const std::string& path) {
    auto lines = stream::open_lines(path);
    if (!lines.ok()) return lines.error();
    input.lines = std::move(lines).value();
    return ok_status();
  }

  Input* least_advanced() {
    Input* least = nullptr;
    for (const auto& input : inputs_) {
      if (!input->done && (!least || input->newest_ns < least->newest_ns)) least = input.get();
    }
    return least;
  }

  Status step(Input& input) {
    auto chunk = input.lines->next(kPieceBytes);
    if (!chunk.ok()) return chunk.error();
    stream::RecordBatch batch;
    batch.input = input.source;
    std::vector<SymbolId> finished;
    if (chunk.value().text.empty()) {
      input.done = true;
      finished.push_back(input.source);
      if (input.log) input.log->finish(batch);
    } else if (input.events) {
      input.events->decode(chunk.value().text, input.source, chunk.value().first_line, batch);
    } else {
      input.log->decode(chunk.value().text, chunk.value().first_line, batch);
    }
    names_->rename(batch);
    for (const abi::Record* record : batch.records) {
      input.newest_ns = std::max(input.newest_ns, record->ts_ns);
    }
    return send(router_.split(batch, finished));
  }

  Status send(const std::vector<std::string>& messages) {
    ++number_;
    for (uint32_t p = 0; p < messages.size(); ++p) {
      const std::string subject = subjects_.events(p);
      const std::string id = fmt::format("{}/{}", subject, number_);
      if (auto status = context_.broker->publish(subject, id, messages[p]); !status.ok()) {
        return status;
      }
    }
    return ok_status();
  }

  const RoleContext& context_;
  const engine::PipelineOptions& options_;
  topology::Topology topology_;
  Subjects subjects_;
  Router router_;
  std::unique_ptr<engine::InventoryNames> names_;
  std::vector<std::unique_ptr<Input>> inputs_;
  uint64_t number_ = 0;
};

}  // namespace

Result<stream::IngestCounters> route(const RoleContext& context,
                                     const engine::PipelineOptions& input) {
  return Routing(context, input).run();
}

}  // namespace reflex::cluster

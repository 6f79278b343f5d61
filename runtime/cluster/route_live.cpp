// The live routing process: STREAM.ingest -> event messages. See feed.h.
//
// A function of the ingest messages: the same pieces in the same order give the same numbered
// messages, so a router that goes on from a state says again what its predecessor said.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>

#include "runtime/cluster/feed.h"
#include "runtime/cluster/ingest_piece.h"
#include "runtime/cluster/router.h"
#include "runtime/cluster/subjects.h"
#include "runtime/cluster/units.h"
#include "runtime/cluster/worker_state.h"
#include "runtime/engine/inventory_names.h"
#include "runtime/stream/line_source.h"
#include "runtime/stream/log_decoder.h"
#include "runtime/stream/ndjson_decoder.h"

namespace reflex::cluster {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kPatience{200};
// Why: as of files: well below what a message may be, also when all of it goes to one partition.
constexpr size_t kPieceBytes = 192u << 10;
constexpr size_t kPadding = 64;  // that decoders may read behind the text

class LiveRouting {
 public:
  LiveRouting(const RoleContext& context, const stream::LogOptions& log, bool ticks)
      : context_(context),
        log_options_(log),
        ticks_(ticks),
        topology_(context.pack),
        subjects_(context.stream, *context.pack, context.partitions),
        router_(context.pack, context.partitions),
        decoder_(context.pack),
        patterns_(stream::compile_line_patterns(*context.pack)),
        state_(*context.broker, subjects_.state("routing", 0), context.state_every) {}

  Result<bool> run() {
    if (auto status = context_.inventory(topology_); !status.ok()) return status.error();
    names_ = std::make_unique<engine::InventoryNames>(context_.pack, topology_);
    auto found = state_.load(*context_.pack, [this](StateReader& in) { return load(in); });
    if (!found.ok()) return found.error();
    auto reader = context_.broker->read(ingest_subject(context_.stream), at_);
    if (!reader.ok()) return reader.error();
    broker::Message message;
    bool fresh = false;
    while (!ended_ && !context_.stop->load()) {
      if (auto status = tick(); !status.ok()) return status.error();
      auto got = reader.value()->next(message, kPatience);
      if (!got.ok()) return got.error();
      if (got.value()) {
        if (auto status = step(message); !status.ok()) return status.error();
        fresh = true;
      }
      if (!fresh || (!state_.due() && !ended_)) continue;
      if (auto status = save(); !status.ok()) return status.error();
      fresh = false;
    }
    if (fresh) {
      if (auto status = save(); !status.ok()) return status.error();
    }
    return ended_;
  }

 private:
  struct Source {
    SymbolId symbol = kNoSymbol;
    bool is_log = false;
    SymbolId node = kNoSymbol;
    uint64_t lines = 0;
    std::string file;     // of the newest text
    uint64_t offset = 0;  // behind it
    int64_t base_ns = 0;
    std::unique_ptr<stream::LogDecoder> log;
  };

  /// Into the journal, like everything else, so that a successor hears the same.
  Status tick() {
    if (!ticks_ || Clock::now() - ticked_ < std::chrono::seconds(1)) return ok_status();
    ticked_ = Clock::now();
    IngestPiece piece;
    piece.what = IngestPiece::What::kTick;
    piece.wall_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(
                        std::chrono::system_clock::now().time_since_epoch())
                        .count();
    return context_.broker->publish(ingest_subject(context_.stream),
                                    fmt::format("tick/{}", piece.wall_ns),
                                    encode(piece, *context_.pack));
  }

  Status step(const broker::Message& message) {
    auto piece = read_piece(message.bytes, *context_.pack);
    if (!piece.ok()) {
      // Anyone may publish there: what cannot be read is told, and the stream goes on.
      if (context_.note) context_.note(piece.error().message);
      at_ = message.position;
      return ok_status();
    }
    Status status = take(piece.value());
    if (status.ok()) at_ = message.position;
    return status;
  }

  Status take(const IngestPiece& piece) {
    switch (piece.what) {
      case IngestPiece::What::kSources:
        return declare(piece.sources);
      case IngestPiece::What::kText:
        if (auto status = declare(piece.sources); !status.ok()) return status;
        return take_text(sources_.at(piece.sources[0].name), piece);
      case IngestPiece::What::kFinished: {
        if (auto status = declare(piece.sources); !status.ok()) return status;
        Source& source = sources_.at(piece.sources[0].name);
        stream::RecordBatch batch;
        batch.input = source.symbol;
        if (source.log) source.log->finish(batch);
        names_->rename(batch);
        return send(router_.split(batch, {source.symbol}));
      }
      case IngestPiece::What::kTick:
        return send(router_.tick(piece.wall_ns));
      case IngestPiece::What::kEnd:
        ended_ = true;
        return send(router_.end());
    }
    return ok_status();
  }

  /// Those that are new.
  Status declare(const std::vector<IngestPiece::Source>& sources) {
    std::vector<EventBatch::Declared> declared;
    for (const auto& named : sources) {
      if (sources_.contains(named.name)) continue;
      Source& source = add(named.name, named.is_log, named.node);
      declared.push_back({source.symbol, source.is_log, source.node});
    }
    return declared.empty() ? ok_status() : send(router_.declare(declared));
  }

  Source& add(const std::string& name, bool is_log, const std::string& node) {
    Source& source = sources_[name];
    source.symbol = context_.pack->symbols->intern(name);
    source.is_log = is_log;
    if (is_log) source.node = names_->node(context_.pack->symbols->intern(node));
    return source;
  }

  void open_log(Source& source) {
    stream::LogOptions options = log_options_;
    options.base_ns = source.base_ns;
    if (options.year == 0) options.year = year_of(source.base_ns);
    source.log = std::make_unique<stream::LogDecoder>(context_.pack, source.node, source.symbol,
                                                      options, stream::RejectSink{}, patterns_);
  }

  static int year_of(int64_t ts_ns) {
    const auto days = std::chrono::floor<std::chrono::days>(
        std::chrono::sys_time<std::chrono::nanoseconds>(std::chrono::nanoseconds(ts_ns)));
    return static_cast<int>(std::chrono::year_month_day(days).year());
  }

  Status take_text(Source& source, const IngestPiece& piece) {
    std::string_view text = piece.text;
    if (!piece.file.empty()) {
      // What was sent before: the sender died between that and keeping its place.
      const bool same = source.file == piece.file;
      if (same && piece.offset < source.offset) {
        const uint64_t fresh = piece.end - std::min(piece.end, source.offset);
        text.remove_prefix(text.size() - std::min<uint64_t>(text.size(), fresh));
      }
      source.offset = same ? std::max(source.offset, piece.end) : piece.end;
      source.file = piece.file;
    }
    if (source.is_log && !source.log) {
      source.base_ns = piece.base_ns;
      open_log(source);
    }
    while (!text.empty()) {
      size_t size = text.size();
      if (size > kPieceBytes) {
        const size_t newline = text.rfind('\n', kPieceBytes);
        size = newline == std::string_view::npos ? std::min(text.find('\n'), size - 1) + 1
                                                 : newline + 1;
      }
      if (auto status = decode(source, text.substr(0, size)); !status.ok()) return status;
      text.remove_prefix(size);
    }
    return ok_status();
  }

  Status decode(Source& source, std::string_view lines) {
    const size_t size = lines.size();
    std::string text(lines);
    text.resize(size + kPadding);
    const std::string_view padded = std::string_view(text).substr(0, size);
    stream::RecordBatch batch;
    batch.input = source.symbol;
    if (source.log) {
      source.log->decode(padded, source.lines + 1, batch);
    } else {
      decoder_.decode(padded, source.symbol, source.lines + 1, batch);
    }
    source.lines += stream::count_newlines(lines) + (lines.back() != '\n' ? 1 : 0);
    names_->rename(batch);
    return send(router_.split(batch));
  }

  Status send(const std::vector<std::string>& messages) {
    const uint64_t number = router_.number();
    for (uint32_t p = 0; p < messages.size(); ++p) {
      const std::string subject = subjects_.events(p);
      const std::string id = fmt::format("{}/{}", subject, number);
      if (auto status = context_.broker->publish(subject, id, messages[p]); !status.ok()) {
        return status;
      }
    }
    return ok_status();
  }

  Status save() {
    return state_.save(*context_.pack, [this](StateWriter& out) {
      out.u64(at_);
      out.flag(ended_);
      router_.save(out);
      names_->save(out);
      out.u64(sources_.size());
      for (const auto& [name, source] : sources_) {
        out.text(name);
        out.flag(source.is_log);
        out.symbol(source.node);
        out.u64(source.lines);
        out.text(source.file);
        out.u64(source.offset);
        out.i64(source.base_ns);
        out.flag(source.log != nullptr);
        if (source.log) source.log->save(out);
      }
    });
  }

  Status load(StateReader& in) {
    const Error bad{"the state of a router is damaged or of another form"};
    at_ = in.u64();
    ended_ = in.flag();
    router_.load(in);
    if (!names_->load(in)) return bad;
    for (size_t left = in.count(6); left > 0 && !in.failed(); --left) {
      const std::string name(in.text());
      Source& source = sources_[name];
      source.symbol = context_.pack->symbols->intern(name);
      source.is_log = in.flag();
      source.node = in.symbol();
      source.lines = in.u64();
      source.file = in.text();
      source.offset = in.u64();
      source.base_ns = in.i64();
      if (!in.flag()) continue;
      open_log(source);
      if (auto status = source.log->load(in); !status.ok()) return status;
    }
    return in.failed() ? Status(bad) : ok_status();
  }

  const RoleContext& context_;
  stream::LogOptions log_options_;
  bool ticks_;
  topology::Topology topology_;
  Subjects subjects_;
  Router router_;
  stream::NdjsonDecoder decoder_;
  std::shared_ptr<const stream::LineMatcher> patterns_;
  WorkerState state_;
  std::unique_ptr<engine::InventoryNames> names_;
  std::map<std::string, Source> sources_;
  uint64_t at_ = 0;  // position of the last piece
  bool ended_ = false;
  Clock::time_point ticked_;
};

}  // namespace

Status route_live(const RoleContext& context, const stream::LogOptions& log, bool ticks) {
  Units units(context, ingest_subject(context.stream), 1, "routing",
              [&log, ticks](const RoleContext& own, uint32_t) {
                return LiveRouting(own, log, ticks).run();
              });
  return units.run();
}

}  // namespace reflex::cluster

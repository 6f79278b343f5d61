// Sending what comes in live; see feed.h.
#include "runtime/cluster/feed.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <optional>
#include <thread>

#include "runtime/cluster/ingest_piece.h"
#include "runtime/cluster/subjects.h"
#include "runtime/stream/file_tail.h"

namespace reflex::cluster {
namespace {

constexpr int kPollMs = 200;
// Why: with a line left over well below the megabyte that brokers take unless told otherwise.
constexpr size_t kChunkBytes = 128u << 10;
constexpr size_t kLineMax = 512u << 10;  // a longer one is left out, and told

class Feeder {
 public:
  Feeder(const RoleContext& context, const FeedOptions& options)
      : context_(context), options_(options), subject_(ingest_subject(context.stream)) {}

  Status run() {
    IngestPiece declared;
    declared.what = IngestPiece::What::kSources;
    for (const auto& source : options_.sources) declared.sources.push_back(source_of(source));
    if (auto status = send(declared, ""); !status.ok()) return status;
    std::vector<std::jthread> threads;
    for (const auto& source : options_.sources) {
      threads.emplace_back(
          [this, &source] { keep(source.path == "-" ? feed_pipe(source) : feed_tail(source)); });
    }
    threads.clear();  // joins
    if (failed_) return *failed_;
    if (context_.stop->load() || !options_.to_end) return ok_status();
    IngestPiece end;
    end.what = IngestPiece::What::kEnd;
    return send(end, subject_ + "/end");
  }

 private:
  [[nodiscard]] IngestPiece::Source source_of(const FeedSource& source) const {
    return {options_.prefix + (source.path == "-" ? "stdin" : source.path), source.is_log,
            source.node};
  }
  [[nodiscard]] bool stopping() {
    const std::lock_guard lock(mutex_);
    return failed_ || context_.stop->load();
  }
  void keep(const Status& status) {
    const std::lock_guard lock(mutex_);
    if (!status.ok() && !failed_) failed_ = status.error();
  }
  void note(const std::string& name, const std::string& line) {
    const std::lock_guard lock(mutex_);
    if (said_[name] == line) return;
    said_[name] = line;
    if (context_.note) context_.note(fmt::format("{}: {}", name, line));
  }

  Status send(const IngestPiece& piece, const std::string& id) {
    return context_.broker->publish(subject_, id.empty() ? unique_id() : id,
                                    encode(piece, *context_.pack));
  }
  std::string unique_id() {
    const std::lock_guard lock(mutex_);
    const auto now = std::chrono::system_clock::now().time_since_epoch().count();
    return fmt::format("{}/{}/{}/{}", subject_, ::getpid(), now, ++number_);
  }

  Status finished(const FeedSource& source) {
    IngestPiece piece;
    piece.what = IngestPiece::What::kFinished;
    piece.sources.push_back(source_of(source));
    return send(piece, "");
  }

  Status feed_tail(const FeedSource& source) {
    // The name of a value may not hold a path's letters.
    const auto place = fmt::format("{}.fed.{:016x}", context_.stream, hash_of(source));
    auto cursor = context_.broker->value(place);
    if (!cursor.ok()) return cursor.error();
    stream::FileTail::Options tail_options;
    tail_options.path = source.path;
    tail_options.from_end = options_.from_end;
    tail_options.cursor = cursor.value().value_or("");
    tail_options.chunk_bytes = kChunkBytes;
    tail_options.note = [&](const std::string& line) { note(source.path, line); };
    stream::FileTail tail(std::move(tail_options));
    stream::FileTail::Piece got;
    while (!stopping()) {
      if (!tail.next(got)) {
        if (options_.to_end) return finished(source);
        std::this_thread::sleep_for(std::chrono::milliseconds(kPollMs));
        continue;
      }
      IngestPiece piece;
      piece.sources.push_back(source_of(source));
      piece.file = got.file;
      piece.offset = got.offset;
      piece.end = got.offset + got.text.size();
      piece.base_ns = got.modified_ns;
      piece.text = without_long_lines(source.path, std::move(got.text));
      if (auto status = send(piece, ""); !status.ok()) return status;
      if (auto status = context_.broker->put_value(place, got.cursor); !status.ok()) return status;
      tail.accepted();
    }
    return ok_status();
  }

  Status feed_pipe(const FeedSource& source) {
    std::string part;
    std::string chunk(kChunkBytes, '\0');
    for (bool end = false; !end && !stopping();) {
      pollfd ready{STDIN_FILENO, POLLIN, 0};
      if (::poll(&ready, 1, kPollMs) <= 0) continue;
      const ssize_t got = ::read(STDIN_FILENO, chunk.data(), chunk.size());
      if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      end = got <= 0;
      if (!end) part.append(chunk, 0, static_cast<size_t>(got));
      const size_t newline = part.rfind('\n');
      const size_t size = end || part.size() > kLineMax  ? part.size()
                          : newline == std::string::npos ? 0
                                                         : newline + 1;
      if (size == 0) continue;
      IngestPiece piece;
      piece.sources.push_back(source_of(source));
      piece.text = without_long_lines("stdin", part.substr(0, size));
      part.erase(0, size);
      if (auto status = send(piece, ""); !status.ok()) return status;
    }
    return stopping() ? ok_status() : finished(source);
  }

  std::string without_long_lines(const std::string& name, std::string text) {
    if (text.size() <= kLineMax) return text;
    std::string out;
    for (size_t at = 0; at < text.size();) {
      const size_t newline = text.find('\n', at);
      const size_t end = newline == std::string::npos ? text.size() : newline + 1;
      // An empty line keeps the numbers of those behind it.
      out += end - at > kLineMax ? "\n" : text.substr(at, end - at);
      if (end - at > kLineMax) note(name, fmt::format("a line of {} bytes is left out", end - at));
      at = end;
    }
    return out;
  }

  /// Of the machine, too: the same path elsewhere is another file.
  static uint64_t hash_of(const FeedSource& source) {
    char host[256] = "localhost";
    (void)::gethostname(host, sizeof host - 1);
    uint64_t hash = 0xcbf29ce484222325ULL;
    for (const char c : fmt::format("{}\n{}\n{}", host, source.path, source.node)) {
      hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
    }
    return hash;
  }

  const RoleContext& context_;
  const FeedOptions& options_;
  std::string subject_;
  std::mutex mutex_;  // of what follows
  std::optional<Error> failed_;
  std::map<std::string, std::string> said_;
  uint64_t number_ = 0;
};

}  // namespace

Status feed(const RoleContext& context, const FeedOptions& options) {
  return Feeder(context, options).run();
}

}  // namespace reflex::cluster

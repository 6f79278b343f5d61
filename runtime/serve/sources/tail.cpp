// Tail: a file that grows (stream/file_tail.h), whose cursor stands in the journal with each body.
#include "runtime/serve/sources/source.h"
#include "runtime/stream/file_tail.h"

namespace reflex::serve {
namespace {

constexpr int kPollMs = 200;

class Tail final : public Source {
 public:
  using Source::Source;
  ~Tail() override { stop(); }

 private:
  void run() override {
    stream::FileTail::Options options;
    options.path = options_.path;
    options.from_end = options_.from_end;
    options.cursor = ingest_.cursor(options_.name);
    options.note = [this](const std::string& line) { say(line); };
    stream::FileTail tail(std::move(options));
    stream::FileTail::Piece piece;
    while (!stopping()) {
      if (!tail.next(piece)) {
        pause(kPollMs);
      } else if (give(std::move(piece.text), piece.cursor)) {
        tail.accepted();
      }
    }
  }
};

}  // namespace

std::unique_ptr<Source> make_tail(SourceOptions options, Ingest& ingest,
                                  std::function<void(const std::string&)> log) {
  return std::make_unique<Tail>(std::move(options), ingest, std::move(log));
}

}  // namespace reflex::serve

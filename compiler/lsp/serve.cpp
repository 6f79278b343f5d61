// Reading, taking back cancelled requests, and waiting for the debounce; see serve.h.
#include "compiler/lsp/serve.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <deque>

#include "compiler/lsp/requests.h"

namespace reflex::lsp {
namespace {

class Stream {
 public:
  Stream(int input, int output) : input_(input), output_(output) {}

  /// Waits for input, at most until `due`. False: there is no more.
  bool wait(const std::optional<Server::Clock::time_point>& due) {
    int timeout = -1;
    if (due) {
      const auto left =
          std::chrono::ceil<std::chrono::milliseconds>(*due - Server::Clock::now()).count();
      timeout = static_cast<int>(std::clamp<int64_t>(left, 0, 60'000));
    }
    pollfd wanted{input_, POLLIN, 0};
    const int ready = poll(&wanted, 1, timeout);
    if (ready < 0) return errno == EINTR;
    if (ready == 0) return true;
    std::array<char, 1 << 16> buffer;
    const ssize_t size = read(input_, buffer.data(), buffer.size());
    if (size < 0) return errno == EINTR || errno == EAGAIN;
    if (size == 0) return false;
    frames_.push({buffer.data(), static_cast<size_t>(size)});
    return true;
  }

  /// Whether more bytes are there at once.
  [[nodiscard]] bool more() const {
    pollfd wanted{input_, POLLIN, 0};
    return poll(&wanted, 1, 0) > 0 && (wanted.revents & POLLIN) != 0;
  }

  void write_all(const std::string& bytes) {
    size_t done = 0;
    while (done < bytes.size() && !broken_) {
      const ssize_t size = write(output_, bytes.data() + done, bytes.size() - done);
      if (size > 0) done += static_cast<size_t>(size);
      if (size < 0 && errno != EINTR && errno != EAGAIN) broken_ = true;
    }
  }
  [[nodiscard]] bool broken() const { return broken_; }
  Frames& frames() { return frames_; }

 private:
  int input_;
  int output_;
  bool broken_ = false;
  Frames frames_;
};

/// The id that a `$/cancelRequest` takes back; null for every other message.
Json cancelled_id(const std::string& body) {
  if (body.find("$/cancelRequest") == std::string::npos) return nullptr;
  const Json message = Json::parse(body, nullptr, /*allow_exceptions=*/false);
  const Json& method = member(message, "method");
  if (!method.is_string() || method.get<std::string>() != "$/cancelRequest") return nullptr;
  return member(member(message, "params"), "id");
}

/// Drops the request with this id from what waits; false: it was answered already.
bool take_back(std::deque<std::string>& waiting, const Json& id) {
  for (auto it = waiting.begin(); it != waiting.end(); ++it) {
    const Json message = Json::parse(*it, nullptr, /*allow_exceptions=*/false);
    if (!member(message, "method").is_string() || member(message, "id") != id) continue;
    waiting.erase(it);
    return true;
  }
  return false;
}

}  // namespace

int serve(int input, int output, Hooks hooks, const std::string& version) {
  Stream stream(input, output);
  Server server(std::move(hooks), version,
                [&stream](const Json& message) { stream.write_all(framed(message)); });
  std::deque<std::string> waiting;
  bool open = true;
  while (open || !waiting.empty()) {
    if (waiting.empty()) open = stream.wait(server.due());
    // Everything that has come: a request may be taken back by a message behind it.
    while (open && stream.more()) open = stream.wait(std::nullopt);
    std::string body;
    for (Frames::Next next; (next = stream.frames().next(body)) != Frames::Next::kNone;) {
      if (next == Frames::Next::kTooBig) {
        server.refuse_body();
        continue;
      }
      const Json id = cancelled_id(body);
      if (id.is_null()) {
        waiting.push_back(std::move(body));
      } else if (take_back(waiting, id)) {
        server.cancelled(id);
      }
    }
    if (!waiting.empty()) {
      const std::string message = std::move(waiting.front());
      waiting.pop_front();
      server.handle_body(message);
    }
    server.tick(Server::Clock::now());
    if (server.exit_code()) return stream.broken() ? 3 : *server.exit_code();
    if (stream.broken()) return 3;
  }
  return 1;
}

}  // namespace reflex::lsp

// The one file that knows cpp-httplib (0.11): it parses requests and writes replies. Connections,
// limits, TLS, routing and bodies are ours, because the library bounds neither the length of a
// header line nor the time of a request, keeps a thread of a fixed pool for each idle connection,
// and matches paths by regular expressions.
#include "runtime/serve/http/http_server.h"

#include <fmt/format.h>
#include <httplib.h>
#include <netdb.h>
#include <openssl/err.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <list>
#include <mutex>
#include <set>
#include <thread>

#include "runtime/serve/http/api.h"
#include "runtime/serve/http/body_decode.h"
#include "runtime/serve/http/dispatcher.h"
#include "runtime/serve/http/router.h"
#include "runtime/serve/listen_address.h"

namespace reflex::serve {
namespace {

// Of one connection, told from request to request.
struct Conversation {
  Wire* wire = nullptr;
  bool close = false;  // what follows on it cannot be told apart from a body that was not read
};

// Why thread_local: a connection has a thread of its own, and the library hands its callbacks no
// pointer of ours.
thread_local Conversation* t_conversation = nullptr;
thread_local bool t_refuse = false;  // this thread only tells connections to come again

class WireStream : public httplib::Stream {
 public:
  explicit WireStream(Wire& wire) : wire_(wire) {}
  bool is_readable() const override { return true; }
  bool is_writable() const override { return true; }
  ssize_t read(char* out, size_t size) override { return wire_.read(out, size); }
  ssize_t write(const char* data, size_t size) override { return wire_.write(data, size); }
  void get_remote_ip_and_port(std::string& ip, int& port) const override {
    ip = wire_.remote();
    port = wire_.remote_port();
  }
  void get_local_ip_and_port(std::string& ip, int& port) const override {
    ip.clear();
    port = 0;
  }
  // Why 0: the library only compares it with FD_SETSIZE, for a select() that it never calls here.
  socket_t socket() const override { return 0; }

 private:
  Wire& wire_;
};

/// A thread for each connection, made when it is needed and kept; the last one refuses.
class ConnectionThreads : public httplib::TaskQueue {
 public:
  explicit ConnectionThreads(unsigned max) : max_(max) {
    refuser_ = std::thread([this] {
      t_refuse = true;
      work(refused_);
    });
  }
  void enqueue(std::function<void()> task) override {
    {
      const std::lock_guard lock(mutex_);
      if (busy_ + tasks_.size() >= max_) {
        // Why 64: more than that are closed unread; the peer sees a reset.
        if (refused_.size() < 64) refused_.push_back(std::move(task));
      } else {
        tasks_.push_back(std::move(task));
        if (threads_.size() < busy_ + tasks_.size()) {
          threads_.emplace_back([this] { work(tasks_); });
        }
      }
    }
    changed_.notify_all();
  }
  void shutdown() override {
    {
      const std::lock_guard lock(mutex_);
      stopped_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
    refuser_.join();
  }

 private:
  void work(std::deque<std::function<void()>>& queue) {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return stopped_ || !queue.empty(); });
      if (queue.empty()) return;
      const auto task = std::move(queue.front());
      queue.pop_front();
      const bool counts = &queue == &tasks_;
      if (counts) ++busy_;
      lock.unlock();
      task();
      lock.lock();
      if (counts) --busy_;
    }
  }

  const unsigned max_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_, refused_;
  std::vector<std::thread> threads_;
  std::thread refuser_;
  size_t busy_ = 0;
  bool stopped_ = false;
};

/// The library's server on our connections.
class WireServer : public httplib::Server {
 public:
  WireServer(const WireLimits& limits, SSL_CTX* tls) : limits_(limits), tls_(tls) {}

  // Why 256: the library's five are lost in a burst of new connections.
  void widen_backlog() { ::listen(svr_sock_, 256); }
  void end_connections() {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    for (Wire* wire : open_) wire->close_from_outside();
  }

 private:
  bool process_and_close_socket(socket_t sock) override {
    Wire wire(sock, tls_ == nullptr ? nullptr : SSL_new(tls_), limits_);
    if (t_refuse) {
      const std::string body =
          reply_error(503, "too many connections", "close idle ones, or raise http.connections_max")
              .body;
      const std::string busy = fmt::format(
          "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\n"
          "Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{}",
          body.size(), body);
      if (tls_ == nullptr) wire.write(busy.data(), busy.size());
      return false;
    }
    {
      const std::lock_guard lock(mutex_);
      if (ending_) return false;
      open_.insert(&wire);
    }
    if (wire.handshake()) converse(wire);
    const std::lock_guard lock(mutex_);
    open_.erase(&wire);
    return true;
  }

  void converse(Wire& wire) {
    WireStream stream(wire);
    Conversation conversation{&wire, false};
    t_conversation = &conversation;
    bool closed = false;
    while (!closed && !conversation.close && wire.wait_for_request()) {
      wire.begin_header();
      const bool kept = process_request(stream, false, closed,
                                        [&](httplib::Request& request) { prepare(request); });
      if (!kept || wire.ended() != Wire::Ended::kNo) break;
    }
    t_conversation = nullptr;
  }

  /// After the header, before anything else looks at it.
  void prepare(httplib::Request& request) {
    Conversation& conversation = *t_conversation;
    conversation.wire->begin_body();
    // Why no ranges: replies are made anew each time, and many ranges multiply them.
    request.ranges.clear();
    request.headers.erase("Range");
    // Bodies are decoded by us, within bounds (body_decode.h), never as forms.
    rename(request, "Content-Encoding", kEncodingHeader);
    rename(request, "Content-Type", kTypeHeader);
  }

  static void rename(httplib::Request& request, const char* from, const char* to) {
    const std::string value = request.get_header_value(from);
    request.headers.erase(from);
    request.headers.erase(to);
    if (!value.empty()) request.headers.emplace(to, value);
  }

 public:
  static constexpr const char* kEncodingHeader = "Reflex-Content-Encoding";
  static constexpr const char* kTypeHeader = "Reflex-Content-Type";

 private:
  const WireLimits limits_;
  SSL_CTX* tls_;
  std::mutex mutex_;
  std::set<Wire*> open_;
  bool ending_ = false;
};

HttpRequest request_of(const httplib::Request& in) {
  HttpRequest out;
  out.method = in.method;
  out.path = in.target.substr(0, in.target.find('?'));
  for (const auto& [name, value] : in.params) out.query.emplace(name, value);
  for (const auto& [name, value] : in.headers) {
    std::string lower = name;
    if (name == WireServer::kEncodingHeader) lower = "content-encoding";
    if (name == WireServer::kTypeHeader) lower = "content-type";
    for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    out.headers.emplace(std::move(lower), value);
  }
  out.caller.name = in.remote_addr;
  return out;
}

void send(HttpReply&& reply, httplib::Response& out) {
  out.status = reply.status;
  for (const auto& [name, value] : reply.headers) out.set_header(name, value);
  if (reply.stream != nullptr) {
    out.set_chunked_content_provider(
        reply.type, [stream = std::move(reply.stream)](size_t, httplib::DataSink& sink) {
          std::string piece;
          const bool more = stream->next(piece);
          if (!piece.empty() && !sink.write(piece.data(), piece.size())) return false;
          if (!more) sink.done();
          return true;
        });
    return;
  }
  out.set_content(reply.body, reply.type);
}

/// The TLS context of the configured files; null without.
Result<SSL_CTX*> tls_context(const HttpConfig& config) {
  if (config.tls_certificate.empty() && config.tls_key.empty()) return nullptr;
  if (config.tls_certificate.empty() || config.tls_key.empty()) {
    return Error{"TLS needs both a certificate and a key"};
  }
  SSL_CTX* context = SSL_CTX_new(TLS_server_method());
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION);
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  const auto fail = [&](const std::string& file) {
    char words[256];
    ERR_error_string_n(ERR_get_error(), words, sizeof words);
    SSL_CTX_free(context);
    return Error{fmt::format("TLS: {} cannot be used: {}", file, words)};
  };
  if (SSL_CTX_use_certificate_chain_file(context, config.tls_certificate.c_str()) != 1) {
    return fail(config.tls_certificate);
  }
  if (SSL_CTX_use_PrivateKey_file(context, config.tls_key.c_str(), SSL_FILETYPE_PEM) != 1 ||
      SSL_CTX_check_private_key(context) != 1) {
    return fail(config.tls_key);
  }
  return context;
}

}  // namespace

class HttpServer::Impl {
 public:
  Impl(const HttpConfig& config, DaemonPort& port, Store& store, SSL_CTX* tls)
      : config_(config),
        tls_(tls, SSL_CTX_free),
        api_(std::make_unique<Api>(config_, port, store)),
        dispatcher_(config_, *api_),
        budget_(config_.bodies_bytes_max),
        server_(config_.wire, tls) {}

  reflex::Status listen() {
    server_.new_task_queue = [this] { return new ConnectionThreads(config_.connections_max); };
    // The library's default shares the port with whoever asks (SO_REUSEPORT).
    server_.set_socket_options([](socket_t sock) {
      const int on = 1;
      setsockopt(sock, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    });
    server_.set_payload_max_length(config_.body_bytes_max);
    set_handlers();
    bound_ = config_.port == 0 ? server_.bind_to_any_port(config_.host)
             : server_.bind_to_port(config_.host, config_.port) ? config_.port
                                                                : -1;
    if (bound_ < 0) {
      return Error{fmt::format("cannot listen on {}:{}: the address is taken or not ours",
                               config_.host, config_.port)};
    }
    server_.widen_backlog();
    thread_ = std::thread([this] {
      // For this thread and all that come from it: a signal would end accept(), and so the server.
      sigset_t all;
      sigfillset(&all);
      pthread_sigmask(SIG_BLOCK, &all, nullptr);
      server_.listen_after_bind();
    });
    while (!server_.is_running()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return ok_status();
  }

  void stop() {
    if (!thread_.joinable()) return;
    api_->stop();
    server_.stop();
    server_.end_connections();
    thread_.join();
  }

  const HttpConfig& config() const { return config_; }
  int bound() const { return bound_; }

 private:
  void set_handlers() {
    server_.set_pre_routing_handler([this](const auto& in, auto& out) { return begin(in, out); });
    const auto with_body = [this](const httplib::Request& in, httplib::Response& out,
                                  const httplib::ContentReader& reader) { body(in, out, reader); };
    server_.Post(".*", with_body);
    server_.Put(".*", with_body);
    server_.Patch(".*", with_body);
    server_.Delete(".*", with_body);
    // What the library refuses by itself has no body yet.
    server_.set_error_handler([](const httplib::Request&, httplib::Response& out) {
      if (out.body.empty()) send(library_error(out.status), out);
    });
    server_.set_exception_handler([](const auto&, auto& out, std::exception_ptr) {
      send(reply_error(500, "an internal error", "see the daemon's log"), out);
    });
  }

  static HttpReply library_error(int status) {
    const Wire* wire = t_conversation == nullptr ? nullptr : t_conversation->wire;
    if (t_conversation != nullptr) t_conversation->close = true;
    if (wire != nullptr && wire->ended() == Wire::Ended::kHeaderTooLarge) status = 431;
    if (wire != nullptr && wire->ended() == Wire::Ended::kTooSlow) status = 408;
    HttpReply reply = Dispatcher::refusal(status);
    reply.headers.emplace_back("Connection", "close");
    return reply;
  }

  /// Everything that needs no body is answered here; so is every refusal, before a body is read.
  httplib::Server::HandlerResponse begin(const httplib::Request& in, httplib::Response& out) {
    using Response = httplib::Server::HandlerResponse;
    const bool chunked = in.has_header("Transfer-Encoding");
    const std::string length = in.get_header_value("Content-Length");
    const bool has_body = chunked || (!length.empty() && length != "0");
    const bool reads =
        in.method == "POST" || in.method == "PUT" || in.method == "PATCH" || in.method == "DELETE";
    HttpRequest request = request_of(in);
    HttpReply reply = Dispatcher::framing_fault(request);
    if (reply.status == 0) reply = dispatcher_.admit(request);
    if (reply.status == 0 && has_body && reads) return Response::Unhandled;
    if (has_body) {
      // The body stands unread on the connection, where it could be taken for a request.
      t_conversation->close = true;
      reply.headers.emplace_back("Connection", "close");
    }
    if (reply.status == 0) reply = dispatcher_.run(request);
    send(std::move(reply), out);
    return Response::Handled;
  }

  void body(const httplib::Request& in, httplib::Response& out,
            const httplib::ContentReader& reader) {
    HttpRequest request = request_of(in);
    std::string raw;
    BodyLease lease(budget_);
    bool too_large = false;
    bool no_room = false;
    raw.reserve(
        std::min<size_t>(std::strtoull(in.get_header_value("Content-Length").c_str(), nullptr, 10),
                         config_.body_bytes_max));
    const bool whole = reader([&](const char* data, size_t size) {
      too_large = raw.size() + size > config_.body_bytes_max;
      no_room = !too_large && !lease.more(size);
      if (too_large || no_room) return false;
      raw.append(data, size);
      return true;
    });
    HttpReply reply;
    if (!whole || too_large || no_room) {
      t_conversation->close = true;
      const bool slow = t_conversation->wire->ended() == Wire::Ended::kTooSlow;
      const int status = too_large || out.status == 413 ? 413 : no_room ? 429 : slow ? 408 : 400;
      reply = Dispatcher::refusal(status);
      reply.headers.emplace_back("Connection", "close");
    } else {
      reply = dispatcher_.run_with_body(request, std::move(raw), lease);
    }
    send(std::move(reply), out);
  }

  const HttpConfig config_;
  std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)> tls_;
  std::unique_ptr<Api> api_;
  Dispatcher dispatcher_;
  BodyBudget budget_;
  WireServer server_;
  std::thread thread_;
  int bound_ = -1;
};

reflex::Status check_tls(const std::string& certificate, const std::string& key) {
  HttpConfig config;
  config.tls_certificate = certificate;
  config.tls_key = key;
  auto context = tls_context(config);
  if (!context) return context.error();
  SSL_CTX_free(context.value());
  return ok_status();
}

reflex::Status check_host(const std::string& host) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  if (const int error = ::getaddrinfo(host.empty() ? nullptr : host.c_str(), "0", &hints, &found);
      error != 0) {
    return Error{fmt::format("cannot listen on {}: {}", host, ::gai_strerror(error))};
  }
  bool ours = false;
  for (const addrinfo* one = found; one != nullptr && !ours; one = one->ai_next) {
    const int sock = ::socket(one->ai_family, one->ai_socktype | SOCK_CLOEXEC, one->ai_protocol);
    if (sock < 0) continue;
    ours = ::bind(sock, one->ai_addr, one->ai_addrlen) == 0;  // any free port
    ::close(sock);
  }
  ::freeaddrinfo(found);
  if (ours) return ok_status();
  return Error{fmt::format("cannot listen on {}: it is no address of this machine", host)};
}

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HttpServer::~HttpServer() { stop(); }

Result<std::unique_ptr<HttpServer>> HttpServer::start(const HttpConfig& config, DaemonPort& port,
                                                      Store& store) {
  if (!is_loopback(config.host) && config.tokens.empty() && !config.insecure) {
    return Error{fmt::format(
        "http: {} is reachable by others and there are no tokens: configure http.tokens, "
        "listen on 127.0.0.1, or set http.insecure if the network is closed",
        config.host)};
  }
  auto tls = tls_context(config);
  if (!tls) return tls.error();
  auto impl = std::make_unique<Impl>(config, port, store, tls.value());
  if (auto status = impl->listen(); !status) return status.error();
  if (!is_loopback(config.host) && tls.value() == nullptr) {
    spdlog::warn("http: {} without TLS: tokens cross the network readable", config.host);
  }
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

int HttpServer::port() const { return impl_->bound(); }

std::string HttpServer::address() const {
  const HttpConfig& config = impl_->config();
  const bool six = config.host.find(':') != std::string::npos;
  return fmt::format("{}://{}{}{}:{}", config.tls_certificate.empty() ? "http" : "https",
                     six ? "[" : "", config.host, six ? "]" : "", impl_->bound());
}

void HttpServer::stop() { impl_->stop(); }

}  // namespace reflex::serve

// Bounds and contradictions of values; see config.h.
#include <fmt/format.h>

#include <array>
#include <set>

#include "runtime/base/time.h"
#include "runtime/serve/config.h"
#include "runtime/serve/listen_address.h"

namespace reflex::serve {
namespace {

/// Bounds of a whole number.
struct Bound {
  std::string_view key;
  int64_t least;
  int64_t most;
  std::string_view why;
};

// Why 64: the bound of --threads; beyond it shards only pass records on. Why 10,000: each
// connection has a thread, each follower of verdicts holds one.
constexpr std::array kBounds{
    Bound{"threads", 1, 64, "it is the number of shards"},
    Bound{"http.connections_max", 1, 10'000, "each connection has a thread, 0 would serve nobody"},
    Bound{"http.streams_max", 0, 10'000, "each follower holds a connection"},
};

/// Sizes of which 0 does not mean "no limit": nothing would ever be taken.
constexpr std::array<std::string_view, 4> kNotZero{"http.body_max", "journal.segment",
                                                   "journal.backlog_max", "journal.max"};

class ValueCheck {
 public:
  ValueCheck(const Config& config, std::vector<std::string>& problems)
      : config_(config), main_(config.main), problems_(problems) {}

  void run() {
    numbers();
    http();
    const std::string& backend = main_.text("packs.backend");
    if (backend != "jit" && backend != "interp") {
      problem(main_, "packs.backend", fmt::format("there is no backend '{}'", backend),
              "write jit or interp");
    }
    for (const ConfigTable& source : config_.sources) {
      type(source, "[[sources]]", "tail, journald, stdin, nats or kafka");
      this->source(source);
    }
    for (const ConfigTable& sink : config_.sinks) {
      type(sink, "[[sinks]]", "file, webhook, alertmanager, nats or kafka");
      if (sink.text("type") == "file") own_file(sink);
    }
    one_path_each(config_.sources, "tail", "[[sources]] follow", "its events would count twice");
    one_path_each(config_.sinks, "file", "[[sinks]] write", "each would cut what the other wrote");
  }

 private:
  void problem(const ConfigTable& table, std::string_view key, const std::string& cause,
               const std::string& fix) {
    problems_.push_back(fmt::format("{}: {}; {}", table.place_of(key), cause, fix));
  }

  void numbers() {
    for (const Bound& bound : kBounds) {
      const int64_t value = main_.number(bound.key);
      if (value >= bound.least && value <= bound.most) continue;
      problem(main_, bound.key, fmt::format("{} = {}: {}", bound.key, value, bound.why),
              fmt::format("write {} to {}", bound.least, bound.most));
    }
    for (const std::string_view key : kNotZero) {
      if (main_.bytes(key) > 0) continue;
      problem(main_, key, fmt::format("{} = 0: no input would ever be taken", key),
              "write a size like 64MiB");
    }
    journal();
  }

  void journal() {
    const uint64_t segment = main_.bytes("journal.segment");
    if (main_.bytes("journal.max") == 0 || main_.bytes("journal.max") / 2 >= segment) return;
    const bool written = main_.all().find("journal.max")->second.origin != "default";
    problem(main_, written ? "journal.max" : "journal.segment",
            fmt::format(
                "journal.max = {} is less than twice journal.segment = {}: a full journal would "
                "stay full, as space is freed by whole files and never that of the newest",
                main_.text("journal.max"), main_.text("journal.segment")),
            "raise journal.max or lower journal.segment");
  }

  void http() {
    const uint64_t one = main_.bytes("http.body_max");
    if (main_.bytes("http.bodies_max") / 2 < one) {
      // At the one of the two that was written.
      const bool written = main_.all().find("http.body_max")->second.origin != "default";
      problem(
          main_, written ? "http.body_max" : "http.bodies_max",
          fmt::format("http.bodies_max = {} is less than twice http.body_max = {}: a large body "
                      "would never be taken, as it is held as sent and as decoded",
                      main_.text("http.bodies_max"), main_.text("http.body_max")),
          "raise http.bodies_max or lower http.body_max");
    }
    const std::string& listen = main_.text("http.listen");
    const auto address = parse_listen(listen);
    if (!address) {
      problem(main_, "http.listen", fmt::format("'{}' is no address and port", listen),
              "write it like 127.0.0.1:7480");
    } else if (!is_loopback(address->host) && main_.text("http.tokens").empty() &&
               !main_.flag("http.insecure")) {
      problem(main_, "http.listen",
              fmt::format("{} is not loopback and asks for no token", address->host),
              "set http.tokens, or http.insecure = true");
    }
    if (main_.text("http.tls_cert").empty() != main_.text("http.tls_key").empty()) {
      const bool cert = !main_.text("http.tls_cert").empty();
      problem(main_, cert ? "http.tls_cert" : "http.tls_key",
              "a certificate and its key belong together",
              "set http.tls_cert and http.tls_key, or neither");
    }
  }

  void type(const ConfigTable& table, std::string_view list, std::string_view known) {
    if (!table.text("type").empty()) return;
    problem(table, "type", fmt::format("this {} has no type", list),
            fmt::format("write type = \"..\" in it: {}", known));
  }

  /// A file sink beside the daemon's own files, not over them.
  void own_file(const ConfigTable& sink) {
    const std::string& path = sink.text("path");
    const std::string& folder = main_.text("state_dir");
    const std::string& store = main_.text("store.path");
    const std::string database = store.empty() ? folder + "/reflex.db" : store;
    bool ours = path == database || path == database + "-wal" || path == database + "-shm" ||
                path == folder + "/lock";
    for (const char* own : {"/journal/", "/snapshots/", "/sets/"}) {
      ours = ours || path.starts_with(folder + own);
    }
    if (!ours) return;
    problem(sink, "path", fmt::format("{} is a file of the daemon itself", path),
            "name another file for what is said");
  }

  void one_path_each(const std::vector<ConfigTable>& tables, std::string_view kind,
                     std::string_view list, std::string_view why) {
    std::set<std::string> seen;
    for (const ConfigTable& table : tables) {
      const std::string& path = table.text("path");
      if (table.text("type") != kind || path.empty() || seen.insert(path).second) continue;
      problem(table, "path", fmt::format("two of {} {}: {}", list, path, why), "keep one of them");
    }
  }

  void source(const ConfigTable& source) {
    const std::string& zone = source.text("tz");
    const bool sign = zone.starts_with('+') || zone.starts_with('-');
    if (!(zone == "Z" || (sign && parse_rfc3339("1970-01-02T00:00:00" + zone)))) {
      problem(source, "tz", fmt::format("tz = '{}' is no offset from UTC", zone),
              "write it like +01:00 (names of zones are not known), or Z");
    }
    const std::string& from = source.text("from");
    if (from != "begin" && from != "end") {
      problem(source, "from", fmt::format("from = '{}' is no place to begin at", from),
              "write begin or end");
    }
  }

  const Config& config_;
  const ConfigTable& main_;
  std::vector<std::string>& problems_;
};

}  // namespace

void check_values(const Config& config, std::vector<std::string>& problems) {
  ValueCheck(config, problems).run();
}

}  // namespace reflex::serve

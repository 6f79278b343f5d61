// Commands that talk to a running daemon: reload, status, snapshot, shadow, promote.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "runtime/app/commands.h"
#include "runtime/app/load_packs.h"
#include "runtime/serve/http_client.h"

namespace reflex::app {
namespace {

using Json = nlohmann::ordered_json;

struct ClientFlags {
  std::string url = "http://127.0.0.1:7480";
  std::string token_file;
  std::vector<std::string> paths;  // of shadow
  bool drop = false;
};

void add_client_options(CLI::App& sub, ClientFlags& flags) {
  sub.add_option("--url", flags.url, "the daemon's address")->envname("REFLEX_URL");
  sub.add_option("--token-file", flags.token_file, "file with a bearer token")
      ->envname("REFLEX_TOKEN_FILE");
}

class Client {
 public:
  Client(const ClientFlags& flags, const CommonFlags& common) : flags_(flags), common_(common) {}

  /// Prints the answer; `tell` makes lines for people of it.
  int ask(const std::string& method, const std::string& path, const std::string& body,
          const std::function<std::string(const Json&)>& tell) {
    serve::HttpRequestText request;
    request.method = method;
    request.url = flags_.url + path;
    request.body = body;
    request.timeout = std::chrono::minutes(5);  // a large set takes its time
    if (!flags_.token_file.empty()) {
      std::ifstream file(flags_.token_file);
      if (!std::getline(file, request.token)) {
        print_error(common_, flags_.token_file + " cannot be read");
        return kUsage;
      }
    }
    auto answer = serve::http_request(request);
    if (!answer.ok()) {
      print_error(common_, answer.error().message +
                               " (does `reflex serve` run there? Elsewhere: --url or REFLEX_URL)");
      return kUsage;
    }
    const Json json = Json::parse(answer.value().body, nullptr, /*allow_exceptions=*/false);
    const bool good = answer.value().status < 300;
    if (common_.format == "json" || json.is_discarded()) {
      fmt::print("{}\n", answer.value().body);
    } else if (good) {
      fmt::print("{}", tell(json));
    }
    if (good) return kOk;
    if (json.is_object()) {
      const std::string what_to_do = json.value("what_to_do", std::string());
      print_error(common_, json.value("error", fmt::format("status {}", answer.value().status)) +
                               (what_to_do.empty() ? "" : "; " + what_to_do));
      for (const auto& one : json.value("diagnostics", Json::array())) print_diagnostic(one);
    }
    return answer.value().status == 422 ? kInvalidPack : kUsage;
  }

 private:
  void print_diagnostic(const Json& one) const {
    if (common_.format == "json") return;
    if (!one.is_object()) {
      fmt::print(stderr, "{}\n", one.dump());
      return;
    }
    const Json start = one.value("range", Json::object()).value("start", Json::object());
    fmt::print(stderr, "{}:{}:{}: {}: {} [{}]\n", one.value("file", std::string("?")),
               start.value("line", 0), start.value("col", 0),
               one.value("severity", std::string("error")), one.value("message", std::string()),
               one.value("id", std::string()));
    const std::string help = one.value("help", std::string());
    if (!help.empty()) fmt::print(stderr, "help: {}\n", help);
  }
  const ClientFlags& flags_;
  const CommonFlags& common_;
};

std::string plan_text(const Json& json) {
  std::string out;
  size_t kept = 0;
  for (const auto& row : json.value("plan", Json::array())) {
    const std::string why = row["why"].is_string() ? row["why"].get<std::string>() : "";
    if (row.value("fate", std::string()) == "kept" && why.empty()) {
      ++kept;
      continue;
    }
    out += fmt::format("  {:<8} {} {}{}{}\n", row.value("fate", std::string()),
                       row.value("kind", std::string()), row.value("name", std::string()),
                       why.empty() ? "" : ": ", why);
  }
  if (kept > 0) out += fmt::format("  kept     {} more\n", kept);
  return out;
}

std::string shadow_text(const Json& json) {
  return fmt::format("set {} runs beside the live one; `reflex shadow` shows what it says\n{}",
                     json.value("set_sha256", std::string()).substr(0, 12), plan_text(json));
}

std::string or_nothing(const Json& row, const char* key) {
  return row[key].is_string() ? row[key].get<std::string>() : "(no final verdict)";
}

std::string comparison_text(const Json& differs) {
  const Json incidents = differs.value("incidents", Json::array());
  std::string out =
      fmt::format("{} incidents with the same answer, {} that one has yet to finish, {} with another{}\n",
                  differs.value("same", 0), differs.value("open", 0), incidents.size(),
                  incidents.empty() ? "" : ":");
  for (const auto& row : incidents) {
    out +=
        fmt::format("  {}\n    live    {}\n    shadow  {}\n", row.value("incident", std::string()),
                    or_nothing(row, "live"), or_nothing(row, "shadow"));
  }
  const Json firings = differs.value("firings", Json::array());
  if (!firings.empty()) out += "signals that fired another number of times (live, shadow):\n";
  for (const auto& row : firings) {
    out += fmt::format("  {:<44} {:>10} {:>10}\n", row.value("signal", std::string()),
                       row.value("live", uint64_t{0}), row.value("shadow", uint64_t{0}));
  }
  return out;
}

std::string shadow_report(const Json& json) {
  if (!json.value("running", false))
    return "no shadow set runs; `reflex shadow PACKS` starts one\n";
  const Json differs = json.value("differs", Json::object());
  const Json since = differs.value("since", Json());
  return fmt::format(
      "set {} beside the live one{}, {} bytes of the journal behind it\n{}"
      "`reflex promote` makes it live, `reflex shadow --drop` ends it; --format json has its "
      "verdicts\n",
      json.value("set_sha256", std::string()).substr(0, 12),
      since.is_string() ? " since " + since.get<std::string>() : "",
      json.value("behind", uint64_t{0}), comparison_text(differs));
}

/// Keys of reflex.toml that the reload found changed.
std::string config_text(const Json& json) {
  std::string out;
  const Json config = json.value("config", Json::object());
  for (const auto& [list, what] : {std::pair{"applied", "in force now"},
                                   {"needs_restart", "changed, in force after a restart"}}) {
    const auto keys = config.value(list, std::vector<std::string>());
    if (!keys.empty()) out += fmt::format("reflex.toml: {}: {}\n", what, fmt::join(keys, ", "));
  }
  return out;
}

std::string reload_text(const Json& json) {
  const std::string set = json.value("set_sha256", std::string()).substr(0, 12);
  if (json.value("unchanged", false)) {
    return fmt::format("unchanged: set {}\n", set) + config_text(json);
  }
  std::string out = fmt::format(
      "set {} is in force; compiled in {:.1f} ms, {} in {:.1f} ms, "
      "the stream paused {:.0f} us\n",
      set, json.value("compile_ms", 0.0),
      json.value("path", std::string()) == "in place" ? "taken over in place" : "restored",
      json.value("restore_ms", 0.0), json.value("pause_us", 0.0));
  return out + config_text(json) + plan_text(json);
}

std::string plain(const Json& json) { return json.dump(2) + "\n"; }

}  // namespace

Command add_client(CLI::App& app, const CommonFlags& common) {
  auto* reload = app.add_subcommand("reload", "make a running daemon take its packs anew");
  auto* status = app.add_subcommand("status", "what a running daemon is doing");
  auto* snapshot = app.add_subcommand("snapshot", "make a running daemon save its state");
  auto* shadow = app.add_subcommand("shadow", "run a candidate set beside the live one");
  auto* promote = app.add_subcommand("promote", "make the shadow set the live one");
  // Each its own: the environment of one that was not called would write over the flags of the
  // other.
  auto of_each = std::make_shared<std::map<CLI::App*, ClientFlags>>();
  for (auto* sub : {reload, status, snapshot, shadow, promote}) {
    add_client_options(*sub, (*of_each)[sub]);
  }
  shadow->add_option("packs", (*of_each)[shadow].paths,
                     "packs of the candidate; none: what it answers otherwise than the live set");
  shadow->add_flag("--drop", (*of_each)[shadow].drop, "end the shadow set");
  return [=, &common] {
    const auto called = std::find_if(of_each->begin(), of_each->end(),
                                     [](const auto& each) { return each.first->parsed(); });
    if (called == of_each->end()) return -1;
    const ClientFlags* flags = &called->second;
    Client client(*flags, common);
    if (reload->parsed()) return client.ask("POST", "/-/reload", "", reload_text);
    if (status->parsed()) return client.ask("GET", "/api/v1/status", "", plain);
    if (promote->parsed()) return client.ask("POST", "/api/v1/promote", "", reload_text);
    if (snapshot->parsed()) {
      return client.ask("POST", "/api/v1/snapshot", "",
                        [](const Json&) { return std::string("the state is saved\n"); });
    }
    if (flags->drop) {
      return client.ask("DELETE", "/api/v1/shadow", "",
                        [](const Json&) { return std::string("the shadow set has ended\n"); });
    }
    if (flags->paths.empty()) return client.ask("GET", "/api/v1/shadow", "", shadow_report);
    Json body;
    body["paths"] = Json::array();
    // The daemon runs elsewhere: it needs whole paths.
    for (const auto& path : flags->paths) {
      std::error_code none;
      body["paths"].push_back(std::filesystem::absolute(path, none).lexically_normal().string());
    }
    return client.ask("POST", "/api/v1/shadow", body.dump(), shadow_text);
  };
}

}  // namespace reflex::app

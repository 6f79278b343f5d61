// Serves the console over a fake daemon with a real engine, for the browser test and for people who
// work on the page: `console_fake [PORT]`. Prints the address; commands on standard input:
// "hang NAME" makes an incident, "feedback" prints how often somebody gave some. Ends with the
// input.
#include <fmt/format.h>

#include <cstdlib>
#include <iostream>
#include <string>

#include "runtime/serve/http/http_server.h"
#include "tests/unit/serve_http/fake_daemon.h"
#include "tests/unit/store/store_folder.h"

int main(int argc, char** argv) {
  using namespace reflex::serve;
  const StoreFolder folder;
  auto store = Store::open({folder.file()});
  if (!store) {
    std::cerr << store.error().message << "\n";
    return 3;
  }
  FakeDaemon daemon(*store.value(), false);
  auto answer = std::make_shared<ReloadAnswer>();
  answer->outcome = ReloadAnswer::Outcome::kInvalid;
  answer->diagnostics = {
      R"({"file":"site/pack.rfx","range":{"start":{"line":12,"col":31},"end":{"line":12,"col":40}},)"
      R"("severity":"error","id":"R105","message":"'heat_limt' is not a parameter of profile hw.h100"})"};
  daemon.state.last_reload = answer;
  daemon.next_reload.outcome = ReloadAnswer::Outcome::kSwapped;
  daemon.next_reload.compile_ms = 41.5;
  daemon.next_reload.pause_us = 830;
  daemon.next_reload.plan = {{"site.hot", "signal", "reset", "its shape changed", 2048},
                             {"site.stall", "signal", "kept", "", 512}};
  // A shadow that has answered nothing: each final verdict of the live set is a difference.
  auto shadow = std::make_shared<LaneStatus>();
  shadow->set_sha256 = "5e7beefc0ffee";
  shadow->watermark_ns = daemon.state.live.watermark_ns;
  shadow->firings_by_signal = {{"site.new_signal", 7}};
  daemon.state.shadow = std::move(shadow);
  HttpConfig config;
  config.port = argc > 1 ? std::atoi(argv[1]) : 0;
  config.version = "1.0.0";
  auto server = HttpServer::start(config, daemon, *store.value());
  if (!server) {
    std::cerr << server.error().message << "\n";
    return 3;
  }
  std::cout << server.value()->address() << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    if (line.starts_with("hang ")) daemon.hang_again(line.substr(5));
    if (line == "feedback") std::cout << daemon.feedbacks.size() << std::endl;
  }
  return 0;
}

// `reflex worker feed|route|signals|attribute|collect`: one process of a cluster that meets on a
// broker.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <thread>

#include "runtime/app/commands.h"
#include "runtime/app/input_options.h"
#include "runtime/app/load_packs.h"
#include "runtime/base/crc32c.h"
#include "runtime/broker/connect.h"
#include "runtime/cluster/feed.h"
#include "runtime/cluster/roles.h"
#include "runtime/cluster/run_identity.h"
#include "runtime/engine/inventory.h"
#include "runtime/explain/explain.h"
#include "runtime/learn/model_file.h"

namespace reflex::app {
namespace {

std::chrono::milliseconds ms_of(double seconds) {
  return std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000));
}

struct WorkerFlags {
  InputFlags input;
  std::string broker = "nats://127.0.0.1:4222";
  std::string stream;  // "": as the address says
  broker::ConnectOptions connect;
  uint32_t partitions = 1;
  uint32_t partition = 0;
  bool any = false;
  uint32_t workers = 1;
  uint32_t worker = 0;
  bool live = false;
  bool ticks = true;
  bool from_end = false;
  bool to_end = false;
  std::string prefix;
  double state_every_s = 60;
  double lease_s = 10;
  std::string model;
  std::string output;
};

// Why global: a signal handler has no argument.
std::atomic<bool> stop_asked{false};

class Worker {
 public:
  Worker(const WorkerFlags& flags, const CommonFlags& common) : flags_(flags), common_(common) {}

  template <typename Role>
  int run(Role&& role) {
    Loaded loaded = load_packs(flags_.input.load, common_);
    if (loaded.exit_code != kOk) return loaded.exit_code;
    context_.pack = loaded.compilation->pack;
    auto options = connect_options();
    if (!options.ok()) return fail(options.error());
    auto connected = broker::connect(options.value());
    if (!connected.ok()) return fail(connected.error());
    const std::unique_ptr<broker::Broker> broker = std::move(connected).value();
    context_.broker = broker.get();
    context_.stream = options.value().name;
    context_.partitions = flags_.partitions;
    context_.state_every = ms_of(flags_.state_every_s);
    context_.stop = &stop_asked;
    context_.note = [this](const std::string& text) { print_note(common_, text); };
    context_.inventory = [this](topology::Topology& topology) { return read_inventory(topology); };
    std::signal(SIGINT, [](int) { stop_asked = true; });
    std::signal(SIGTERM, [](int) { stop_asked = true; });
    if (auto joined = cluster::join_run(*broker, context_.stream, context_.pack->set_sha256,
                                        context_.partitions);
        !joined.ok()) {
      return fail(joined.error());
    }
    const Status status = role(context_);
    return status.ok() ? kOk : fail(status.error());
  }

  Status route_live(const cluster::RoleContext& context) {
    if (auto joined = cluster::join_live(*context.broker, context.stream); !joined.ok()) {
      return joined;
    }
    auto options = pipeline_options(flags_.input);
    if (!options.ok()) return options.error();
    stream::LogOptions log = options.value().log_options;
    if (!options.value().year_given) log.year = 0;
    // What it feeds itself; an error there ends the routing, too.
    std::atomic<bool> stop = false;
    cluster::RoleContext own = context;
    own.stop = &stop;
    Status fed = ok_status();
    std::jthread feeder;
    if (!flags_.input.events.empty() || !flags_.input.logs.empty()) {
      feeder = std::jthread([&] { fed = feed(own); });
    }
    const Status status = cluster::route_live(context, log, flags_.ticks);
    stop = true;
    if (feeder.joinable()) feeder.join();
    return status.ok() ? fed : status;
  }

  Status feed(const cluster::RoleContext& context) {
    auto options = pipeline_options(flags_.input);
    if (!options.ok()) return options.error();
    cluster::FeedOptions feed;
    feed.from_end = flags_.from_end;
    feed.to_end = flags_.to_end;
    feed.prefix = flags_.prefix;
    for (const auto& path : options.value().events) feed.sources.push_back({path, false, ""});
    for (const auto& log : options.value().logs) feed.sources.push_back({log.path, true, log.node});
    if (feed.sources.empty()) return Error{"nothing to feed: --events or --log"};
    Status status = cluster::feed(context, feed);
    if (!status.ok()) stop_asked = true;
    return status;
  }

  Status route(const cluster::RoleContext& context) {
    if (auto status = same_inventory(context); !status.ok()) return status;
    if (flags_.live) return route_live(context);
    if (auto status = check_files(flags_.input, {}); !status.ok()) return status;
    auto options = pipeline_options(flags_.input);
    if (!options.ok()) return options.error();
    auto counters = cluster::route(context, options.value());
    if (!counters.ok()) return counters.error();
    print_note(common_, fmt::format("{} lines sent", counters.value().lines));
    if (counters.value().rejected_total() > 0) {
      print_note(common_, "rejected: " + rejects_text(counters.value()));
    }
    return ok_status();
  }

  Status signals(const cluster::RoleContext& context) {
    if (auto status = same_inventory(context); !status.ok()) return status;
    if (flags_.any) return cluster::signals_units(context);
    auto ended = cluster::signals(context, flags_.partition);
    return ended.ok() ? ok_status() : Status(ended.error());
  }

  Status attribute(const cluster::RoleContext& context) {
    if (auto status = same_inventory(context); !status.ok()) return status;
    if (auto status = same_workers(context); !status.ok()) return status;
    cluster::AttributionOptions options;
    options.workers = flags_.workers;
    options.line = [](const abi::Verdict& verdict) { return explain::to_json(verdict, false); };
    if (!flags_.model.empty()) {
      auto model = learn::load_model(flags_.model, *context.pack);
      if (!model.ok()) return model.error();
      options.engine.model = std::make_shared<const abi::Model>(std::move(model).value());
    }
    if (flags_.any) return cluster::attribute_units(context, options);
    return with_output([&](const cluster::TakeLine& take) {
      auto ended = cluster::attribute(context, flags_.worker, options, take);
      return ended.ok() ? ok_status() : Status(ended.error());
    });
  }

  Status collect(const cluster::RoleContext& context) {
    if (auto status = same_workers(context); !status.ok()) return status;
    return with_output([&](const cluster::TakeLine& take) {
      return cluster::collect(context, flags_.workers, take);
    });
  }

 private:
  int fail(const Error& error) {
    print_error(common_, error.message);
    return error.exit_code;
  }

  Status with_output(const std::function<Status(const cluster::TakeLine&)>& run) {
    FILE* out = flags_.output.empty() ? stdout : std::fopen(flags_.output.c_str(), "w");
    if (!out) return Error{fmt::format("cannot write {}", flags_.output)};
    const Error full{"writing verdicts failed (disk full?)"};
    Status status = run([&](const std::string& line) -> Status {
      const bool good = std::fwrite(line.data(), 1, line.size(), out) == line.size() &&
                        std::fputc('\n', out) != EOF && std::fflush(out) == 0;
      return good ? ok_status() : Status(full);
    });
    if (out != stdout && std::fclose(out) != 0 && status.ok()) return full;
    return status;
  }

  Result<broker::ConnectOptions> connect_options() const {
    broker::ConnectOptions options = flags_.connect;
    auto address = broker::parse_address(flags_.broker);
    if (!address.ok()) return address.error();
    options.address = std::move(address).value();
    if (!options.address.name.empty()) options.name = options.address.name;
    if (!flags_.stream.empty()) options.name = flags_.stream;
    options.partitions = std::max(flags_.partitions, flags_.workers);
    options.lease = ms_of(flags_.lease_s);
    options.stopped = [] { return stop_asked.load(); };
    return options;
  }

  /// Another inventory on one worker would be other verdicts, in silence.
  Status same_inventory(const cluster::RoleContext& context) const {
    uint32_t sum = 0;
    for (const auto& path : flags_.input.inventories) {
      std::ifstream file(path, std::ios::binary);
      const std::string bytes{std::istreambuf_iterator<char>(file), {}};
      sum = crc32c(bytes, sum);
    }
    const bool any = !flags_.input.inventories.empty();
    return cluster::join_same(*context.broker, context.stream, "inventory",
                              any ? fmt::format("{:08x}", sum) : "none", "--inventory");
  }

  Status same_workers(const cluster::RoleContext& context) const {
    return cluster::join_same(*context.broker, context.stream, "workers",
                              fmt::format("{} workers", flags_.workers), "--workers");
  }

  Status read_inventory(topology::Topology& topology) {
    for (const auto& path : flags_.input.inventories) {
      auto summary = engine::load_inventory(path, *context_.pack->symbols, topology);
      if (!summary.ok()) return summary.error();
    }
    return ok_status();
  }

  const WorkerFlags& flags_;
  const CommonFlags& common_;
  cluster::RoleContext context_;
};

void add_role_options(CLI::App& sub, WorkerFlags& flags) {
  sub.add_option("packs", flags.input.load.packs, "pack folders or .rfx files")->required();
  sub.add_option("--profiles", flags.input.load.profiles,
                 "hardware profiles (default: hwprofiles/ near the packs)");
  sub.add_option("--inventory", flags.input.inventories, "nodes, labels and jobs (JSON)");
  sub.add_option("--partitions", flags.partitions, "processes of `signals` in all")
      ->check(CLI::Range(1, 4096));
  sub.add_option("--broker", flags.broker,
                 "nats://HOST:4222[/NAME], or kafka://HOST:9092[,HOST:9092][/NAME]");
  sub.add_option("--broker-option", flags.connect.properties,
                 "KEY=VALUE of librdkafka (security.protocol, sasl.mechanisms, ..)");
  sub.add_option("--credentials", flags.connect.credentials, "NATS credentials file");
  sub.add_option("--stream", flags.stream,
                 "NAME of the address: JetStream stream, or what topics begin with; one for each "
                 "run; made when missing (default REFLEX)");
}

void add_feed_options(CLI::App& sub, WorkerFlags& flags) {
  sub.add_flag("--from-end", flags.from_end, "the first time, begin at the end of files");
  sub.add_flag("--to-end", flags.to_end,
               "do not wait for more at the end of files: that is the end of the run");
  sub.add_option("--prefix", flags.prefix,
                 "of the names of sources, where several machines have files of one path");
}

void add_unit_options(CLI::App& sub, WorkerFlags& flags) {
  sub.add_flag("--any", flags.any,
               "serve those that no other process serves, and those of one that dies");
  sub.add_option("--state-every", flags.state_every_s, "seconds between states on the broker")
      ->check(CLI::Range(0.05, 86400.0));
  sub.add_option("--lease", flags.lease_s,
                 "seconds without a word after which a process is taken for dead")
      ->check(CLI::Range(0.5, 3600.0));
}

}  // namespace

Command add_worker(CLI::App& app, const CommonFlags& common) {
  auto flags = std::make_shared<WorkerFlags>();
  auto* sub = app.add_subcommand("worker",
                                 "one process of a cluster that meets on NATS JetStream or Kafka");
  sub->require_subcommand(1);
  auto* route = sub->add_subcommand("route", "read events and logs, send them to the partitions");
  add_role_options(*route, *flags);
  route->add_option("--events", flags->input.events, "NDJSON files, also .gz and .zst; - is stdin");
  route->add_option("--log", flags->input.logs, "NODE=FILE: raw log text of one node");
  route->add_option("--year", flags->input.year, "year of log stamps without one");
  route->add_option("--tz", flags->input.tz, "zone of log stamps without one, like +01:00");
  route->add_flag("--live", flags->live,
                  "route what comes in (NAME.ingest): follow the files, or none; of several such "
                  "processes one routes, the others stand by");
  route->add_flag("!--no-ticks", flags->ticks, "the wall clock says nothing (old traces)");
  add_feed_options(*route, *flags);
  add_unit_options(*route, *flags);
  auto* feed = sub->add_subcommand("feed", "follow files or standard input into NAME.ingest");
  add_role_options(*feed, *flags);
  feed->add_option("--events", flags->input.events, "NDJSON files; - is stdin");
  feed->add_option("--log", flags->input.logs, "NODE=FILE: raw log text of one node");
  add_feed_options(*feed, *flags);
  auto* signals =
      sub->add_subcommand("signals", "evaluate the signals of the nodes of a partition");
  add_role_options(*signals, *flags);
  auto* partition = signals->add_option("--partition", flags->partition, "0 .. partitions - 1");
  add_unit_options(*signals, *flags);
  auto* attribute = sub->add_subcommand("attribute", "weigh the incidents of a share of the jobs");
  add_role_options(*attribute, *flags);
  attribute->add_option("--worker", flags->worker, "0 .. workers - 1");
  attribute->add_option("--workers", flags->workers, "shares of the jobs in all")
      ->check(CLI::Range(1, 1024));
  add_unit_options(*attribute, *flags);
  attribute->add_option("--model", flags->model, "learned numbers (`reflex learn`)");
  attribute->add_option("-o,--output", flags->output, "write verdicts to this file");
  auto* collect = sub->add_subcommand("collect", "read the verdicts of all shares");
  add_role_options(*collect, *flags);
  collect->add_option("--workers", flags->workers, "shares of the jobs in all")
      ->check(CLI::Range(1, 1024));
  collect->add_option("-o,--output", flags->output, "write verdicts to this file");
  return [=, &common] {
    if (!sub->parsed()) return -1;
    const bool out_of_range = (signals->parsed() && flags->partition >= flags->partitions) ||
                              (attribute->parsed() && flags->worker >= flags->workers);
    if (attribute->parsed() && flags->any && !flags->output.empty()) {
      print_error(common,
                  "-o needs --worker: verdicts of shares that this process takes with --any are "
                  "read with `reflex worker collect`");
      return static_cast<int>(kUsage);
    }
    if (signals->parsed() && !flags->any && partition->count() == 0) {
      print_error(common, "--partition N, or --any: those that no other process serves");
      return static_cast<int>(kUsage);
    }
    if (out_of_range) {
      print_error(common, signals->parsed()
                              ? fmt::format("--partition {}: there are {} (--partitions), from 0",
                                            flags->partition, flags->partitions)
                              : fmt::format("--worker {}: there are {} (--workers), from 0",
                                            flags->worker, flags->workers));
      return static_cast<int>(kUsage);
    }
    Worker worker(*flags, common);
    if (feed->parsed()) return worker.run([&](const auto& c) { return worker.feed(c); });
    if (route->parsed()) return worker.run([&](const auto& c) { return worker.route(c); });
    if (signals->parsed()) {
      return worker.run([&](const auto& c) { return worker.signals(c); });
    }
    if (collect->parsed()) return worker.run([&](const auto& c) { return worker.collect(c); });
    return worker.run([&](const auto& c) { return worker.attribute(c); });
  };
}

}  // namespace reflex::app

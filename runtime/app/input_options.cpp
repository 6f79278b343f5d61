// Options and checks of replayed input; see input_options.h.
#include "runtime/app/input_options.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <system_error>

#include "runtime/base/time.h"
#include "runtime/learn/labels.h"

namespace reflex::app {

Result<std::shared_ptr<const std::vector<engine::KnownIncident>>> load_history(
    const std::string& path, const CommonFlags& common) {
  using Known = std::vector<engine::KnownIncident>;
  if (path.empty()) return std::shared_ptr<const Known>();
  auto file = learn::read_labels(path);
  if (!file.ok()) return file.error();
  for (const auto& sample : file.value().samples) print_note(common, sample + " (skipped)");
  auto known = std::make_shared<Known>();
  for (const auto& label : file.value().labels) {
    if (!label.truth_known || label.ts_ns == kNoTimeNs) continue;
    known->push_back({label.incident, label.ts_ns, label.culprits, label.fault});
  }
  return std::shared_ptr<const Known>(std::move(known));
}

void add_input_options(CLI::App& sub, InputFlags& flags) {
  sub.add_option("packs", flags.load.packs, "pack folders or .rfx files")->required();
  sub.add_option("--profiles", flags.load.profiles,
                 "hardware profiles (default: hwprofiles/ near the packs)");
  sub.add_option("--inventory", flags.inventories, "nodes, labels and jobs (JSON)");
  sub.add_option("--events", flags.events, "NDJSON files, also .gz and .zst; - is standard input");
  sub.add_option("--log", flags.logs, "NODE=FILE: raw log text of one node");
  sub.add_option("--threads", flags.threads, "shards and decoders")->check(CLI::Range(1, 64));
  sub.add_option("--batch", flags.batch, "events per step")->check(CLI::Range(1, 1 << 20));
  sub.add_option("--year", flags.year, "year of log stamps without one");
  sub.add_option("--tz", flags.tz, "zone of log stamps without one, like +01:00");
  sub.add_option("--backend", flags.load.backend, "jit or interp")
      ->check(CLI::IsMember({"jit", "interp"}));
}

namespace {

/// Whether it could be written, without making it: a command may work for minutes before it does.
Status can_write(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code none;
  const auto cannot = [&](const std::string& why) {
    return Error{fmt::format("cannot write {}: {}", path, why)};
  };
  if (fs::is_directory(path, none)) return cannot("it is a folder; name a file in it");
  if (fs::exists(path, none)) {
    return ::access(path.c_str(), W_OK) == 0 ? ok_status() : Status(cannot("it is not writable"));
  }
  const fs::path parent = fs::path(path).parent_path();
  const std::string folder = parent.empty() ? "." : parent.string();
  if (!fs::is_directory(folder, none)) {
    return cannot(fmt::format("there is no folder {}; make it first", folder));
  }
  if (::access(folder.c_str(), W_OK) != 0) return cannot(folder + " is not writable");
  return ok_status();
}

}  // namespace

Status check_files(const InputFlags& flags, const std::vector<std::string>& outputs) {
  if (flags.events.empty() && flags.logs.empty()) {
    return Error{"nothing to read: give --events FILE or --log NODE=FILE"};
  }
  std::vector<std::string> inputs = flags.events;
  for (const auto& log : flags.logs) inputs.push_back(log.substr(log.find('=') + 1));
  const size_t streams = inputs.size();
  inputs.insert(inputs.end(), flags.inventories.begin(), flags.inventories.end());
  inputs.insert(inputs.end(), flags.load.packs.begin(), flags.load.packs.end());
  const auto same = [](const std::string& a, const std::string& b) {
    std::error_code none;
    return a == b || std::filesystem::equivalent(a, b, none);
  };
  for (size_t i = 0; i < streams; ++i) {
    for (size_t j = i + 1; j < streams; ++j) {
      if (same(inputs[i], inputs[j])) return Error{fmt::format("{} is given twice", inputs[j])};
    }
  }
  for (const std::string& output : outputs) {
    if (output.empty()) continue;
    if (output != "-") {
      if (auto status = can_write(output); !status.ok()) return status;
    }
    for (const auto& input : inputs) {
      if (same(output, input)) {
        return Error{fmt::format("{} is an input; writing to it would destroy it", output)};
      }
    }
  }
  return ok_status();
}

Result<engine::PipelineOptions> pipeline_options(const InputFlags& flags) {
  engine::PipelineOptions o;
  o.events = flags.events;
  o.threads = flags.threads;
  o.batch_events = flags.batch;
  if (flags.batch < 64) o.chunk_bytes = 4096;  // small batches are asked for to see every step
  for (const auto& log : flags.logs) {
    const size_t eq = log.find('=');
    if (eq == std::string::npos || eq == 0 || eq + 1 == log.size()) {
      return Error{fmt::format("--log wants NODE=FILE, got '{}'", log)};
    }
    o.logs.push_back({log.substr(0, eq), log.substr(eq + 1)});
  }
  if (!flags.tz.empty()) {
    const auto t = parse_rfc3339("1970-01-02T00:00:00" + flags.tz);
    if (!t) return Error{fmt::format("--tz: '{}' is not like '+01:00' or 'Z'", flags.tz)};
    o.log_options.utc_offset_ns = kNsPerDay - t->ns;
  }
  o.log_options.year = flags.year;
  o.year_given = flags.year != 0;
  return o;
}

std::string rejects_text(const stream::IngestCounters& counters) {
  std::string text;
  for (size_t i = 0; i < counters.rejected.size(); ++i) {
    if (counters.rejected[i] == 0) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", counters.rejected[i],
                        stream::to_text(static_cast<stream::Reject>(i)));
  }
  return text;
}

void ProgressBar::show(const engine::Progress& progress) {
  const auto now = Clock::now();
  if (!on_ || now - last_ < std::chrono::milliseconds(200)) return;
  last_ = now;
  const double s = std::chrono::duration<double>(now - started_).count();
  const double share = progress.bytes_total > 0 ? static_cast<double>(progress.bytes_read) /
                                                      static_cast<double>(progress.bytes_total)
                                                : 0;
  fmt::print(stderr, "\r{}{:3.0f} %  {:.2f} M events  {:.2f} M/s   ", what_, share * 100,
             static_cast<double>(progress.events) / 1e6,
             static_cast<double>(progress.events) / 1e6 / s);
  shown_ = true;
}

void ProgressBar::clear() {
  if (shown_) fmt::print(stderr, "\r{:70}\r", "");
  shown_ = false;
}

}  // namespace reflex::app

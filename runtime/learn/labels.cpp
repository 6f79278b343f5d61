// Reading and appending the labelled history; see labels.h.
#include "runtime/learn/labels.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <sstream>

namespace reflex::learn {
namespace {

using Json = nlohmann::json;

constexpr size_t kSamplesMax = 5;
// Why: an operator opens a ticket within half an hour of the trigger; a job fails again later.
constexpr int64_t kSameIncidentNs = 30 * kNsPerMinute;

std::string text_of(const Json& object, const char* key) {
  const auto it = object.find(key);
  return it != object.end() && it->is_string() ? it->get<std::string>() : std::string();
}

std::optional<int64_t> time_of(const Json& value) {
  if (value.is_number()) {
    const double ms = value.get<double>();
    if (!(ms > -9e12 && ms < 9e12)) return std::nullopt;
    if (value.is_number_integer()) return value.get<int64_t>() * kNsPerMs;
    return static_cast<int64_t>(ms * 1e6);
  }
  if (!value.is_string()) return std::nullopt;
  const auto parsed = parse_rfc3339(value.get<std::string>());
  if (!parsed) return std::nullopt;
  return parsed->ns;
}

/// The reason why a line is no label, or "" and the label.
std::string parse_line(std::string_view line, Label& out) {
  const Json object = Json::parse(line, nullptr, false);
  if (object.is_discarded() || !object.is_object()) return "not a JSON object";
  out.incident = text_of(object, "incident");
  if (out.incident.empty()) return "no `incident`";
  out.job = text_of(object, "job");
  if (const auto ts = object.find("ts"); ts != object.end() && !ts->is_null()) {
    const auto ns = time_of(*ts);
    if (!ns) return "`ts` is neither epoch milliseconds nor an RFC 3339 time";
    out.ts_ns = *ns;
  }
  const auto culprits = object.find("culprits");
  out.outcome = text_of(object, "outcome");
  out.truth_known = culprits != object.end() && culprits->is_array();
  if (!out.truth_known && out.outcome.empty()) return "no `culprits` (an array of node names)";
  if (out.truth_known) {
    for (const Json& name : *culprits) {
      if (!name.is_string()) return "`culprits` holds something that is no name";
      out.culprits.push_back(name.get<std::string>());
    }
    std::sort(out.culprits.begin(), out.culprits.end());
    out.culprits.erase(std::unique(out.culprits.begin(), out.culprits.end()), out.culprits.end());
  }
  out.external = text_of(object, "external");
  out.fault = text_of(object, "fault");
  out.category = text_of(object, "category");
  out.type = text_of(object, "type");
  out.verdict = text_of(object, "verdict");
  return "";
}

void sort_labels(std::vector<Label>& labels) {
  std::sort(labels.begin(), labels.end(), [](const Label& a, const Label& b) {
    return a.ts_ns != b.ts_ns ? a.ts_ns < b.ts_ns : a.incident < b.incident;
  });
}

}  // namespace

LabelFile parse_labels(std::string_view text, const std::string& name) {
  LabelFile file;
  std::map<std::string, size_t> seen;
  size_t number = 0;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    Label label;
    if (const std::string reason = parse_line(line, label); !reason.empty()) {
      ++file.bad_lines;
      if (file.samples.size() < kSamplesMax) {
        file.samples.push_back(fmt::format("{}:{}: {}", name, number, reason));
      }
      continue;
    }
    const auto [it, fresh] = seen.emplace(label.incident, file.labels.size());
    if (fresh) {
      file.labels.push_back(std::move(label));
      continue;
    }
    ++file.replaced;
    // "That verdict was wrong" takes nothing back that is known.
    if (label.truth_known) file.labels[it->second] = std::move(label);
  }
  sort_labels(file.labels);
  return file;
}

Result<LabelFile> read_labels(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return Error{fmt::format("cannot read {}: {}", path, std::strerror(errno))};
  std::ostringstream text;
  text << in.rdbuf();
  if (in.bad()) return Error{fmt::format("reading {} failed", path)};
  return parse_labels(text.view(), path);
}

std::string to_json_line(const Label& label) {
  nlohmann::ordered_json j;
  const auto text_or_null = [&](const char* key, const std::string& value) {
    j[key] = value.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(value);
  };
  j["incident"] = label.incident;
  j["job"] = label.job;
  if (label.ts_ns != kNoTimeNs) j["ts"] = label.ts_ns / kNsPerMs;
  if (label.truth_known) j["culprits"] = label.culprits;
  text_or_null("fault", label.fault);
  text_or_null("external", label.external);
  text_or_null("category", label.category);
  text_or_null("type", label.type);
  if (!label.verdict.empty()) j["verdict"] = label.verdict;
  if (!label.outcome.empty()) j["outcome"] = label.outcome;
  return j.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

Status append_label(const std::string& path, const Label& label) {
  // O_APPEND and one write: two writers never mix their lines.
  const int fd = open(path.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) return Error{fmt::format("cannot write {}: {}", path, std::strerror(errno))};
  std::string line = to_json_line(label) + "\n";
  // A line that a crash left without its end must not swallow ours.
  char last = '\n';
  const off_t size = lseek(fd, 0, SEEK_END);
  if (size > 0 && pread(fd, &last, 1, size - 1) == 1 && last != '\n') line.insert(0, "\n");
  const ssize_t written = write(fd, line.data(), line.size());
  const bool ok = written == static_cast<ssize_t>(line.size()) && fsync(fd) == 0;
  const int reason = errno;
  close(fd);
  if (!ok) return Error{fmt::format("appending to {} failed: {}", path, std::strerror(reason))};
  return ok_status();
}

LabelIndex::LabelIndex(const std::vector<Label>& labels) {
  for (const Label& label : labels) {
    by_incident_.emplace(label.incident, &label);
    if (!label.job.empty() && label.ts_ns != kNoTimeNs) by_job_[label.job].push_back(&label);
  }
}

const Label* LabelIndex::find(std::string_view incident, std::string_view job,
                              int64_t opened_ns) const {
  if (const auto it = by_incident_.find(incident); it != by_incident_.end()) return it->second;
  const auto it = by_job_.find(job);
  if (it == by_job_.end()) return nullptr;
  const Label* best = nullptr;
  int64_t best_distance = kSameIncidentNs + 1;
  for (const Label* label : it->second) {
    const int64_t distance = std::abs(label->ts_ns - opened_ns);
    if (distance < best_distance) {
      best = label;
      best_distance = distance;
    }
  }
  return best;
}

}  // namespace reflex::learn

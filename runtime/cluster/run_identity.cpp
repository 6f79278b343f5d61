// Agreement by the oldest message: see run_identity.h.
#include "runtime/cluster/run_identity.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>

#include "runtime/base/crc32c.h"

namespace reflex::cluster {
namespace {

/// Size and both ends of a file. Why not all of it: a day of logs would be read twice.
std::string marks_of(const std::string& path) {
  constexpr std::streamoff kEndBytes = 64 << 10;
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  const std::streamoff size = file.tellg();
  if (!file || size < 0) return "unreadable";
  const auto part = [&](std::streamoff at) {
    std::string bytes(static_cast<size_t>(std::min(kEndBytes, size)), '\0');
    file.seekg(at);
    file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    return crc32c(bytes);
  };
  const uint32_t first = part(0);
  return fmt::format("{} {:08x} {:08x}", size, first,
                     part(std::max<std::streamoff>(0, size - kEndBytes)));
}

Status same_input(broker::Broker& broker, const std::string& stream, const std::string& mine) {
  auto agreed = agree(broker, stream + ".input", mine);
  if (!agreed.ok()) return agreed.error();
  if (agreed.value() == mine) return ok_status();
  return Error{"the stream " + stream +
               " holds the input of another run already: give all processes of this one another "
               "--stream"};
}

}  // namespace

Result<std::string> agree(broker::Broker& broker, const std::string& subject,
                          const std::string& text) {
  for (int attempt = 0; attempt < 2; ++attempt) {
    auto oldest = broker.oldest(subject);
    if (!oldest.ok()) return oldest.error();
    if (oldest.value()) return std::move(oldest.value()->bytes);
    const auto id = fmt::format("{}/{:08x}", subject, crc32c(text));
    if (auto status = broker.publish(subject, id, text); !status.ok()) return status.error();
  }
  return Error{"the broker does not give back what was published to " + subject};
}

Status join_run(broker::Broker& broker, const std::string& stream, const std::string& set_sha256,
                uint32_t partitions) {
  const auto mine = fmt::format("packs {}, {} partitions", set_sha256.substr(0, 16), partitions);
  auto agreed = agree(broker, stream + ".run", mine);
  if (!agreed.ok()) return agreed.error();
  if (agreed.value() == mine) return ok_status();
  return Error{fmt::format(
      "the stream {} is of another run ({}; here: {}): give all processes of a run the same packs "
      "and --partitions, or this run another --stream",
      stream, agreed.value(), mine)};
}

Status join_same(broker::Broker& broker, const std::string& stream, const std::string& what,
                 const std::string& mine, const std::string& flag) {
  auto agreed = agree(broker, stream + "." + what, mine);
  if (!agreed.ok()) return agreed.error();
  if (agreed.value() == mine) return ok_status();
  return Error{fmt::format(
      "the stream {} is of a run with another {} ({}; here: {}): give all processes of a run the "
      "same {}, or this run another --stream",
      stream, what, agreed.value(), mine, flag)};
}

Status join_input(broker::Broker& broker, const std::string& stream,
                  const std::vector<std::string>& paths) {
  const std::string subject = stream + ".input";
  const bool piped = std::find(paths.begin(), paths.end(), "-") != paths.end();
  if (piped) {
    auto oldest = broker.oldest(subject);
    if (!oldest.ok()) return oldest.error();
    if (oldest.value()) {
      return Error{"the stream " + stream +
                   " holds input already, and standard input cannot be read again: give all "
                   "processes of this run another --stream"};
    }
  }
  std::string mine;
  for (const auto& path : paths) {
    mine += fmt::format("{} {}\n", path, path == "-" ? "standard input" : marks_of(path));
  }
  return same_input(broker, stream, mine);
}

Status join_live(broker::Broker& broker, const std::string& stream) {
  return same_input(broker, stream, "live\n");
}

}  // namespace reflex::cluster

// Messages of the form "NUMBER LINE"; see verdict_stream.h.
#include "runtime/cluster/verdict_stream.h"

#include <fmt/format.h>

#include <charconv>

namespace reflex::cluster {

Status VerdictWriter::say(const std::string& line) {
  ++number_;
  return broker_.publish(subject_, fmt::format("{}/{}", subject_, number_),
                         fmt::format("{} {}", number_, line));
}

Result<std::unique_ptr<VerdictReader>> VerdictReader::open(broker::Broker& broker,
                                                           const std::string& subject) {
  auto reader = broker.read(subject, 0);
  if (!reader.ok()) return reader.error();
  return std::unique_ptr<VerdictReader>(new VerdictReader(std::move(reader).value()));
}

Result<VerdictReader::Got> VerdictReader::next(std::string& line,
                                               std::chrono::milliseconds patience) {
  broker::Message message;
  auto got = reader_->next(message, patience);
  if (!got.ok()) return got.error();
  if (!got.value()) return Got::kNothing;
  uint64_t number = 0;
  const char* end = message.bytes.data() + message.bytes.size();
  const auto [at, wrong] = std::from_chars(message.bytes.data(), end, number);
  if (wrong != std::errc() || at == end) return Error{"a damaged verdict at the broker"};
  if (number <= number_) return Got::kNothing;  // said again
  number_ = number;
  line.assign(at + 1, end);
  return line.empty() ? Got::kEnd : Got::kLine;
}

}  // namespace reflex::cluster

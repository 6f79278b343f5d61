// Saved states: see worker_state.h. Form: a version, the pack set, the checksum of the rest, the
// rest.
#include "runtime/cluster/worker_state.h"

#include "runtime/base/crc32c.h"

namespace reflex::cluster {
namespace {
constexpr std::string_view kForm = "reflex.worker/1";
}

Status WorkerState::save(const abi::CompiledPack& pack,
                         const std::function<void(StateWriter&)>& write) {
  StateWriter inner(*pack.symbols);
  write(inner);
  const std::string body = inner.take();
  StateWriter out(*pack.symbols);
  out.text(kForm);
  out.text(pack.set_sha256);
  out.u64(crc32c(body));
  out.raw(body);
  last_ = Clock::now();
  return broker_.put_value(name_, out.take());
}

Result<bool> WorkerState::load(const abi::CompiledPack& pack,
                               const std::function<Status(StateReader&)>& read) {
  auto value = broker_.value(name_);
  if (!value.ok()) return value.error();
  if (!value.value()) return false;
  const std::string& bytes = *value.value();
  StateReader in(bytes, *pack.symbols);
  if (in.text() != kForm || in.text() != pack.set_sha256) return false;
  const uint64_t sum = in.u64();
  if (in.failed()) return false;
  // What is left: the prefix has the length of its own form.
  StateWriter head(*pack.symbols);
  head.text(kForm);
  head.text(pack.set_sha256);
  head.u64(sum);
  const std::string_view body = std::string_view(bytes).substr(head.size());
  if (crc32c(body) != sum) return Error{"the state " + name_ + " at the broker is damaged"};
  StateReader inner(body, *pack.symbols);
  if (auto status = read(inner); !status.ok()) return status.error();
  return true;
}

}  // namespace reflex::cluster

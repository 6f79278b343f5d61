// Counting and remembering; see ingest_book.h.
#include "runtime/serve/ingest_book.h"

namespace reflex::serve {
namespace {

// 64 bits: with kKeysMax keys the chance that a new one looks like an old one is 1e-14.
uint64_t hash_of(std::string_view key) { return symbol_hash(key); }

}  // namespace

void IngestBook::apply(EntryType type, const BodyView& body) {
  if (type != EntryType::kEvents && type != EntryType::kLog) return;
  auto it = sources_.find(body.source);
  if (it == sources_.end()) it = sources_.emplace(std::string(body.source), Source{}).first;
  ++it->second.bodies;
  it->second.bytes += body.text.size();
  if (!body.cursor.empty()) it->second.cursor = body.cursor;
  if (!body.key.empty()) add_key(hash_of(body.key));
}

void IngestBook::add_key(uint64_t hash) {
  if (!keys_.insert(hash).second) return;
  order_.push_back(hash);
  if (order_.size() <= kKeysMax) return;
  keys_.erase(order_.front());
  order_.pop_front();
}

bool IngestBook::has_key(std::string_view key) const {
  return !key.empty() && keys_.contains(hash_of(key));
}

std::string IngestBook::cursor(std::string_view source) const {
  const auto it = sources_.find(source);
  return it == sources_.end() ? std::string() : it->second.cursor;
}

void IngestBook::save(StateWriter& out) const {
  out.u64(sources_.size());
  for (const auto& [name, source] : sources_) {
    out.text(name);
    out.u64(source.bodies);
    out.u64(source.bytes);
    out.text(source.cursor);
  }
  out.u64(order_.size());
  for (const uint64_t key : order_) out.u64(key);
}

bool IngestBook::load(StateReader& in) {
  for (size_t left = in.count(4); left > 0; --left) {
    Source& source = sources_[std::string(in.text())];
    source.bodies = in.u64();
    source.bytes = in.u64();
    source.cursor = in.text();
  }
  for (size_t left = in.count(1); left > 0; --left) add_key(in.u64());
  return !in.failed();
}

}  // namespace reflex::serve

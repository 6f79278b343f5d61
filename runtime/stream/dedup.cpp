// See the header.
#include "runtime/stream/dedup.h"

#include <algorithm>
#include <cstring>

#include "runtime/base/time.h"

namespace reflex::stream {
namespace {

// Source: design/events.md: the same (source, id) twice is one event; Why 10 min: agents that
// restart resend the last minutes.
constexpr int64_t kIdWindowNs = 10 * kNsPerMinute;
constexpr size_t kIdSlotsFirst = 1u << 12;
constexpr size_t kIdSlotsMax = 1u << 22;  // Why: 2 x 96 MiB at the very most
constexpr size_t kFirstsMax = 1u << 20;   // Why: bounds a storm of distinct keys

/// Finaliser of MurmurHash3: spreads every input bit over the word.
uint64_t mix(uint64_t h) {
  h ^= h >> 33;
  h *= 0xff51afd7ed558ccdull;
  h ^= h >> 33;
  h *= 0xc4ceb9fe1a85ec53ull;
  return h ^ (h >> 33);
}

/// A second hash, independent of symbol_hash (FNV-1a over 8-byte words).
uint64_t second_hash(std::string_view text) {
  uint64_t h = 0xcbf29ce484222325ull ^ text.size();
  size_t i = 0;
  for (; i + 8 <= text.size(); i += 8) {
    uint64_t word;
    std::memcpy(&word, text.data() + i, 8);
    h = (h ^ word) * 0x9E3779B97F4A7C15ull;
    h ^= h >> 32;
  }
  for (; i < text.size(); ++i) h = (h ^ static_cast<unsigned char>(text[i])) * 0x100000001b3ull;
  return h;
}

}  // namespace

IdDedup::IdDedup(const SymbolTable& symbols) : symbols_(&symbols) {
  current_.slots.resize(kIdSlotsFirst);
  previous_.slots.resize(kIdSlotsFirst);
}

IdDedup::Slot* IdDedup::find(Generation& generation, uint64_t low, uint64_t high) {
  const size_t mask = generation.slots.size() - 1;
  size_t i = low & mask;
  while (generation.slots[i].high != 0) {
    if (generation.slots[i].high == high && generation.slots[i].low == low) break;
    i = (i + 1) & mask;
  }
  return &generation.slots[i];
}

void IdDedup::rotate(int64_t ts_ns) {
  std::swap(current_, previous_);
  std::fill(current_.slots.begin(), current_.slots.end(), Slot{});
  current_.used = 0;
  current_.first_ns = ts_ns;
}

void IdDedup::grow() {
  Generation bigger;
  bigger.slots.resize(current_.slots.size() * 2);
  bigger.used = current_.used;
  bigger.first_ns = current_.first_ns;
  for (const Slot& slot : current_.slots) {
    if (slot.high != 0) *find(bigger, slot.low, slot.high) = slot;
  }
  current_ = std::move(bigger);
}

uint64_t IdDedup::hash_of_source(SymbolId source) {
  if (source >= source_hashes_.size()) source_hashes_.resize(source + size_t{1}, 0);
  uint64_t& hash = source_hashes_[source];
  if (hash == 0) hash = mix(symbol_hash(symbols_->name(source))) | 1;
  return hash;
}

bool IdDedup::is_duplicate(const abi::Record& record) {
  const std::string_view id = record.id->view();
  const uint64_t source = hash_of_source(record.source);
  const uint64_t low = mix(symbol_hash(id) + source);
  const uint64_t high = mix(second_hash(id) ^ source) | 1;
  if (record.ts_ns - current_.first_ns > kIdWindowNs) rotate(record.ts_ns);
  for (Generation* generation : {&current_, &previous_}) {
    const Slot* slot = find(*generation, low, high);
    if (slot->high == 0) continue;
    const int64_t age_ns = record.ts_ns - slot->ts_ns;  // negative for a late event
    if (age_ns <= kIdWindowNs && age_ns >= -kIdWindowNs) return true;
  }
  if (++current_.used * 2 > current_.slots.size()) {
    if (current_.slots.size() < kIdSlotsMax) {
      grow();
    } else {
      rotate(record.ts_ns);
      current_.used = 1;
    }
  }
  *find(current_, low, high) = {low, high, record.ts_ns};
  return false;
}

KindDedup::KindDedup(std::shared_ptr<const abi::CompiledPack> pack) : pack_(std::move(pack)) {
  for (const abi::KindSchema& kind : pack_->kinds) {
    windows_.push_back(kind.dedup_ns);
    longest_ns_ = std::max(longest_ns_, kind.dedup_ns);
  }
  expiry_.resize(windows_.size());
}

void KindDedup::append_key(const abi::Record& record, unsigned slot) {
  const bool present = record.has(slot);
  key_ += present ? '\1' : '\0';
  if (!present) return;
  const auto append_bytes = [this](const void* bytes, size_t size) {
    key_.append(static_cast<const char*>(bytes), size);
  };
  switch (abi::slot_form(pack_->kinds[record.kind].fields[slot].type)) {
    case abi::SlotForm::kText: {
      const std::string_view text = record.text(slot)->view();
      const size_t size = text.size();
      append_bytes(&size, sizeof size);
      key_ += text;
      break;
    }
    case abi::SlotForm::kArray: {
      const abi::IntArray& array = *record.array(slot);
      append_bytes(&array.count, sizeof array.count);
      append_bytes(array.data(), array.count * sizeof(int64_t));
      break;
    }
    default:
      append_bytes(&record.slots()[slot], sizeof(uint64_t));
      break;
  }
}

KindDedup::Found KindDedup::find_first(abi::Record& record) {
  const int64_t window_ns = windows_[record.kind];
  auto& expiry = expiry_[record.kind];
  while (!expiry.empty() && (expiry.front().first < record.ts_ns || firsts_.size() > kFirstsMax)) {
    const auto found = firsts_.find(expiry.front().second);
    // The key may have been renewed since: then a later entry of `expiry` owns it.
    if (found != firsts_.end() && found->second.ts_ns + window_ns <= expiry.front().first) {
      firsts_.erase(found);
    }
    expiry.pop_front();
  }
  key_.assign(reinterpret_cast<const char*>(&record.kind), sizeof record.kind);
  for (const uint16_t slot : pack_->kinds[record.kind].dedup_slots) append_key(record, slot);
  const auto [entry, is_new] = firsts_.try_emplace(key_, First{&record, record.ts_ns});
  if (!is_new) {
    const int64_t age_ns = record.ts_ns - entry->second.ts_ns;
    if (age_ns <= window_ns) return {true, age_ns, entry->second.record};
    entry->second = {&record, record.ts_ns};
  }
  expiry.emplace_back(record.ts_ns + window_ns, key_);
  return {};
}

}  // namespace reflex::stream

// The byte form of state: see state_stream.h.
#include "runtime/base/state_stream.h"

#include <cstring>

#include "runtime/base/check.h"

namespace reflex {
namespace {

// Why: a section's length is patched in after it is written, so its place has a fixed size.
constexpr size_t kLengthBytes = 8;

}  // namespace

void StateWriter::f64(double value) {
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  bytes_.append(bytes, sizeof value);
}

void StateWriter::symbol(SymbolId id) {
  const auto [at, is_new] = numbers_.try_emplace(id, numbers_.size());
  u64(at->second);
  if (is_new) text(symbols_->name(id));
}

void StateWriter::begin(std::string_view name) {
  text(name);
  open_.push_back(bytes_.size());
  bytes_.append(kLengthBytes, '\0');
}

void StateWriter::end() {
  RFX_CHECK(!open_.empty());
  const size_t at = open_.back();
  open_.pop_back();
  const uint64_t length = bytes_.size() - at - kLengthBytes;
  std::memcpy(bytes_.data() + at, &length, sizeof length);
}

std::string StateWriter::take() {
  RFX_CHECK(open_.empty());
  return std::move(bytes_);
}

uint64_t StateReader::u64() {
  uint64_t value = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    if (at_end()) break;
    const auto byte = static_cast<unsigned char>(bytes_[at_++]);
    if (shift == 63 && byte > 1) break;  // more than 64 bits
    value |= uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) return value;
  }
  failed_ = true;
  return 0;
}

bool StateReader::flag() { return bounded(1) != 0; }

double StateReader::f64() {
  const std::string_view bytes = raw(sizeof(double));
  double value = 0;
  if (!bytes.empty()) std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

std::string_view StateReader::text() {
  const uint64_t size = u64();
  return raw(size);
}

SymbolId StateReader::symbol() {
  const uint64_t number = u64();
  if (failed_ || number > known_.size()) {
    failed_ = true;
    return kNoSymbol;
  }
  if (number < known_.size()) return known_[number];
  const std::string_view name = text();
  if (failed_) return kNoSymbol;
  known_.push_back(symbols_->intern(name));
  return known_.back();
}

std::string_view StateReader::raw(size_t size) {
  if (failed_ || size > limit() - at_) {
    failed_ = true;
    return {};
  }
  const std::string_view bytes = bytes_.substr(at_, size);
  at_ += size;
  return bytes;
}

size_t StateReader::count(size_t bytes_each) {
  const uint64_t value = u64();
  if (failed_ || value > (limit() - at_) / (bytes_each == 0 ? 1 : bytes_each)) {
    failed_ = true;
    return 0;
  }
  return value;
}

uint64_t StateReader::bounded(uint64_t max) {
  const uint64_t value = u64();
  if (value <= max) return value;
  failed_ = true;
  return 0;
}

std::string_view StateReader::enter() {
  if (at_end()) return {};
  const std::string_view name = text();
  uint64_t length = 0;
  const std::string_view bytes = raw(kLengthBytes);
  if (failed_) return {};
  std::memcpy(&length, bytes.data(), sizeof length);
  if (length > limit() - at_) {
    failed_ = true;
    return {};
  }
  ends_.push_back(at_ + length);
  return name;
}

bool StateReader::enter(std::string_view name) {
  const bool was_ok = !failed_;
  if (was_ok && enter() == name && !failed_) return true;
  failed_ = true;
  return false;
}

void StateReader::leave() {
  if (failed_ || ends_.empty()) {
    failed_ = true;
    return;
  }
  at_ = ends_.back();
  ends_.pop_back();
}

}  // namespace reflex

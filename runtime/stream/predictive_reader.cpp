// See the header. All scans stop at '\n' at the latest: it is no digit, it is a control character
// for strings, and no literal holds it.
#include "runtime/stream/predictive_reader.h"

#include <algorithm>

namespace reflex::stream {
namespace {

constexpr unsigned kMissesBeforeLearning = 2;  // Why: optional fields must not cause relearning

// Why: longer strings are free text, which is not interned.
constexpr size_t kNameBytesMax = 24;

uint64_t low_bytes(size_t count) {
  return count >= 8 ? ~uint64_t{0} : (uint64_t{1} << count * 8) - 1;
}

const char* skip_space(const char* p) {
  while (*p == ' ' || *p == '\t' || *p == '\r') ++p;
  return p;
}

}  // namespace

/// `{"key": ` or `, "key": `: returns the first byte of the value.
const char* PredictiveReader::read_key(const char* p, uint16_t& key) const {
  p = skip_space(p + 1);
  if (*p != '"') return nullptr;
  JsonValue name;
  p = scan_string(p + 1, name);
  if (p == nullptr) return nullptr;
  key = builder_->find_key(name.text);
  p = skip_space(p);
  if (*p != ':') return nullptr;
  return skip_space(p + 1);
}

const char* PredictiveReader::read(const char* p) {
  if (*p != '{') return nullptr;
  // The guessed literals that are left; empty when nothing is known.
  const Literal* guess = last_ == nullptr ? nullptr : last_->literals.data();
  const Literal* guess_end = last_ == nullptr ? nullptr : guess + last_->literals.size();
  bool missed = false;
  bool kind_known = false;
  count_ = 0;
  do {
    if (count_ == kMembersMax) return nullptr;
    JsonValue& member = members_[count_];
    const char* before = p;
    if (guess != guess_end && guess->matches(p)) {
      member.key = guess->key;
      p += guess->size;
    } else {
      missed = true;
      p = skip_space(p);
      if (*p != (count_ == 0 ? '{' : ',')) return nullptr;
      p = read_key(p, member.key);
      if (p == nullptr) return nullptr;
    }
    if (guess != guess_end) ++guess;
    between_[count_] = {before, static_cast<size_t>(p - before)};
    p = scan_value(p, member);
    if (p == nullptr) return nullptr;
    if (member.key >= kFirstFieldKey && member.type == JsonType::kString &&
        member.text.size() <= kNameBytesMax) {
      builder_->prefetch(member.text);
    }
    if (member.key == kKeyKind) {
      if (kind_known || member.type != JsonType::kString) return nullptr;
      kind_ = builder_->find_kind(member.text);
      if (kind_ == NameIndex::kAbsent) return nullptr;
      kind_known = true;
      kind_position_ = count_;
      const Template& own = templates_[kind_];
      const bool fits = own.kind_position == count_;
      guess = fits ? own.literals.data() + count_ + 1 : nullptr;
      guess_end = fits ? own.literals.data() + own.literals.size() : nullptr;
    }
    ++count_;
  } while (*p == ',' || *skip_space(p) != '}');
  if (!kind_known) return nullptr;
  const char* last_end = p;
  p = skip_space(skip_space(p) + 1);
  if (*p != '\n') return nullptr;
  after_ = {last_end, static_cast<size_t>(p + 1 - last_end)};
  Template& own = templates_[kind_];
  if (!missed) {
    own.misses = 0;
  } else if (own.literals.empty() || ++own.misses > kMissesBeforeLearning) {
    learn();
  }
  last_ = &own;
  return p + 1;
}

void PredictiveReader::learn() {
  Template& own = templates_[kind_];
  own.literals.assign(count_, {});
  own.kind_position = kind_position_;
  own.misses = 0;
  for (size_t i = 0; i < count_; ++i) {
    const std::string_view bytes = between_[i];
    Literal& literal = own.literals[i];
    if (bytes.size() > kLiteralMax) {  // never matches: such keys are always parsed
      own.literals.resize(i);
      if (kind_position_ >= i) own.kind_position = SIZE_MAX;
      return;
    }
    std::copy(bytes.begin(), bytes.end(), literal.bytes.begin());
    literal.size = static_cast<uint32_t>(bytes.size());
    literal.mask_low = low_bytes(bytes.size());
    literal.mask_high = bytes.size() <= 8 ? 0 : low_bytes(bytes.size() - 8);
    literal.key = members_[i].key;
  }
}

}  // namespace reflex::stream

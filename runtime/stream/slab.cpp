// Slab: growth, texts, arrays, deep copies.
#include "runtime/stream/slab.h"

#include <algorithm>

namespace reflex::stream {
namespace {
// Why: the first block holds a small batch; doubling up to 256 KiB keeps blocks below the size at
// which malloc goes to the kernel for every block.
constexpr size_t kFirstBlockBytes = 16u << 10;
constexpr size_t kBlockBytesMax = BlockPool::kBlockBytes;
}  // namespace

BlockPool::Block BlockPool::take() {
  {
    const std::lock_guard lock(mutex_);
    if (!free_.empty()) {
      Block block = std::move(free_.back());
      free_.pop_back();
      return block;
    }
  }
  return std::make_unique_for_overwrite<std::byte[]>(kBlockBytes);
}

void BlockPool::give(Block block) {
  const std::lock_guard lock(mutex_);
  if (free_.size() < kKeptMax) free_.push_back(std::move(block));
}

Slab::~Slab() {
  if (pool_ == nullptr) return;
  for (BlockPool::Block& block : blocks_) pool_->give(std::move(block));
}

void Slab::add_block(size_t bytes) {
  if (pool_ != nullptr) {
    const bool large = bytes > BlockPool::kBlockBytes;
    auto& blocks = large ? large_ : blocks_;
    blocks.push_back(large ? std::make_unique_for_overwrite<std::byte[]>(bytes) : pool_->take());
    begin_ = next_ = blocks.back().get();
    end_ = next_ + std::max(bytes, BlockPool::kBlockBytes);
    reserved_ += std::max(bytes, BlockPool::kBlockBytes);
    return;
  }
  const size_t doubled = kFirstBlockBytes << std::min<size_t>(blocks_.size(), 8);
  const size_t size = std::max(bytes, std::min(doubled, kBlockBytesMax));
  blocks_.push_back(std::make_unique_for_overwrite<std::byte[]>(size));
  begin_ = next_ = blocks_.back().get();
  end_ = next_ + size;
  reserved_ += size;
}

const abi::Text* Slab::new_text(std::string_view text) {
  auto* header = new (allocate(sizeof(abi::Text) + text.size())) abi::Text;
  header->size = static_cast<uint32_t>(text.size());
  std::memcpy(static_cast<void*>(header + 1), text.data(), text.size());
  return header;
}

const abi::IntArray* Slab::new_array(std::span<const int64_t> values) {
  auto* header = new (allocate(sizeof(abi::IntArray) + values.size_bytes())) abi::IntArray;
  header->count = static_cast<uint32_t>(values.size());
  std::memcpy(static_cast<void*>(header + 1), values.data(), values.size_bytes());
  return header;
}

abi::Record* Slab::clone(const abi::Record& record, const std::vector<abi::SlotForm>& forms) {
  abi::Record* copy = new_record(record.slot_count);
  *copy = record;
  std::memcpy(copy->slots(), record.slots(), record.slot_count * sizeof(uint64_t));
  if (record.id != nullptr) copy->id = new_text(record.id->view());
  for (unsigned slot = 0; slot < record.slot_count && slot < forms.size(); ++slot) {
    if (!record.has(slot)) continue;
    if (forms[slot] == abi::SlotForm::kText) {
      const abi::Text* text = new_text(record.text(slot)->view());
      copy->slots()[slot] = reinterpret_cast<uint64_t>(text);
    } else if (forms[slot] == abi::SlotForm::kArray) {
      const abi::IntArray* array = record.array(slot);
      copy->slots()[slot] = reinterpret_cast<uint64_t>(new_array({array->data(), array->count}));
    }
  }
  return copy;
}

abi::Record* Slab::add(const abi::RecordParts& parts) {
  abi::Record* record = new_record(parts.head.slot_count);
  *record = parts.head;
  if (parts.has_id) record->id = new_text(parts.id);
  for (unsigned slot = 0; slot < record->slot_count; ++slot) {
    if (!record->has(slot)) continue;
    const abi::RecordParts::Slot& from = parts.slots[slot];
    uint64_t bits = from.bits;
    switch (abi::slot_form(parts.schema->fields[slot].type)) {
      case abi::SlotForm::kText:
        bits = reinterpret_cast<uint64_t>(new_text(from.text));
        break;
      case abi::SlotForm::kArray:
        bits = reinterpret_cast<uint64_t>(new_array(from.items));
        break;
      default:
        break;
    }
    record->slots()[slot] = bits;
  }
  return record;
}

}  // namespace reflex::stream

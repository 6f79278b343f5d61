// Comparison of records that share a time stamp.
#include "runtime/stream/record_order.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace reflex::stream {
namespace {

template <typename T>
int three_way(const T& a, const T& b) {
  return a < b ? -1 : b < a ? 1 : 0;
}

uint64_t load_big_endian(const char* p) {
  uint64_t word;
  std::memcpy(&word, p, 8);
  return __builtin_bswap64(word);
}

}  // namespace

RecordOrder::RecordOrder(std::shared_ptr<const abi::CompiledPack> pack) : pack_(std::move(pack)) {
  std::vector<uint16_t> by_name(pack_->kinds.size());
  std::iota(by_name.begin(), by_name.end(), uint16_t{0});
  std::sort(by_name.begin(), by_name.end(),
            [this](uint16_t a, uint16_t b) { return pack_->kinds[a].name < pack_->kinds[b].name; });
  kind_rank_.resize(by_name.size());
  for (size_t rank = 0; rank < by_name.size(); ++rank) {
    kind_rank_[by_name[rank]] = static_cast<uint16_t>(rank);
  }
  for (const abi::KindSchema& kind : pack_->kinds) {
    std::vector<SlotOrder>& orders = slots_.emplace_back();
    for (const abi::FieldSchema& field : kind.fields) {
      const abi::Type& type = field.type;
      const bool named = type.scalar == abi::Scalar::kEnum ||
                         (type.scalar == abi::Scalar::kEntity && !type.gpu_index);
      SlotOrder order = named ? SlotOrder::kName : SlotOrder::kNumber;
      switch (abi::slot_form(type)) {
        case abi::SlotForm::kI64:
          break;
        case abi::SlotForm::kF64:
          order = SlotOrder::kReal;
          break;
        case abi::SlotForm::kText:
          order = SlotOrder::kText;
          break;
        case abi::SlotForm::kArray:
          order = kind.builtin ? SlotOrder::kNameArray : SlotOrder::kArray;
          break;
      }
      orders.push_back(order);
    }
  }
}

void RecordOrder::set_log(SymbolId source) {
  if (is_log_.size() <= source) is_log_.resize(source + 1);
  is_log_[source] = true;
}

void RecordOrder::save(StateWriter& writer) const {
  std::vector<std::string_view> logs;
  for (SymbolId id = 0; id < is_log_.size(); ++id) {
    if (is_log_[id]) logs.push_back(pack_->symbols->name(id));
  }
  std::sort(logs.begin(), logs.end());
  writer.u64(logs.size());
  for (const std::string_view log : logs) writer.text(log);
}

void RecordOrder::load(StateReader& reader) {
  for (size_t left = reader.count(); left > 0 && !reader.failed(); --left) {
    set_log(pack_->symbols->intern(reader.text()));
  }
}

std::string_view RecordOrder::name(SymbolId id) {
  if (id >= names_.size()) {
    names_.resize(std::max<size_t>(id + 1, names_.size() * 2));
    prefixes_.resize(names_.size());
  }
  if (names_[id].data() == nullptr) {
    names_[id] = pack_->symbols->name(id);
    char bytes[16] = {};
    std::memcpy(bytes, names_[id].data(), std::min<size_t>(names_[id].size(), sizeof bytes));
    prefixes_[id] = {load_big_endian(bytes), load_big_endian(bytes + 8)};
  }
  return names_[id];
}

int RecordOrder::compare_whole_names(SymbolId a, SymbolId b) { return name(a).compare(name(b)); }

int RecordOrder::compare_slot(SlotOrder order, const abi::Record& a, const abi::Record& b,
                              unsigned slot) {
  const bool has_a = a.has(slot);
  const bool has_b = b.has(slot);
  if (!has_a || !has_b) return static_cast<int>(has_a) - static_cast<int>(has_b);
  if (a.slots()[slot] == b.slots()[slot]) return 0;
  switch (order) {
    case SlotOrder::kNumber:
      return three_way(a.i64(slot), b.i64(slot));
    case SlotOrder::kName:
      return compare_names(static_cast<SymbolId>(a.i64(slot)), static_cast<SymbolId>(b.i64(slot)));
    case SlotOrder::kReal:
      if (a.f64(slot) == b.f64(slot)) return three_way(a.i64(slot), b.i64(slot));  // -0.0 and 0.0
      return three_way(a.f64(slot), b.f64(slot));
    case SlotOrder::kText:
      return a.text(slot)->view().compare(b.text(slot)->view());
    case SlotOrder::kArray:
    case SlotOrder::kNameArray:
      break;
  }
  const abi::IntArray& left = *a.array(slot);
  const abi::IntArray& right = *b.array(slot);
  for (uint32_t i = 0; i < std::min(left.count, right.count); ++i) {
    const int result = order == SlotOrder::kNameArray
                           ? compare_names(static_cast<SymbolId>(left.data()[i]),
                                           static_cast<SymbolId>(right.data()[i]))
                           : three_way(left.data()[i], right.data()[i]);
    if (result != 0) return result;
  }
  return three_way(left.count, right.count);
}

int RecordOrder::compare_ties(const abi::Record& a, const abi::Record& b) {
  if (const int result = compare_names(a.source, b.source); result != 0) return result;
  if (is_log(a.source) && a.seq != b.seq) {
    return three_way(a.seq, b.seq);
  }
  const std::string_view id_a = a.id == nullptr ? std::string_view() : a.id->view();
  const std::string_view id_b = b.id == nullptr ? std::string_view() : b.id->view();
  if (const int result = id_a.compare(id_b); result != 0) return result;
  if (a.kind != b.kind) return three_way(kind_rank_[a.kind], kind_rank_[b.kind]);
  const std::vector<SlotOrder>& orders = slots_[a.kind];
  for (unsigned slot = 0; slot < orders.size(); ++slot) {
    const int result = compare_slot(orders[slot], a, b, slot);
    if (result != 0) return result;
  }
  if (a.repeats != b.repeats) return three_way(a.repeats, b.repeats);
  return three_way(a.seq, b.seq);
}

}  // namespace reflex::stream

// Records of a compiled pack, by the names of kinds and fields; for tests of state.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "runtime/abi/compiled_pack.h"
#include "runtime/abi/record.h"
#include "runtime/base/time.h"
#include "runtime/eval/state_value.h"

namespace reflex::test {

using FieldValue = std::variant<int64_t, double, std::string, std::vector<int64_t>>;

class RecordFeed {
 public:
  /// `order`: of the first record, so that the records of several feeds make one total order.
  explicit RecordFeed(std::shared_ptr<const abi::CompiledPack> pack, uint64_t order = 1)
      : pack_(std::move(pack)), order_(order) {}

  void add(int64_t ts_ns, const std::string& kind,
           const std::vector<std::pair<std::string, FieldValue>>& fields) {
    for (size_t k = 0; k < pack_->kinds.size(); ++k) {
      if (pack_->kinds[k].name != kind) continue;
      const abi::KindSchema& schema = pack_->kinds[k];
      auto& words = memory_.emplace_back(sizeof(abi::Record) / 8 + schema.fields.size());
      auto* record = new (words.data()) abi::Record{};
      record->ts_ns = ts_ns;
      record->seq = record->order = order_++;
      record->kind = static_cast<uint16_t>(k);
      record->slot_count = static_cast<uint16_t>(schema.fields.size());
      record->source = pack_->symbols->intern("feed");
      for (const auto& [name, value] : fields) set(*record, schema, name, value);
      records_.push_back(record);
      return;
    }
    ADD_FAILURE() << "no kind " << kind;
  }

  [[nodiscard]] const std::vector<const abi::Record*>& records() const { return records_; }
  [[nodiscard]] uint64_t next_order() const { return order_; }

 private:
  void set(abi::Record& record, const abi::KindSchema& schema, const std::string& name,
           const FieldValue& value) {
    for (unsigned i = 0; i < schema.fields.size(); ++i) {
      if (schema.fields[i].name != name) continue;
      switch (eval::form_of(schema.fields[i].type)) {
        case eval::ValueForm::kSymbol:
          record.set_i64(i, pack_->symbols->intern(std::get<std::string>(value)));
          return;
        case eval::ValueForm::kInteger:
          record.set_i64(i, std::get<int64_t>(value));
          return;
        case eval::ValueForm::kReal:
          record.set_f64(i, std::get<double>(value));
          return;
        case eval::ValueForm::kText: {
          const auto& text = std::get<std::string>(value);
          auto& words = memory_.emplace_back((sizeof(abi::Text) + text.size() + 7) / 8);
          auto* copy = reinterpret_cast<abi::Text*>(words.data());
          copy->size = static_cast<uint32_t>(text.size());
          std::memcpy(copy + 1, text.data(), text.size());
          record.set_i64(i, static_cast<int64_t>(reinterpret_cast<uint64_t>(copy)));
          return;
        }
        case eval::ValueForm::kArray: {
          const auto& list = std::get<std::vector<int64_t>>(value);
          auto& words = memory_.emplace_back(1 + list.size());
          auto* copy = reinterpret_cast<abi::IntArray*>(words.data());
          copy->count = static_cast<uint32_t>(list.size());
          std::copy(list.begin(), list.end(), reinterpret_cast<int64_t*>(copy + 1));
          record.set_i64(i, static_cast<int64_t>(reinterpret_cast<uint64_t>(copy)));
          return;
        }
      }
    }
  }

  std::shared_ptr<const abi::CompiledPack> pack_;
  uint64_t order_;
  std::deque<std::vector<uint64_t>> memory_;
  std::vector<const abi::Record*> records_;
};

}  // namespace reflex::test

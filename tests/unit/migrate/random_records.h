// Random records of a compiled pack's kinds, drawn so that its predicates are true now and then:
// integers from the intervals that leaves ask for, words from the declared ones, texts and numbers
// from the constants of the IR.
#pragma once

#include <algorithm>
#include <random>

#include "compiler/driver/compile.h"
#include "tests/unit/migrate/record_feed.h"

namespace reflex::test {

class RandomRecords {
 public:
  RandomRecords(const compiler::Compilation& c, uint64_t seed)
      : compilation_(c), pack_(*c.pack), random_(seed) {
    for (const ir::Function& f : c.ir.functions) {
      for (const ir::Inst& inst : f.insts) {
        double v;
        std::memcpy(&v, &inst.imm, sizeof v);
        if (inst.rep == ir::Rep::kF64 && inst.imm != 0) reals_.push_back(v);
        if (inst.rep == ir::Rep::kI64 && inst.imm != 0) integers_.push_back(inst.imm);
      }
    }
    for (const auto& set : c.ir.sets) {
      integers_.insert(integers_.end(), set.values.begin(), set.values.end());
    }
    for (size_t k = 0; k < pack_.kinds.size(); ++k) {
      const bool heard = std::any_of(pack_.leaves.begin(), pack_.leaves.end(),
                                     [&](const abi::LeafPlan& l) { return l.kind == k; });
      if (heard) kinds_.push_back(static_cast<abi::KindId>(k));
    }
  }

  /// One record some time after the last one.
  void add(RecordFeed& feed, int64_t mean_gap_ns) {
    ts_ns_ += static_cast<int64_t>(below(static_cast<uint64_t>(2 * mean_gap_ns)));
    const abi::KindId kind = kinds_[below(kinds_.size())];
    std::vector<std::pair<std::string, FieldValue>> fields;
    for (unsigned i = 0; i < pack_.kinds[kind].fields.size(); ++i) {
      if (below(8) != 0) fields.emplace_back(pack_.kinds[kind].fields[i].name, value(kind, i));
    }
    feed.add(ts_ns_, pack_.kinds[kind].name, fields);
  }
  [[nodiscard]] int64_t now_ns() const { return ts_ns_; }

 private:
  uint64_t below(uint64_t n) { return n == 0 ? 0 : random_() % n; }

  int64_t integer(abi::KindId kind, unsigned slot) {
    std::vector<int64_t> wanted;
    for (const abi::LeafPlan& leaf : pack_.leaves) {
      if (leaf.kind != kind) continue;
      for (const auto& constraint : leaf.constraints) {
        if (constraint.slot != slot) continue;
        for (const auto& interval : constraint.intervals) wanted.push_back(interval.lo);
      }
    }
    if (!wanted.empty() && below(5) != 0) return wanted[below(wanted.size())];
    if (!integers_.empty() && below(2) != 0) return integers_[below(integers_.size())];
    return static_cast<int64_t>(below(4));
  }

  FieldValue value(abi::KindId kind, unsigned slot) {
    const abi::Type& type = pack_.kinds[kind].fields[slot].type;
    switch (eval::form_of(type)) {
      case eval::ValueForm::kSymbol:
        if (type.scalar == abi::Scalar::kEnum && !pack_.enums[type.enum_id].words.empty()) {
          const auto& words = pack_.enums[type.enum_id].words;
          return words[below(words.size())];
        }
        return "e" + std::to_string(below(6));
      case eval::ValueForm::kReal: {
        if (reals_.empty() || below(4) == 0) return static_cast<double>(below(100));
        return reals_[below(reals_.size())] * (below(2) == 0 ? 1.01 : 0.99);
      }
      case eval::ValueForm::kText: {
        const auto& texts = compilation_.ir.texts;
        return texts.empty() || below(2) == 0 ? "text " + std::to_string(below(3))
                                              : texts[below(texts.size())];
      }
      case eval::ValueForm::kArray:
        return std::vector<int64_t>{static_cast<int64_t>(below(9)), 7};
      case eval::ValueForm::kInteger:
        break;
    }
    if (type.gpu_index) return static_cast<int64_t>(below(2));
    if (type.scalar == abi::Scalar::kBool) return static_cast<int64_t>(below(2));
    return integer(kind, slot);
  }

  const compiler::Compilation& compilation_;
  const abi::CompiledPack& pack_;
  std::mt19937_64 random_;
  std::vector<double> reals_;
  std::vector<int64_t> integers_;
  std::vector<abi::KindId> kinds_;
  int64_t ts_ns_ = 1'700'000'000 * kNsPerSecond;
};

}  // namespace reflex::test

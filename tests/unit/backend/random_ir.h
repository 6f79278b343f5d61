// Test support: random well-typed IR over a fixed world of slots, and random records and contexts
// of that world with missing fields, unknown values of garbage bits and extreme numbers.
//
// World: slots and captures 0-3 i64, 4-6 f64, 7 bool, 8-9 text, 10-11 array; features and table
// 0-3 f64, 4-5 i64; parameters 0 i64, 1 f64, 2 bool, 3 text. Seeds replay.
#pragma once

#include <array>
#include <map>
#include <random>

#include "tests/unit/backend/ir_builder.h"

namespace reflex::testing {

inline constexpr unsigned kSlots = 12;
inline constexpr unsigned kFeatures = 6;
inline constexpr unsigned kParams = 4;

/// A module's constant tables that reach every way in which sets and patterns are compiled.
ir::Module world_module();
/// Classes with different parameters, some of them unset. Text parameters stay in the context.
std::vector<abi::ClassPlan> world_classes();
std::shared_ptr<SymbolTable> world_symbols();

class RandomIr {
 public:
  explicit RandomIr(uint64_t seed) : rng_(seed) {}
  /// A well-formed function whose result is `want` (or anything when `any`).
  ir::Function function(const std::string& name, bool predicate);
  [[nodiscard]] const std::map<ir::Op, int>& uses() const { return uses_; }

 private:
  bool try_add(ir::Op op);
  bool add(ir::Op op, ir::Rep rep, std::initializer_list<ir::Rep> operands, uint32_t index = 0,
           int64_t imm = 0);
  bool try_leaf(ir::Op op);
  bool try_numeric(ir::Op op);
  bool try_call(ir::Op op);
  uint64_t below(uint64_t n) { return rng_() % n; }
  int64_t integer();
  ir::Rep any_rep() { return static_cast<ir::Rep>(below(5)); }
  ir::Rep number() { return below(2) == 0 ? ir::Rep::kI64 : ir::Rep::kF64; }

  std::mt19937_64 rng_;
  std::vector<ir::Inst> insts_;
  std::map<ir::Op, int> uses_;
};

/// One random event with its context. Not movable: the context points into it.
class World {
 public:
  explicit World(uint64_t seed);
  World(const World&) = delete;
  [[nodiscard]] const abi::Record* record() { return record_.get(); }
  [[nodiscard]] const abi::EvalContext* context() const { return &context_; }

 private:
  abi::Value value(ir::Rep rep);
  std::mt19937_64 rng_;
  RecordBox record_{kSlots};
  std::vector<std::unique_ptr<TextBox>> texts_;
  std::vector<std::unique_ptr<ArrayBox>> arrays_;
  std::array<abi::Value, kSlots> captures_;
  std::array<abi::Value, kFeatures> features_;
  std::array<abi::Value, kFeatures> table_;
  std::array<abi::Value, kParams> params_;
  abi::EvalContext context_;
};

int64_t random_integer(std::mt19937_64& rng);
double random_real(std::mt19937_64& rng);
ir::Rep slot_rep(unsigned slot);
ir::Rep feature_rep(unsigned feature);
ir::Rep param_rep(unsigned param);

}  // namespace reflex::testing

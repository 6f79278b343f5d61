// Prefixes of watched functions, run by the reference interpreter; see recording.h.
#include "compiler/backend/interp/recording.h"

#include <deque>

namespace reflex::backend {
namespace {

/// The type under which a prefix is compiled: only its machine form matters.
abi::Type type_of(ir::Rep rep) {
  abi::Type type;
  switch (rep) {
    case ir::Rep::kBool:
      type.scalar = abi::Scalar::kBool;
      break;
    case ir::Rep::kI64:
      type.scalar = abi::Scalar::kInt;
      break;
    case ir::Rep::kF64:
      type.scalar = abi::Scalar::kReal;
      break;
    case ir::Rep::kText:
      type.scalar = abi::Scalar::kString;
      break;
    case ir::Rep::kArray:
      type.scalar = abi::Scalar::kArray;
      break;
  }
  return type;
}

struct Watched {
  abi::ExprId expr = 0;
  Recorder* recorder = nullptr;
  abi::Evaluator whole;
  std::vector<abi::Evaluator> prefixes;  // [instruction]
  std::vector<uint8_t> is_bool;          // parallel: answers by truth, not by *out
};

abi::Value value_of(const abi::Evaluator& code, bool is_bool, const abi::Record* record,
                    const abi::EvalContext* context) {
  uint64_t out = 0;
  const uint32_t truth = code(record, context, &out);
  if (truth == abi::kUnknown) return abi::Value::unknown();
  return {is_bool ? uint64_t{truth == abi::kTrue} : out, 1};
}

uint32_t run_watched(const void* self, const abi::Record* record, const abi::EvalContext* context,
                     uint64_t* out) {
  const auto* w = static_cast<const Watched*>(self);
  if (w->recorder->wants(w->expr, record, context)) {
    std::vector<abi::Value> values;
    values.reserve(w->prefixes.size());
    for (size_t i = 0; i < w->prefixes.size(); ++i) {
      values.push_back(value_of(w->prefixes[i], w->is_bool[i] != 0, record, context));
    }
    w->recorder->evaluated(w->expr, record, context, values);
  }
  return w->whole(record, context, out);
}

class RecordingSet final : public abi::EvaluatorSet {
 public:
  RecordingSet(std::shared_ptr<const abi::EvaluatorSet> inner, size_t class_count)
      : inner_(std::move(inner)), class_count_(class_count) {}

  void watch(abi::ExprId expr, const ir::Function& function, abi::ExprId first_prefix,
             Recorder& recorder) {
    for (size_t c = 0; c < class_count_; ++c) {
      Watched w;
      w.expr = expr;
      w.recorder = &recorder;
      w.whole = inner_->expr(expr, static_cast<abi::ClassId>(c));
      for (size_t i = 0; i < function.insts.size(); ++i) {
        w.prefixes.push_back(
            inner_->expr(first_prefix + static_cast<abi::ExprId>(i), static_cast<abi::ClassId>(c)));
        w.is_bool.push_back(function.insts[i].rep == ir::Rep::kBool);
      }
      watched_.push_back(std::move(w));
    }
    const size_t first = watched_.size() - class_count_;
    if (expr >= at_.size()) at_.resize(expr + 1, kNotWatched);
    at_[expr] = first;
  }

  [[nodiscard]] abi::Evaluator expr(abi::ExprId id, abi::ClassId hw_class) const override {
    if (id >= at_.size() || at_[id] == kNotWatched) return inner_->expr(id, hw_class);
    return {&run_watched, &watched_[at_[id] + hw_class]};
  }
  [[nodiscard]] abi::ChunkEvaluator chunk(uint32_t id, abi::ClassId hw_class) const override {
    return inner_->chunk(id, hw_class);
  }
  [[nodiscard]] std::string_view backend() const override { return "interp"; }

 private:
  static constexpr size_t kNotWatched = SIZE_MAX;
  std::shared_ptr<const abi::EvaluatorSet> inner_;
  size_t class_count_;
  std::deque<Watched> watched_;  // addresses are handed out
  std::vector<size_t> at_;       // [ExprId] first in watched_, by class
};

}  // namespace

Result<std::shared_ptr<const abi::EvaluatorSet>> make_recording(
    const CodegenInput& input, const std::vector<abi::ExprId>& watched, Recorder& recorder) {
  auto module = std::make_shared<ir::Module>(*input.ir);
  abi::CompiledPack plans = *input.plans;
  std::vector<abi::ExprId> first_prefix;
  for (const abi::ExprId e : watched) {
    first_prefix.push_back(static_cast<abi::ExprId>(module->functions.size()));
    const ir::Function whole = module->functions[e];  // a copy: functions grows below
    for (size_t i = 0; i < whole.insts.size(); ++i) {
      ir::Function prefix;
      prefix.name = whole.name + "#" + std::to_string(i);
      prefix.insts.assign(whole.insts.begin(), whole.insts.begin() + i + 1);
      prefix.type = type_of(whole.insts[i].rep);
      module->functions.push_back(std::move(prefix));
      abi::ExprInfo info = plans.exprs[e];
      info.type = module->functions.back().type;
      plans.exprs.push_back(std::move(info));
    }
  }
  CodegenInput extended = input;
  extended.ir = module;
  extended.plans = &plans;
  auto inner = make_interp(extended);
  if (!inner) return Error(inner.error());
  auto set = std::make_shared<RecordingSet>(std::move(inner).value(),
                                            std::max<size_t>(plans.classes.size(), 1));
  for (size_t i = 0; i < watched.size(); ++i) {
    set->watch(watched[i], module->functions[watched[i]], first_prefix[i], recorder);
  }
  return std::shared_ptr<const abi::EvaluatorSet>(std::move(set));
}

}  // namespace reflex::backend

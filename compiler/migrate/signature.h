// Signatures: what a signal or feature of one compilation is, as text that another one's can be
// held against. Numbers of slots, features, parameters and sets are replaced by what they stand
// for.
//
// Contract: two compilations that share a SymbolTable give equal signatures for equal meaning.
// kShape leaves out what may change without loss of state: constants, sets, texts, windows.
#pragma once

#include <functional>
#include <string>

#include "compiler/ir/ir.h"
#include "runtime/abi/compiled_pack.h"

namespace reflex::migrate {

/// One side of a comparison; both outlive the calls.
struct Side {
  const abi::CompiledPack& pack;
  const ir::Module& ir;
};

enum class Detail : uint8_t { kShape, kExact };

std::string signal_signature(const Side& side, abi::SignalId signal, Detail detail);
std::string feature_signature(const Side& side, abi::FeatureId feature, Detail detail);
/// What decides which nodes are of a class; not what it says of them.
std::string binding_signature(const Side& side, abi::ClassId hw_class);
/// "(node, gpu)"
std::string entity_text(const abi::CompiledPack& pack, abi::EntityKindId kind);

/// Fills SignalPlan::state, FeaturePlan::state and ClassPlan::binding; `hash` makes a signature
/// short.
void describe_states(abi::CompiledPack& pack, const ir::Module& ir,
                     const std::function<std::string(const std::string&)>& hash);

}  // namespace reflex::migrate

// Values of the engine in words and JSON: entities, parameters of classes, where thresholds come
// from.
#pragma once

#include <string>

#include "runtime/abi/compiled_pack.h"
#include "runtime/abi/firing.h"
#include "runtime/abi/table.h"
#include "runtime/adapt/thresholds.h"
#include "runtime/serve/http/exchange.h"

namespace reflex::serve {

/// null when it is no finite number.
Json number_json(double value);
/// "n3", "n3/5", "n3/0000:3b:00".
std::string entity_words(const abi::CompiledPack& pack, const abi::EntityKey& entity);
/// A class with every parameter that it has: value in force, unit, origin; of adaptive ones also
/// the settings and the baseline of the class as (quantile, value) pairs.
Json class_json(const adapt::Thresholds& thresholds, const abi::TableSnapshot& tables,
                const abi::CompiledPack& pack, abi::ClassId hw_class);
/// The value of an adaptive parameter as a number: durations in seconds.
double adaptive_number(const abi::CompiledPack& pack, abi::AdaptiveId adaptive,
                       const abi::Value& value);
/// "class", "node", "parent" (profile), "fleet", "profile" (its default).
std::string_view origin_word(abi::TableOrigin::From from);

}  // namespace reflex::serve

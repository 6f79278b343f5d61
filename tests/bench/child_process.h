// Runs one measurement in a process of its own, pinned to given CPUs; parses "name value" pairs.
//
// Why a process each: no measurement warms caches, heap or JIT of another, and the hand-written
// engines are programs anyway. The pairs are what those programs print on stderr.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "runtime/base/result.h"

namespace reflex::bench {

using Pairs = std::map<std::string, std::string>;

/// Output (stdout and stderr together) must be "name value name value ..."; a non-zero exit is an
/// Error that holds the output.
Result<Pairs> run_child(const std::vector<std::string>& command, unsigned cpu_count);

double number(const Pairs& pairs, const std::string& name);  // NaN when absent

}  // namespace reflex::bench

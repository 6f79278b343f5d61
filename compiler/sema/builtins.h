// The functions of the language as data: what they are, and an example that runs.
//
// Contract: builtins.def documents; `known_functions` is what the checker itself resolves. A test
// holds the two against each other, so that a function cannot be added without its documentation.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace reflex::sema {

struct FunctionDoc {
  std::string_view name;
  std::string_view signature;
  std::string_view meaning;
  std::string_view unknown_when;
  std::string_view body;    // of a signal on node that must fire on n1 ..
  std::string_view events;  // .. in a test of these statements
};

/// In the order of the reference.
const std::vector<FunctionDoc>& function_docs();

/// Sorted; a name that is a value function and a feature function is there twice (min, max).
std::vector<std::string> known_functions();

// The two tables behind known_functions (check_call.cpp, lower_feature.cpp).
void add_value_functions(std::vector<std::string>& names);
void add_feature_functions(std::vector<std::string>& names);

}  // namespace reflex::sema

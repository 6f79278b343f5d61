// The rows of builtins.def; see builtins.h.
#include "compiler/sema/builtins.h"

#include <algorithm>

namespace reflex::sema {

const std::vector<FunctionDoc>& function_docs() {
  static const std::vector<FunctionDoc> kTable = {
#define RFX_FUNCTION(name, signature, meaning, unknown_when, body, events) \
  FunctionDoc{name, signature, meaning, unknown_when, body, events},
#include "compiler/sema/builtins.def"
#undef RFX_FUNCTION
  };
  return kTable;
}

std::vector<std::string> known_functions() {
  std::vector<std::string> names;
  add_value_functions(names);
  add_feature_functions(names);
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace reflex::sema

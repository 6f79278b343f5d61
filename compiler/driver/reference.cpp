// Markdown of the tables; see reference.h.
#include "compiler/driver/reference.h"

#include <algorithm>

#include "compiler/diag/help_page.h"
#include "compiler/sema/builtins.h"

namespace reflex::compiler {
namespace {

constexpr std::string_view kHead = R"(# Functions

Generated from `compiler/sema/builtins.def` by `reflex help --reference builtins`; a test compares.
All blocks marked `rfx`, joined in order, are one pack that compiles and whose tests pass:

    mkdir /tmp/fn
    awk '/^```rfx/{f=1;next} /^```/{f=0} f' grammar/BUILTINS.md > /tmp/fn/pack.rfx
    reflex test /tmp/fn

`k` is an event kind, `k.f` a field of it, `D` a duration. Whatever is unknown makes the result
unknown, but for `missing` and `or_else`. Macros of packs are called in the same way. Which
functions may stand where: LANGUAGE.md sections 4 and 11.

```rfx
pack ref.functions 1.0.0
event sample {
  key node: node
  value: f64  up: bool?  word: word?  text: string?  level: u16?  nums: array<u32, 4>?
}
event tick { key node: node  counter total: u64 }
```
)";

/// `mean`, and for the second of its name `mean_2`: signals and tests need different names.
std::string example_name(const sema::FunctionDoc& doc) {
  size_t before = 0;
  for (const sema::FunctionDoc& other : sema::function_docs()) {
    if (&other == &doc) break;
    before += other.name == doc.name ? 1 : 0;
  }
  return std::string(doc.name) + (before == 0 ? "" : "_" + std::to_string(before + 1));
}

std::string indented(std::string_view lines) {
  std::string out = "  ";
  for (const char c : lines) {
    out += c;
    if (c == '\n') out += "  ";
  }
  return out + "\n";
}

std::string cell(std::string_view text) {
  std::string out;
  for (const char c : text) out += c == '|' ? std::string("\\|") : std::string(1, c);
  return out;
}

}  // namespace

std::string builtins_reference() {
  std::string out(kHead);
  out += "\n| function | value | unknown when |\n|---|---|---|\n";
  for (const sema::FunctionDoc& doc : sema::function_docs()) {
    out += "| `" + cell(doc.signature) + "` | " + cell(doc.meaning) + " | " +
           cell(doc.unknown_when) + " |\n";
  }
  for (const sema::FunctionDoc& doc : sema::function_docs()) {
    const std::string name = example_name(doc);
    out += "\n## " + std::string(doc.signature) + "\n\n```rfx\n";
    out += "signal uses_" + name + " on node { " + std::string(doc.body) + " }\n";
    out += "test \"" + name + "\" {\n" + indented(doc.events) + "  expect uses_" + name +
           " on n1\n}\n```\n";
  }
  return out;
}

std::string diagnostics_reference() { return diag::diagnostics_reference(); }

}  // namespace reflex::compiler

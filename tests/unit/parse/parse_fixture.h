// What the parse tests share: text in, module and diagnostics out.
#pragma once

#include <string>
#include <vector>

#include "compiler/ast/ast.h"
#include "compiler/diag/diagnostic.h"
#include "compiler/parse/parse.h"
#include "compiler/source/source_map.h"

namespace reflex::parse_test {

struct Parsed {
  source::SourceMap map;
  diag::Sink sink;
  ast::Module module;

  explicit Parsed(const std::string& text, const parse::Limits& limits = {}) {
    const source::FileId file = map.add("t.rfx", text);
    module = parse::parse(map, file, limits, sink);
  }
  [[nodiscard]] std::string errors() const { return diag::render_text(sink.sorted(), map, {}); }
  [[nodiscard]] std::string printed() const { return ast::print(module); }
};

}  // namespace reflex::parse_test

// What stands before the cursor, read off the tokens alone: the text is broken while it is typed.
#pragma once

#include <string>
#include <vector>

#include "compiler/lsp/workspace.h"
#include "compiler/parse/lex.h"

namespace reflex::lsp {

struct Around {
  FileId file = 0;
  uint32_t begin = 0;    // of the declaration
  uint32_t replace = 0;  // where the word under the cursor begins (behind the last dot)
  std::string base;      // "gpu.temp" of "gpu.temp.va|"
  bool in_text = false;
  bool in_comment = false;
  std::string text_before;                 // of the string up to the cursor
  std::vector<parse::EditorToken> before;  // of the declaration, up to the dotted word
  std::string declaration;                 // its keyword: "signal", "test", ..
  SymbolId record = kNoSymbol;             // kind that `it` stands for
  std::vector<std::pair<std::string, SymbolId>> variables;
  sema::PackIndex pack = 0;

  /// The text of the n-th token before the cursor, 1 = the last; "" when there is none.
  [[nodiscard]] std::string last(size_t n = 1) const;
  [[nodiscard]] bool has(std::string_view word) const;
  /// The dotted path that ends with the n-th last token.
  [[nodiscard]] std::string path_at(size_t n = 1) const;
  /// The kind of the statement that is written: of a test event or the assignments of a decoder.
  [[nodiscard]] SymbolId statement_kind(const Index& index) const;
};

Around around(Workspace& w, FileId file, uint32_t offset);

}  // namespace reflex::lsp

// The requests of LSP 3.17 that the server answers, one function each, one subject a file.
//
// Contract: `params` is what the client sent and may be anything; what a request cannot do without
// is asked through the getters below, which throw RequestError. The answer is the `result` of the
// response. Only the server calls these; no exception leaves the server.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include "compiler/lsp/rpc.h"
#include "compiler/lsp/workspace.h"

namespace reflex::lsp {

struct RequestError : std::runtime_error {
  RequestError(int error_code, const std::string& message)
      : std::runtime_error(message), code(error_code) {}
  int code;
};

// ---- getters (params.cpp)
const Json& member(const Json& object, const char* name);  // null when there is none
std::string text_of(const Json& object, const char* name);
std::string uri_of_params(const Json& params);
Position position_of(const Json& json);
Range range_of(const Json& json);
struct Place {
  FileId file = 0;
  uint32_t offset = 0;
};
/// The file of `textDocument`. Throws when the server does not know it.
FileId file_of_params(const Workspace& w, const Json& params);
Place place_of_params(Workspace& w, const Json& params);
Json to_json(Position position);
Json to_json(Range range);
Json range_json(Workspace& w, Span span);
Json location(Workspace& w, Span span);
Json markdown(const std::string& text);

// ---- what a symbol is, as Markdown (describe.cpp)
std::string describe(Workspace& w, SymbolId id);
/// "83 celsius" of one class, with the profile or overlay that says so.
struct ClassValue {
  std::string profile;
  std::string value;
  std::string from;
};
std::vector<ClassValue> class_values(Workspace& w, const std::string& parameter);
std::string type_text(const Workspace& w, const Symbol& field);

// ---- requests
Json hover(Workspace& w, const Json& params);
Json completion(Workspace& w, const Json& params);
Json signature_help(Workspace& w, const Json& params);
Json definition(Workspace& w, const Json& params);
Json references(Workspace& w, const Json& params);
Json document_highlight(Workspace& w, const Json& params);
Json prepare_rename(Workspace& w, const Json& params);
Json rename(Workspace& w, const Json& params);
Json document_symbols(Workspace& w, const Json& params);
Json workspace_symbols(Workspace& w, const Json& params);
Json formatting(Workspace& w, const Json& params);
Json range_formatting(Workspace& w, const Json& params);
Json semantic_tokens(Workspace& w, const Json& params);
Json semantic_tokens_range(Workspace& w, const Json& params);
Json semantic_legend();
Json code_actions(Workspace& w, const Json& params);
Json folding_ranges(Workspace& w, const Json& params);
Json inlay_hints(Workspace& w, const Json& params);
Json code_lenses(Workspace& w, const Json& params);
Json prepare_call_hierarchy(Workspace& w, const Json& params);
Json incoming_calls(Workspace& w, const Json& params);
Json outgoing_calls(Workspace& w, const Json& params);
/// One diagnostic of the compiler as LSP has it.
Json diagnostic_json(Workspace& w, const diag::Diagnostic& d);

}  // namespace reflex::lsp

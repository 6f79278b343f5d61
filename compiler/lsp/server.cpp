// Life cycle, notifications and diagnostics of the server; see server.h.
#include "compiler/lsp/server.h"

#include <algorithm>
#include <map>

#include "compiler/lsp/requests.h"
#include "compiler/lsp/uri.h"

namespace reflex::lsp {
namespace {

Json capabilities() {
  return {
      {"positionEncoding", "utf-16"},
      {"textDocumentSync", {{"openClose", true}, {"change", 2}, {"save", true}}},
      {"hoverProvider", true},
      {"completionProvider", {{"triggerCharacters", {".", " ", ":", "[", "{"}}}},
      {"signatureHelpProvider", {{"triggerCharacters", {"(", ","}}}},
      {"definitionProvider", true},
      {"referencesProvider", true},
      {"documentHighlightProvider", true},
      {"documentSymbolProvider", true},
      {"workspaceSymbolProvider", true},
      {"codeActionProvider", {{"codeActionKinds", {"quickfix", "source.fixAll"}}}},
      {"codeLensProvider", Json::object()},
      {"documentFormattingProvider", true},
      {"documentRangeFormattingProvider", true},
      {"renameProvider", {{"prepareProvider", true}}},
      {"foldingRangeProvider", true},
      {"callHierarchyProvider", true},
      {"inlayHintProvider", true},
      {"semanticTokensProvider", {{"legend", semantic_legend()}, {"full", true}, {"range", true}}},
      {"executeCommandProvider", {{"commands", {"reflex.runTest", "reflex.runTests"}}}},
      {"workspace", {{"workspaceFolders", {{"supported", true}, {"changeNotifications", true}}}}}};
}

using Handler = Json (*)(Workspace&, const Json&);

const std::map<std::string, Handler>& handlers() {
  static const std::map<std::string, Handler> kTable{
      {"textDocument/hover", hover},
      {"textDocument/completion", completion},
      {"textDocument/signatureHelp", signature_help},
      {"textDocument/definition", definition},
      {"textDocument/references", references},
      {"textDocument/documentHighlight", document_highlight},
      {"textDocument/prepareRename", prepare_rename},
      {"textDocument/rename", rename},
      {"textDocument/documentSymbol", document_symbols},
      {"workspace/symbol", workspace_symbols},
      {"textDocument/formatting", formatting},
      {"textDocument/rangeFormatting", range_formatting},
      {"textDocument/semanticTokens/full", semantic_tokens},
      {"textDocument/semanticTokens/range", semantic_tokens_range},
      {"textDocument/codeAction", code_actions},
      {"textDocument/foldingRange", folding_ranges},
      {"textDocument/inlayHint", inlay_hints},
      {"textDocument/codeLens", code_lenses},
      {"textDocument/prepareCallHierarchy", prepare_call_hierarchy},
      {"callHierarchy/incomingCalls", incoming_calls},
      {"callHierarchy/outgoingCalls", outgoing_calls}};
  return kTable;
}

bool is_id(const Json& id) { return id.is_string() || id.is_number_integer(); }

}  // namespace

Server::Server(Hooks hooks, std::string version, Send send)
    : hooks_(std::move(hooks)), version_(std::move(version)), send_(std::move(send)) {}

void Server::handle_body(const std::string& body) {
  const Json message = Json::parse(body, nullptr, /*allow_exceptions=*/false);
  if (message.is_discarded()) {
    send_(error_response(nullptr, kParseError, "the message is not JSON"));
    return;
  }
  if (message.is_array()) {  // a batch of JSON-RPC: LSP has none, but each has its answer
    for (const Json& one : message) handle(one);
    return;
  }
  handle(message);
}

void Server::refuse_body() {
  send_(error_response(nullptr, kInvalidRequest, "the message is too long"));
}

void Server::cancelled(const Json& id) {
  if (is_id(id)) send_(error_response(id, kRequestCancelled, "cancelled"));
}

void Server::handle(const Json& message) {
  const Json& method = member(message, "method");
  const Json& id = member(message, "id");
  const bool wants_answer = is_id(id);
  if (!method.is_string()) {
    const bool is_response = message.is_object() && wants_answer &&
                             (message.contains("result") || message.contains("error"));
    if (!is_response) {
      send_(error_response(wants_answer ? id : Json(nullptr), kInvalidRequest,
                           "no method: this is no request"));
    }
    return;
  }
  const std::string name = method.get<std::string>();
  const Json& params = member(message, "params");
  try {
    if (wants_answer) {
      send_(response(id, request(name, params)));
    } else {
      notify(name, params);
    }
  } catch (const RequestError& e) {
    if (wants_answer) {
      send_(error_response(id, e.code, e.what()));
    } else {
      log(name + ": " + e.what());
    }
  } catch (const std::exception& e) {
    if (wants_answer) {
      send_(error_response(id, kInternalError, std::string("internal error: ") + e.what()));
    } else {
      log(name + ": internal error: " + e.what());
    }
  }
}

Json Server::request(const std::string& method, const Json& params) {
  if (method == "initialize") {
    if (state_ != State::kNew) throw RequestError(kInvalidRequest, "initialize comes once");
    return initialize(params);
  }
  if (state_ == State::kNew) throw RequestError(kServerNotInitialized, "initialize comes first");
  if (state_ == State::kShutDown) throw RequestError(kInvalidRequest, "the server is shut down");
  if (method == "shutdown") {
    state_ = State::kShutDown;
    due_.reset();
    return nullptr;
  }
  if (method == "workspace/executeCommand") return execute(params);
  const auto handler = handlers().find(method);
  if (handler == handlers().end()) {
    throw RequestError(kMethodNotFound, "no method '" + method + "'");
  }
  return handler->second(workspace_, params);
}

Json Server::initialize(const Json& params) {
  const Json& folders = member(params, "workspaceFolders");
  if (folders.is_array()) {
    for (const Json& folder : folders) {
      if (const auto path = path_of_uri(text_of(folder, "uri"))) roots_.push_back(*path);
    }
  }
  const Json& root = member(params, "rootUri");
  if (roots_.empty() && root.is_string()) {
    if (const auto path = path_of_uri(root.get<std::string>())) roots_.push_back(*path);
  }
  configure(member(params, "initializationOptions"));
  const Json& watch =
      member(member(member(params, "capabilities"), "workspace"), "didChangeWatchedFiles");
  const Json& dynamic = member(watch, "dynamicRegistration");
  can_register_ = dynamic.is_boolean() && dynamic.get<bool>();
  state_ = State::kRunning;
  workspace_.set_roots(roots_, paths_);
  return {{"capabilities", capabilities()},
          {"serverInfo", {{"name", "reflex"}, {"version", version_}}}};
}

void Server::register_watcher() {
  const Json watchers = Json::array({{{"globPattern", "**/*.rfx"}}});
  send_({{"jsonrpc", "2.0"},
         {"id", "reflex-" + std::to_string(next_id_++)},
         {"method", "client/registerCapability"},
         {"params",
          {{"registrations", Json::array({{{"id", "reflex-files"},
                                           {"method", "workspace/didChangeWatchedFiles"},
                                           {"registerOptions", {{"watchers", watchers}}}}})}}}});
}

/// `{"paths": ["rules", "hwprofiles"]}`: the folders of each root that are packs.
void Server::configure(const Json& settings) {
  const Json& own = member(settings, "reflex");
  const Json& paths = member(own.is_object() ? own : settings, "paths");
  if (!paths.is_array()) return;
  paths_.clear();
  for (const Json& path : paths) {
    if (path.is_string()) paths_.push_back(path.get<std::string>());
  }
}

void Server::notify(const std::string& method, const Json& params) {
  if (method == "exit") {
    exit_code_ = state_ == State::kShutDown ? 0 : 1;
    return;
  }
  if (state_ != State::kRunning) return;  // LSP: dropped before initialize and after shutdown
  if (method == "initialized") {
    if (can_register_) register_watcher();
    schedule();
  } else if (method == "textDocument/didOpen") {
    did_open(params);
  } else if (method == "textDocument/didChange") {
    did_change(params);
  } else if (method == "textDocument/didClose") {
    workspace_.close(uri_of_params(params));
    schedule();
  } else if (method == "textDocument/didSave") {
    schedule();
  } else if (method == "workspace/didChangeWatchedFiles") {
    did_change_watched(params);
  } else if (method == "workspace/didChangeWorkspaceFolders") {
    did_change_folders(params);
  } else if (method == "workspace/didChangeConfiguration") {
    configure(member(params, "settings"));
    workspace_.set_roots(roots_, paths_);
    schedule();
  }
  // Whatever else a client tells (`$/setTrace`, `$/cancelRequest` that came too late) needs
  // nothing.
}

void Server::did_open(const Json& params) {
  const Json& document = member(params, "textDocument");
  const Json& version = member(document, "version");
  workspace_.open(text_of(document, "uri"), text_of(document, "text"),
                  version.is_number_integer() ? version.get<int64_t>() : 0);
  schedule();
}

void Server::did_change(const Json& params) {
  const std::string uri = uri_of_params(params);
  const Workspace::Document* document = workspace_.document(uri);
  if (document == nullptr) throw RequestError(kInvalidParams, "the document is not open: " + uri);
  const Json& version = member(member(params, "textDocument"), "version");
  std::string text = document->text;
  const Json& changes = member(params, "contentChanges");
  if (!changes.is_array()) throw RequestError(kInvalidParams, "'contentChanges' must be a list");
  for (const Json& change : changes) {
    std::string now = text_of(change, "text");
    if (member(change, "range").is_null()) {
      text = std::move(now);
      continue;
    }
    const Range range = range_of(member(change, "range"));
    const TextLines lines(text);
    const uint32_t begin = lines.offset(range.start);
    const uint32_t end = std::max(begin, lines.offset(range.end));
    text.replace(begin, end - begin, now);
  }
  workspace_.change(uri, std::move(text), version.is_number_integer() ? version.get<int64_t>() : 0);
  schedule();
}

void Server::did_change_watched(const Json& params) {
  const Json& changes = member(params, "changes");
  if (!changes.is_array()) throw RequestError(kInvalidParams, "'changes' must be a list");
  for (const Json& change : changes) {
    if (const auto path = path_of_uri(text_of(change, "uri"))) workspace_.refresh(*path);
  }
  // A folder that came or went is told as one entry by some clients.
  workspace_.rescan();
  schedule();
}

void Server::did_change_folders(const Json& params) {
  const Json& event = member(params, "event");
  const Json& removed = member(event, "removed");
  const Json& added = member(event, "added");
  for (const Json& folder : removed.is_array() ? removed : Json::array()) {
    const auto path = path_of_uri(text_of(folder, "uri"));
    if (path) roots_.erase(std::remove(roots_.begin(), roots_.end(), *path), roots_.end());
  }
  for (const Json& folder : added.is_array() ? added : Json::array()) {
    const auto path = path_of_uri(text_of(folder, "uri"));
    if (path && std::find(roots_.begin(), roots_.end(), *path) == roots_.end()) {
      roots_.push_back(*path);
    }
  }
  workspace_.set_roots(roots_, paths_);
  schedule();
}

Json Server::execute(const Json& params) {
  const std::string command = text_of(params, "command");
  if (command != "reflex.runTest" && command != "reflex.runTests") {
    throw RequestError(kInvalidParams, "no command '" + command + "'");
  }
  const Json& arguments = member(params, "arguments");
  const bool one = command == "reflex.runTest";
  if (!arguments.is_array() || arguments.size() < (one ? 2u : 1u) || !arguments[0].is_string()) {
    throw RequestError(kInvalidParams,
                       command + " wants the document" + (one ? " and a place" : ""));
  }
  const std::string path = Workspace::path_of(arguments[0].get<std::string>());
  std::optional<uint32_t> line;
  if (one) line = position_of(arguments[1]).line + 1;
  if (!hooks_.run_tests) throw RequestError(kRequestFailed, "this server runs no tests");
  const auto results = hooks_.run_tests(workspace_.files(), path, line);
  if (!results) throw RequestError(kRequestFailed, results.error().message);
  size_t passed = 0;
  Json tests = Json::array();
  std::string text;
  for (const TestResult& r : results.value()) {
    passed += r.passed ? 1 : 0;
    tests.push_back({{"title", r.title}, {"passed", r.passed}, {"report", r.report}});
    if (!r.passed) text += "FAIL " + r.title + "\n" + r.report;
  }
  const size_t failed = results.value().size() - passed;
  const std::string summary =
      std::to_string(passed) + " passed, " + std::to_string(failed) + " failed";
  // Source: LSP 3.17 MessageType: Error 1, Info 3.
  send_(notification("window/showMessage", {{"type", failed == 0 ? 3 : 1}, {"message", summary}}));
  if (!text.empty()) send_(notification("window/logMessage", {{"type", 1}, {"message", text}}));
  return {{"passed", passed}, {"failed", failed}, {"tests", std::move(tests)}};
}

void Server::tick(Clock::time_point now) {
  if (!due_ || now < *due_) return;
  due_.reset();
  try {
    publish();
  } catch (const std::exception& e) {
    log(std::string("internal error: ") + e.what());
  }
}

/// Files whose diagnostics differ from what the client has; gone ones get an empty list.
void Server::publish() {
  std::map<std::string, Json> now;
  const auto& session = workspace_.session();
  for (const ast::Module& m : session.modules()) now[workspace_.uri_of(m.file)] = Json::array();
  for (const diag::Diagnostic& d : workspace_.check().sink.sorted()) {
    now[workspace_.uri_of(d.span.file)].push_back(diagnostic_json(workspace_, d));
  }
  for (const auto& [uri, list] : shown_) {
    if (now.count(uri) == 0) now[uri] = Json::array();
  }
  for (auto& [uri, list] : now) {
    const auto before = shown_.find(uri);
    const Workspace::Document* open = workspace_.document(uri);
    Json params = {{"uri", uri}, {"diagnostics", list}};
    if (open != nullptr) params["version"] = open->version;
    const bool same =
        before == shown_.end() ? list.empty() && open == nullptr : before->second == params;
    if (same) continue;
    send_(notification("textDocument/publishDiagnostics", params));
    shown_[uri] = std::move(params);
  }
}

void Server::log(const std::string& message) {
  // Source: LSP 3.17 MessageType: Warning 2.
  send_(notification("window/logMessage", {{"type", 2}, {"message", message}}));
}

}  // namespace reflex::lsp

// Rename over all packs. A rename that would change what any other name means is refused: the new
// texts are read again and held against the old ones.
#include <algorithm>
#include <cctype>
#include <map>

#include "compiler/lsp/requests.h"
#include "compiler/parse/lex.h"

namespace reflex::lsp {
namespace {

bool is_identifier(const std::string& text) {
  if (text.empty() || std::isdigit(static_cast<unsigned char>(text[0])) != 0) return false;
  return std::all_of(text.begin(), text.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
  });
}

bool may_be_dotted(SymbolKind kind) {
  return kind != SymbolKind::kField && kind != SymbolKind::kParameter &&
         kind != SymbolKind::kMacro && kind != SymbolKind::kException &&
         kind != SymbolKind::kVariable;
}

bool is_name(const std::string& text, SymbolKind kind) {
  if (!may_be_dotted(kind)) return is_identifier(text);
  size_t begin = 0;
  for (;;) {
    const size_t dot = text.find('.', begin);
    if (!is_identifier(text.substr(begin, dot - begin))) return false;
    if (dot == std::string::npos) return true;
    begin = dot + 1;
  }
}

struct Target {
  SymbolId id = kNoSymbol;
  Span span;  // under the cursor
};

Target target_at(Workspace& w, const Json& params) {
  const Place place = place_of_params(w, params);
  const Index& index = w.index();
  const Occurrence* o = index.at(place.file, place.offset);
  if (o == nullptr || o->symbol == kNoSymbol) {
    throw RequestError(kRequestFailed, "there is no name here that can be renamed");
  }
  const Symbol& s = index.symbol(o->symbol);
  if (s.builtin) {
    throw RequestError(kRequestFailed, "'" + s.name + "' is a builtin of the engine");
  }
  if (s.kind == SymbolKind::kTest) throw RequestError(kRequestFailed, "edit the title itself");
  return {o->symbol, o->span};
}

/// What a place names, by values that survive a rename.
std::string meaning(const Index& index, const Occurrence& o, SymbolId renamed) {
  if (o.symbol == kNoSymbol) return "word " + std::to_string(static_cast<int>(o.word));
  if (o.symbol == renamed) return "it";
  const Symbol& s = index.symbol(o.symbol);
  std::string owner;
  if (s.owner == renamed) {
    owner = "it";
  } else if (s.owner != kNoSymbol) {
    owner = index.symbol(s.owner).name;
  }
  return std::string(word_of(s.kind)) + " " + std::to_string(s.pack) + " " + owner + " " + s.name;
}

/// The meanings of all places of a file, in order.
std::vector<std::string> meanings(const Index& index, const std::string& path, SymbolId renamed) {
  std::vector<std::string> out;
  const auto file = index.session().file(path);
  if (!file) return out;
  for (const Occurrence& o : index.occurrences(*file)) out.push_back(meaning(index, o, renamed));
  return out;
}

/// The symbol that a place of the new texts declares.
SymbolId declared_at(const Index& index, const std::string& path, uint32_t begin) {
  const auto file = index.session().file(path);
  if (!file) return kNoSymbol;
  for (const Occurrence& o : index.occurrences(*file)) {
    if (o.span.begin == begin && o.declares) return o.symbol;
  }
  return kNoSymbol;
}

size_t errors_of(const diag::Sink& sink) { return sink.error_count(); }

}  // namespace

Json prepare_rename(Workspace& w, const Json& params) {
  const Target target = target_at(w, params);
  return {{"range", range_json(w, target.span)}, {"placeholder", w.index().symbol(target.id).name}};
}

Json rename(Workspace& w, const Json& params) {
  const std::string name = text_of(params, "newName");
  const Target target = target_at(w, params);
  const Index& index = w.index();
  const Symbol& symbol = index.symbol(target.id);
  if (!is_name(name, symbol.kind)) {
    throw RequestError(kRequestFailed, "'" + name + "' cannot be the name of a " +
                                           std::string(word_of(symbol.kind)));
  }
  if (name == symbol.name) return {{"changes", Json::object()}};
  const auto places = index.places(target.id);
  std::map<std::string, std::vector<Span>> by_path;
  for (const Occurrence& o : places) {
    by_path[std::string(w.session().sources().path(o.span.file))].push_back(o.span);
  }
  // The set with the new texts.
  compiler::Session after([](const std::string& path) -> std::optional<std::string> {
    auto text = compiler::read_source(path);
    if (!text) return std::nullopt;
    return std::move(text).value();
  });
  const std::string declared_in(w.session().sources().path(symbol.span.file));
  uint32_t declared = symbol.span.begin;
  for (auto& file : w.files()) {
    const auto changed = by_path.find(file.path);
    if (changed != by_path.end()) {
      for (auto it = changed->second.rbegin(); it != changed->second.rend(); ++it) {
        file.text.replace(it->begin, it->end - it->begin, name);
      }
      if (file.path == declared_in) {
        for (const Span& s : changed->second) {
          if (s.begin < symbol.span.begin) {
            declared = declared + static_cast<uint32_t>(name.size()) - (s.end - s.begin);
          }
        }
      }
    }
    after.set(file.path, std::move(file.text));
  }
  const size_t errors_before = errors_of(w.check().sink);
  const auto& check = after.check();
  const Index then(after, check.packs, check.pack);
  const SymbolId renamed = declared_at(then, declared_in, declared);
  bool same = renamed != kNoSymbol && errors_of(check.sink) <= errors_before;
  for (const auto& file : w.files()) {
    if (!same) break;
    same = meanings(index, file.path, target.id) == meanings(then, file.path, renamed);
  }
  if (!same) {
    throw RequestError(
        kRequestFailed,
        "'" + name + "' is taken here: the rename would change what " + "other names mean");
  }
  std::map<std::string, Json> changes;
  for (const auto& [path, spans] : by_path) {
    Json& edits = changes[w.uri_of(path)];
    for (const Span& s : spans) edits.push_back({{"range", range_json(w, s)}, {"newText", name}});
  }
  return {{"changes", changes}};
}

}  // namespace reflex::lsp

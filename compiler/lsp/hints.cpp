// Inlay hints (thresholds per class, horizon and bytes of signals) and code lenses over tests.
#include <map>

#include "compiler/lsp/requests.h"

namespace reflex::lsp {
namespace {

// Source: LSP 3.17 InlayHintKind.Parameter; other kinds are none of these.
constexpr int kParameterHint = 2;
// Why: a hint stands in the line; more classes are in the hover.
constexpr size_t kClassesShown = 3;

std::string time_text(int64_t ns) {
  const int64_t s = ns / 1'000'000'000;
  static constexpr std::pair<int64_t, const char*> kUnits[] = {
      {86400, "d"}, {3600, "h"}, {60, "m"}, {1, "s"}};
  for (const auto& [size, unit] : kUnits) {
    if (s >= size && s % size == 0) return std::to_string(s / size) + unit;
  }
  return std::to_string(s) + "s";
}

/// "= 83 celsius" when all classes agree, else "hw.a100 83, hw.h100 87, +2".
std::string values_text(const std::vector<ClassValue>& values) {
  std::map<std::string, std::string> by_value;
  for (const ClassValue& v : values) by_value.emplace(v.value, v.profile);
  if (by_value.size() == 1) return "= " + values[0].value;
  std::string out;
  size_t shown = 0;
  std::map<std::string, bool> told;
  for (const ClassValue& v : values) {
    if (told[v.value]) continue;
    told[v.value] = true;
    if (shown++ == kClassesShown) {
      out += ", +" + std::to_string(by_value.size() - kClassesShown);
      break;
    }
    out += (out.empty() ? "" : ", ") + v.profile + " " + v.value;
  }
  return out;
}

Json hint(Workspace& w, FileId file, uint32_t offset, const std::string& label,
          const std::string& tooltip) {
  return {{"position", to_json(w.lines(file).position(offset))},
          {"label", label},
          {"kind", kParameterHint},
          {"paddingLeft", true},
          {"tooltip", markdown(tooltip)}};
}

}  // namespace

Json inlay_hints(Workspace& w, const Json& params) {
  const FileId file = file_of_params(w, params);
  const Range range = range_of(member(params, "range"));
  const uint32_t begin = w.lines(file).offset(range.start);
  const uint32_t end = w.lines(file).offset(range.end);
  const Index& index = w.index();
  std::map<SymbolId, std::string> labels;
  Json out = Json::array();
  for (const Occurrence& o : index.occurrences(file)) {
    if (o.span.end < begin || o.span.begin > end || o.symbol == kNoSymbol) continue;
    const Symbol& s = index.symbol(o.symbol);
    if (s.kind == SymbolKind::kParameter) {
      const std::string_view before = w.text(file).substr(0, o.span.begin);
      if (!before.ends_with("profile.")) continue;
      auto known = labels.find(o.symbol);
      if (known == labels.end()) {
        const auto values = class_values(w, s.name);
        known = labels.emplace(o.symbol, values.empty() ? "" : values_text(values)).first;
      }
      if (!known->second.empty()) {
        out.push_back(hint(w, file, o.span.end, known->second, describe(w, o.symbol)));
      }
    } else if (s.kind == SymbolKind::kSignal && o.declares) {
      const auto fact = w.facts().find(index.packs().packs[s.pack].name + "." + s.name);
      if (fact == w.facts().end()) continue;
      const std::string label = std::to_string(fact->second.bytes_per_key) + " B/key, horizon " +
                                time_text(fact->second.horizon_ns);
      out.push_back(
          hint(w, file, o.span.end, label, "state of one key, and the longest look-back"));
    }
  }
  return out;
}

Json code_lenses(Workspace& w, const Json& params) {
  const FileId file = file_of_params(w, params);
  const Index& index = w.index();
  Json out = Json::array();
  Json all = Json::array();
  for (const Symbol& s : index.symbols()) {
    if (s.kind != SymbolKind::kTest || s.whole.file != file) continue;
    const Json range = range_json(w, s.span);
    const Json arguments =
        Json::array({w.uri_of(file), to_json(w.lines(file).position(s.whole.begin))});
    out.push_back(
        {{"range", range},
         {"command",
          {{"title", "run test"}, {"command", "reflex.runTest"}, {"arguments", arguments}}}});
  }
  if (out.size() > 1) {
    Json first = out[0];
    first["command"] = {{"title", "run all tests of the file"},
                        {"command", "reflex.runTests"},
                        {"arguments", Json::array({w.uri_of(file)})}};
    out.push_back(std::move(first));
  }
  return out;
}

}  // namespace reflex::lsp

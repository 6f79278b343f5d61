// The table and its walk; see sarif_shape.h.
#include "tests/unit/diag/sarif_shape.h"

#include <map>
#include <regex>

namespace reflex::test {
namespace {

using Json = nlohmann::json;

struct Member {
  const char* type;  // "string" "integer" "uri" "boolean" "bag" "=a|b" (one of), a table row, or
                     // any of these with [] behind it
  bool required = false;
};
using Shape = std::map<std::string, Member>;

const std::map<std::string, Shape>& shapes() {
  static const std::map<std::string, Shape> kShapes = {
      {"log", {{"$schema", {"uri"}}, {"version", {"=2.1.0", true}}, {"runs", {"run[]", true}}}},
      {"run",
       {{"tool", {"tool", true}},
        {"invocations", {"invocation[]"}},
        {"columnKind", {"=utf16CodeUnits|unicodeCodePoints"}},
        {"results", {"result[]"}}}},
      {"tool", {{"driver", {"component", true}}}},
      {"component",
       {{"name", {"string", true}}, {"semanticVersion", {"string"}}, {"rules", {"rule[]"}}}},
      {"rule",
       {{"id", {"string", true}},
        {"shortDescription", {"text"}},
        {"fullDescription", {"text"}},
        {"defaultConfiguration", {"configuration"}},
        {"helpUri", {"uri"}},
        {"help", {"text"}}}},
      {"configuration", {{"level", {"=none|note|warning|error"}}}},
      {"text", {{"text", {"string", true}}, {"markdown", {"string"}}}},
      {"invocation", {{"executionSuccessful", {"boolean", true}}, {"exitCode", {"integer"}}}},
      {"result",
       {{"ruleId", {"string"}},
        {"ruleIndex", {"index"}},
        {"level", {"=none|note|warning|error"}},
        {"message", {"text", true}},
        {"locations", {"location[]"}},
        {"relatedLocations", {"location[]"}},
        {"partialFingerprints", {"bag"}},
        {"fixes", {"fix[]"}},
        {"suppressions", {"suppression[]"}}}},
      {"location", {{"physicalLocation", {"physical"}}, {"message", {"text"}}}},
      {"physical", {{"artifactLocation", {"artifact"}}, {"region", {"region"}}}},
      {"artifact", {{"uri", {"reference"}}}},
      {"region",
       {{"startLine", {"positive"}},
        {"startColumn", {"positive"}},
        {"endLine", {"positive"}},
        {"endColumn", {"positive"}}}},
      {"fix", {{"description", {"text"}}, {"artifactChanges", {"change[1]", true}}}},
      {"change",
       {{"artifactLocation", {"artifact", true}}, {"replacements", {"replacement[1]", true}}}},
      {"replacement", {{"deletedRegion", {"region", true}}, {"insertedContent", {"content"}}}},
      {"content", {{"text", {"string"}}}},
      {"suppression", {{"kind", {"=inSource|external", true}}, {"justification", {"string"}}}},
  };
  return kShapes;
}

class Walk {
 public:
  explicit Walk(std::vector<std::string>& problems) : problems_(problems) {}

  void value(const Json& json, std::string type, const std::string& path) {
    const bool filled = type.ends_with("[1]");
    if (filled || type.ends_with("[]")) {
      type.resize(type.find('['));
      if (!json.is_array()) return wrong(path, "must be an array");
      if (filled && json.empty()) wrong(path, "must not be empty");
      for (size_t i = 0; i < json.size(); ++i) {
        value(json[i], type, path + "[" + std::to_string(i) + "]");
      }
      return;
    }
    if (shapes().contains(type)) return object(json, shapes().at(type), path);
    scalar(json, type, path);
  }

 private:
  void wrong(const std::string& path, const std::string& what) {
    problems_.push_back(path + ": " + what);
  }

  void object(const Json& json, const Shape& shape, const std::string& path) {
    if (!json.is_object()) return wrong(path, "must be an object");
    for (const auto& [name, member] : shape) {
      if (member.required && !json.contains(name)) wrong(path, "lacks '" + name + "'");
    }
    for (const auto& [name, member] : json.items()) {
      const auto row = shape.find(name);
      if (row == shape.end()) {
        wrong(path, "has a member '" + name + "' that is not in the schema");
        continue;
      }
      value(member, row->second.type, path + "." + name);
    }
  }

  void scalar(const Json& json, const std::string& type, const std::string& path) {
    if (type == "boolean") {
      if (!json.is_boolean()) wrong(path, "must be true or false");
    } else if (type == "integer" || type == "positive" || type == "index") {
      const int64_t least = type == "positive" ? 1 : type == "index" ? -1 : INT64_MIN;
      if (!json.is_number_integer() || json.get<int64_t>() < least) wrong(path, "is no " + type);
    } else if (type == "bag") {
      if (!json.is_object()) return wrong(path, "must be an object");
      for (const auto& [name, member] : json.items()) {
        if (!member.is_string()) wrong(path + "." + name, "must be a string");
      }
    } else if (!json.is_string()) {
      wrong(path, "must be a string");
    } else if (type == "uri" || type == "reference") {
      // RFC 3986: only these characters; an absolute one has a scheme.
      static const std::regex kUri("[A-Za-z][A-Za-z0-9+.-]*:[A-Za-z0-9._~:/?#@!$&'()*+,;=%-]+");
      static const std::regex kReference("[A-Za-z0-9._~:/?#@!$&'()*+,;=%-]+");
      if (!std::regex_match(json.get<std::string>(), type == "uri" ? kUri : kReference)) {
        wrong(path, "is no " + type);
      }
    } else if (type.starts_with("=")) {
      const std::string words = "|" + type.substr(1) + "|";
      if (words.find("|" + json.get<std::string>() + "|") == std::string::npos) {
        wrong(path, "is none of " + type.substr(1));
      }
    }
  }

  std::vector<std::string>& problems_;
};

}  // namespace

std::vector<std::string> sarif_problems(const nlohmann::json& log) {
  std::vector<std::string> problems;
  Walk(problems).value(log, "log", "log");
  return problems;
}

}  // namespace reflex::test

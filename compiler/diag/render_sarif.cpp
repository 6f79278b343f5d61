// Diagnostics as a SARIF 2.1.0 log (OASIS standard, errata 01): one run, one result each.
//
// `tool.driver.rules` holds the ids that occur, in the order of the table; `ruleIndex` points into
// it. Columns count code points, as in every other form. A fingerprint is made of the id, the file,
// the text of the line and how many equal ones came before: it survives lines that move.
// What an `# allow` comment silenced is a result with an `inSource` suppression.
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "compiler/diag/diagnostic.h"

namespace reflex::diag {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kSchema =
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";

/// A path as a URI reference (RFC 3986): everything but unreserved characters and '/' in percent
/// form; an absolute path becomes a file URI.
std::string uri_of(std::string_view path) {
  static constexpr char kDigits[] = "0123456789ABCDEF";
  std::string out = path.starts_with('/') ? "file://" : "";
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '/' || c == '.' || c == '-' || c == '_' || c == '~';
    if (plain) {
      out += c;
    } else {
      out += '%';
      out += kDigits[byte >> 4];
      out += kDigits[byte & 15];
    }
  }
  return out;
}

uint64_t fnv1a(std::string_view text, uint64_t hash = 0xcbf29ce484222325u) {
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return (hash ^ 0xffu) * 0x100000001b3u;  // parts do not run into each other
}

class SarifWriter {
 public:
  SarifWriter(const source::SourceMap& map, const std::set<Id>& used) : map_(map) {
    for (const IdInfo& row : all_ids()) {
      if (!used.contains(row.id)) continue;
      index_[row.id] = rules_.size();
      Json rule;
      rule["id"] = to_text(row.id);
      rule["shortDescription"] = text(std::string(row.title));
      rule["defaultConfiguration"] = Json{{"level", word_of(row.severity)}};
      // A name, not a place: `reflex help ID` prints the page wherever the binary is.
      rule["helpUri"] = "urn:reflex:help:" + to_text(row.id);
      std::string help = std::string(row.title) + "\n\nwrong: " + std::string(row.bad);
      if (!row.good.empty()) help += "\nright: " + std::string(row.good);
      rule["help"] = text(help);
      rules_.push_back(std::move(rule));
    }
  }

  void add(const Diagnostic& d, const std::string* allowed_because) {
    Json result;
    result["ruleId"] = to_text(d.id);
    result["ruleIndex"] = index_.at(d.id);
    result["level"] = word_of(d.severity);
    std::string message = d.message;
    for (const Note& note : d.notes) {
      if (!note.span) message += "\n" + note.message;
    }
    if (!d.help.empty()) message += "\nhelp: " + d.help;
    result["message"] = text(message);
    result["locations"] = Json::array({location(d.span)});
    Json related = Json::array();
    for (const Note& note : d.notes) {
      if (!note.span) continue;
      Json place = location(*note.span);
      place["message"] = text(note.message);
      related.push_back(std::move(place));
    }
    if (!related.empty()) result["relatedLocations"] = std::move(related);
    result["partialFingerprints"] = Json{{"reflexLine/v1", fingerprint(d)}};
    if (!d.fixes.empty()) result["fixes"] = fixes(d);
    if (allowed_because != nullptr) {
      Json suppression{{"kind", "inSource"}};
      if (!allowed_because->empty()) suppression["justification"] = *allowed_because;
      result["suppressions"] = Json::array({std::move(suppression)});
    }
    results_.push_back(std::move(result));
  }

  std::string finish(const SarifRun& run) {
    Json driver{{"name", "reflex"}, {"semanticVersion", run.tool_version}};
    driver["rules"] = std::move(rules_);
    Json object;
    object["tool"] = Json{{"driver", std::move(driver)}};
    object["invocations"] =
        Json::array({Json{{"executionSuccessful", true}, {"exitCode", run.exit_code}}});
    object["columnKind"] = "unicodeCodePoints";
    object["results"] = std::move(results_);
    Json log{{"$schema", kSchema}, {"version", "2.1.0"}};
    log["runs"] = Json::array({std::move(object)});
    // replace: a message may quote bytes of a file that is not UTF-8.
    return log.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
  }

 private:
  static Json text(const std::string& t) { return Json{{"text", t}}; }

  Json region(const source::Span& span) const {
    const source::LineColumn begin = map_.locate(span.file, span.begin);
    const source::LineColumn end = map_.locate(span.file, span.end);
    return Json{{"startLine", begin.line},
                {"startColumn", begin.column},
                {"endLine", end.line},
                {"endColumn", end.column}};
  }

  Json artifact(const source::Span& span) const {
    return Json{{"uri", uri_of(map_.path(span.file))}};
  }

  Json location(const source::Span& span) const {
    Json physical;
    physical["artifactLocation"] = artifact(span);
    physical["region"] = region(span);
    return Json{{"physicalLocation", std::move(physical)}};
  }

  Json fixes(const Diagnostic& d) const {
    Json out = Json::array();
    for (const Fix& fix : d.fixes) {
      Json replacement{{"deletedRegion", region(fix.range)}};
      replacement["insertedContent"] = text(fix.new_text);
      Json change{{"artifactLocation", artifact(fix.range)}};
      change["replacements"] = Json::array({std::move(replacement)});
      Json entry;
      entry["description"] = text(d.help.empty() ? "write '" + fix.new_text + "'" : d.help);
      entry["artifactChanges"] = Json::array({std::move(change)});
      out.push_back(std::move(entry));
    }
    return out;
  }

  std::string fingerprint(const Diagnostic& d) {
    const std::string_view line =
        map_.line(d.span.file, map_.locate(d.span.file, d.span.begin).line);
    uint64_t hash = fnv1a(to_text(d.id));
    hash = fnv1a(map_.path(d.span.file), hash);
    hash = fnv1a(line.substr(std::min(line.size(), line.find_first_not_of(" \t"))), hash);
    hash = fnv1a(std::to_string(seen_[hash]++), hash);
    static constexpr char kDigits[] = "0123456789abcdef";
    std::string out;
    for (int shift = 60; shift >= 0; shift -= 4) out += kDigits[(hash >> shift) & 15u];
    return out;
  }

  const source::SourceMap& map_;
  std::map<Id, size_t> index_;
  std::map<uint64_t, unsigned> seen_;
  Json rules_ = Json::array();
  Json results_ = Json::array();
};

}  // namespace

std::string render_sarif(const std::vector<Diagnostic>& diagnostics,
                         const std::vector<Suppressed>& suppressed, const source::SourceMap& map,
                         const SarifRun& run) {
  std::set<Id> used;
  for (const Diagnostic& d : diagnostics) used.insert(d.id);
  for (const Suppressed& s : suppressed) used.insert(s.diagnostic.id);
  SarifWriter writer(map, used);
  for (const Diagnostic& d : diagnostics) writer.add(d, nullptr);
  for (const Suppressed& s : suppressed) writer.add(s.diagnostic, &s.reason);
  return writer.finish(run);
}

}  // namespace reflex::diag

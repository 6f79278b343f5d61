// The table of fields; see fields.h. Source: design/events.md, the std packs, Alertmanager webhook
// v4, CloudEvents 1.0.
#include "runtime/anonymize/fields.h"

#include <algorithm>
#include <cctype>

namespace reflex::anonymize {
namespace {

struct Row {
  std::string_view key;
  Field field;
};
constexpr Field name(NameKind kind) { return {FieldUse::kName, kind}; }
constexpr Field kTime{FieldUse::kTime, NameKind::kLabel};
constexpr Field kWord{FieldUse::kWord, NameKind::kLabel};
constexpr Field kText{FieldUse::kText, NameKind::kLabel};
constexpr Field kPlace{FieldUse::kPlace, NameKind::kSerial};

constexpr Row kRows[] = {
    {"node", name(NameKind::kNode)},
    {"nodes", name(NameKind::kNode)},
    {"host", name(NameKind::kNode)},
    {"hosts", name(NameKind::kNode)},
    {"hostname", name(NameKind::kNode)},
    {"nodename", name(NameKind::kNode)},
    {"instance", name(NameKind::kNode)},
    {"peer", name(NameKind::kNode)},
    {"peers", name(NameKind::kNode)},
    {"src", name(NameKind::kNode)},
    {"dst", name(NameKind::kNode)},
    {"culprit", name(NameKind::kNode)},
    {"culprits", name(NameKind::kNode)},
    {"job", name(NameKind::kJob)},
    {"jobs", name(NameKind::kJob)},
    {"job_id", name(NameKind::kJob)},
    {"jobid", name(NameKind::kJob)},
    {"job_name", name(NameKind::kJob)},
    {"incident", name(NameKind::kIncident)},
    {"incident_id", name(NameKind::kIncident)},
    {"rack", name(NameKind::kRack)},
    {"racks", name(NameKind::kRack)},
    {"tor", name(NameKind::kTor)},
    {"tors", name(NameKind::kTor)},
    {"switch", name(NameKind::kTor)},
    {"pod", name(NameKind::kPod)},
    {"zone", name(NameKind::kZone)},
    {"region", name(NameKind::kZone)},
    {"nic", name(NameKind::kNic)},
    {"nics", name(NameKind::kNic)},
    {"interface", name(NameKind::kNic)},
    {"ifname", name(NameKind::kNic)},
    {"storage", name(NameKind::kStorage)},
    {"volume", name(NameKind::kStorage)},
    {"mount", name(NameKind::kStorage)},
    {"filesystem", name(NameKind::kStorage)},
    {"serial", name(NameKind::kSerial)},
    {"part_serial", name(NameKind::kSerial)},
    {"uuid", name(NameKind::kSerial)},
    {"gpu_uuid", name(NameKind::kSerial)},
    {"guid", name(NameKind::kSerial)},
    {"mac", name(NameKind::kSerial)},
    {"ip", name(NameKind::kSerial)},
    {"address", name(NameKind::kSerial)},
    {"user", name(NameKind::kOwner)},
    {"owner", name(NameKind::kOwner)},
    {"team", name(NameKind::kOwner)},
    {"account", name(NameKind::kOwner)},
    {"project", name(NameKind::kOwner)},
    {"partition", name(NameKind::kOwner)},
    {"queue", name(NameKind::kOwner)},
    {"cluster", name(NameKind::kOwner)},
    {"namespace", name(NameKind::kOwner)},
    {"image", name(NameKind::kOwner)},
    {"source", name(NameKind::kSource)},
    {"subject", name(NameKind::kSource)},
    {"id", name(NameKind::kEventId)},
    {"event_id", name(NameKind::kEventId)},
    {"fingerprint", name(NameKind::kEventId)},
    {"ts", kTime},
    {"arrival", kTime},
    {"time", kTime},
    {"timestamp", kTime},
    {"start", kTime},
    {"end", kTime},
    {"started", kTime},
    {"ended", kTime},
    {"since", kTime},
    {"until", kTime},
    {"opened", kTime},
    {"closed", kTime},
    {"startsat", kTime},
    {"endsat", kTime},
    {"kind", kWord},
    {"type", kWord},
    {"code", kWord},
    {"severity", kWord},
    {"symptom", kWord},
    {"status", kWord},
    {"component", kWord},
    {"category", kWord},
    {"fault", kWord},
    {"external", kWord},
    {"level", kWord},
    {"direction", kWord},
    {"unit", kWord},
    {"hw", kWord},
    {"model", kWord},
    {"vendor", kWord},
    {"gpu_model", kWord},
    {"driver", kWord},
    {"firmware", kWord},
    {"parts", kWord},
    {"alertname", kWord},
    {"specversion", kWord},
    {"datacontenttype", kWord},
    {"text", kText},
    {"message", kText},
    {"msg", kText},
    {"description", kText},
    {"summary", kText},
    {"annotations", kText},
    {"generatorurl", kText},
    {"externalurl", kText},
    {"labels", {FieldUse::kLabels, NameKind::kLabel}},
    {"gpu", kPlace},
    {"disk", kPlace},
    {"dimm", kPlace},
};

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

bool starts_with(std::string_view s, std::string_view head) {
  return s.substr(0, head.size()) == head;
}
bool ends_with(std::string_view s, std::string_view tail) {
  return s.size() >= tail.size() && s.substr(s.size() - tail.size()) == tail;
}

}  // namespace

Field field_of(std::string_view raw) {
  const std::string key = lower(raw);
  for (const Row& row : kRows) {
    if (row.key == key) return row.field;
  }
  if (starts_with(key, "serial.") || starts_with(key, "ip.") || ends_with(key, "_serial") || ends_with(key, "_uuid")) {
    return name(NameKind::kSerial);
  }
  if (starts_with(key, "pci.")) return kPlace;
  for (const char* tail : {"_ts", "_time", "_at"}) {
    if (ends_with(key, tail)) return kTime;
  }
  return {};
}

Field label_of(std::string_view key) {
  const Field known = field_of(key);
  return known.use == FieldUse::kUnknown ? name(NameKind::kLabel) : known;
}

bool is_site_key(std::string_view key) {
  const size_t slash = key.find('/');
  if (slash == std::string_view::npos) return false;
  const std::string_view domain = key.substr(0, slash);
  for (std::string_view known : {"kubernetes.io", "k8s.io", "nvidia.com", "amd.com"}) {
    if (domain == known || ends_with(domain, "." + std::string(known))) return false;
  }
  return true;
}

bool is_word(std::string_view text) {
  constexpr size_t kWordMax = 64;
  return !text.empty() && text.size() <= kWordMax &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) {
           return std::isalnum(c) != 0 ||
                  std::string_view("_.:+/<>=- ").find(static_cast<char>(c)) !=
                      std::string_view::npos;
         });
}

bool is_digits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(),
                                      [](unsigned char c) { return std::isdigit(c) != 0; });
}

bool is_plain_value(std::string_view text) {
  for (std::string_view w : {"true", "false", "yes", "no", "none", "null", ""}) {
    if (lower(text) == w) return true;
  }
  return std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return std::isdigit(c) != 0 || c == '.' || c == '-' || c == '+';
  });
}

}  // namespace reflex::anonymize

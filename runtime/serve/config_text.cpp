// Showing a configuration as TOML, and the example of one; see config.h.
#include <fmt/format.h>

#include "runtime/serve/config.h"

namespace reflex::serve {
namespace {

std::string in_quotes(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

std::string toml_value(ValueForm form, const std::vector<std::string>& texts) {
  if (is_list(form)) {
    std::string out = "[";
    for (size_t i = 0; i < texts.size(); ++i) out += (i > 0 ? ", " : "") + in_quotes(texts[i]);
    return out + "]";
  }
  if (form == ValueForm::kBool || form == ValueForm::kInt) return texts.front();
  return in_quotes(texts.front());
}

constexpr std::string_view kSourceExamples = R"(#
# [[sources]]                       # events that a monitor appends to a file, an object a line
# type = "tail"
# form = "events"
# path = "/var/log/monitor/events.ndjson"
#
# [[sources]]                       # this host's kernel log
# type = "journald"
# match = ["_TRANSPORT=kernel"]
#
# [[sources]]                       # a subject of a JetStream stream
# type = "nats"
# form = "events"
# url = "nats://127.0.0.1:4222"
# subject = "cluster.events"
)";
constexpr std::string_view kSinkExamples = R"(#
# [[sinks]]                         # what is said, each verdict once
# type = "file"
# path = "/var/lib/reflex/verdicts.ndjson"
#
# [[sinks]]                         # final verdicts to a service of yours, as CloudEvents
# type = "webhook"
# url = "http://127.0.0.1:8080/verdicts"
# what = "finals"
#
# [[sinks]]                         # alerts of the packs' `alert` rules
# type = "alertmanager"
# url = "http://127.0.0.1:9093"
)";

}  // namespace

std::string show_config(const Config& config) {
  std::string out;
  const auto show = [&](const ConfigTable& table, const std::vector<KeySpec>& keys) {
    for (const KeySpec& spec : keys) {
      const ConfigValue& value = table.all().find(spec.key)->second;
      out += fmt::format("{} = {}  # {}\n", spec.key, toml_value(spec.form, value.texts),
                         value.origin);
    }
  };
  show(config.main, config_keys());
  for (const auto& source : config.sources) {
    out += "\n[[sources]]\n";
    show(source, source_keys());
  }
  for (const auto& sink : config.sinks) {
    out += "\n[[sinks]]\n";
    show(sink, sink_keys());
  }
  return out;
}

std::string example_config() {
  std::string out =
      "# reflex.toml: the configuration of `reflex serve`. Every key, with its default.\n"
      "# The environment (REFLEX_ + key in capitals, dots as _) and --set KEY=VALUE go over it.\n";
  const auto show = [&](const KeySpec& spec, std::string_view key, const char* comment) {
    out += "\n";
    std::string_view doc = spec.doc;
    while (!doc.empty()) {
      const size_t newline = doc.find('\n');
      out += fmt::format("# {}\n", doc.substr(0, newline));
      doc.remove_prefix(newline == std::string_view::npos ? doc.size() : newline + 1);
    }
    out += fmt::format("{}{} = {}\n", comment, key, toml_value(spec.form, standard_texts(spec)));
  };
  std::string_view table;
  for (const KeySpec& spec : config_keys()) {
    const size_t dot = spec.key.find('.');
    const std::string_view of = dot == std::string_view::npos ? "" : spec.key.substr(0, dot);
    if (of != table) out += fmt::format("\n[{}]\n", of);
    table = of;
    show(spec, dot == std::string_view::npos ? spec.key : spec.key.substr(dot + 1), "");
  }
  for (const auto& [name, keys] : {std::pair{"sources", &source_keys()}, {"sinks", &sink_keys()}}) {
    out += fmt::format("\n# Any number of:\n# [[{}]]\n", name);
    for (const KeySpec& spec : *keys) show(spec, spec.key, "# ");
    out += fmt::format("\n# Examples:\n{}",
                       name == std::string_view("sources") ? kSourceExamples : kSinkExamples);
  }
  return out;
}

}  // namespace reflex::serve

// Reading; see config.h. The keys: config_keys.cpp, showing: config_text.cpp.
#include "runtime/serve/config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <climits>
#include <filesystem>
#include <numeric>
#include <optional>
#include <set>

#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

#include "runtime/base/check.h"
#include "runtime/base/time.h"
#include "runtime/serve/config_toml_error.h"

namespace reflex::serve {

namespace fs = std::filesystem;

namespace {

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0 : 1)});
      diagonal = above;
    }
  }
  return row[b.size()];
}

std::string did_you_mean(std::string_view key, const std::vector<KeySpec>& keys) {
  const KeySpec* best = nullptr;
  size_t least = key.size() / 2 + 1;
  for (const KeySpec& known : keys) {
    // The last word alone, too: `segment` for `journal.segment`.
    const auto word = known.key.substr(known.key.rfind('.') + 1);
    const size_t distance = std::min(edit_distance(key, known.key), edit_distance(key, word) + 1);
    if (distance >= least) continue;
    least = distance;
    best = &known;
  }
  if (best != nullptr) return fmt::format("; did you mean '{}'?", best->key);
  if (&keys == &config_keys()) return "; `reflex config default` shows all that there are";
  std::string all;
  for (const KeySpec& known : keys) all += fmt::format("{}{}", all.empty() ? "" : ", ", known.key);
  return fmt::format("; the keys of this table: {}", all);
}

const KeySpec* find(const std::vector<KeySpec>& keys, std::string_view key) {
  const auto it =
      std::find_if(keys.begin(), keys.end(), [&](const auto& k) { return k.key == key; });
  return it == keys.end() ? nullptr : &*it;
}

std::string_view wanted(ValueForm form) {
  switch (form) {
    case ValueForm::kText:
      return "a text";
    case ValueForm::kPath:
      return "a path";
    case ValueForm::kPaths:
      return "a list of paths";
    case ValueForm::kTexts:
      return "a list of texts";
    case ValueForm::kBool:
      return "true or false";
    case ValueForm::kInt:
      return "a whole number that is not negative";
    case ValueForm::kBytes:
      return "a size like \"64MiB\"";
    case ValueForm::kDuration:
      return "a time like \"5m\"";
  }
  return "";
}

bool is_good(ValueForm form, const std::string& text) {
  uint64_t number = 0;
  switch (form) {
    case ValueForm::kBool:
      return text == "true" || text == "false";
    case ValueForm::kInt:
      return !text.empty() && text.size() < 18 &&
             std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
    case ValueForm::kBytes:
      return parse_bytes(text, number);
    case ValueForm::kDuration: {
      const auto duration = parse_duration(text);
      return duration && duration->ns > 0;
    }
    default:
      return true;
  }
}

std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const size_t comma = text.find(',');
    if (comma > 0) parts.emplace_back(text.substr(0, comma));
    text.remove_prefix(comma == std::string_view::npos ? text.size() : comma + 1);
  }
  return parts;
}

class Reader {
 public:
  explicit Reader(std::string file) : file_(std::move(file)) {}

  reflex::Status read(Config& config);
  void set(ConfigTable& table, const std::vector<KeySpec>& keys, std::string_view key,
           const std::string& value, const std::string& origin);
  void problem(std::string text) { problems_.push_back(std::move(text)); }
  [[nodiscard]] const std::vector<std::string>& problems() const { return problems_; }

 private:
  void read_table(const toml::table& in, const std::string& prefix,
                  const std::vector<KeySpec>& keys, ConfigTable& out, Config* nested);
  void read_array(const toml::node& node, const std::string& name, std::vector<ConfigTable>& out,
                  const std::vector<KeySpec>& keys);
  void read_value(const toml::node& node, const KeySpec& spec, ConfigTable& out);
  std::optional<std::string> text_of(const toml::node& node, ValueForm form);
  [[nodiscard]] std::string place(const toml::node& node) const {
    return fmt::format("{}:{}", fs::path(file_).filename().string(), node.source().begin.line);
  }
  [[nodiscard]] std::string absolute(const std::string& path) const {
    if (path.empty() || path == "-") return path;
    return fs::weakly_canonical(fs::absolute(file_).parent_path() / path).string();
  }

  std::string file_;
  std::vector<std::string> problems_;
};

reflex::Status Reader::read(Config& config) {
  const toml::parse_result parsed = toml::parse_file(file_);
  if (!parsed) {
    const auto& error = parsed.error();
    return toml_error(file_, error.source().begin.line, error.description());
  }
  read_table(parsed.table(), "", config_keys(), config.main, &config);
  return ok_status();
}

void Reader::read_table(const toml::table& in, const std::string& prefix,
                        const std::vector<KeySpec>& keys, ConfigTable& out, Config* nested) {
  for (const auto& [name, node] : in) {
    const std::string key = prefix + std::string(name.str());
    if (nested != nullptr && prefix.empty() && key == "sources") {
      read_array(node, key, nested->sources, source_keys());
    } else if (nested != nullptr && prefix.empty() && key == "sinks") {
      read_array(node, key, nested->sinks, sink_keys());
    } else if (const auto* table = node.as_table(); table != nullptr && nested != nullptr) {
      read_table(*table, key + ".", keys, out, nested);
    } else if (const KeySpec* spec = find(keys, key)) {
      read_value(node, *spec, out);
    } else {
      problems_.push_back(
          fmt::format("{}: there is no key '{}'{}", place(node), key, did_you_mean(key, keys)));
    }
  }
}

void Reader::read_array(const toml::node& node, const std::string& name,
                        std::vector<ConfigTable>& out, const std::vector<KeySpec>& keys) {
  const auto* array = node.as_array();
  if (array == nullptr) {
    problems_.push_back(
        fmt::format("{}: '{}' is a list of tables: [[{}]]", place(node), name, name));
    return;
  }
  for (const auto& item : *array) {
    if (const auto* table = item.as_table()) {
      out.emplace_back();
      out.back().set_place(place(item));
      read_table(*table, "", keys, out.back(), nullptr);
    } else {
      problems_.push_back(fmt::format("{}: '{}' is a list of tables", place(item), name));
    }
  }
}

std::optional<std::string> Reader::text_of(const toml::node& node, ValueForm form) {
  if (const auto* text = node.as_string()) {
    const std::string& value = text->get();
    return form == ValueForm::kPath || form == ValueForm::kPaths ? absolute(value) : value;
  }
  const bool number = form == ValueForm::kInt || form == ValueForm::kBytes;
  if (const auto* value = node.as_integer(); value != nullptr && number) {
    return fmt::format("{}", value->get());
  }
  if (const auto* value = node.as_boolean(); value != nullptr && form == ValueForm::kBool) {
    return value->get() ? "true" : "false";
  }
  return std::nullopt;
}

void Reader::read_value(const toml::node& node, const KeySpec& spec, ConfigTable& out) {
  ConfigValue value;
  value.origin = place(node);
  bool good = true;
  const auto take = [&](const toml::node& item) {
    const auto text = text_of(item, spec.form);
    good = good && text && is_good(spec.form, *text);
    if (good) value.texts.push_back(*text);
  };
  if (const auto* array = node.as_array(); array != nullptr && is_list(spec.form)) {
    for (const auto& item : *array) take(item);
  } else {
    good = !is_list(spec.form);
    if (good) take(node);
  }
  if (good) return out.set(spec.key, std::move(value));
  problems_.push_back(fmt::format("{}: '{}' wants {}", value.origin, spec.key, wanted(spec.form)));
}

void Reader::set(ConfigTable& table, const std::vector<KeySpec>& keys, std::string_view key,
                 const std::string& value, const std::string& origin) {
  const KeySpec* spec = find(keys, key);
  if (spec == nullptr) {
    problems_.push_back(
        fmt::format("{}: there is no key '{}'{}", origin, key, did_you_mean(key, keys)));
    return;
  }
  if (!is_list(spec->form) && !is_good(spec->form, value)) {
    problems_.push_back(fmt::format("{}: '{}' wants {}", origin, key, wanted(spec->form)));
    return;
  }
  table.set(key, {is_list(spec->form) ? split(value) : std::vector<std::string>{value}, origin});
}

void fill_defaults(ConfigTable& table, const std::vector<KeySpec>& keys) {
  for (const KeySpec& spec : keys) {
    if (!table.all().contains(spec.key)) table.set(spec.key, {standard_texts(spec), "default"});
  }
}

std::string environment_name(std::string_view key) {
  std::string name = "REFLEX_";
  for (const char c : key) {
    name += c == '.' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return name;
}

}  // namespace

std::vector<std::string> standard_texts(const KeySpec& spec) {
  const std::string value(spec.standard);
  return is_list(spec.form) ? split(value) : std::vector<std::string>{value};
}

bool parse_bytes(std::string_view text, uint64_t& out) {
  uint64_t number = 0;
  const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (wrong != std::errc()) return false;
  std::string_view unit(end, static_cast<size_t>(text.data() + text.size() - end));
  while (!unit.empty() && unit.front() == ' ') unit.remove_prefix(1);
  uint64_t factor = 1;
  if (unit == "KiB")
    factor = 1u << 10;
  else if (unit == "MiB")
    factor = 1u << 20;
  else if (unit == "GiB")
    factor = 1u << 30;
  else if (unit == "kB")
    factor = 1'000;
  else if (unit == "MB")
    factor = 1'000'000;
  else if (unit == "GB")
    factor = 1'000'000'000;
  else if (!unit.empty() && unit != "B")
    return false;
  if (number > INT64_MAX / factor) return false;
  out = number * factor;
  return true;
}

const std::vector<std::string>& ConfigTable::texts(std::string_view key) const {
  const auto it = values_.find(key);
  RFX_CHECK(it != values_.end());
  return it->second.texts;
}

const std::string& ConfigTable::place_of(std::string_view key) const {
  const auto it = values_.find(key);
  RFX_CHECK(it != values_.end());
  return it->second.origin == "default" && !place_.empty() ? place_ : it->second.origin;
}

const std::string& ConfigTable::text(std::string_view key) const { return texts(key).front(); }

int64_t ConfigTable::number(std::string_view key) const { return std::stoll(text(key)); }

uint64_t ConfigTable::bytes(std::string_view key) const {
  uint64_t value = 0;
  RFX_CHECK(parse_bytes(text(key), value));
  return value;
}

int64_t ConfigTable::duration_ns(std::string_view key) const {
  const auto value = parse_duration(text(key));
  RFX_CHECK(value.has_value());
  return value->ns;
}

Status only_files(const std::vector<std::string>& paths) {
  for (const auto& path : paths) {
    std::error_code none;
    const fs::file_status status = fs::status(path, none);
    if (fs::exists(status) && !fs::is_regular_file(status) && !fs::is_directory(status)) {
      return Error{fmt::format("{} is neither a file nor a folder", path)};
    }
  }
  return ok_status();
}

namespace {

/// What the keys of the main table name; sources and sinks look at theirs.
void check_paths(const ConfigTable& table, std::vector<std::string>& problems) {
  for (const KeySpec& spec : config_keys()) {
    if (spec.form != ValueForm::kPath && spec.form != ValueForm::kPaths) continue;
    const ConfigValue& value = table.all().find(spec.key)->second;
    const auto paths =
        spec.form == ValueForm::kPaths ? table.texts(spec.key) : std::vector{table.text(spec.key)};
    if (auto status = only_files(paths); !status.ok()) {
      problems.push_back(fmt::format("{}: {}: {}", value.origin, spec.key, status.error().message));
    }
  }
  const std::string& folder = table.text("state_dir");
  if (std::error_code none; fs::is_regular_file(folder, none)) {
    problems.push_back(fmt::format("{}: state_dir: {} is a file; it names a folder",
                                   table.all().find("state_dir")->second.origin, folder));
  }
}

void check_names(const std::vector<ConfigTable>& tables, const char* list,
                 std::string (*name_of)(const ConfigTable&), std::vector<std::string>& problems) {
  std::set<std::string> seen;
  for (const ConfigTable& table : tables) {
    const std::string name = name_of(table);
    if (name.empty() || seen.insert(name).second) continue;  // empty: it has no type, see there
    problems.push_back(
        fmt::format("{}: two of [[{}]] go by the name '{}', under which its cursor is "
                    "kept: give each a name of its own",
                    table.place_of("type"), list, name));
  }
}

}  // namespace

std::string source_name(const ConfigTable& source) {
  for (const char* key : {"name", "path", "subject"}) {
    if (!source.text(key).empty()) return source.text(key);
  }
  return source.text("type");
}

std::string sink_name(const ConfigTable& sink) {
  return sink.text("name").empty() ? sink.text("type") : sink.text("name");
}

namespace {

/// A name that is nearly one of a key is a mistake; others are not ours to judge: Kubernetes gives
/// each pod a REFLEX_PORT and the like of a Service that is called reflex.
const KeySpec* meant_by(std::string_view name) {
  constexpr size_t kSlips = 2;
  for (const KeySpec& spec : config_keys()) {
    if (edit_distance(name, environment_name(spec.key)) <= kSlips) return &spec;
  }
  return nullptr;
}

void read_environment(const std::map<std::string, std::string, std::less<>>& environment,
                      Reader& reader, ConfigTable& out) {
  std::map<std::string, std::string_view> keys;
  for (const KeySpec& spec : config_keys()) keys[environment_name(spec.key)] = spec.key;
  for (const auto& [name, value] : environment) {
    if (const auto known = keys.find(name); known != keys.end()) {
      reader.set(out, config_keys(), known->second, value, "environment " + name);
    } else if (const KeySpec* meant = meant_by(name)) {
      reader.problem(fmt::format("environment {}: there is no such variable; did you mean {}?",
                                 name, environment_name(meant->key)));
    }
  }
}

int line_of(std::string_view problem, std::string_view file) {
  const std::string prefix = fs::path(file).filename().string() + ":";
  if (file.empty() || !problem.starts_with(prefix)) return INT_MAX;  // of no line: behind them
  int line = INT_MAX;
  std::from_chars(problem.data() + prefix.size(), problem.data() + problem.size(), line);
  return line;
}

}  // namespace

void sort_problems(std::vector<std::string>& problems, const std::string& file) {
  std::stable_sort(problems.begin(), problems.end(), [&](const auto& a, const auto& b) {
    return line_of(a, file) < line_of(b, file);
  });
}

Result<ReadConfig> read_config(const ConfigRequest& request) {
  ReadConfig read;
  read.file = request.file;
  Config& config = read.config;
  Reader reader(request.file);
  if (!request.file.empty()) {
    if (auto status = only_files({request.file}); !status.ok()) return status.error();
    if (std::error_code none; fs::is_directory(request.file, none)) {
      return Error{fmt::format("{} is a folder; name the file in it", request.file)};
    }
    if (auto status = reader.read(config); !status.ok()) return status.error();
  }
  read_environment(request.environment, reader, config.main);
  for (const auto& [key, value] : request.flags) {
    reader.set(config.main, config_keys(), key, value, "flag");
  }
  fill_defaults(config.main, config_keys());
  for (auto& source : config.sources) fill_defaults(source, source_keys());
  for (auto& sink : config.sinks) fill_defaults(sink, sink_keys());
  read.problems = reader.problems();
  check_paths(config.main, read.problems);
  check_names(config.sources, "sources", source_name, read.problems);
  check_names(config.sinks, "sinks", sink_name, read.problems);
  check_values(config, read.problems);
  sort_problems(read.problems, read.file);
  return read;
}

Result<Config> load_config(const ConfigRequest& request) {
  auto read = read_config(request);
  if (!read.ok()) return read.error();
  const auto& problems = read.value().problems;
  if (!problems.empty()) return Error{fmt::format("{}", fmt::join(problems, "\n"))};
  return std::move(read.value().config);
}

}  // namespace reflex::serve

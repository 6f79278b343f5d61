// Config: reflex.toml, the environment and flags -> one set of values, each with its origin.
//
// One check: a value that a daemon could not run with is a problem here, and so the same for a
// start, a reload, `reflex config check` and `reflex config show`.
// Order: a flag (--set KEY=VALUE) over the environment (REFLEX_ + key in capitals, dots as _) over
// the file over the default. An unknown key is an error with the nearest known one; so is a value
// of the wrong form. The keys, their defaults and what they mean stand in config_keys.cpp, once;
// packaging/reflex.toml is printed from there (`reflex config default`), a test holds the two.
// Relative paths of the file are relative to its folder.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"

namespace reflex::serve {

enum class ValueForm : uint8_t { kText, kPath, kPaths, kTexts, kBool, kInt, kBytes, kDuration };
constexpr bool is_list(ValueForm form) {
  return form == ValueForm::kPaths || form == ValueForm::kTexts;
}

/// One key that reflex.toml may have.
struct KeySpec {
  std::string_view key;  // "journal.segment"; of an entry of [[sources]]: "path"
  ValueForm form;
  std::string_view standard;  // the default, as it is written in the environment
  std::string_view doc;
};
/// The default as values: several or none of a list, else one.
std::vector<std::string> standard_texts(const KeySpec& spec);
const std::vector<KeySpec>& config_keys();
const std::vector<KeySpec>& source_keys();  // of [[sources]]
const std::vector<KeySpec>& sink_keys();    // of [[sinks]]

struct ConfigValue {
  std::vector<std::string> texts;  // one, but for lists
  std::string origin;              // "default", "reflex.toml:12", "flag", "environment REFLEX_X"
};

/// The keys of one table, all of them.
class ConfigTable {
 public:
  [[nodiscard]] const std::string& text(std::string_view key) const;
  [[nodiscard]] const std::vector<std::string>& texts(std::string_view key) const;
  [[nodiscard]] bool flag(std::string_view key) const { return text(key) == "true"; }
  [[nodiscard]] int64_t number(std::string_view key) const;       // kInt
  [[nodiscard]] uint64_t bytes(std::string_view key) const;       // kBytes
  [[nodiscard]] int64_t duration_ns(std::string_view key) const;  // kDuration
  [[nodiscard]] const std::map<std::string, ConfigValue, std::less<>>& all() const {
    return values_;
  }
  void set(std::string_view key, ConfigValue value) {
    values_[std::string(key)] = std::move(value);
  }
  /// Where the table begins, of [[sources]] and [[sinks]].
  void set_place(std::string place) { place_ = std::move(place); }
  /// Where to look for what is wrong with a key: at its value, or at the table that lacks it.
  [[nodiscard]] const std::string& place_of(std::string_view key) const;

 private:
  std::string place_;  // "": of the file as a whole
  std::map<std::string, ConfigValue, std::less<>> values_;
};

struct Config {
  ConfigTable main;
  std::vector<ConfigTable> sources;
  std::vector<ConfigTable> sinks;
};

struct ConfigRequest {
  std::string file;                                             // "": none
  std::vector<std::pair<std::string, std::string>> flags;       // key, value
  std::map<std::string, std::string, std::less<>> environment;  // of names that begin with REFLEX_
};

/// What was read, and all that is wrong with it: a line each, `PLACE: CAUSE`, most with `; FIX`. A
/// value that is wrong by its form has its default here.
struct ReadConfig {
  Config config;
  std::vector<std::string> problems;
  std::string file;  // as asked for
};

/// Errors: a file that cannot be read or is no TOML. What values name as files is looked at, but
/// not opened.
Result<ReadConfig> read_config(const ConfigRequest& request);
/// The same, where anything wrong is an error, with a line for each problem.
Result<Config> load_config(const ConfigRequest& request);

/// By their line of `file`; those that are not of the file come last.
void sort_problems(std::vector<std::string>& problems, const std::string& file);

/// What a daemon could not run with although each value has its form: numbers out of bounds, values
/// that contradict each other (config_values.cpp).
void check_values(const Config& config, std::vector<std::string>& problems);

/// What cursors and counters of a [[sources]] or [[sinks]] table are kept under: its `name`, else
/// what there is of path, subject and type. Two with one name would take each other's cursor: an
/// error.
std::string source_name(const ConfigTable& source);
std::string sink_name(const ConfigTable& sink);

/// Opening a pipe or a device may wait for ever, and a start or a reload with it. What is not there
/// is told by who reads it.
Status only_files(const std::vector<std::string>& paths);

/// "256 MiB", "10GB", "4096" -> bytes; nothing on anything else.
bool parse_bytes(std::string_view text, uint64_t& out);

/// `key = value  # origin` for each key, as TOML.
std::string show_config(const Config& config);
/// The example: every key with its meaning and its default.
std::string example_config();

}  // namespace reflex::serve

// See config_toml_error.h.
#include "runtime/serve/config_toml_error.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>

namespace reflex::serve {
namespace {

constexpr std::string_view kBlanks = " \t\r";

std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

std::optional<std::string> line_of(const std::string& file, unsigned number) {
  std::ifstream in(file);
  std::string line;
  for (unsigned i = 0; i < number; ++i) {
    if (!std::getline(in, line)) return std::nullopt;
  }
  return line;
}

/// "auto # why" -> "auto". Of a text without quotes, so that no '#' belongs to it.
std::string_view without_comment(std::string_view value) {
  return trimmed(value.substr(0, value.find('#')));
}

bool in_quotes(std::string_view value) { return value.starts_with('"') || value.starts_with('\''); }

bool is_true_or_false(std::string_view value) {
  std::string lower;
  for (const char c : value) lower += static_cast<char>(c | 0x20);
  return lower == "true" || lower == "false";
}

/// What to write in the place of `line`; "" when it is not clear.
std::string mend(std::string_view line) {
  const size_t eq = line.find('=');
  const std::string_view key = trimmed(line.substr(0, eq));
  if (key.starts_with('[')) return "write a table like [packs], a list entry like [[sources]]";
  if (key.empty() || key.starts_with('#')) return "";
  if (eq == std::string_view::npos) return fmt::format("write KEY = VALUE");
  const std::string_view value = trimmed(line.substr(eq + 1));
  if (value.starts_with('[')) {
    return fmt::format("write {} = [\"A\", \"B\"]: each in quotes, commas between, a ] at the end",
                       key);
  }
  if (in_quotes(value)) return "end the text with the quote that it begins with, on its line";
  const std::string_view bare = without_comment(value);
  if (bare.empty()) return fmt::format("write a value behind {} =", key);
  if (is_true_or_false(bare)) return "write true or false, in small letters";
  if (bare.find_first_of("=\"'") != std::string_view::npos) return "";
  return fmt::format("texts, sizes and times stand in quotes: {} = \"{}\"", key, bare);
}

}  // namespace

Error toml_error(const std::string& file, unsigned line, std::string_view what) {
  if (line == 0) {
    errno = 0;
    const std::ifstream in(file);
    const std::string why = in || errno == 0 ? std::string(what) : std::strerror(errno);
    return Error{fmt::format("{} cannot be read: {}; name a file that is there (an example: `reflex "
                             "config default > reflex.toml`)",
                             file, why)};
  }
  std::string fix;
  const bool twice = what.find("redefine") != std::string_view::npos;
  if (twice) fix = "keep one of them";
  if (const auto text = line_of(file, line); text && !twice) fix = mend(*text);
  if (fix.empty()) fix = "`reflex config default` prints an example with every key";
  return Error{fmt::format("{}:{}: this is no TOML: {}; {}", file, line, what, fix)};
}

}  // namespace reflex::serve

// The checks: include rule, names, sizes, header comments.
#include "tests/tidy/tidy.h"

#include <algorithm>
#include <array>
#include <sstream>

namespace reflex::tidy {

namespace {

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  std::istringstream in{std::string(text)};
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

std::string at(const std::string& path, size_t line) {
  return path + ":" + std::to_string(line) + ": ";
}

bool has_prefix(std::string_view text, const std::vector<std::string>& prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [&](const std::string& prefix) { return text.starts_with(prefix); });
}

/// What an #include line names, without the quotes; empty for other lines.
std::string included(const std::string& line, bool& quoted) {
  const size_t hash = line.find_first_not_of(" \t");
  if (hash == std::string::npos || line[hash] != '#') return {};
  const size_t word = line.find_first_not_of(" \t", hash + 1);
  if (word == std::string::npos || line.compare(word, 7, "include") != 0) return {};
  const size_t open = line.find_first_of("\"<", word + 7);
  if (open == std::string::npos) return {};
  quoted = line[open] == '"';
  const size_t close = line.find(quoted ? '"' : '>', open + 1);
  if (close == std::string::npos) return {};
  return line.substr(open + 1, close - open - 1);
}

bool is_ours(std::string_view name) {
  return name.starts_with("compiler/") || name.starts_with("runtime/") ||
         name.starts_with("tests/");
}

void check_ours(const SourceFile& file, size_t line, const std::string& name,
                const std::vector<std::string>& allowed, Problems& out) {
  const std::string target = folder_of(name);
  if (target == folder_of(file.path)) return;
  if (std::find(allowed.begin(), allowed.end(), target) != allowed.end()) return;
  out.push_back(at(file.path, line) + folder_of(file.path) + " must not include " + name +
                " (tests/tidy/layers.txt)");
}

void check_library(const SourceFile& file, size_t line, const std::string& name,
                   const Layers& layers, Problems& out) {
  for (const auto& [pattern, files] : layers.libraries) {
    if (name.starts_with(pattern) && !has_prefix(file.path, files)) {
      out.push_back(at(file.path, line) + "<" + name + "> is only allowed in " + files.front() +
                    " (tests/tidy/layers.txt)");
    }
  }
}

}  // namespace

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? std::string() : path.substr(0, slash);
}

Layers parse_layers(std::string_view text) {
  Layers layers;
  for (const std::string& line : lines_of(text)) {
    const size_t colon = line.find(':');
    if (line.empty() || line[0] == '#' || colon == std::string::npos) continue;
    const std::vector<std::string> head = words_of(line.substr(0, colon));
    if (head.size() != 2) continue;
    const std::vector<std::string> names = words_of(line.substr(colon + 1));
    if (head[0] == "folder") layers.folders[head[1]] = names;
    if (head[0] == "library") layers.libraries[head[1]] = names;
  }
  return layers;
}

std::map<std::string, std::string> parse_exemptions(std::string_view text) {
  std::map<std::string, std::string> out;
  for (const std::string& line : lines_of(text)) {
    const size_t colon = line.find(": ");
    if (line.empty() || line[0] == '#' || colon == std::string::npos) continue;
    out[line.substr(0, colon)] = line.substr(colon + 2);
  }
  return out;
}

Problems check_includes(const SourceFile& file, const Layers& layers) {
  Problems out;
  const auto layer = layers.folders.find(folder_of(file.path));
  if (layer == layers.folders.end()) {
    out.push_back(at(file.path, 1) + "folder " + folder_of(file.path) +
                  " is not in tests/tidy/layers.txt");
    return out;
  }
  const std::vector<std::string> lines = lines_of(file.text);
  for (size_t i = 0; i < lines.size(); ++i) {
    bool quoted = false;
    const std::string name = included(lines[i], quoted);
    if (name.empty()) continue;
    if (is_ours(name)) {
      check_ours(file, i + 1, name, layer->second, out);
      continue;
    }
    check_library(file, i + 1, name, layers, out);
    const bool listed =
        std::any_of(layers.libraries.begin(), layers.libraries.end(),
                    [&](const auto& library) { return name.starts_with(library.first); });
    if (quoted && !listed) {
      out.push_back(at(file.path, i + 1) + "\"" + name +
                    "\": include by the full path from the root");
    }
  }
  return out;
}

Problems check_name(const std::string& path) {
  static constexpr std::array<std::string_view, 8> kBanned = {
      "util", "utils", "helper", "helpers", "common", "manager", "misc", "stuff"};
  std::string stem = path.substr(path.rfind('/') + 1);
  stem = stem.substr(0, stem.find('.'));
  Problems out;
  std::replace(stem.begin(), stem.end(), '_', ' ');
  for (const std::string& word : words_of(stem)) {
    if (std::find(kBanned.begin(), kBanned.end(), word) != kBanned.end()) {
      out.push_back(path + ": a name with '" + word + "' says nothing");
    }
    if (std::any_of(word.begin(), word.end(), [](char c) { return c >= 'A' && c <= 'Z'; })) {
      out.push_back(path + ": file names are snake_case");
    }
  }
  return out;
}

Problems check_size(const SourceFile& file, const std::map<std::string, std::string>& exemptions) {
  const size_t limit = file.path.ends_with(".h") ? 300 : 500;
  const size_t lines = static_cast<size_t>(std::count(file.text.begin(), file.text.end(), '\n'));
  const bool exempt = exemptions.contains(file.path);
  if (lines > limit && !exempt) {
    return {file.path + ": " + std::to_string(lines) + " lines, the limit is " +
            std::to_string(limit) + " (or give a reason in tests/tidy/exemptions.txt)"};
  }
  if (lines <= limit && exempt) {
    return {file.path + ": within the limit now: remove it from tests/tidy/exemptions.txt"};
  }
  return {};
}

Problems check_header_comment(const SourceFile& file) {
  if (file.text.starts_with("// ")) return {};
  return {at(file.path, 1) + "must start with a comment that says what the file is"};
}

Problems check_pragma_once(const SourceFile& file) {
  if (!file.path.ends_with(".h") || file.text.find("\n#pragma once\n") != std::string::npos) {
    return {};
  }
  return {at(file.path, 1) + "no #pragma once"};
}

}  // namespace reflex::tidy

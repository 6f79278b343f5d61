// The checks of tests/tidy as pure functions over file texts, so that each of them can be tested
// on a text that breaks its rule. No file access here.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace reflex::tidy {

/// Parsed layers.txt.
struct Layers {
  std::map<std::string, std::vector<std::string>> folders;
  std::map<std::string, std::vector<std::string>> libraries;
};
Layers parse_layers(std::string_view text);

struct SourceFile {
  std::string path;  // from the root, with slashes
  std::string text;
};

/// Each problem is "path:line: what is wrong".
using Problems = std::vector<std::string>;

Problems check_includes(const SourceFile& file, const Layers& layers);
Problems check_name(const std::string& path);
Problems check_size(const SourceFile& file, const std::map<std::string, std::string>& exemptions);
Problems check_header_comment(const SourceFile& file);
Problems check_pragma_once(const SourceFile& file);

/// Lines "PATH: reason" of exemptions.txt.
std::map<std::string, std::string> parse_exemptions(std::string_view text);

std::string folder_of(const std::string& path);

}  // namespace reflex::tidy

// file: URIs and paths.
#pragma once

#include <optional>
#include <string>

namespace reflex::lsp {

/// "file:///a%20b.rfx" -> "/a b.rfx"; nothing for another scheme (`untitled:`, `git:`).
std::optional<std::string> path_of_uri(const std::string& uri);
/// An absolute path as a URI, percent-encoded like VS Code does it.
std::string uri_of_path(const std::string& path);

}  // namespace reflex::lsp

// SourceMap: see source_map.h. Offsets are bytes of the text after the BOM was stripped.
#include "compiler/source/source_map.h"

#include <algorithm>
#include <utility>

#include "runtime/base/check.h"

namespace reflex::source {
namespace {

constexpr std::string_view kBom = "\xEF\xBB\xBF";

/// True for the first byte of a code point (not a UTF-8 continuation byte).
bool starts_code_point(char c) { return (static_cast<unsigned char>(c) & 0xC0u) != 0x80u; }

}  // namespace

FileId SourceMap::add(std::string path, std::string text) {
  if (std::string_view(text).substr(0, kBom.size()) == kBom) {
    text.erase(0, kBom.size());
  }
  File file;
  file.path = std::move(path);
  file.text = std::move(text);
  file.line_starts.push_back(0);
  for (size_t i = 0; i < file.text.size(); ++i) {
    if (file.text[i] == '\n') {
      file.line_starts.push_back(static_cast<uint32_t>(i + 1));
    }
  }
  files_.push_back(std::move(file));
  return static_cast<FileId>(files_.size() - 1);
}

std::string_view SourceMap::path(FileId file) const {
  RFX_CHECK(file < files_.size());
  return files_[file].path;
}

std::string_view SourceMap::text(FileId file) const {
  RFX_CHECK(file < files_.size());
  return files_[file].text;
}

LineColumn SourceMap::locate(FileId file, uint32_t offset) const {
  RFX_CHECK(file < files_.size());
  const File& f = files_[file];
  offset = std::min(offset, static_cast<uint32_t>(f.text.size()));
  const auto after = std::upper_bound(f.line_starts.begin(), f.line_starts.end(), offset);
  const uint32_t start = *(after - 1);
  LineColumn place;
  place.line = static_cast<uint32_t>(after - f.line_starts.begin());
  for (uint32_t i = start; i < offset; ++i) {
    place.column += starts_code_point(f.text[i]) ? 1u : 0u;
  }
  return place;
}

std::string_view SourceMap::line(FileId file, uint32_t line) const {
  RFX_CHECK(file < files_.size());
  const File& f = files_[file];
  if (line == 0 || line > f.line_starts.size()) {
    return {};
  }
  const size_t begin = f.line_starts[line - 1];
  size_t end = line < f.line_starts.size() ? f.line_starts[line] : f.text.size();
  while (end > begin && (f.text[end - 1] == '\n' || f.text[end - 1] == '\r')) {
    --end;
  }
  return std::string_view(f.text).substr(begin, end - begin);
}

Span cover(Span a, Span b) {
  return Span{a.file, std::min(a.begin, b.begin), std::max(a.end, b.end)};
}

}  // namespace reflex::source

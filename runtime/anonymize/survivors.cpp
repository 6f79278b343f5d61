// See survivors.h.
#include "runtime/anonymize/survivors.h"

#include <algorithm>
#include <cctype>
#include <cstring>

#include "runtime/anonymize/fields.h"

namespace reflex::anonymize {
namespace {

constexpr size_t kPrefixBytes = 4;  // the filter looks at so many
constexpr size_t kAnywhereBytesMin = 6;
constexpr size_t kBareDigitsMin = 6;
constexpr size_t kSurvivorsMax = 20;  // Why: one is too many; a person reads a few

size_t prefix_hash(const char* p) {
  uint32_t v;
  std::memcpy(&v, p, sizeof v);
  return (v * 2654435761u) >> 16;
}

bool alnum(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }

/// The alphabet of pseudonyms (pseudonyms.h).
bool pseudonym_like(std::string_view s) {
  return std::all_of(s.begin(), s.end(),
                     [](char c) { return (c >= 'a' && c <= 'z') || (c >= '2' && c <= '7'); });
}

/// Inside a JSON string a name stands as dump() writes it.
std::string as_written(const std::string& name) {
  std::string out;
  for (const char c : name) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

}  // namespace

SurvivorSearch::SurvivorSearch(const NameBook& book, const std::set<std::string>& kept_words,
                               const std::set<std::string>& allow)
    : book_(book), kept_words_(kept_words) {
  for (size_t k = 0; k < static_cast<size_t>(NameKind::kCount); ++k) {
    const auto kind = static_cast<NameKind>(k);
    for (const auto& [name, pseudonym] : book.names(kind)) {
      if (allow.count(name) == 0) add(kind, name);
    }
  }
  std::sort(lengths_.begin(), lengths_.end());
  lengths_.erase(std::unique(lengths_.begin(), lengths_.end()), lengths_.end());
}

void SurvivorSearch::add(NameKind kind, const std::string& name) {
  const bool weak =
      kind == NameKind::kLabel || kind == NameKind::kSource || kind == NameKind::kOwner;
  if (weak || name.size() < kPrefixBytes || is_digits(name) || as_written(name) != name) {
    whole_.emplace(name, kind);
    return;
  }
  const bool anywhere = name.size() >= kAnywhereBytesMin && !pseudonym_like(name);
  if (!inside_.emplace(name, Name{kind, !anywhere}).second) return;
  first_bytes_.set(prefix_hash(name.data()));
  lengths_.push_back(name.size());
}

void SurvivorSearch::search(std::string_view text, uint64_t first_line, const std::string& file,
                            std::vector<Survivor>& out) const {
  for (uint64_t number = first_line; !text.empty() && out.size() < kSurvivorsMax; ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    search_line(text.substr(0, end), number, file, out);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

void SurvivorSearch::search_line(std::string_view line, uint64_t number, const std::string& file,
                                 std::vector<Survivor>& out) const {
  for (size_t at = 0; at + kPrefixBytes <= line.size(); ++at) {
    if (first_bytes_.test(prefix_hash(line.data() + at))) match_at(line, at, number, file, out);
  }
  match_whole(line, number, file, out);
}

void SurvivorSearch::match_at(std::string_view line, size_t at, uint64_t number,
                              const std::string& file, std::vector<Survivor>& out) const {
  for (const size_t length : lengths_) {
    if (at + length > line.size()) break;
    const std::string_view candidate = line.substr(at, length);
    const auto it = inside_.find(candidate);
    if (it == inside_.end()) continue;
    const bool glued =
        (at > 0 && alnum(line[at - 1]) && alnum(candidate.front())) ||
        (at + length < line.size() && alnum(line[at + length]) && alnum(candidate.back()));
    if (it->second.token && glued) continue;
    // A member of the format that somebody also named something after.
    const bool key = at > 0 && line[at - 1] == '"' && line.substr(at + length, 2) == "\":";
    if (key && field_of(candidate).use != FieldUse::kUnknown) continue;
    if (out.size() < kSurvivorsMax) {
      out.push_back(
          {file, number, at + 1, std::string(word(it->second.kind)), std::string(candidate)});
    }
  }
}

void SurvivorSearch::match_whole(std::string_view line, uint64_t number, const std::string& file,
                                 std::vector<Survivor>& out) const {
  const auto report = [&](size_t at, std::string_view kind, std::string_view name) {
    if (out.size() < kSurvivorsMax) {
      out.push_back({file, number, at + 1, std::string(kind), std::string(name)});
    }
  };
  for (size_t at = 0; at < line.size(); ++at) {
    if (line[at] == '"') {
      size_t end = at + 1;
      while (end < line.size() && line[end] != '"') end += line[end] == '\\' ? 2 : 1;
      std::string text;
      for (size_t i = at + 1; i < std::min(end, line.size()); ++i) {
        if (line[i] == '\\' && i + 1 < end) ++i;
        text += line[i];
      }
      at = end;
      if (line.substr(std::min(end + 1, line.size()), 1) == ":" &&
          field_of(text).use != FieldUse::kUnknown) {
        continue;
      }
      const auto it = whole_.find(text);
      const bool weak =
          it != whole_.end() && (it->second == NameKind::kLabel ||
                                 it->second == NameKind::kSource || it->second == NameKind::kOwner);
      if (it != whole_.end() && !(weak && kept_words_.count(text) != 0)) {
        report(end - text.size(), word(it->second), text);
      } else if (it == whole_.end() && book_.is_id(text)) {
        report(end - text.size(), word(NameKind::kEventId), text);
      }
    } else if (std::isdigit(static_cast<unsigned char>(line[at])) != 0) {
      size_t end = at;
      while (end < line.size() && (alnum(line[end]) || line[end] == '.')) ++end;
      const std::string_view number_text = line.substr(at, end - at);
      const auto it =
          number_text.size() >= kBareDigitsMin ? whole_.find(number_text) : whole_.end();
      if (it != whole_.end()) report(at, word(it->second), number_text);
      at = end - 1;
    }
  }
}

}  // namespace reflex::anonymize

// HTML and terminal escapes; see escape.h.
#include "runtime/explain/escape.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace reflex::explain {
namespace {

/// Bytes of the well-formed UTF-8 character at the front of `s`; 0 when there is none.
size_t character_bytes(std::string_view s) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(s[i]); };
  const unsigned lead = byte(0);
  if (lead < 0x80) return 1;
  const size_t n = lead >= 0xF0 && lead < 0xF5 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC2 ? 2 : 0;
  if (n == 0 || lead >= 0xF5 || s.size() < n) return 0;
  uint32_t code = lead & (0x7Fu >> n);
  for (size_t i = 1; i < n; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
    code = code << 6 | (byte(i) & 0x3F);
  }
  const bool overlong = (n == 3 && code < 0x800) || (n == 4 && code < 0x10000);
  return overlong || (code >= 0xD800 && code < 0xE000) || code > 0x10FFFF ? 0 : n;
}

/// U+202A..202E, U+2066..2069, U+200E, U+200F: they can make a name look like another one.
bool turns_direction(std::string_view c) {
  if (c.size() != 3 || c[0] != '\xE2') return false;
  const auto b = static_cast<unsigned char>(c[1]);
  const auto d = static_cast<unsigned char>(c[2]);
  return (b == 0x80 && ((d >= 0xAA && d <= 0xAE) || d == 0x8E || d == 0x8F)) ||
         (b == 0x81 && d >= 0xA6 && d <= 0xA9);
}

std::string_view reference(char c) {
  switch (c) {
    case '&':
      return "&amp;";
    case '<':
      return "&lt;";
    case '>':
      return "&gt;";
    case '"':
      return "&quot;";
    case '\'':
      return "&#39;";
    default:
      return {};
  }
}

bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; }

void clean(std::string& s) { s = printable(std::string_view(s)); }

void clean(abi::Hypothesis& h) {
  for (std::string* s :
       {&h.node, &h.entity, &h.cause, &h.hw_class, &h.severity, &h.remedy, &h.hazard_origin}) {
    clean(*s);
  }
  for (auto& c : h.contributions) {
    for (std::string* s : {&c.signal, &c.entity, &c.scope, &c.limit_origin, &c.leak_origin,
                           &c.rule.file, &c.signal_where.file}) {
      clean(*s);
    }
    for (auto& e : c.events) clean(e.source), clean(e.id);
  }
  for (auto& e : h.explained_away) clean(e.signal), clean(e.entity), clean(e.by);
  for (auto& e : h.suppressed) clean(e.signal), clean(e.entity), clean(e.by);
  for (auto& e : h.unobserved) clean(e.signal), clean(e.entity), clean(e.reason);
}

}  // namespace

std::string html(std::string_view text) {
  std::string out;
  out.reserve(text.size() + 8);
  while (!text.empty()) {
    const size_t n = character_bytes(text);
    if (n == 0) {
      out += "\xEF\xBF\xBD";
      text.remove_prefix(1);
      continue;
    }
    const std::string_view c = text.substr(0, n);
    text.remove_prefix(n);
    if (n == 1 && is_control(c[0])) {
      out += ' ';
    } else if (n == 1 && !reference(c[0]).empty()) {
      out += reference(c[0]);
    } else if (!turns_direction(c)) {
      out += c;
    }
  }
  return out;
}

std::string printable(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (is_control(c)) c = '?';
  }
  // C1 controls in UTF-8 (U+0080..U+009F) also steer terminals.
  for (size_t i = 0; i + 1 < out.size(); ++i) {
    const auto next = static_cast<unsigned char>(out[i + 1]);
    if (out[i] == '\xC2' && next >= 0x80 && next < 0xA0) out[i] = out[i + 1] = '?';
  }
  return out;
}

abi::Verdict printable(abi::Verdict v) {
  for (std::string* s : {&v.id, &v.incident, &v.incident_type, &v.job, &v.symptom, &v.opened_by,
                         &v.pack_sha256, &v.model_sha256, &v.engine, &v.level, &v.external}) {
    clean(*s);
  }
  for (auto* list : {&v.pack_names, &v.baseline_shifts, &v.culprits}) {
    for (std::string& s : *list) clean(s);
  }
  for (auto& n : v.nodes) clean(n.node), clean(n.level), clean(n.top_cause), clean(n.top_entity);
  for (auto& h : v.hypotheses) clean(h);
  for (auto& c : v.counterfactual) {
    clean(c.answer);
    for (std::string& w : c.without) clean(w);
  }
  return v;
}

std::string shortened(std::string_view text, size_t width) {
  std::vector<std::string_view> characters;
  for (std::string_view rest = text; !rest.empty();) {
    const size_t n = std::max<size_t>(character_bytes(rest), 1);
    characters.push_back(rest.substr(0, n));
    rest.remove_prefix(n);
  }
  if (characters.size() <= width || width < 5) return std::string(text);
  const size_t head = (width - 3) / 2;
  const size_t tail = width - 3 - head;
  std::string out;
  for (size_t i = 0; i < head; ++i) out += characters[i];
  out += "...";
  for (size_t i = characters.size() - tail; i < characters.size(); ++i) out += characters[i];
  return out;
}

}  // namespace reflex::explain

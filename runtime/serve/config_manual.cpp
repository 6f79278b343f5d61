// See config_manual.h. Source of the macros: man(7), groff_man(7).
#include "runtime/serve/config_manual.h"

#include <fmt/format.h>

#include "runtime/serve/config.h"
#include "runtime/serve/config_change.h"

namespace reflex::serve {
namespace {

std::string_view form_word(ValueForm form) {
  switch (form) {
    case ValueForm::kText:
      return "text";
    case ValueForm::kPath:
      return "path";
    case ValueForm::kPaths:
      return "list of paths";
    case ValueForm::kTexts:
      return "list of texts";
    case ValueForm::kBool:
      return "true or false";
    case ValueForm::kInt:
      return "whole number";
    case ValueForm::kBytes:
      return "size, like 64MiB";
    case ValueForm::kDuration:
      return "time, like 5m";
  }
  return "";
}

std::string key_entry(const KeySpec& spec, bool top) {
  const std::string standard =
      spec.standard.empty() ? "none" : fmt::format("\\fI{}\\fR", roff_text(spec.standard));
  return fmt::format(".TP\n\\fB{}\\fR ({}; default: {})\n{}{}\n", roff_text(spec.key),
                     form_word(spec.form), standard, roff_text(spec.doc),
                     top && is_live_key(spec.key) ? "\nTaken at a reload." : "");
}

}  // namespace

std::string roff_text(std::string_view text) {
  std::string out;
  bool line_begins = true;
  for (const char c : text) {
    if (line_begins && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
    line_begins = c == '\n';
  }
  return out;
}

std::string config_manual() {
  std::string out =
      ".TH REFLEX.TOML 5 \"\" \"reflex\" \"File formats\"\n"
      ".SH NAME\nreflex.toml \\- configuration of reflex serve\n"
      ".SH DESCRIPTION\n"
      "A TOML file; without\n.B \\-\\-config\nit is\n.IR /etc/reflex/reflex.toml .\n"
      "The environment (\\fBREFLEX_\\fR and the key in capitals, dots as _) goes over the file,\n"
      "and \\fB\\-\\-set\\fR \\fIKEY\\fR=\\fIVALUE\\fR over both. Relative paths are relative to "
      "the "
      "file's folder.\nAn unknown key is an error.\n.B reflex config check\nreads it as the "
      "daemon would\n(a start looks with the same eyes, at all but the packs),\n.B reflex config show\nprints every value in force and where it comes from,\n"
      ".B reflex config default\nan example with every key.\n"
      ".PP\nA reload (\\fBSIGHUP\\fR, \\fBreflex reload\\fR) reads the file anew. Keys that are "
      "marked below come into\nforce with the new set of packs; changes of the others are named, "
      "and need a restart.\n"
      ".SH KEYS\n";
  for (const KeySpec& spec : config_keys()) out += key_entry(spec, true);
  out += ".SH SOURCES\nAny number of tables\n.BR [[sources]] :\n";
  for (const KeySpec& spec : source_keys()) out += key_entry(spec, false);
  out += ".SH SINKS\nAny number of tables\n.BR [[sinks]] :\n";
  for (const KeySpec& spec : sink_keys()) out += key_entry(spec, false);
  return out + ".SH SEE ALSO\n.BR reflex (1),\n.BR reflex\\-serve (8)\n";
}

}  // namespace reflex::serve

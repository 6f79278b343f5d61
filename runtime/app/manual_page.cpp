// `reflex help --manual`: reflex(1), made from the command line's own definition, so that no
// command or option can be missing or stale.
#include "runtime/app/manual_page.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/serve/config_manual.h"

namespace reflex::app {
namespace {

using serve::roff_text;

std::string options_of(const CLI::App& app) {
  std::string out;
  for (const CLI::Option* option : app.get_options()) {
    std::string names;
    for (const auto& name : option->get_snames()) names += (names.empty() ? "-" : ", -") + name;
    for (const auto& name : option->get_lnames()) names += (names.empty() ? "--" : ", --") + name;
    if (names.empty()) names = option->get_name(/*positional=*/true);
    const bool value = !option->get_positional() && option->get_items_expected_max() > 0;
    out += fmt::format(".TP\n\\fB{}\\fR{}\n{}\n", roff_text(names), value ? " \\fIVALUE\\fR" : "",
                       roff_text(option->get_description()));
  }
  return out;
}

void command(const CLI::App& app, const std::string& before, std::string& out) {
  const std::string name = before + app.get_name();
  out += fmt::format(".SS \"reflex {}\"\n{}\n", roff_text(name), roff_text(app.get_description()));
  out += options_of(app);
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    command(*sub, name + " ", out);
  }
}

}  // namespace

std::string manual_page(const CLI::App& app) {
  std::string out = fmt::format(
      ".TH REFLEX 1 \"\" \"reflex\" \"User commands\"\n"
      ".SH NAME\nreflex \\- names the faulty node of a training cluster from its events\n"
      ".SH SYNOPSIS\n.B reflex\n.I COMMAND\n.RI [ OPTION ]...\n"
      ".SH DESCRIPTION\n{}\n.SH OPTIONS\nOf every command; they may stand after it.\n",
      roff_text(app.get_description()));
  out += options_of(app) + ".SH COMMANDS\n";
  std::vector<const CLI::App*> commands = app.get_subcommands([](const CLI::App*) { return true; });
  std::sort(commands.begin(), commands.end(),
            [](const CLI::App* a, const CLI::App* b) { return a->get_name() < b->get_name(); });
  for (const CLI::App* sub : commands) command(*sub, "", out);
  return out +
         ".SH EXIT STATUS\n0 well; 1 findings (a lint, a failed test, a difference); 2 the packs "
         "are not "
         "valid;\n3 usage, configuration or files; 4 an internal error, with a report file; 130, "
         "143 "
         "ended by a signal.\n"
         ".SH FILES\n.TP\n.I /etc/reflex/reflex.toml\nConfiguration of the daemon.\n.TP\n"
         ".I /usr/share/reflex/rules, /usr/share/reflex/hwprofiles\nThe standard packs and "
         "hardware "
         "profiles.\n"
         ".SH SEE ALSO\n.BR reflex.toml (5),\n.BR reflex\\-serve (8)\n";
}

}  // namespace reflex::app

// `reflex completion bash|zsh`: completion scripts, made from the command line's own definition.
//
// Contract: every command, option and fixed word that CLI11 knows is in the script, so it cannot be
// stale. Values without fixed words complete to files. Install: `source <(reflex completion bash)`.
#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "compiler/diag/diagnostic.h"
#include "runtime/app/commands.h"

namespace reflex::app {
namespace {

struct Flag {
  std::vector<std::string> names;  // "-w", "--write"
  std::string what;
  bool takes_value = false;
  std::vector<std::string> words;  // of the value; empty: a file
};

struct Entry {
  std::string name;
  std::string what;
  std::vector<Flag> flags;
  std::vector<std::string> words;  // of a positional with fixed words
};

/// The words of IsMember, from "{text,json}" in the description of its check.
std::vector<std::string> words_of(const CLI::Option& option) {
  const std::string text = option.get_type_name();
  const size_t open = text.find('{');
  const size_t close = text.find('}', open);
  std::vector<std::string> words;
  if (open == std::string::npos || close == std::string::npos) return words;
  std::istringstream in(text.substr(open + 1, close - open - 1));
  for (std::string word; std::getline(in, word, ',');) words.push_back(word);
  return words;
}

std::vector<Flag> flags_of(const CLI::App& app) {
  std::vector<Flag> flags;
  for (const CLI::Option* option : app.get_options()) {
    Flag flag;
    for (const auto& name : option->get_snames()) flag.names.push_back("-" + name);
    for (const auto& name : option->get_lnames()) flag.names.push_back("--" + name);
    if (flag.names.empty()) continue;
    flag.what = option->get_description();
    flag.takes_value = option->get_items_expected_max() > 0;
    flag.words = words_of(*option);
    flags.push_back(std::move(flag));
  }
  return flags;
}

std::vector<Entry> entries_of(const CLI::App& app) {
  std::vector<Entry> entries;
  const std::vector<Flag> common = flags_of(app);
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    Entry entry{sub->get_name(), sub->get_description(), flags_of(*sub), {}};
    for (const Flag& flag : common) {
      const bool known = std::any_of(entry.flags.begin(), entry.flags.end(),
                                     [&](const Flag& f) { return f.names == flag.names; });
      if (!known && flag.names.back() != "--version") entry.flags.push_back(flag);
    }
    for (const CLI::Option* option : sub->get_options()) {
      if (!option->get_positional()) continue;
      const auto words = words_of(*option);
      entry.words.insert(entry.words.end(), words.begin(), words.end());
    }
    if (entry.name == "help") {
      for (const auto& row : diag::all_ids()) entry.words.push_back(diag::to_text(row.id));
    }
    entries.push_back(std::move(entry));
  }
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.name < b.name; });
  return entries;
}

std::string joined(const std::vector<std::string>& words, const char* between) {
  return fmt::format("{}", fmt::join(words, between));
}

std::string bash_script(const std::vector<Entry>& entries) {
  std::string commands;
  std::string options;
  std::string values;
  for (const Entry& entry : entries) {
    commands += (commands.empty() ? "" : " ") + entry.name;
    std::string names;
    for (const Flag& flag : entry.flags) {
      names += (names.empty() ? "" : " ") + joined(flag.names, " ");
      if (!flag.takes_value || flag.words.empty()) continue;
      std::string patterns;
      for (const auto& name : flag.names) {
        patterns += (patterns.empty() ? "" : "|") + entry.name + ":" + name;
      }
      values += fmt::format("    {}) words='{}' ;;\n", patterns, joined(flag.words, " "));
    }
    options += fmt::format("    {}) options='{}' words='{}' ;;\n", entry.name, names,
                           joined(entry.words, " "));
  }
  return fmt::format(R"(# bash completion of reflex; made by `reflex completion bash`.
_reflex() {{
  local cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD-1]}}
  local command='' options='' words='' i
  for ((i = 1; i < COMP_CWORD; i++)); do
    case ${{COMP_WORDS[i]}} in
    -*) ;;
    *) command=${{COMP_WORDS[i]}}; break ;;
    esac
  done
  COMPREPLY=()
  if [[ -z $command ]]; then
    COMPREPLY=($(compgen -W '{}' -- "$cur"))
    return
  fi
  case $command in
{}    esac
  case $command:$prev in
{}    esac
  if [[ $cur == -* ]]; then
    COMPREPLY=($(compgen -W "$options" -- "$cur"))
  elif [[ -n $words ]]; then
    COMPREPLY=($(compgen -W "$words" -- "$cur"))
  fi
}}
complete -o default -F _reflex reflex
)",
                     commands, options, values);
}

/// For a specification of _arguments in single quotes.
std::string zsh_escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\'') {
      out += "'\\''";
    } else if (c == '[' || c == ']' || c == ':' || c == '\\') {
      out += std::string("\\") + c;
    } else {
      out += c;
    }
  }
  return out;
}

std::string zsh_script(const std::vector<Entry>& entries) {
  std::string commands;
  std::string cases;
  for (const Entry& entry : entries) {
    commands += fmt::format("    '{}:{}'\n", entry.name, zsh_escaped(entry.what));
    cases += fmt::format("    {})\n      _arguments \\\n", entry.name);
    for (const Flag& flag : entry.flags) {
      for (const auto& name : flag.names) {
        std::string value;
        if (flag.takes_value) {
          value = flag.words.empty() ? ":value:_files" : ":value:(" + joined(flag.words, " ") + ")";
        }
        cases += fmt::format("        '{}[{}]{}' \\\n", name, zsh_escaped(flag.what), value);
      }
    }
    cases += entry.words.empty()
                 ? "        '*:file:_files'\n      ;;\n"
                 : fmt::format("        '*:word:({})'\n      ;;\n", joined(entry.words, " "));
  }
  return fmt::format(R"(#compdef reflex
# zsh completion of reflex; made by `reflex completion zsh`.
_reflex() {{
  local -a commands
  commands=(
{}  )
  if (( CURRENT == 2 )); then
    _describe command commands
    return
  fi
  local command=$words[2]
  shift words
  (( CURRENT-- ))
  case $command in
{}  esac
}}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
  _reflex "$@"
else
  compdef _reflex reflex
fi
)",
                     commands, cases);
}

}  // namespace

Command add_completion(CLI::App& app, const CommonFlags&) {
  auto shell = std::make_shared<std::string>();
  auto* sub = app.add_subcommand("completion", "print a completion script of the shell");
  sub->add_option("shell", *shell, "bash or zsh")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh"}));
  return [sub, shell, &app]() -> int {
    if (!sub->parsed()) return -1;
    const auto entries = entries_of(app);
    fmt::print("{}", *shell == "bash" ? bash_script(entries) : zsh_script(entries));
    return kOk;
  };
}

}  // namespace reflex::app

// Compares a table of codes with the lists of a policy file (code_table.h).
#include "tests/tools/code_table.h"

#include <cctype>
#include <map>
#include <set>
#include <sstream>

namespace reflex::tools {
namespace {

using CodeLists = std::map<int64_t, std::set<std::string>>;

void add_codes(const ast::Expr& element, const std::string& list, CodeLists& out) {
  const bool range = element.kind == ast::ExprKind::kRange;
  const int64_t first = range ? element.args[0]->int_value : element.int_value;
  const int64_t last = range ? element.args[1]->int_value : element.int_value;
  for (int64_t code = first; code <= last; ++code) out[code].insert(list);
}

CodeLists lists_of(const std::vector<ast::Module>& modules, const std::string& prefix) {
  CodeLists out;
  for (const ast::Module& module : modules) {
    for (const ast::Decl& decl : module.decls) {
      const auto* list = std::get_if<ast::ListDecl>(&decl.node);
      if (list == nullptr || !list->value || !list->name.text.starts_with(prefix)) continue;
      for (const auto& element : list->value->args) add_codes(*element, list->name.text, out);
    }
  }
  return out;
}

std::map<int64_t, std::string> rows_of(const std::string& csv) {
  std::map<int64_t, std::string> out;
  std::istringstream lines(csv);
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || std::isdigit(static_cast<unsigned char>(line.front())) == 0) continue;
    out[std::stoll(line)] = line.substr(line.rfind(',') + 1);
  }
  return out;
}

}  // namespace

std::vector<std::string> table_differences(const std::vector<ast::Module>& modules,
                                           const std::string& prefix, const std::string& csv) {
  const CodeLists lists = lists_of(modules, prefix);
  const auto rows = rows_of(csv);
  std::vector<std::string> out;
  if (rows.empty()) out.push_back(prefix + ": the table is empty or missing");
  for (const auto& [code, list] : rows) {
    const auto found = lists.find(code);
    if (found == lists.end()) {
      out.push_back(prefix + ": code " + std::to_string(code) + " stands in no list");
    } else if (found->second != std::set<std::string>{list}) {
      for (const std::string& name : found->second) {
        if (name == list) continue;
        out.push_back(prefix + ": code " + std::to_string(code) + " stands in " + name +
                      ", the table says " + list);
      }
    }
  }
  for (const auto& [code, names] : lists) {
    if (rows.contains(code)) continue;
    out.push_back(prefix + ": code " + std::to_string(code) + " of " + *names.begin() +
                  " is not in the table");
  }
  return out;
}

}  // namespace reflex::tools

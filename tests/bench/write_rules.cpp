// Writes a rule set of the workload: write_rules rfx|json|cpp COUNT FILE
#include <cstdlib>
#include <fstream>
#include <iostream>

#include "tests/bench/workload_rules.h"

int main(int argc, char** argv) {
  using namespace reflex::bench;
  if (argc != 4) {
    std::cerr << "usage: write_rules rfx|json|cpp COUNT FILE\n";
    return 3;
  }
  const std::string form = argv[1];
  const auto rules = make_rules(static_cast<uint32_t>(std::strtoul(argv[2], nullptr, 10)));
  std::ofstream out(argv[3], std::ios::binary);
  if (form == "rfx") {
    out << to_rfx(rules);
  } else if (form == "json") {
    out << to_json(rules);
  } else if (form == "cpp") {
    out << to_cpp(rules);
  } else {
    std::cerr << "write_rules: unknown form '" << form << "'\n";
    return 3;
  }
  out.flush();
  if (!out) {
    std::cerr << "write_rules: cannot write " << argv[3] << "\n";
    return 3;
  }
  return 0;
}

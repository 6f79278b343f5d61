// The part of the SARIF 2.1.0 schema that our logs use, as a table, and a check against it.
//
// Source: OASIS SARIF 2.1.0 errata 01, sarif-schema-2.1.0.json: every object of it has
// "additionalProperties": false, so a member that the table does not list is a mistake (of ours or
// of the table, which lists only what is written here).
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace reflex::test {

/// One sentence for each place that does not have the shape; empty: the log is well-formed.
std::vector<std::string> sarif_problems(const nlohmann::json& log);

}  // namespace reflex::test

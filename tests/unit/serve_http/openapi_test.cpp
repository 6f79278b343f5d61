// The OpenAPI document and the routes are the same set; roles and statuses agree.
#include <set>

#include "runtime/serve/http/api.h"
#include "tests/unit/serve_http/served.h"

namespace reflex::serve {
namespace {

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

const char* word(Role role) {
  switch (role) {
    case Role::kOpen:
      return "open";
    case Role::kRead:
      return "read";
    case Role::kIngest:
      return "ingest";
    case Role::kOperate:
      break;
  }
  return "operate";
}

TEST(OpenApi, EveryRouteIsDocumentedAndViceVersa) {
  const Served s;
  const auto document = json_of(s.get("/api/v1/openapi.json"));
  ASSERT_EQ(document["openapi"], "3.1.0");
  HttpConfig config;
  Api api(config, *s.daemon, *s.store);
  std::set<std::string> registered;
  for (const Route& route : api.router().routes()) {
    const std::string method = lower(route.method);
    registered.insert(method + " " + route.pattern);
    ASSERT_TRUE(document["paths"].contains(route.pattern)) << route.pattern;
    ASSERT_TRUE(document["paths"][route.pattern].contains(method))
        << route.pattern << " " << method;
    const auto& operation = document["paths"][route.pattern][method];
    EXPECT_EQ(operation["x-role"], word(route.role)) << route.pattern;
    EXPECT_EQ(operation["security"].empty(), route.role == Role::kOpen) << route.pattern;
    std::set<std::string> asked;
    for (const auto& p : operation.value("parameters", nlohmann::json::array())) {
      if (p["in"] == "query") asked.insert(p["name"].get<std::string>());
    }
    EXPECT_EQ(asked, std::set<std::string>(route.params.begin(), route.params.end()))
        << method << " " << route.pattern;
    // Every {name} of the path is a parameter.
    for (const auto& part : {std::string("id"), std::string("node")}) {
      if (route.pattern.find("{" + part + "}") == std::string::npos) continue;
      bool found = false;
      for (const auto& p : operation["parameters"])
        found = found || (p["in"] == "path" && p["name"] == part);
      EXPECT_TRUE(found) << route.pattern;
    }
  }
  std::set<std::string> ids;
  for (const auto& [path, methods] : document["paths"].items()) {
    for (const auto& [method, operation] : methods.items()) {
      EXPECT_TRUE(registered.contains(method + " " + path))
          << "documented only: " << method << " " << path;
      EXPECT_TRUE(ids.insert(operation["operationId"].get<std::string>()).second) << path;
      EXPECT_FALSE(operation["summary"].get<std::string>().empty());
    }
  }
  EXPECT_GE(registered.size(), 30u);
}

TEST(OpenApi, EveryReferenceLeadsSomewhere) {
  const Served s;
  const auto document = json_of(s.get("/api/v1/openapi.json"));
  size_t count = 0;
  const std::function<void(const nlohmann::json&)> walk = [&](const nlohmann::json& node) {
    if (node.is_object() && node.contains("$ref")) {
      const std::string ref = node["$ref"];
      ASSERT_TRUE(ref.starts_with("#/")) << ref;
      EXPECT_TRUE(document.contains(nlohmann::json::json_pointer(ref.substr(1)))) << ref;
      ++count;
    }
    if (node.is_structured()) {
      for (const auto& child : node) walk(child);
    }
  };
  walk(document);
  EXPECT_GT(count, 100u);
}

TEST(OpenApi, TheConsoleCanBeLeftOut) {
  const Served s(true, [](HttpConfig& c) { c.console = false; });
  EXPECT_EQ(s.get("/").status, 404);
  EXPECT_EQ(s.get("/console.js").status, 404);
}

}  // namespace
}  // namespace reflex::serve

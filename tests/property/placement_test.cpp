// A `job.start` that names no nodes leaves the placement of the same instant alone, whichever line
// comes first.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "compiler/driver/compile.h"
#include "runtime/engine/engine.h"
#include "runtime/engine/pipeline.h"

namespace reflex {
namespace {

TEST(Placement, AStartWithoutNodesKeepsThePlacementOfItsInstant) {
  auto compiled = compiler::compile_text({{"p/pack.rfx", "pack p 1.0.0\n"}}, {});
  ASSERT_TRUE(compiled.ok());
  const auto pack = compiled.value()->pack;
  ASSERT_NE(pack, nullptr);
  const std::string start = R"({"ts":1760000000000,"kind":"job.start","job":"j"})";
  const std::string nodes = R"({"ts":1760000000000,"kind":"job.nodes","job":"j","nodes":["a","b"]})";
  const auto path = std::filesystem::temp_directory_path() /
                    fmt::format("reflex_placement_{}.ndjson", getpid());
  for (const auto& text : {start + "\n" + nodes + "\n", nodes + "\n" + start + "\n"}) {
    std::ofstream(path) << text;
    engine::EngineSinks sinks;
    sinks.verdict = [](abi::Verdict&&) {};
    auto engine = engine::Engine::create(pack, {}, sinks);
    ASSERT_TRUE(engine.ok());
    engine::PipelineOptions options;
    options.events = {path.string()};
    ASSERT_TRUE(engine::run_pipeline(pack, *engine.value(), options, {}).ok());
    const SymbolId job = pack->symbols->find("j");
    EXPECT_EQ(engine.value()->topology().nodes_of(job, INT64_MAX).size(), 2u) << text;
  }
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace reflex

// Snapshots of every format that ever was are read, and what follows is what would have followed.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "runtime/engine/snapshot.h"
#include "tests/property/stage.h"

namespace reflex {
namespace {

using test::Stage;

std::filesystem::path folder() {
  return std::filesystem::path(REFLEX_SOURCE_DIR) / "tests/data/snapshot";
}

std::string read(const std::filesystem::path& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file) << path;
  std::ostringstream out;
  out << file.rdbuf();
  return out.str();
}

struct Halves {
  std::string first;
  std::string second;
};

Halves events() {
  const std::string all = read(folder() / "events.ndjson");
  size_t middle = 0;
  for (int line = 0; line < 430; ++line) middle = all.find('\n', middle) + 1;  // two are open then
  return {all.substr(0, middle), all.substr(middle)};
}

TEST(Migration, EveryFormatGoesOnWhereItWasWritten) {
  const auto pack = test::compile(read(folder() / "pack.rfx"));
  const Halves halves = events();
  Stage straight(pack);
  straight.feed(halves.first);
  EXPECT_GT(straight.engine().incidents_open(), 0u);
  if (const char* path = std::getenv("REFLEX_WRITE_SNAPSHOT")) {
    engine::SnapshotHeader header;
    header.set_sha256 = pack->set_sha256;
    header.packs = pack->packs;
    ASSERT_TRUE(engine::write_snapshot(path, header, straight.save()).ok());
  }
  straight.verdicts.clear();
  straight.firings.clear();
  straight.feed(halves.second);
  straight.finish();
  ASSERT_FALSE(straight.verdicts.empty());
  for (uint32_t format = 1; format <= engine::kSnapshotFormat; ++format) {
    const auto path = folder() / fmt::format("format_{}.snapshot", format);
    auto snapshot = engine::read_snapshot(path.string());
    ASSERT_TRUE(snapshot.ok()) << snapshot.error().message;
    EXPECT_EQ(snapshot.value().header.format, format);
    Stage restored(pack);
    auto report = restored.load(snapshot.value().state);
    ASSERT_TRUE(report.ok()) << report.error().message;
    EXPECT_TRUE(report.value().notes.empty());
    restored.feed(halves.second);
    restored.finish();
    EXPECT_EQ(restored.text(), straight.text()) << path;
  }
}

}  // namespace
}  // namespace reflex

// Upgrades of the store: files as older versions made them are opened, kept and understood.
#include "runtime/serve/store_schema.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "runtime/serve/store.h"
#include "tests/unit/store/store_folder.h"

namespace reflex::serve {
namespace {

void make(const std::string& path, const std::string& sql) {
  int code = 0;
  auto connection = Connection::open(path, Connection::Mode::kWriter, code);
  ASSERT_TRUE(connection.ok());
  const auto done = connection.value()->execute(sql);
  ASSERT_TRUE(done.ok()) << done.error().message;
}

// Frozen: what version 1 wrote. Never edit; add version 2 beside it when version 3 comes.
constexpr const char* kVersion1 = R"sql(
CREATE TABLE verdicts(sequence INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL,
  incident TEXT NOT NULL, revision INTEGER NOT NULL, final INTEGER NOT NULL, job TEXT NOT NULL,
  fault TEXT NOT NULL, level TEXT NOT NULL, ts_ns INTEGER NOT NULL, bytes INTEGER NOT NULL,
  json TEXT NOT NULL, UNIQUE(incident, revision));
CREATE TABLE verdict_nodes(node TEXT NOT NULL, sequence INTEGER NOT NULL,
  culprit INTEGER NOT NULL, p REAL NOT NULL, PRIMARY KEY(node, sequence)) WITHOUT ROWID;
CREATE TABLE incidents(incident TEXT PRIMARY KEY, type TEXT NOT NULL, job TEXT NOT NULL,
  opened_ns INTEGER NOT NULL, revision INTEGER NOT NULL, final INTEGER NOT NULL,
  sequence INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE alerts(sequence INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL UNIQUE,
  type TEXT NOT NULL, incident TEXT NOT NULL, ts_ns INTEGER NOT NULL, json TEXT NOT NULL);
CREATE TABLE feedback(sequence INTEGER PRIMARY KEY AUTOINCREMENT, incident TEXT NOT NULL,
  verdict_id TEXT NOT NULL, confirmed INTEGER NOT NULL, culprits TEXT NOT NULL,
  fault TEXT NOT NULL, by_whom TEXT NOT NULL, comment TEXT NOT NULL, wall_ns INTEGER NOT NULL);
CREATE TABLE suppressions(id TEXT PRIMARY KEY, node TEXT NOT NULL, signal TEXT NOT NULL,
  from_ns INTEGER NOT NULL, until_ns INTEGER NOT NULL, reason TEXT NOT NULL,
  by_whom TEXT NOT NULL, created_wall_ns INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE sinks(name TEXT PRIMARY KEY, verdicts INTEGER NOT NULL, alerts INTEGER NOT NULL,
  file_bytes INTEGER NOT NULL) WITHOUT ROWID;
INSERT INTO verdicts VALUES(7,'v7','i1',1,1,'j1','gpu_memory','confirmed',1000,2,'{}');
INSERT INTO verdict_nodes VALUES('n3',7,1,0.9);
INSERT INTO incidents VALUES('i1','job_hang','j1',900,1,1,7);
INSERT INTO suppressions VALUES('s1','n3','',0,5000,'burn-in','ann',1);
INSERT INTO sinks VALUES('file',7,0,123);
PRAGMA user_version=1;
PRAGMA application_id=1382444152;
)sql";

TEST(StoreSchema, Version1ComesUpToDateAndIsKept) {
  const StoreFolder folder;
  make(folder.file(), kVersion1);
  auto store = Store::open({folder.file()});
  ASSERT_TRUE(store.ok()) << store.error().message;
  EXPECT_EQ(store.value()->found(), "1 verdicts, version 2 (brought up from 1)");
  EXPECT_TRUE(std::filesystem::exists(folder.file() + ".version-1-1"));
  EXPECT_EQ(store.value()->verdicts({.node = "n3"}).value().verdicts[0].id, "v7");
  EXPECT_EQ(store.value()->cursor("file").value()->file_bytes, 123u);
  // What version 2 brought works on the old rows.
  EXPECT_TRUE(store.value()->lift_suppression("s1", 5).ok());
  EXPECT_FALSE(store.value()->body_key("k").value());
}

TEST(StoreSchema, ALaterVersionIsRefused) {
  const StoreFolder folder;
  {
    ASSERT_TRUE(Store::open({folder.file()}).ok());
  }
  make(folder.file(), "PRAGMA user_version=99");
  const auto refused = Store::open({folder.file()});
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("has version 99"), std::string::npos)
      << refused.error().message;
}

TEST(StoreSchema, ADatabaseOfAnotherProgramIsRefused) {
  const StoreFolder folder;
  make(folder.file(), "CREATE TABLE theirs(x)");
  const auto refused = Store::open({folder.file()});
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("another program"), std::string::npos)
      << refused.error().message;
}

TEST(StoreSchema, ApplicationIdIsTheOneOfTheFrozenFiles) {
  EXPECT_EQ(kStoreApplicationId, 1382444152);
}

}  // namespace
}  // namespace reflex::serve

// A reload reads reflex.toml anew: live keys come into force with a good set, never without one;
// the others are named.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/serve/config_change.h"
#include "tests/unit/serve/daemon_world.h"

namespace reflex::serve {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(ConfigChange, NamesWhatDiffersAndTakesOnlyLiveKeys) {
  const Config before = load_config({}).value();
  ConfigRequest request;
  request.flags = {{"packs.paths", "/a"}, {"http.listen", "127.0.0.1:1"}, {"store.keep", "1d"}};
  Config after = load_config(request).value();
  after.sinks.emplace_back();
  for (const KeySpec& spec : sink_keys()) after.sinks[0].set(spec.key, {{"x"}, "test"});
  EXPECT_THAT(changed_keys(before, after),
              ElementsAre("packs.paths", "http.listen", "store.keep", "sinks"));
  const Config taken = with_live_keys(before, after);
  EXPECT_THAT(changed_keys(before, taken), ElementsAre("packs.paths", "store.keep"));
  EXPECT_THAT(changed_keys(before, before), IsEmpty());
  for (const KeySpec& spec : config_keys()) {
    if (!spec.key.starts_with("packs.")) continue;
    EXPECT_EQ(is_live_key(spec.key), spec.key != "packs.backend") << spec.key;
  }
}

struct Reread : ::testing::Test {
  DaemonWorld world;
  Config now;
  std::string error;

  Reread() {
    now = world.options().config;
    world.reread = [this]() -> Result<Config> {
      if (!error.empty()) return Error{error};
      return now;
    };
    world.start();
  }
  void set(const std::string& key, const std::string& value) {
    now.main.set(key, {{value}, "test"});
  }
};

TEST_F(Reread, OtherPacksAreTakenAndTheRestIsNamed) {
  const auto other = world.write_pack_at("other", test_pack(7));
  set("packs.paths", other);
  set("snapshot.interval", "7m");
  set("http.listen", "127.0.0.1:9");
  const auto answer = world.daemon().reload();
  EXPECT_EQ(answer.outcome, ReloadAnswer::Outcome::kSwapped) << answer.error;
  EXPECT_THAT(answer.config_applied, ElementsAre("packs.paths", "snapshot.interval"));
  EXPECT_THAT(answer.config_needs_restart, ElementsAre("http.listen"));
  EXPECT_EQ(world.daemon().config()->main.text("packs.paths"), other);
  EXPECT_EQ(world.daemon().config()->main.text("http.listen"), "127.0.0.1:7480");
  const auto again = world.daemon().reload();
  EXPECT_EQ(again.outcome, ReloadAnswer::Outcome::kUnchanged);
  EXPECT_THAT(again.config_applied, IsEmpty());
  EXPECT_THAT(again.config_needs_restart, ElementsAre("http.listen"));
}

TEST_F(Reread, NothingOfItIsInForceWithoutAGoodSet) {
  const std::string before = world.daemon().config()->main.text("packs.paths");
  set("packs.paths", world.write_pack_at("bad", "pack bad 1.0.0\nsignal\n"));
  set("store.keep", "3d");
  const auto answer = world.daemon().reload();
  EXPECT_EQ(answer.outcome, ReloadAnswer::Outcome::kInvalid);
  EXPECT_THAT(answer.config_applied, IsEmpty());
  EXPECT_EQ(world.daemon().config()->main.text("packs.paths"), before);
  EXPECT_EQ(world.daemon().config()->main.text("store.keep"), "40000d");
  error = "reflex.toml:3: 'threads' wants a whole number";
  const auto unread = world.daemon().reload();
  EXPECT_EQ(unread.outcome, ReloadAnswer::Outcome::kFailed);
  EXPECT_EQ(unread.error, error);
  error.clear();
  set("packs.paths", before);
  EXPECT_EQ(world.daemon().reload().outcome, ReloadAnswer::Outcome::kUnchanged);
  EXPECT_EQ(world.daemon().config()->main.text("store.keep"), "3d");
}

}  // namespace
}  // namespace reflex::serve

// The bundled trace through the real binary: the final verdict of each incident against the truth,
// and the same bytes for every thread count, batch size and backend.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

fs::path demo() { return fs::path(REFLEX_SOURCE_DIR) / "tests/data/demo"; }

std::string read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<Json> read_ndjson(const fs::path& path) {
  std::vector<Json> objects;
  std::istringstream text(read(path));
  for (std::string line; std::getline(text, line);) objects.push_back(Json::parse(line));
  return objects;
}

/// What `./dev demo` runs, with more flags.
std::string command(const fs::path& out, const std::string& flags) {
  const std::string root = REFLEX_SOURCE_DIR;
  std::string text = std::string(REFLEX_BINARY) + " run " + root + "/rules/std --profiles " + root +
                     "/hwprofiles --inventory " + (demo() / "inventory.json").string() +
                     " --events " + (demo() / "events.ndjson").string() + " -q -o " + out.string() +
                     " " + flags;
  std::vector<std::string> logs;
  for (const auto& entry : fs::directory_iterator(demo() / "logs")) {
    logs.push_back(entry.path().string());
  }
  std::sort(logs.begin(), logs.end());
  for (const std::string& log : logs) {
    const std::string name = fs::path(log).filename().string();
    text += " --log " + name.substr(0, name.find('.')) + "=" + log;
  }
  return text;
}

class Demo : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = fs::temp_directory_path() / ("reflex_demo_" + std::to_string(getpid()));
    fs::create_directories(folder_);
    ok_ = run("plain.ndjson", "");
  }
  static void TearDownTestSuite() { fs::remove_all(folder_); }
  static bool run(const std::string& file, const std::string& flags) {
    const int status = std::system(command(folder_ / file, flags).c_str());
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }
  static std::string output(const std::string& file) { return read(folder_ / file); }

  /// The final verdicts, by job.
  static std::map<std::string, std::vector<Json>> finals() {
    std::map<std::string, std::vector<Json>> out;
    for (const Json& verdict : read_ndjson(folder_ / "plain.ndjson")) {
      if (verdict.at("final").get<bool>()) out[verdict.at("job")].push_back(verdict);
    }
    return out;
  }

  static inline fs::path folder_;
  static inline bool ok_ = false;
};

/// Words by which a pack may call an external cause of the truth file.
bool names_external(const std::string& answer, const std::string& truth) {
  static const std::map<std::string, std::vector<std::string>> kWords = {
      {"switch", {"switch", "tor", "leaf", "fabric"}},
      {"storage", {"storage", "nfs"}},
      {"application", {"application", "software", "user", "app_"}}};
  const auto& words = kWords.at(truth);
  return std::any_of(words.begin(), words.end(), [&](const std::string& word) {
    return answer.find(word) != std::string::npos;
  });
}

TEST_F(Demo, EveryIncidentGetsTheRightAnswer) {
  ASSERT_TRUE(ok_) << command("verdicts.ndjson", "");
  const auto by_job = finals();
  const auto truth = read_ndjson(demo() / "truth.ndjson");
  ASSERT_EQ(truth.size(), 6u);
  for (const Json& row : truth) {
    const std::string job = row.at("job");
    SCOPED_TRACE(row.dump());
    const auto found = by_job.find(job);
    if (found == by_job.end()) {
      ADD_FAILURE() << "no final verdict for " << job;
      continue;
    }
    // Every final verdict of the job must be right: a second incident may not say something else.
    for (const Json& verdict : found->second) {
      EXPECT_EQ(verdict.at("culprits"), row.at("culprits")) << verdict.dump().substr(0, 2000);
      if (row.at("external").is_null()) continue;
      const std::string truth_cause = row.at("external");
      const Json& external = verdict.at("external");
      const bool named =
          external.is_string() && names_external(external.get<std::string>(), truth_cause);
      // "No faulty node" is the right answer for a bug of the program, too.
      const bool none = truth_cause == "application" && verdict.at("level") == "none";
      EXPECT_TRUE(named || none) << "level " << verdict.at("level") << ", external " << external;
    }
  }
}

TEST_F(Demo, NoOtherJobIsAccused) {
  ASSERT_TRUE(ok_);
  EXPECT_EQ(finals().size(), 6u);
}

TEST_F(Demo, SameBytesForThreadsBatchesAndBackends) {
  ASSERT_TRUE(ok_);
  const std::string plain = output("plain.ndjson");
  ASSERT_FALSE(plain.empty());
  for (const std::string flags : {"--threads 2", "--threads 4", "--batch 1", "--backend interp",
                                  "--restore-every 5", "--restore-every 1 --threads 2"}) {
    ASSERT_TRUE(run("other.ndjson", flags)) << flags;
    EXPECT_TRUE(output("other.ndjson") == plain) << flags << " gives other verdicts";
  }
}

}  // namespace

// The snapshot file: whole or an error, whatever was cut, changed or written by another engine.
#include "runtime/engine/snapshot.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "runtime/base/crc32c.h"
#include "runtime/engine/engine_version.h"

namespace reflex::engine {
namespace {

class SnapshotFile : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("reflex_snapshot_" + std::to_string(getpid()));
    std::filesystem::create_directory(folder_);
    path_ = (folder_ / "a.snapshot").string();
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  static SnapshotHeader header() {
    SnapshotHeader h;
    h.set_sha256 = "abc";
    h.packs = {{"std.nvidia", "1.0.0", "ff"}, {"site", "2.1.0", ""}};
    h.position = 1234567890123;
    h.wall_ns = -5;
    return h;
  }
  [[nodiscard]] std::string bytes() const {
    std::ifstream file(path_, std::ios::binary);
    std::ostringstream out;
    out << file.rdbuf();
    return out.str();
  }
  void put(const std::string& text) const { std::ofstream(path_, std::ios::binary) << text; }
  [[nodiscard]] std::string error() const {
    const auto read = read_snapshot(path_);
    return read.ok() ? "" : read.error().message;
  }

  std::filesystem::path folder_;
  std::string path_;
};

TEST(Crc32c, ValuesOfTheStandard) {
  // Source: RFC 3720, B.4.
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62a8ab43u);
  EXPECT_EQ(crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(crc32c("6789", crc32c("12345")), 0xe3069283u);
}

TEST_F(SnapshotFile, GivesBackWhatWasWrittenAndLeavesNothingElse) {
  for (const size_t size : {size_t{0}, size_t{1}, size_t{1} << 20, (size_t{5} << 19) + 7}) {
    std::string state(size, '\0');
    for (size_t i = 0; i < size; ++i) state[i] = static_cast<char>(i * 31 >> 3);
    ASSERT_TRUE(write_snapshot(path_, header(), state).ok());
    const auto read = read_snapshot(path_);
    ASSERT_TRUE(read.ok()) << read.error().message;
    EXPECT_TRUE(read.value().state == state) << size;
    const SnapshotHeader& h = read.value().header;
    EXPECT_EQ(h.format, kSnapshotFormat);
    EXPECT_EQ(h.engine, kEngineVersion);
    EXPECT_EQ(h.set_sha256, "abc");
    ASSERT_EQ(h.packs.size(), 2u);
    EXPECT_EQ(h.packs[1].version, "2.1.0");
    EXPECT_EQ(h.position, 1234567890123u);
    EXPECT_EQ(h.wall_ns, -5);
    EXPECT_EQ(read_snapshot_header(path_).value().position, h.position);
  }
  const auto files = std::distance(std::filesystem::directory_iterator(folder_), {});
  EXPECT_EQ(files, 1);
}

TEST_F(SnapshotFile, EveryCutAndEveryFlippedByteIsAnError) {
  ASSERT_TRUE(write_snapshot(path_, header(), std::string(200, 'x')).ok());
  const std::string good = bytes();
  for (size_t size = 0; size < good.size(); ++size) {
    put(good.substr(0, size));
    EXPECT_NE(error(), "") << "cut to " << size;
  }
  for (size_t i = 0; i < good.size(); ++i) {
    std::string flipped = good;
    flipped[i] = static_cast<char>(flipped[i] ^ 0x10);
    put(flipped);
    EXPECT_NE(error(), "") << "byte " << i;
  }
  put(good + "x");
  EXPECT_NE(error(), "");
  put(good);
  EXPECT_EQ(error(), "");
}

TEST_F(SnapshotFile, SaysWhatIsWrong) {
  EXPECT_NE(error().find("No such file"), std::string::npos) << error();
  put("{\"ts\": 1}\nand more text than a magic has\n");
  EXPECT_NE(error().find("not a snapshot"), std::string::npos) << error();
  ASSERT_TRUE(write_snapshot(path_, header(), std::string(3'000'000, 'x')).ok());
  std::string changed = bytes();
  changed[2'500'000] = 'y';
  put(changed);
  EXPECT_NE(error().find("damaged: block at byte 2097152"), std::string::npos) << error();
  put(bytes().substr(0, 2'000'000));
  EXPECT_NE(error().find("truncated"), std::string::npos) << error();
}

constexpr size_t kFormatAt = 12;  // after the magic
constexpr size_t kHeaderAt = 20;

TEST_F(SnapshotFile, RefusesANewerFormatAndAnotherMajorOfTheEngine) {
  ASSERT_TRUE(write_snapshot(path_, header(), "state").ok());
  const std::string good = bytes();
  std::string newer = good;
  newer[kFormatAt] = static_cast<char>(kSnapshotFormat + 1);
  put(newer);
  EXPECT_NE(error().find("reads formats up to"), std::string::npos) << error();
  std::string other = good;
  ASSERT_EQ(other[kHeaderAt + 1], kEngineVersion[0]);
  other[kHeaderAt + 1] = '7';
  uint32_t size;
  std::memcpy(&size, other.data() + kFormatAt + 4, sizeof size);
  const uint32_t checksum = crc32c(std::string_view(other).substr(0, kHeaderAt + size));
  std::memcpy(other.data() + kHeaderAt + size, &checksum, sizeof checksum);
  put(other);
  EXPECT_NE(error().find("its own major"), std::string::npos) << error();
}

TEST_F(SnapshotFile, AFailedWriteLeavesTheOldOne) {
  ASSERT_TRUE(write_snapshot(path_, header(), "old").ok());
  std::filesystem::create_directory(path_ + ".part");  // it cannot be made
  const auto status = write_snapshot(path_, header(), "new");
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message.find("cannot create"), std::string::npos);
  EXPECT_EQ(read_snapshot(path_).value().state, "old");
}

}  // namespace
}  // namespace reflex::engine

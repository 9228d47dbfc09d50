// SPDX-License-Identifier: Apache-2.0
#include "timeline/timeline_files.h"

#include <fstream>
#include <iterator>
#include <vector>

#include <gmock/gmock.h>
#include <sys/stat.h>

#include "ipc/temporary_directory.h"

namespace braid {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

constexpr uint64_t kTime = 1'767'225'599'123;  // 2025-12-31T23:59:59.123Z

TEST(TimelineFileName, IsSafeWhateverTheJobIsCalled) {
  EXPECT_EQ(timeline_file_name("resnet", 3, "node-1", kTime),
            "resnet-3-node-1-20251231T235959.123Z.json");
  EXPECT_EQ(timeline_file_name("../../etc/passwd", 0, "a/b", kTime),
            "_.._.._etc_passwd-0-a_b-20251231T235959.123Z.json");
  EXPECT_EQ(timeline_file_name("-rf", 0, "", kTime), "_-rf-0-_-20251231T235959.123Z.json");
  const std::string long_name = timeline_file_name(std::string(4000, 'x') + "\n", 4'000'000'000,
                                                   std::string(4000, 'n'), kTime);
  EXPECT_LT(long_name.size(), 200u);
  const std::string nul = timeline_file_name(std::string("a\0b", 3), 0, "n", kTime);
  EXPECT_EQ(nul.find('\0'), std::string::npos);
}

TEST(TimelineFileLimits, AJobNameGetsOneInAPeriod) {
  TimelineFileLimits limits;
  EXPECT_TRUE(limits.take(1, "a", 1000));
  EXPECT_FALSE(limits.take(1, "a", 1000 + TimelineFileLimits::kPeriodNs - 1));
  EXPECT_TRUE(limits.take(2, "a", 2000)) << "another user's";
  EXPECT_TRUE(limits.take(1, "a", 1000 + TimelineFileLimits::kPeriodNs));
}

TEST(TimelineFileLimits, AUsersJobsLeaveRoomForOthers) {
  TimelineFileLimits limits;
  size_t taken = 0;
  for (int i = 0; i < 1000; ++i) taken += limits.take(1, std::to_string(i), 1000) ? 1 : 0;
  EXPECT_EQ(taken, TimelineFileLimits::kFilesPerUser);
  EXPECT_TRUE(limits.take(2, "mine", 1000));
  for (uint32_t user = 3; user < 1000; ++user) taken += limits.take(user, "x", 1000) ? 1 : 0;
  EXPECT_EQ(taken + 1, TimelineFileLimits::kFilesPerPeriod);
  EXPECT_TRUE(limits.take(2000, "later", 1000 + TimelineFileLimits::kPeriodNs));
}

class TimelineFilesTest : public ::testing::Test {
 protected:
  std::string name(uint64_t number) const {
    return timeline_file_name("job", 1, "node", kTime + number * 1000);
  }
  std::vector<std::string> all() const {
    std::vector<std::string> names;
    for (const auto& file : fs::directory_iterator(path_)) names.push_back(file.path().filename());
    std::ranges::sort(names);
    return names;
  }

  TemporaryDirectory directory_;
  const std::string path_ = directory_.file("made/when/needed");
  const TimelineFiles files_{path_};
};

TEST_F(TimelineFilesTest, AppearWhole) {
  const auto path = files_.write(name(0), "{}").value();
  EXPECT_EQ(path, path_ + "/" + name(0));
  std::ifstream file(path);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), "{}");
  EXPECT_EQ(all().size(), 1u);
  struct stat info {};
  ASSERT_EQ(::stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u) << "for the daemon's user alone";
  ASSERT_EQ(::stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
}

TEST_F(TimelineFilesTest, TheOldestGoAndOthersFilesStay) {
  fs::create_directories(path_);
  std::ofstream(path_ + "/notes.json") << "mine";
  std::ofstream(path_ + "/tuning.json") << "mine";
  std::ofstream(path_ + "/" + name(0) + ".part") << "of a daemon that was killed";
  for (uint64_t i = 1; i < 2 * TimelineFiles::kFilesMax; ++i)
    ASSERT_TRUE(files_.write(name(i), "{}"));
  const auto names = all();
  EXPECT_EQ(names.size(), TimelineFiles::kFilesMax + 2);
  EXPECT_THAT(names, ::testing::Contains("notes.json"));
  EXPECT_THAT(names, ::testing::Contains("tuning.json"));
  EXPECT_THAT(names, ::testing::Contains(name(2 * TimelineFiles::kFilesMax - 1)));
  EXPECT_THAT(names, ::testing::Not(::testing::Contains(name(1))));
}

TEST_F(TimelineFilesTest, ALinkInTheWayIsNotFollowed) {
  fs::create_directories(path_);
  const std::string victim = directory_.file("victim");
  std::ofstream(victim) << "mine";
  fs::create_symlink(victim, path_ + "/" + name(0) + ".part");
  EXPECT_FALSE(files_.write(name(0), "{}"));
  std::ifstream file(victim);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), "mine");
}

TEST_F(TimelineFilesTest, ErrorsNameTheFile) {
  std::ofstream(directory_.file("file")) << "";
  const auto path = TimelineFiles(directory_.file("file")).write(name(0), "{}");
  ASSERT_FALSE(path);
  EXPECT_THAT(path.status().message(), HasSubstr(name(0)));
  EXPECT_THAT(path.status().message(), HasSubstr("cannot be written"));
}

}  // namespace
}  // namespace braid

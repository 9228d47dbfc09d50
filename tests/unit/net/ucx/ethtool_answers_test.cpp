// SPDX-License-Identifier: Apache-2.0
#include "net/ucx/ethtool_answers.h"

#include <cerrno>
#include <cstdint>
#include <cstring>

#include <gtest/gtest.h>
#include <linux/sockios.h>

namespace braid {
namespace {

constexpr uint32_t kAnotherQuestion = ETHTOOL_GDRVINFO;
int asked = 0;

// "fast" has a speed, no other device has one.
int ask(int /*socket*/, unsigned long request, void* argument) {
  EXPECT_EQ(request, static_cast<unsigned long>(SIOCETHTOOL));
  ++asked;
  auto& of = *static_cast<ifreq*>(argument);
  if (std::strcmp(of.ifr_name, "fast") != 0) {
    errno = EOPNOTSUPP;
    return -1;
  }
  reinterpret_cast<ethtool_cmd*>(of.ifr_data)->speed = 100;
  return 0;
}

class EthtoolAnswersTest : public ::testing::Test {
 protected:
  EthtoolAnswersTest() { asked = 0; }

  int answer(const char* device, uint32_t question = ETHTOOL_GSET) {
    command_ = {};
    command_.cmd = question;
    ifreq request{};
    std::strncpy(request.ifr_name, device, IFNAMSIZ - 1);
    request.ifr_data = reinterpret_cast<char*>(&command_);
    return answers_.answer(-1, request, ask);
  }

  EthtoolAnswers answers_;
  ethtool_cmd command_{};
};

TEST_F(EthtoolAnswersTest, EachDeviceIsAskedOnceAndARefusalIsAnAnswerToo) {
  for (int i = 0; i < 3; ++i) {
    errno = 0;
    EXPECT_EQ(answer("slow"), -1);
    EXPECT_EQ(errno, EOPNOTSUPP);
    EXPECT_EQ(answer("fast"), 0);
    EXPECT_EQ(command_.speed, 100);
  }
  EXPECT_EQ(asked, 2);
}

TEST_F(EthtoolAnswersTest, OtherQuestionsGoToTheKernel) {
  EXPECT_EQ(answer("fast"), 0);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(answer("slow", kAnotherQuestion), -1);
  EXPECT_EQ(asked, 3);
}

}  // namespace
}  // namespace braid

// SPDX-License-Identifier: Apache-2.0
#include "loop/user_turns.h"

#include <optional>
#include <string>

#include "loop_testing.h"

namespace braid {
namespace {

class StoppedClock final : public Clock {
 public:
  uint64_t now_ns() const override { return ns; }
  uint64_t ns = 1;
};

class UserTurnsTest : public testing::LoopTest {
 protected:
  // A piece of the user's work, which takes so long.
  void add(uid_t user, char name, uint64_t ns = UserTurns::kRoundNs / 2) {
    turns_->add(user, this, [this, name, ns] {
      ran_ += name;
      clock_.ns += ns;
      return false;
    });
  }

  StoppedClock clock_;
  std::optional<UserTurns> turns_{std::in_place, *loop_, clock_};
  std::string ran_;
};

TEST_F(UserTurnsTest, ARoundHasAMillisecondOfThem) {
  for (const char name : {'a', 'b', 'c', 'd', 'e'}) add(1, name);
  EXPECT_EQ(ran_, "");
  run_rounds(1);
  EXPECT_EQ(ran_, "ab");
  run_rounds(1);
  EXPECT_EQ(ran_, "abcd");
  run_rounds(1);
  EXPECT_EQ(ran_, "abcde");
  run_rounds(1);
  EXPECT_NE(uv_backend_timeout(loop_->uv()), 0) << "the loop may sleep";
}

TEST_F(UserTurnsTest, APieceThatTakesLongIsTheRoundsLast) {
  add(1, 'a', 10 * UserTurns::kRoundNs);
  add(2, 'b');
  run_rounds(1);
  EXPECT_EQ(ran_, "a");
}

TEST_F(UserTurnsTest, UsersTakeTurnsHoweverManyPiecesOneHas) {
  for (int i = 0; i < 1000; ++i) add(1, 'x');
  add(2, 'y');
  add(3, 'z');
  add(2, 'Y');
  run_rounds(3);
  EXPECT_EQ(ran_, "xyzxYx");
}

TEST_F(UserTurnsTest, APieceThatHasMoreComesAgainAfterTheUsersOthers) {
  int left = 3;
  turns_->add(1, this, [&] {
    ran_ += 'm';
    return --left > 0;
  });
  add(1, 'a', 0);
  run_rounds(2);
  EXPECT_EQ(ran_, "mamm");
}

TEST_F(UserTurnsTest, DropsThoseOfOneOwnerAlsoFromWithinAPiece) {
  const int other = 0;
  turns_->add(1, &other, [&] {
    ran_ += 'o';
    turns_->drop(1, &other);
    return true;
  });
  turns_->add(1, &other, [&] {
    ran_ += 'O';
    return false;
  });
  add(1, 'a', 0);
  add(2, 'b', 0);
  turns_->drop(2, this);
  run_rounds(5);
  EXPECT_EQ(ran_, "oa");
}

}  // namespace
}  // namespace braid

// SPDX-License-Identifier: Apache-2.0
#include "telling/parted_answers.h"

#include <vector>

#include "loop/loop_testing.h"

namespace braid {
namespace {

using Outcome = PartedText::Outcome;

class PartedAnswersTest : public testing::LoopTest {
 protected:
  static std::shared_ptr<const std::string> text(size_t bytes) {
    std::string all;
    for (size_t i = 0; i < bytes; ++i) all += static_cast<char>('a' + i % 23);
    return std::make_shared<const std::string>(std::move(all));
  }
  // Puts together what comes; takes `parts_max`.
  PartedAnswers::Send receive(size_t parts_max = SIZE_MAX) {
    PartedText& coming = texts_.emplace_back();
    const size_t number = texts_.size() - 1;
    (void)coming;
    return [this, number, parts_max](const PartedAnswers::Part& part) {
      EXPECT_LE(part.text.size(), PartedAnswers::kPartBytes);
      order_.push_back(number);
      const Outcome outcome = texts_[number].add(part.text, part.number, part.parts, SIZE_MAX);
      EXPECT_EQ(outcome, part.is_last() ? Outcome::Complete : Outcome::NeedsMore);
      return part.number + 1 < parts_max;
    };
  }

  PartedAnswers answers_{*loop_};
  std::deque<PartedText> texts_;
  std::vector<size_t> order_;  // whose parts came
};

TEST_F(PartedAnswersTest, ComeWholeAndTakeTurns) {
  const auto first = text(3 * PartedAnswers::kPartBytes + 1), second = text(1000),
             third = text(2 * PartedAnswers::kPartBytes);
  answers_.send(first, receive());
  answers_.send(second, receive());
  answers_.send(third, receive());
  run_until([this] { return order_.size() == 7; });
  EXPECT_EQ(texts_[0].take(), *first);
  EXPECT_EQ(texts_[1].take(), *second);
  EXPECT_EQ(texts_[2].take(), *third);
  EXPECT_EQ(order_, (std::vector<size_t>{0, 1, 2, 0, 2, 0, 0}));
}

TEST_F(PartedAnswersTest, NothingIsOnePart) {
  answers_.send(text(0), receive());
  EXPECT_EQ(order_.size(), 1u);
}

TEST_F(PartedAnswersTest, TheRestIsDroppedWhenNobodyWantsIt) {
  answers_.send(text(5 * PartedAnswers::kPartBytes), receive(2));
  answers_.send(text(3 * PartedAnswers::kPartBytes), receive());
  run_until([this] { return order_.size() == 5; });
  run_rounds(5);
  EXPECT_EQ(order_.size(), 5u);
}

TEST(PartedText, WhatDoesNotFitIsRefused) {
  PartedText text;
  EXPECT_EQ(text.add("ab", 1, 2, 10), Outcome::Refused) << "the first one is missing";
  EXPECT_EQ(text.add("ab", 0, 3, 5), Outcome::NeedsMore);
  EXPECT_EQ(text.add("cd", 1, 2, 5), Outcome::Refused) << "there were to be three";
  EXPECT_EQ(text.add("cd", 2, 3, 5), Outcome::Refused) << "not in order";
  EXPECT_EQ(text.add("cdef", 1, 3, 5), Outcome::Refused) << "too long";
  EXPECT_EQ(text.add("cd", 1, 3, 5), Outcome::NeedsMore);
  EXPECT_EQ(text.add("", 2, 3, 5), Outcome::Complete);
  EXPECT_EQ(text.take(), "abcd");
  PartedText old;
  EXPECT_EQ(old.add("x", 0, 0, 5), Outcome::Complete) << "no number of parts: one";
}

}  // namespace
}  // namespace braid

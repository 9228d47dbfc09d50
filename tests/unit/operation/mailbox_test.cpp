// SPDX-License-Identifier: Apache-2.0
#include "operation/mailbox.h"

#include <optional>

#include <gtest/gtest.h>

#include "proto/ring.h"

namespace braid {
namespace {

using proto::kAnyRank;

Mailbox::Letter letter(uint64_t number, uint32_t from, uint64_t tag) {
  return {{9, from, number}, from, tag};
}

std::optional<uint64_t> number_of(const std::optional<OperationKey>& key) {
  return key ? std::optional(key->step) : std::nullopt;
}

TEST(MailboxTest, OneSendersMessagesWithOneTagComeInTheirOrder) {
  Mailbox mailbox;
  for (uint64_t number = 0; number < 3; ++number)
    EXPECT_EQ(mailbox.add_letter(letter(number, 1, 5)), std::nullopt);
  for (uint64_t number = 0; number < 3; ++number)
    EXPECT_EQ(number_of(mailbox.add_receive({number, 1, 5})), number);
  EXPECT_EQ(mailbox.add_receive({4, 1, 5}), std::nullopt);
}

TEST(MailboxTest, ReceivesOfOneSenderAndTagAreServedInTheirOrder) {
  Mailbox mailbox;
  for (uint64_t ticket = 1; ticket <= 3; ++ticket)
    EXPECT_EQ(mailbox.add_receive({ticket, 1, 5}), std::nullopt);
  for (uint64_t ticket = 1; ticket <= 3; ++ticket)
    EXPECT_EQ(mailbox.add_letter(letter(ticket, 1, 5)), ticket);
  EXPECT_EQ(mailbox.add_letter(letter(4, 1, 5)), std::nullopt);
}

TEST(MailboxTest, OtherTagsAndSendersAreNotMet) {
  Mailbox mailbox;
  EXPECT_EQ(mailbox.add_letter(letter(0, 1, 5)), std::nullopt);
  EXPECT_EQ(mailbox.add_receive({1, 2, 5}), std::nullopt);
  EXPECT_EQ(mailbox.add_receive({2, 1, 6}), std::nullopt);
  EXPECT_EQ(mailbox.add_letter(letter(1, 1, 6)), 2u);
  EXPECT_EQ(mailbox.add_letter(letter(2, 2, 5)), 1u);
  EXPECT_EQ(number_of(mailbox.add_receive({3, 1, 5})), 0u);
}

TEST(MailboxTest, AReceiveFromAnyRankGetsTheFirstMessageWithItsTag) {
  Mailbox mailbox;
  (void)mailbox.add_letter(letter(10, 3, 6));
  (void)mailbox.add_letter(letter(11, 2, 5));
  (void)mailbox.add_letter(letter(12, 1, 5));
  (void)mailbox.add_letter(letter(13, 2, 5));
  EXPECT_EQ(number_of(mailbox.add_receive({1, kAnyRank, 5})), 11u);
  EXPECT_EQ(number_of(mailbox.add_receive({2, 2, 5})), 13u);
  EXPECT_EQ(number_of(mailbox.add_receive({3, kAnyRank, 5})), 12u);
  EXPECT_EQ(mailbox.add_receive({4, kAnyRank, 5}), std::nullopt);
  EXPECT_EQ(mailbox.add_letter(letter(14, 7, 5)), 4u);
}

TEST(MailboxTest, AMessageGoesToTheReceiveThatWaitedLonger) {
  Mailbox mailbox;
  (void)mailbox.add_receive({1, kAnyRank, 5});
  (void)mailbox.add_receive({2, 3, 5});
  (void)mailbox.add_receive({3, kAnyRank, 5});
  EXPECT_EQ(mailbox.add_letter(letter(0, 3, 5)), 1u);
  EXPECT_EQ(mailbox.add_letter(letter(1, 3, 5)), 2u);
  EXPECT_EQ(mailbox.add_letter(letter(2, 3, 5)), 3u);
}

}  // namespace
}  // namespace braid

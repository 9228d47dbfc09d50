// SPDX-License-Identifier: Apache-2.0
// braid_send and braid_receive: what makes no sense is refused before the daemon sees it.
#include "open_job_fixture.h"

namespace braid {
namespace {

class ClientMessagesTest : public OpenJobTest {
 protected:
  void SetUp() override {
    TestDaemon::Options options;
    options.block_of_rank = {0, 1, 2};
    open(std::move(options), 1);
  }
  braid_message message(uint32_t peer, uint64_t bytes = 16) {
    braid_message message{};
    message.struct_size = sizeof(message);
    message.peer = peer;
    message.tag = 7;
    message.bytes = bytes;
    message.data = values_.data();
    return message;
  }
  int send(const braid_message& message) { return braid_send(job_, &message, &ticket_); }
  int receive(const braid_message& message) { return braid_receive(job_, &message, &ticket_); }

  braid_ticket ticket_ = 0;
};

TEST_F(ClientMessagesTest, TheOtherEndIsAnotherRank) {
  EXPECT_INVALID(send(message(1)), "peer of the send is 1; the job has ranks 0 to 2, and this one");
  EXPECT_INVALID(send(message(3)), "peer of the send is 3");
  EXPECT_INVALID(send(message(BRAID_ANY_RANK)), "peer of the send is 4294967295");
  EXPECT_INVALID(receive(message(1)), "peer of the receive is 1");
  EXPECT_INVALID(receive(message(3)), "peer of the receive is 3");
}

TEST_F(ClientMessagesTest, TagsBytesAndPlacesAreChecked) {
  braid_message wrong = message(0);
  wrong.tag = (uint64_t{1} << 62) + 1;
  EXPECT_INVALID(send(wrong), "tag is 4611686018427387905");
  EXPECT_INVALID(send(message(0, (uint64_t{1} << 48) + 1)), "bytes of the message are");
  wrong = message(0);
  wrong.data = nullptr;
  EXPECT_INVALID(send(wrong), "data of the send is NULL");
  wrong.struct_size = 8;
  EXPECT_INVALID(send(wrong), "struct_size of braid_message is 8");
  const braid_message right = message(0);
  EXPECT_INVALID(braid_send(job_, &right, nullptr), "ticket is NULL");
  EXPECT_INVALID(braid_send(job_, nullptr, &ticket_), "NULL");
}

TEST_F(ClientMessagesTest, ADaemonThatIsOlderIsToBeUpgraded) {
  EXPECT_BRAID_ERROR(send(message(0)), BRAID_ERROR_NOT_FOUND, "upgrade braidd");
  EXPECT_BRAID_ERROR(receive(message(BRAID_ANY_RANK)), BRAID_ERROR_NOT_FOUND, "upgrade braidd");
}

TEST_F(ClientMessagesTest, OnlyAReceiveHasASource) {
  uint32_t rank = 0;
  EXPECT_BRAID_ERROR(braid_source(job_, 99, &rank), BRAID_ERROR_NOT_FOUND, "99");
  EXPECT_INVALID(braid_source(job_, 99, nullptr), "rank is NULL");
}

}  // namespace
}  // namespace braid

// SPDX-License-Identifier: Apache-2.0
// What a daemon sends where it does not belong, or may not send at all, ends the job.
#include "open_job_fixture.h"
#include "proto/client_generated.h"

namespace braid {
namespace {

class MisplacedMessagesTest : public OpenJobTest {
 protected:
  // The daemon sends it while nothing but an operation is in flight.
  template <typename Body>
  void send(const std::function<flatbuffers::Offset<Body>(flatbuffers::FlatBufferBuilder&)>& make,
            std::span<const int> fds = {}) {
    const uint32_t tensor = register_tensor(job_, "a", 4);
    daemon_->hold_operations();
    ticket_ = submit(job_, all_reduce(tensor, 0, values_.data()));
    daemon_->send_to_all(
        [&make](flatbuffers::FlatBufferBuilder& builder) {
          const auto body = make(builder);
          builder.Finish(proto::CreateClientMessage(
              builder, proto::ClientBodyTraits<Body>::enum_value, body.Union()));
        },
        fds);
  }
  int wait() { return braid_wait(job_, ticket_, 0); }

  braid_ticket ticket_ = 0;
};

TEST_F(MisplacedMessagesTest, AnAnswerToNoRegistration) {
  send<proto::TensorsRegistered>(
      [](auto& builder) { return proto::CreateTensorsRegistered(builder, 1); });
  EXPECT_BRAID_ERROR(wait(), BRAID_ERROR_PROTOCOL, "unexpected TensorsRegistered");
}

TEST_F(MisplacedMessagesTest, ARefusalOfNoRegistration) {
  send<proto::RegistrationRefused>([](auto& builder) {
    return proto::CreateRegistrationRefusedDirect(builder, BRAID_ERROR_MISMATCH, "no");
  });
  EXPECT_BRAID_ERROR(wait(), BRAID_ERROR_PROTOCOL, "unexpected RegistrationRefused");
}

TEST_F(MisplacedMessagesTest, MemoryThatNobodyRegistered) {
  send<proto::MemoryRegistered>(
      [](auto& builder) { return proto::CreateMemoryRegistered(builder, 1); });
  EXPECT_BRAID_ERROR(wait(), BRAID_ERROR_PROTOCOL, "unexpected MemoryRegistered");
}

TEST_F(MisplacedMessagesTest, TensorsThatNobodyUnregistered) {
  send<proto::TensorsUnregistered>(
      [](auto& builder) { return proto::CreateTensorsUnregistered(builder); });
  EXPECT_BRAID_ERROR(wait(), BRAID_ERROR_PROTOCOL, "unexpected TensorsUnregistered");
}

TEST_F(MisplacedMessagesTest, AnAnswerToNoLeaveTaking) {
  send<proto::JobLeft>([](auto& builder) { return proto::CreateJobLeft(builder); });
  EXPECT_BRAID_ERROR(wait(), BRAID_ERROR_PROTOCOL, "unexpected JobLeft");
}

TEST_F(MisplacedMessagesTest, AnAnswerToNoQuery) {
  send<proto::StatusReply>(
      [](auto& builder) { return proto::CreateStatusReplyDirect(builder, "{}"); });
  EXPECT_BRAID_ERROR(wait(), BRAID_ERROR_PROTOCOL, "unexpected StatusReply");
}

TEST_F(MisplacedMessagesTest, AQuestion) {
  send<proto::StatusQuery>([](auto& builder) { return proto::CreateStatusQuery(builder); });
  EXPECT_BRAID_ERROR(wait(), BRAID_ERROR_PROTOCOL, "unexpected StatusQuery");
}

TEST_F(MisplacedMessagesTest, DescriptorsThatBelongToNoMessage) {
  const int fds[] = {0};
  send<proto::Failure>(
      [](auto& builder) { return proto::CreateFailureDirect(builder, BRAID_ERROR_MISMATCH, "no"); },
      fds);
  EXPECT_BRAID_ERROR(wait(), BRAID_ERROR_PROTOCOL, "1 descriptors with Failure");
}

TEST_F(MisplacedMessagesTest, ACompletionWhoseReservedBytesAreNotZero) {
  const uint32_t tensor = register_tensor(job_, "a", 4);
  daemon_->hold_operations();
  ticket_ = submit(job_, all_reduce(tensor, 0, values_.data()));
  daemon_->complete({ticket_, 0, 16, 9});
  EXPECT_BRAID_ERROR(wait(), BRAID_ERROR_PROTOCOL, "'reserved' of a completion");
}

}  // namespace
}  // namespace braid

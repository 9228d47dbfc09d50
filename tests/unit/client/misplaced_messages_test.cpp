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
    ticket_ = held();
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

TEST_F(MisplacedMessagesTest, AnswersToNothingAndQuestions) {
  const auto ends_the_job = [this]<typename Body>(
                                flatbuffers::Offset<Body> (*make)(flatbuffers::FlatBufferBuilder&),
                                const std::string& name) {
    open({});
    send<Body>(make);
    EXPECT_BRAID_ERROR(wait(), BRAID_ERROR_PROTOCOL, "unexpected " + name);
  };
  using Builder = flatbuffers::FlatBufferBuilder;
  ends_the_job(
      +[](Builder& b) { return proto::CreateTensorsRegistered(b, 1); }, "TensorsRegistered");
  ends_the_job(
      +[](Builder& b) {
        return proto::CreateRegistrationRefusedDirect(b, BRAID_ERROR_MISMATCH, "no");
      },
      "RegistrationRefused");
  ends_the_job(
      +[](Builder& b) { return proto::CreateMemoryRegistered(b, 1); }, "MemoryRegistered");
  ends_the_job(
      +[](Builder& b) { return proto::CreateTensorsUnregistered(b); }, "TensorsUnregistered");
  ends_the_job(
      +[](Builder& b) { return proto::CreateJobLeft(b); }, "JobLeft");
  ends_the_job(
      +[](Builder& b) { return proto::CreateStatusReplyDirect(b, "{}"); }, "StatusReply");
  ends_the_job(
      +[](Builder& b) { return proto::CreateStatusQuery(b); }, "StatusQuery");
}

TEST_F(MisplacedMessagesTest, DescriptorsThatBelongToNoMessage) {
  const int fds[] = {0};
  send<proto::Failure>(
      [](auto& builder) { return proto::CreateFailureDirect(builder, BRAID_ERROR_MISMATCH, "no"); },
      fds);
  EXPECT_BRAID_ERROR(wait(), BRAID_ERROR_PROTOCOL, "1 descriptors with Failure");
}

TEST_F(MisplacedMessagesTest, ACompletionWhoseReservedBytesAreNotZero) {
  ticket_ = held();
  daemon_->complete({ticket_, 0, 16, 0, 9});
  EXPECT_BRAID_ERROR(wait(), BRAID_ERROR_PROTOCOL, "'reserved' of a completion");
}

}  // namespace
}  // namespace braid

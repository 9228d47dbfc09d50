// SPDX-License-Identifier: Apache-2.0
#include "messages/control_messages.h"

#include <functional>

#include <gtest/gtest.h>

#include "proto/control_generated.h"

namespace braid {
namespace {

const proto::ControlMessage& verified(ControlBuffer& buffer) {
  flatbuffers::Verifier verifier(buffer.GetBufferPointer(), buffer.GetSize());
  EXPECT_TRUE(proto::VerifyControlMessageBuffer(verifier));
  return *proto::GetControlMessage(buffer.GetBufferPointer());
}

TEST(ControlMessagesTest, JoinJobCarriesTheTrainer) {
  auto buffer = make_join_job("train", 8, 3, 4711, 60'000, {}, 9);
  const auto* join = verified(buffer).body_as_JoinJob();
  ASSERT_NE(join, nullptr);
  EXPECT_EQ(join->name()->str(), "train");
  EXPECT_EQ(join->world_size(), 8u);
  EXPECT_EQ(join->rank(), 3u);
  EXPECT_EQ(join->process_id(), 4711);
  EXPECT_EQ(join->timeout_ms(), 60'000u);
  EXPECT_EQ(join->weight(), 9u);
}

TEST(ControlMessagesTest, JobStartCarriesNodesInOrder) {
  const std::vector<MemberNode> nodes = {{{7, "a", "10.0.0.1", 7410}, {0, 2}, "r1"},
                                         {{9, "b", "10.0.0.2", 7411}, {1}}};
  auto buffer = make_job_start("train", 3, 5, 99, nodes, {1, 2, true, 3});
  const auto* start = verified(buffer).body_as_JobStart();
  ASSERT_NE(start, nullptr);
  EXPECT_EQ(start->epoch(), 5u);
  EXPECT_EQ(start->job_key(), 99u);
  ASSERT_EQ(start->nodes()->size(), 2u);
  const auto* second = start->nodes()->Get(1);
  EXPECT_EQ(second->node_id(), 9u);
  EXPECT_EQ(second->name()->str(), "b");
  EXPECT_EQ(second->address()->str(), "10.0.0.2");
  EXPECT_EQ(second->port(), 7411);
  EXPECT_EQ(second->rack()->str(), "");
  EXPECT_EQ(start->nodes()->Get(0)->rack()->str(), "r1");
  EXPECT_EQ(start->direct_bytes(), 1u);
  EXPECT_EQ(start->halving_bytes(), 2u);
  EXPECT_TRUE(start->hierarchical());
  EXPECT_EQ(start->two_hops_bytes(), 3u);
  ASSERT_EQ(start->nodes()->Get(0)->ranks()->size(), 2u);
  EXPECT_EQ(start->nodes()->Get(0)->ranks()->Get(1), 2u);
}

TEST(ControlMessagesTest, OperationReadyCarriesTheSignature) {
  Signature signature;
  signature.collective = Collective::Broadcast;
  signature.dtype = DataType::BFloat16;
  signature.reduction = Reduction::Max;
  signature.root = 2;
  signature.count = 1ull << 40;
  signature.group = 77;
  signature.codec = *parse_codec_spec("topk:ratio=0.125");
  signature.given = 5;
  signature.owner_step = OwnerStepKind::Optimizer;
  signature.update.weight_decay = 0.5F;
  signature.updates = 6;
  auto buffer = make_operation_ready({1, 2, 3}, signature);
  const auto* ready = verified(buffer).body_as_OperationReady();
  ASSERT_NE(ready, nullptr);
  EXPECT_EQ(ready->job_key(), 1u);
  EXPECT_EQ(ready->tensor(), 2u);
  EXPECT_EQ(ready->step(), 3u);
  EXPECT_EQ(signature_of(*ready), signature);
}

TEST(ControlMessagesTest, AnOperationReadyOfUnknownKindHasNoSignature) {
  const auto is_known = [](const std::function<void(Signature&)>& change) {
    Signature signature;
    signature.count = 5;
    change(signature);
    auto buffer = make_operation_ready({1, 2, 3}, signature);
    const auto read = signature_of(*verified(buffer).body_as_OperationReady());
    return read.has_value() && *read == signature;
  };
  EXPECT_TRUE(is_known([](Signature&) {}));
  EXPECT_FALSE(
      is_known([](Signature& one) { one.collective = static_cast<Collective>(kCollectiveCount); }));
  EXPECT_FALSE(is_known([](Signature& one) { one.dtype = static_cast<DataType>(kDataTypeCount); }));
  EXPECT_FALSE(
      is_known([](Signature& one) { one.reduction = static_cast<Reduction>(kReductionCount); }));
  EXPECT_TRUE(is_known([](Signature& one) { one.codec.kind = CodecKind::Float16; }));
  EXPECT_FALSE(is_known([](Signature& one) { one.codec.kind = CodecKind::Dgc; }))
      << "without a ratio it is none";
  EXPECT_FALSE(is_known(
      [](Signature& one) { one.owner_step = static_cast<OwnerStepKind>(kOwnerStepKindCount); }));
}

TEST(ControlMessagesTest, AFailureComesBackAsItWas) {
  const Status reason(StatusCode::Mismatch, "ranks disagree");
  auto buffer = make_fail_job(5, "train", reason);
  const auto* fail = verified(buffer).body_as_FailJob();
  ASSERT_NE(fail, nullptr);
  const Status read = failure_status(fail->code(), fail->reason());
  EXPECT_EQ(read.code(), StatusCode::Mismatch);
  EXPECT_EQ(read.message(), "ranks disagree");
}

TEST(ControlMessagesTest, AFailureWithoutAKnownCodeIsInternal) {
  EXPECT_EQ(failure_status(0, nullptr).code(), StatusCode::Internal);
  EXPECT_EQ(failure_status(kStatusCodeMax + 1, nullptr).code(), StatusCode::Internal);
  EXPECT_FALSE(failure_status(255, nullptr).message().empty());
}

TEST(ControlMessagesTest, AReportCarriesTheMissingRanks) {
  const std::vector<uint32_t> missing = {1, 5};
  auto buffer = make_operation_report({1, 2, 3}, missing, "rank 1 has submitted nothing yet");
  const auto* report = verified(buffer).body_as_OperationReport();
  ASSERT_NE(report, nullptr);
  ASSERT_EQ(report->missing_ranks()->size(), 2u);
  EXPECT_EQ(report->missing_ranks()->Get(1), 5u);
  EXPECT_EQ(report->detail()->str(), "rank 1 has submitted nothing yet");
}

TEST(SignatureTest, SaysWhatMattersForItsCollective) {
  Signature signature;
  signature.count = 1000;
  EXPECT_EQ(to_string(signature), "all-reduce (sum) of float32 × 1000");
  signature.group = 0xab;
  EXPECT_EQ(to_string(signature), "all-reduce (sum) of float32 × 1000 in the group ab");
  signature = {};
  signature.collective = Collective::Broadcast;
  signature.root = 3;
  signature.count = 2;
  EXPECT_EQ(to_string(signature), "broadcast (root 3) of float32 × 2");
  signature.collective = Collective::AllGather;
  EXPECT_EQ(to_string(signature), "all-gather of float32 × 2");
  signature.collective = Collective::Barrier;
  EXPECT_EQ(to_string(signature), "barrier");
}

TEST(SignatureTest, NamesACodecAndAnOwnersStepWhereThereIsOne) {
  Signature signature;
  signature.count = 1000;
  signature.codec = *parse_codec_spec("int8:block=64");
  EXPECT_EQ(to_string(signature), "all-reduce (sum) of float32 × 1000 with codec int8:block=64");
  signature.owner_step = OwnerStepKind::Optimizer;
  EXPECT_EQ(to_string(signature), "all-reduce (sum) of float32 × 1000 with codec int8:block=64")
      << "as long as not all local ranks have said which";
  signature.update.learning_rate = 0.5;
  signature.updates = 0xab;
  EXPECT_EQ(to_string(signature),
            "all-reduce (sum) of float32 × 1000 with codec int8:block=64, sgd (lr 0.5), update 1 "
            "(of all its tensors: ab)");
}

TEST(SignatureTest, UpdatesTravelWithTheReadiness) {
  Signature signature;
  signature.count = 5;
  signature.owner_step = OwnerStepKind::Optimizer;
  signature.update.optimizer = Optimizer::Adam;
  signature.update.learning_rate = 0.25;
  signature.update.momentum = 0.9;
  signature.update.count = 7;
  signature.updates = 99;
  auto buffer = make_operation_ready({1, 2, 3}, signature);
  const auto* ready = verified(buffer).body_as_OperationReady();
  const auto read = signature_of(*ready);
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(*read, signature);
  Signature other = signature;
  other.updates = 100;
  EXPECT_NE(hash_of(other, JobHash(7)), hash_of(signature, JobHash(7)));
}

TEST(SignatureTest, UpdatesThatMakeNoSenseAreNone) {
  const auto read_with = [](const std::vector<uint8_t>& update) {
    ControlBuffer builder;
    const auto bytes = builder.CreateVector(update);
    const auto body =
        proto::CreateOperationReady(builder, 1, 2, 3, 5, 0, 0, 0, 0, 0, 0,
                                    static_cast<uint8_t>(OwnerStepKind::Optimizer), 0, bytes, 1);
    builder.Finish(proto::CreateControlMessage(
        builder, proto::ControlBodyTraits<proto::OperationReady>::enum_value, body.Union()));
    return signature_of(*verified(builder).body_as_OperationReady()).has_value();
  };
  UpdateStep step;
  step.learning_rate = 0.5;
  const auto bytes_of = [](const proto::UpdateEntry& entry) {
    const auto* first = reinterpret_cast<const uint8_t*>(&entry);
    return std::vector<uint8_t>(first, first + sizeof(entry));
  };
  proto::UpdateEntry entry = to_entry(step);
  EXPECT_TRUE(read_with(bytes_of(entry)));
  entry.action = kUpdateActionCount;
  EXPECT_FALSE(read_with(bytes_of(entry)));
  EXPECT_FALSE(read_with(std::vector<uint8_t>(63)));
  EXPECT_FALSE(read_with({}));
}

TEST(SignatureTest, AnotherCodecOrOwnersStepIsAnotherHash) {
  const JobHash job(7);
  const Signature plain;
  Signature coded;
  coded.codec.kind = CodecKind::BFloat16;
  Signature stepped;
  stepped.owner_step = static_cast<OwnerStepKind>(1);
  EXPECT_NE(hash_of(plain, job), hash_of(coded, job));
  EXPECT_NE(hash_of(plain, job), hash_of(stepped, job));
  EXPECT_NE(hash_of(coded, job), hash_of(stepped, job));
}

}  // namespace
}  // namespace braid

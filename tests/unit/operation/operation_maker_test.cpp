// SPDX-License-Identifier: Apache-2.0
#include "operation/operation_maker.h"

#include <gtest/gtest.h>

#include "engine/fixed_owners.h"

namespace braid {
namespace {

// Ranks 0 and 2 on this node of two; rank 1 on the other one. Alone, it has 0 and 1.
class OperationMakerTest : public ::testing::Test {
 protected:
  static constexpr uint64_t kCount = 100;
  const CodecSpec kCodec = *parse_codec_spec("2bit:threshold=0.5");

  static JobOnNode job_of(uint32_t nodes) {
    auto ring = std::make_shared<Ring>();
    ring->nodes = nodes;
    ring->world_size = nodes + 1;
    ring->ranks_of_node = nodes == 1 ? std::vector<uint32_t>{2} : std::vector<uint32_t>{2, 1};
    ring->block_of_rank = nodes == 1 ? std::vector<uint32_t>{0, 1} : std::vector<uint32_t>{0, 2, 1};
    ring->routes = basic_routes(nodes, 0);
    return {"train", 9, std::move(ring), {0, nodes == 1 ? 1U : 2U}};
  }

  // 'a' with so many elements, then 'b'; one after the other in their set, from element 40 on.
  static OperationForm form_of(std::vector<uint64_t> counts) {
    auto group = std::make_shared<TensorGroup>();
    for (const uint64_t count : counts) {
      const auto name = std::make_shared<const std::string>(group->members.empty() ? "a" : "b");
      group->members.push_back({1 + group->members.size(), name, count, 4 * group->count,
                                40 + group->count, 40 + group->count});
      group->count += count;
    }
    group->last_place = 6;
    OperationForm form;
    form.plan = 1;
    form.group = std::move(group);
    return form;
  }
  OperationForm coded_form(std::vector<uint64_t> counts) {
    OperationForm form = form_of(std::move(counts));
    auto coded = std::make_shared<CodedTensors>();
    coded->sum = *make_coded_sum(kCodec, 2, 1);
    coded->memory = *ErrorMemory::create(1000, coded->sum.memory_floats);
    form.codec = kCodec;
    form.coded = std::move(coded);
    return form;
  }
  OperationForm sharded_form(std::vector<uint64_t> counts = {kCount}) {
    OperationForm form = form_of(std::move(counts));
    form.shard = *ShardState::create({1000, 16, 2, 0}, 1, DataType::Float32);
    return form;
  }

  // By both local ranks, all members.
  GatheredOperation submitted(const JobOnNode& job, const Signature& signature,
                              std::optional<OperationForm> form = {},
                              UpdateAction action = UpdateAction::Apply) {
    const auto shared = form ? std::make_shared<const OperationForm>(*form) : nullptr;
    Submission one;
    one.step = 5;
    one.signature = signature;
    one.update.action = action;
    one.name = std::make_shared<const std::string>("a");
    one.tensor = 1;
    GatheredOperation all(job, {job.key, 1, 5}, one, shared);
    for (one.local_rank = 0; one.local_rank < 2; ++one.local_rank) {
      for (uint32_t member = 0; member < all.members(); ++member) {
        one.tensor = 1 + member;
        one.input = inputs_[one.local_rank] + 512 * member;
        if (form && form->group) one.input_bytes = 4 * form->group->members[member].count;
        EXPECT_TRUE(all.add(one, {shared, member}).is_ok());
      }
    }
    EXPECT_TRUE(all.is_complete());
    return all;
  }
  static Signature signature_of(Collective collective, uint64_t count = kCount) {
    Signature signature;
    signature.collective = collective;
    signature.count = count;
    return signature;
  }
  Operation make(const JobOnNode& job, const GatheredOperation& all) const {
    const OperationMaker maker(job, memory_);
    EXPECT_TRUE(maker.check(all).is_ok());
    return maker.make(all, nullptr);
  }

  const JobOnNode one_node_ = job_of(1);
  const JobOnNode two_nodes_ = job_of(2);
  const std::shared_ptr<JobMemory> memory_ = std::make_shared<JobMemory>();
  alignas(64) uint8_t inputs_[2][1024] = {};
};

TEST_F(OperationMakerTest, WhatIsNotPlannedIsMostUrgentAndTravelsAsItIs) {
  const auto all = submitted(two_nodes_, signature_of(Collective::AllReduce));
  const Operation operation = make(two_nodes_, all);
  EXPECT_EQ(operation.key, (OperationKey{9, 1, 5}));
  EXPECT_EQ(operation.count, kCount);
  EXPECT_EQ(operation.urgency, kMostUrgent);
  EXPECT_EQ(operation.memory, memory_);
  EXPECT_EQ(operation.ring, two_nodes_.ring);
  EXPECT_EQ(operation.hop, nullptr);
  EXPECT_EQ(operation.fixed_owners, nullptr);
  ASSERT_EQ(operation.inputs.size(), 2u);
  EXPECT_TRUE(operation.inputs[1] == inputs_[1]);
}

TEST_F(OperationMakerTest, ABarrierIsAnAllReduceOfOneByte) {
  const auto all = submitted(two_nodes_, signature_of(Collective::Barrier, 0));
  const Operation operation = make(two_nodes_, all);
  EXPECT_EQ(operation.collective, Collective::AllReduce);
  EXPECT_EQ(operation.dtype, DataType::Uint8);
  EXPECT_EQ(operation.count, 1u);
  ASSERT_EQ(operation.inputs.size(), 2u);
  EXPECT_NE(operation.inputs[0].find(0, 1), nullptr) << "nobody has given it";
}

TEST_F(OperationMakerTest, ABroadcastKnowsItsRootsNodeAndInput) {
  for (const auto& [root, node, input] : {std::tuple{0u, 0u, 0u}, {2u, 0u, 1u}, {1u, 1u, 0u}}) {
    Signature signature = signature_of(Collective::Broadcast);
    signature.root = root;
    const Operation operation = make(two_nodes_, submitted(two_nodes_, signature));
    EXPECT_EQ(operation.root_node, node) << root;
    EXPECT_EQ(operation.root_local_input, input) << root;
  }
}

TEST_F(OperationMakerTest, APlanSaysHowUrgentItIsAndHowItIsCut) {
  OperationForm form = form_of({60, 40});
  TransferSettings settings;
  settings.unit_bytes = 1 << 20;
  settings.chunk_bytes = 4096;
  form.settings = std::make_shared<const TransferSettings>(settings);
  const Operation operation =
      make(two_nodes_, submitted(two_nodes_, signature_of(Collective::AllReduce, 3), form));
  EXPECT_EQ(operation.urgency, urgency_of(5, 6));
  EXPECT_EQ(operation.unit_bytes, 1u << 20);
  EXPECT_EQ(operation.chunk_bytes, 4096u);
  EXPECT_EQ(operation.count, 100u) << "of all members";
  EXPECT_EQ(operation.inputs[1].find(0, 240), inputs_[1]);
  EXPECT_EQ(operation.inputs[1].find(240, 160), inputs_[1] + 512);
}

TEST_F(OperationMakerTest, ACodecIsForSeveralNodes) {
  for (const JobOnNode* const job : {&one_node_, &two_nodes_}) {
    const auto all = submitted(*job, signature_of(Collective::AllReduce), coded_form({kCount}));
    const Operation operation = make(*job, all);
    EXPECT_EQ(operation.hop != nullptr, job->ring->nodes == 2);
    EXPECT_EQ(all.signature().codec.kind, CodecKind::TwoBit);
  }
}

TEST_F(OperationMakerTest, NothingIsMadeOfElementsBehindWhatIsKept) {
  const Signature signature = signature_of(Collective::AllReduce);
  const auto check = [&](const OperationForm& form) {
    const OperationMaker maker(two_nodes_, memory_);
    return maker.check(submitted(two_nodes_, signature, form)).code();
  };
  EXPECT_EQ(check(coded_form({500, 460})), StatusCode::Ok);
  EXPECT_EQ(check(coded_form({500, 461})), StatusCode::Mismatch);
  EXPECT_EQ(check(sharded_form({500, 460})), StatusCode::Ok);
  EXPECT_EQ(check(sharded_form({500, 461})), StatusCode::Mismatch);
}

TEST_F(OperationMakerTest, AnUpdateHasOwnersAStepAndTheHalvesOfItsAction) {
  for (const auto& [action, halves] : {std::pair{UpdateAction::Load, Halves::Gather},
                                       {UpdateAction::Apply, Halves::Both},
                                       {UpdateAction::Push, Halves::ReduceScatter},
                                       {UpdateAction::Fetch, Halves::Gather},
                                       {UpdateAction::Estimate, Halves::Both}}) {
    const auto all =
        submitted(two_nodes_, signature_of(Collective::AllReduce), sharded_form(), action);
    const Operation operation = make(two_nodes_, all);
    ASSERT_NE(operation.fixed_owners, nullptr);
    EXPECT_EQ(operation.fixed_owners->stripe_elements, 16u);
    EXPECT_EQ(operation.fixed_owners->in_set(3), 43u);
    EXPECT_NE(operation.owner_step, nullptr);
    EXPECT_EQ(operation.halves, halves);
    EXPECT_EQ(operation.contribution != nullptr, halves == Halves::Gather);
  }
}

TEST_F(OperationMakerTest, TheSameIsMadeOfTheSame) {
  const auto all = submitted(two_nodes_, signature_of(Collective::AllReduce), coded_form({60, 40}));
  const Operation first = make(two_nodes_, all);
  const Operation second = make(two_nodes_, all);
  EXPECT_EQ(first.route, second.route);
  EXPECT_EQ(first.signature, second.signature);
  EXPECT_EQ(first.count, second.count);
  EXPECT_TRUE(all.may_use_kept()) << "making it begins nothing";
}

}  // namespace
}  // namespace braid

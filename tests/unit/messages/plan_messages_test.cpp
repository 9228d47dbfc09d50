// SPDX-License-Identifier: Apache-2.0
#include "messages/plan_messages.h"

#include <cmath>
#include <functional>

#include <gtest/gtest.h>

#include "control/fake_control_plane.h"

namespace braid {
namespace {

using testing::as_message;

PlanReport report() {
  PlanReport result;
  result.job_key = 9;
  result.set = 8;
  result.plan = 7;
  result.step = 1ULL << 40;
  result.tensors = {11, 12};
  result.counts = {100, 0};
  result.dtypes = {DataType::BFloat16, DataType::Float64};
  result.ready_ns = {5, 1ULL << 50};
  result.forward_ns = 6;
  result.iteration_ns = 4;
  result.operations = {{7, 1000, 2000}, {8, 2, 3}};
  result.beside = {{21, 1ULL << 40, 1}, {22, 0, 0.125}};
  return result;
}

PlanProposal proposal() {
  PlanProposal result;
  result.job_key = 9;
  result.set = 8;
  result.number = 3;
  result.from_step = 1ULL << 40;
  result.groups = {{13, 11}, {12}};
  result.planner = "streams";
  result.predicted_ns = 77;
  result.cost = "{}";
  return result;
}

// What parsing says of a report with one change.
std::string refusal(const std::function<void(PlanReport&)>& change) {
  PlanReport changed = report();
  change(changed);
  auto message = make_plan_report(changed);
  const auto parsed = parse_plan_report(*as_message(message).body_as_PlanReport());
  if (parsed) return "";
  EXPECT_EQ(parsed.status().code(), StatusCode::Protocol);
  return parsed.status().message();
}

Result<PlanProposal> passed(const PlanProposal& sent,
                            uint32_t chunk_bytes_max = proto::kChunkBytesMax) {
  auto message = make_plan_proposal(sent);
  return parse_plan_proposal(*as_message(message).body_as_PlanProposal(), chunk_bytes_max);
}

TEST(PlanMessagesTest, AReportArrivesAsItWasSent) {
  const PlanReport sent = report();
  auto message = make_plan_report(sent);
  const auto got = parse_plan_report(*as_message(message).body_as_PlanReport()).value();
  EXPECT_EQ(got.job_key, sent.job_key);
  EXPECT_EQ(got.set, sent.set);
  EXPECT_EQ(got.plan, sent.plan);
  EXPECT_EQ(got.step, sent.step);
  EXPECT_EQ(got.tensors, sent.tensors);
  EXPECT_EQ(got.counts, sent.counts);
  EXPECT_EQ(got.dtypes, sent.dtypes);
  EXPECT_EQ(got.ready_ns, sent.ready_ns);
  EXPECT_EQ(got.forward_ns, sent.forward_ns);
  EXPECT_EQ(got.iteration_ns, sent.iteration_ns);
  ASSERT_EQ(got.operations.size(), 2u);
  EXPECT_EQ(got.operations[0].id, 7u);
  EXPECT_EQ(got.operations[0].bytes, 1000u);
  EXPECT_EQ(got.operations[0].nanoseconds, 2000u);
  EXPECT_EQ(got.operations[1].id, 8u);
  EXPECT_EQ(got.beside, sent.beside);
}

TEST(PlanMessagesTest, AReportsSetsBesideAreFewAndHaveAShare) {
  EXPECT_EQ(refusal([](PlanReport& r) { r.beside.resize(PlanReport::kBesideMax, {1, 1, 1}); }), "");
  EXPECT_EQ(refusal([](PlanReport& r) {
              r.beside.resize(PlanReport::kBesideMax + 1, {1, 1, 1});
            }),
            "a plan report's sets beside are too many, or of different lengths");
  for (const double share : {0.0, -1.0, 1.5, std::nan("")}) {
    EXPECT_NE(refusal([&](PlanReport& r) {
                r.beside[0].share = share;
              }).find("right is more than 0 and at most 1"),
              std::string::npos);
  }
}

TEST(PlanMessagesTest, AReportNeedsNoMeasurements) {
  EXPECT_EQ(refusal([](PlanReport& r) { r.operations.clear(); }), "");
  flatbuffers::FlatBufferBuilder builder;
  const std::vector<uint64_t> one = {1};
  const std::vector<uint8_t> dtype = {0};
  builder.Finish(proto::CreatePlanReportDirect(builder, 9, 8, 0, 0, &one, &one, &dtype, &one));
  EXPECT_TRUE(
      parse_plan_report(*flatbuffers::GetRoot<proto::PlanReport>(builder.GetBufferPointer())));
}

TEST(PlanMessagesTest, AReportsListsAreOfOneLength) {
  constexpr const char* kLengths = "a plan report's lists are of different lengths";
  EXPECT_EQ(refusal([](PlanReport& r) { r.tensors.push_back(1); }), kLengths);
  EXPECT_EQ(refusal([](PlanReport& r) { r.counts.pop_back(); }), kLengths);
  EXPECT_EQ(refusal([](PlanReport& r) { r.dtypes.pop_back(); }), kLengths);
  EXPECT_EQ(refusal([](PlanReport& r) { r.ready_ns.clear(); }), kLengths);
  EXPECT_EQ(refusal([](PlanReport& r) {
              r.tensors.clear();
              r.counts.clear();
              r.dtypes.clear();
              r.ready_ns.clear();
            }),
            kLengths);
}

TEST(PlanMessagesTest, AReportsMeasurementsAreOfOneLength) {
  const std::vector<uint64_t> one = {1}, two = {1, 2};
  const std::vector<uint8_t> dtype = {0};
  const auto parse = [&](const std::vector<uint64_t>* operations,
                         const std::vector<uint64_t>* bytes, const std::vector<uint64_t>* ns) {
    flatbuffers::FlatBufferBuilder builder;
    builder.Finish(proto::CreatePlanReportDirect(builder, 9, 8, 0, 0, &one, &one, &dtype, &one, 0,
                                                 0, operations, bytes, ns));
    return parse_plan_report(*flatbuffers::GetRoot<proto::PlanReport>(builder.GetBufferPointer()))
        .is_ok();
  };
  EXPECT_TRUE(parse(&one, &one, &one));
  EXPECT_FALSE(parse(&two, &one, &one));
  EXPECT_FALSE(parse(&one, &two, &one));
  EXPECT_FALSE(parse(&one, &one, &two));
  EXPECT_FALSE(parse(&one, &one, nullptr));
  EXPECT_FALSE(parse(nullptr, &one, &one));
  EXPECT_FALSE(parse(&one, nullptr, &one));
}

TEST(PlanMessagesTest, AReportsDtypesExist) {
  EXPECT_EQ(refusal([](PlanReport& r) { r.dtypes[1] = static_cast<DataType>(kDataTypeCount); }),
            "a plan report has dtype 7");
}

TEST(PlanMessagesTest, AReportsTensorsAreAsLargeAsASetMayBe) {
  const auto with = [](uint64_t first, uint64_t second) {
    return refusal([&](PlanReport& r) {
      r.dtypes.assign(r.dtypes.size(), DataType::Uint8);
      r.counts.assign(r.counts.size(), 0);
      r.counts[0] = first;
      r.counts[1] = second;
    });
  };
  EXPECT_EQ(with(kSetBytesMax - 9, 9), "");
  EXPECT_EQ(with(kSetBytesMax - 9, 10), "a plan report has 10 elements of uint8: too many");
  EXPECT_EQ(with(9, UINT64_MAX - 8),
            "a plan report has 18446744073709551607 elements of uint8: too many");
}

TEST(PlanMessagesTest, StepsOfReportsAreNumbersOfSteps) {
  constexpr const char* kText =
      "step 4611686018427387905 is reported; right are up to 4611686018427387904";
  EXPECT_EQ(refusal([](PlanReport& r) { r.step = kStepNumberMax; }), "");
  EXPECT_EQ(refusal([](PlanReport& r) { r.step = kStepNumberMax + 1; }), kText);
  auto message = make_step_report({9, 8, 0, kStepNumberMax + 1, 5});
  EXPECT_EQ(parse_step_report(*as_message(message).body_as_StepReport()).status().message(), kText);
}

TEST(PlanMessagesTest, ARegisteredSetIsAsLargeAsASetMayBe) {
  auto largest = make_set_registered({9, 8, 7, kSetBytesMax, 1});
  EXPECT_TRUE(parse_set_registered(*as_message(largest).body_as_SetRegistered()).is_ok());
  auto larger = make_set_registered({9, 8, 7, kSetBytesMax + 1, 1});
  EXPECT_EQ(parse_set_registered(*as_message(larger).body_as_SetRegistered()).status().message(),
            "a set was registered with 281474976710657 bytes; right are up to 281474976710656");
}

TEST(PlanMessagesTest, AProposalArrivesAsItWasSent) {
  const PlanProposal sent = proposal();
  const auto got = passed(sent).value();
  EXPECT_EQ(got.job_key, sent.job_key);
  EXPECT_EQ(got.set, sent.set);
  EXPECT_EQ(got.number, sent.number);
  EXPECT_EQ(got.from_step, sent.from_step);
  EXPECT_EQ(got.groups, sent.groups);
  EXPECT_EQ(got.planner, sent.planner);
  EXPECT_EQ(got.predicted_ns, sent.predicted_ns);
  EXPECT_EQ(got.cost, sent.cost);
}

TEST(PlanMessagesTest, AProposalsGroupsAreItsTensors) {
  const auto parse = [](const std::vector<uint32_t>& sizes, size_t tensors) {
    flatbuffers::FlatBufferBuilder builder;
    const std::vector<uint64_t> hashes(tensors, 1);
    builder.Finish(
        proto::CreatePlanProposalDirect(builder, 9, 8, 1, 5, &sizes, &hashes, "", 0, ""));
    const auto parsed =
        parse_plan_proposal(*flatbuffers::GetRoot<proto::PlanProposal>(builder.GetBufferPointer()));
    return parsed ? std::string("fits") : parsed.status().message();
  };
  EXPECT_EQ(parse({1, 2}, 3), "fits");
  EXPECT_EQ(parse({1, 0, 2}, 3), "fits");  // whether it may be empty is the set's to say
  EXPECT_EQ(parse({1, 3}, 3), "a proposed plan's groups are longer than its tensors");
  EXPECT_EQ(parse({UINT32_MAX, UINT32_MAX}, 3),
            "a proposed plan's groups are longer than its tensors");
  EXPECT_EQ(parse({1}, 3), "a proposed plan has tensors without a group");
  EXPECT_EQ(parse({}, 1), "a proposed plan has tensors without a group");
}

TEST(PlanMessagesTest, AProposalsSettingsArriveAsTheyWereSent) {
  PlanProposal sent = proposal();
  sent.groups.clear();
  sent.settings = TransferSettings{4 << 20, 64 << 10, 1, 1 << 21, 1 << 18, true, 3, 5, 1 << 20};
  sent.flows_open = 16;
  sent.reports_steps = true;
  const auto got = passed(sent).value();
  EXPECT_TRUE(got.keeps_groups());
  EXPECT_EQ(got.settings, sent.settings);
  EXPECT_EQ(got.flows_open, 16u);
  EXPECT_TRUE(got.reports_steps);
}

TEST(PlanMessagesTest, AProposalsSettingsMustBePossibleHere) {
  const auto refused = [](const std::function<void(PlanProposal&)>& change) {
    PlanProposal changed = proposal();
    changed.settings = TransferSettings{};
    change(changed);
    return passed(changed, 256 << 10).status().message();
  };
  EXPECT_EQ(refused([](PlanProposal&) {}), "");
  EXPECT_EQ(refused([](PlanProposal& one) { one.settings->chunk_bytes = 512 << 10; }),
            "plan 3 was proposed with chunk_bytes 524288; right are 4096 to 262144");
  EXPECT_EQ(refused([](PlanProposal& one) { one.settings->streams = 0; }),
            "plan 3 was proposed with streams 0; right are 1 to 64");
  EXPECT_EQ(refused([](PlanProposal& one) { one.flows_open = 257; }),
            "plan 3 was proposed with 257 flows; right are up to 256");
  EXPECT_EQ(refused([](PlanProposal& one) {
              one.groups.clear();
              one.settings.reset();
            }),
            "a proposed plan has neither groups nor settings");
}

PlanProposal plain_proposal() {
  PlanProposal result = proposal();
  result.groups.clear();
  result.plain = {{{11, 12}, GuardLimit::Saturation, 0.9, 0.5},
                  {{13}, GuardLimit::Residual, 1000, 10}};
  return result;
}

TEST(PlanMessagesTest, AProposalsPlainTensorsArriveAsTheyWereSent) {
  const auto got = passed(plain_proposal()).value();
  EXPECT_TRUE(got.is_plain());
  EXPECT_FALSE(got.keeps_groups());
  ASSERT_EQ(got.plain.size(), 2u);
  EXPECT_EQ(got.plain[0].tensors, (std::vector<uint64_t>{11, 12}));
  EXPECT_EQ(got.plain[0].limit, GuardLimit::Saturation);
  EXPECT_EQ(got.plain[0].measured, 0.9);
  EXPECT_EQ(got.plain[0].allowed, 0.5);
  EXPECT_EQ(got.plain[1].limit, GuardLimit::Residual);
}

TEST(PlanMessagesTest, AProposalSaysWhyCodecsEndAndChangesNothingElse) {
  const auto refused = [](const std::function<void(PlanProposal&)>& change) {
    PlanProposal changed = plain_proposal();
    change(changed);
    return passed(changed).status().message();
  };
  const std::string unsaid = "a proposed plan does not say which codecs end, or why";
  EXPECT_EQ(refused([](PlanProposal&) {}), "");
  EXPECT_EQ(refused([](PlanProposal& one) { one.plain[1].tensors.clear(); }), unsaid);
  for (const uint8_t limit : {0, 4, 255}) {
    EXPECT_EQ(
        refused([&](PlanProposal& one) { one.plain[0].limit = static_cast<GuardLimit>(limit); }),
        unsaid);
  }
  EXPECT_EQ(refused([](PlanProposal& one) { one.plain[0].measured = NAN; }), unsaid);
  EXPECT_EQ(refused([](PlanProposal& one) { one.plain[0].allowed = INFINITY; }), unsaid);
  const std::string more = "a proposed plan ends codecs and changes more than that";
  EXPECT_EQ(refused([](PlanProposal& one) { one.groups = {{11}}; }), more);
  EXPECT_EQ(refused([](PlanProposal& one) { one.settings = TransferSettings{}; }), more);
}

TEST(PlanMessagesTest, AnswersAndVerdictsNameTheProposal) {
  auto answer_message = make_plan_answer(proposal(), true, 55);
  const auto* answer = as_message(answer_message).body_as_PlanAnswer();
  ASSERT_NE(answer, nullptr);
  EXPECT_EQ(answer->job_key(), 9u);
  EXPECT_EQ(answer->set(), 8u);
  EXPECT_EQ(answer->number(), 3u);
  EXPECT_TRUE(answer->accepted());
  EXPECT_EQ(answer->step(), 55u);
  auto verdict_message = make_plan_verdict(proposal(), true);
  const auto* verdict = as_message(verdict_message).body_as_PlanVerdict();
  ASSERT_NE(verdict, nullptr);
  EXPECT_EQ(verdict->job_key(), 9u);
  EXPECT_EQ(verdict->set(), 8u);
  EXPECT_EQ(verdict->number(), 3u);
  EXPECT_TRUE(verdict->holds());
}

}  // namespace
}  // namespace braid

// SPDX-License-Identifier: Apache-2.0
#include <functional>

#include "open_job_fixture.h"

namespace braid {
namespace {

class ArgumentsTest : public OpenJobTest {};

TEST_F(ArgumentsTest, ArgumentsAreNamed) {
  const uint32_t tensor = register_tensor(job_, "a", 4);
  const uint32_t stream = register_dynamic(job_, "stream");
  braid_ticket ticket = 0;
  const auto good = all_reduce(tensor, 0, values_.data());
  auto bad = good;
  const auto refused = [&] { return braid_submit(job_, &bad, &ticket); };
  bad.tensor = 9;
  EXPECT_BRAID_ERROR(refused(), BRAID_ERROR_NOT_FOUND, "tensor handle 9");
  const std::vector<std::pair<std::string, std::function<void()>>> wrong = {
      {"collective", [&] { bad.collective = 8; }},
      {"reduction", [&] { bad.reduction = 5; }},
      {"input", [&] { bad.input = nullptr; }},
      {"struct_size", [&] { bad.struct_size = 8; }},
      {"dtype", [&] { bad.tensor = stream, bad.dtype = 7; }},
      {"281474976710656 bytes at most",
       [&] { bad.tensor = stream, bad.dtype = BRAID_FLOAT64, bad.count = 1ull << 61; }}};
  for (const auto& [part, change] : wrong) {
    bad = good;
    change();
    EXPECT_INVALID(refused(), part);
  }
  EXPECT_INVALID(braid_submit(job_, &good, nullptr), "ticket");
  EXPECT_INVALID(braid_submit(nullptr, &good, &ticket), "job");
  EXPECT_BRAID_ERROR(braid_wait(job_, 4711, 0), BRAID_ERROR_NOT_FOUND, "4711");
  ticket = submit(job_, good);
  EXPECT_INVALID(refused(), "count");
  ASSERT_EQ(braid_wait(job_, ticket, 0), BRAID_OK);
  float out[4];
  EXPECT_INVALID(braid_copy_result(job_, ticket, out, 15), "15 bytes");
  EXPECT_INVALID(braid_result(job_, ticket, nullptr, nullptr), "data");
}

TEST_F(ArgumentsTest, RegistrationIsChecked) {
  uint32_t handles[2];
  braid_tensor_options options[] = {tensor_options("a", 1), tensor_options("a", 1)};
  EXPECT_BRAID_ERROR(braid_register(job_, options, 2, handles), BRAID_ERROR_ALREADY_EXISTS, "'a'");
  options[1] = tensor_options("b", UINT64_MAX / 2);
  EXPECT_BRAID_ERROR(braid_register(job_, options, 2, handles), BRAID_ERROR_INVALID_ARGUMENT,
                     "tensor 'b' has 9223372036854775807 elements of float32; a tensor has "
                     "281474976710656 bytes at most");
  options[1] = tensor_options("b", 1);
  options[1].dtype = 7;
  EXPECT_INVALID(braid_register(job_, options, 2, handles), "dtype of tensor 'b'");
  options[1] = tensor_options("", 1);
  EXPECT_INVALID(braid_register(job_, options, 2, handles), "name");
  options[1] = tensor_options("b", 1);
  EXPECT_INVALID(braid_register(job_, options, 0, handles), "tensor_count");
  EXPECT_INVALID(braid_register(job_, options, 2, nullptr), "tensors");
  ASSERT_EQ(braid_register(job_, options, 2, handles), BRAID_OK) << braid_error_message();
  EXPECT_EQ(handles[0], 0u);
  EXPECT_EQ(handles[1], 1u);
  EXPECT_BRAID_ERROR(braid_register(job_, options, 1, handles), BRAID_ERROR_ALREADY_EXISTS, "'a'");
}

// More than the socket takes at once.
TEST_F(ArgumentsTest, RegistersManyTensors) {
  std::vector<std::string> names;
  for (int i = 0; i < 20'000; ++i)
    names.push_back("model.layer." + std::to_string(i) + std::string(40, 'x'));
  std::vector<braid_tensor_options> options;
  for (const auto& name : names) options.push_back(tensor_options(name.c_str(), 1));
  std::vector<uint32_t> handles(names.size());
  ASSERT_EQ(braid_register(job_, options.data(), options.size(), handles.data()), BRAID_OK)
      << braid_error_message();
  EXPECT_EQ(handles.back(), 19'999u);
}

TEST_F(ArgumentsTest, ARefusedRegistrationLeavesTheJobAlone) {
  open({.refused_tensor = "odd"});
  const auto odd = tensor_options("odd", 4);
  uint32_t handle = 0;
  EXPECT_BRAID_ERROR(braid_register(job_, &odd, 1, &handle), BRAID_ERROR_MISMATCH, "'odd' differs");
  const uint32_t tensor = register_tensor(job_, "a", 4);
  EXPECT_EQ(tensor, 0u);
  done(all_reduce(tensor, 0, values_.data()));
}

TEST_F(ArgumentsTest, WhoLeavesAfterARefusalOfTheDaemonSaysWhatItWas) {
  open({.refused_tensor = "odd"});
  const auto odd = tensor_options("odd", 4);
  uint32_t handle = 0;
  EXPECT_EQ(braid_register(job_, &odd, 1, &handle), BRAID_ERROR_MISMATCH);
  EXPECT_EQ(braid_leave(job_, "its process has ended"), BRAID_OK);
  EXPECT_EQ(daemon_->seen().reason, "its process has ended; it was refused: tensor 'odd' differs");
}

TEST_F(ArgumentsTest, ARefusalThatTheReasonNamesIsNotSaidTwice) {
  braid_ticket ticket = 0;
  EXPECT_EQ(braid_submit(job_, nullptr, &ticket), BRAID_ERROR_INVALID_ARGUMENT);
  const std::string reason = std::string("it has met an error: ") + braid_error_message();
  EXPECT_EQ(braid_leave(job_, reason.c_str()), BRAID_OK);
  EXPECT_EQ(daemon_->seen().reason, reason);
}

TEST_F(ArgumentsTest, ARefusalIsForgottenWithTheNextThingThatIsNotRefused) {
  braid_ticket ticket = 0;
  EXPECT_EQ(braid_submit(job_, nullptr, &ticket), BRAID_ERROR_INVALID_ARGUMENT);
  register_tensor(job_, "a", 4);
  EXPECT_EQ(braid_leave(job_, "its process has ended"), BRAID_OK);
  EXPECT_EQ(daemon_->seen().reason, "its process has ended");
}

TEST_F(ArgumentsTest, StepsOfATensorGrow) {
  const uint32_t tensor = register_tensor(job_, "a", 4);
  submit(job_, all_reduce(tensor, 5, values_.data()));
  braid_ticket ticket = 0;
  for (const uint64_t step : {5, 4}) {
    const auto operation = all_reduce(tensor, step, values_.data());
    EXPECT_INVALID(braid_submit(job_, &operation, &ticket), "the steps of a tensor must grow");
  }
  submit(job_, all_reduce(tensor, 9, values_.data()));
}

// An operation that never reached the daemon does not use up its step.
TEST_F(ArgumentsTest, AStepThatFailedToStartMayBeTriedAgain) {
  const uint32_t tensor = register_tensor(job_, "a", 9u << 20);  // 36 MiB; the arena has 64
  const std::vector<float> values(9u << 20);
  void* memory = nullptr;
  ASSERT_EQ(braid_allocate(job_, 40 << 20, &memory), BRAID_OK);
  const auto operation = all_reduce(tensor, 3, values.data());
  braid_ticket ticket = 0;
  EXPECT_BRAID_ERROR(braid_submit(job_, &operation, &ticket), BRAID_ERROR_RESOURCE_EXHAUSTED,
                     "arena_bytes");
  ASSERT_EQ(braid_free(job_, memory), BRAID_OK);
  ticket = done(operation);
}

}  // namespace
}  // namespace braid

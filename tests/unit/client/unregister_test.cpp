// SPDX-License-Identifier: Apache-2.0
// braid_unregister: what is registered goes as it came.
#include "open_job_fixture.h"

namespace braid {
namespace {

class UnregisterTest : public OpenJobTest {
 protected:
  // Both by one braid_register.
  std::vector<uint32_t> register_two(const std::string& first, const std::string& second) {
    const std::vector<braid_tensor_options> options = {tensor_options(first.c_str(), 4),
                                                       tensor_options(second.c_str(), 4)};
    std::vector<uint32_t> handles(2);
    EXPECT_EQ(braid_register(job_, options.data(), 2, handles.data()), BRAID_OK);
    return handles;
  }
  int unregister(const std::vector<uint32_t>& handles) {
    return braid_unregister(job_, handles.data(), handles.size());
  }
  braid_ticket submit_one(uint32_t tensor, uint64_t step) {
    return submit(job_, all_reduce(tensor, step, values_.data()));
  }
};

TEST_F(UnregisterTest, TellsTheDaemonAndGivesNoHandleAgain) {
  const uint32_t other = register_tensor(job_, "other", 4);
  const auto handles = register_two("a", "b");
  finish(submit_one(handles[1], 0));
  ASSERT_EQ(unregister(handles), BRAID_OK) << braid_error_message();
  EXPECT_EQ(daemon_->seen().unregistered, (std::pair<uint32_t, uint32_t>{1, 2}));
  EXPECT_EQ(register_tensor(job_, "c", 4), 3u);
  finish(submit_one(other, 0));
  finish(submit_one(3, 0));
}

TEST_F(UnregisterTest, AHandleThatIsGoneIsUnknown) {
  const auto handles = register_two("a", "b");
  ASSERT_EQ(unregister(handles), BRAID_OK);
  const braid_operation operation = all_reduce(handles[0], 0, values_.data());
  braid_ticket ticket = 0;
  EXPECT_BRAID_ERROR(braid_submit(job_, &operation, &ticket), BRAID_ERROR_NOT_FOUND, "0");
  EXPECT_BRAID_ERROR(unregister(handles), BRAID_ERROR_NOT_FOUND,
                     "tensor handle 0 is unknown: it was unregistered, or never given out");
}

TEST_F(UnregisterTest, TakesAllHandlesOfOneRegistration) {
  const auto handles = register_two("a", "b");
  const uint32_t other = register_tensor(job_, "other", 4);
  const std::vector<std::vector<uint32_t>> wrong = {{0},    {1},           {1, 0},
                                                    {0, 0}, {0, 1, other}, {1, other}};
  for (const auto& some : wrong) {
    EXPECT_INVALID(unregister(some), "not all tensors of one braid_register");
  }
  EXPECT_INVALID(braid_unregister(job_, nullptr, 1), "NULL");
  EXPECT_INVALID(braid_unregister(job_, handles.data(), 0), "has no handles");
  EXPECT_EQ(daemon_->seen().unregistered.second, 0u);
  EXPECT_EQ(unregister(handles), BRAID_OK);
}

TEST_F(UnregisterTest, ATicketThatIsHeldKeepsThem) {
  const auto handles = register_two("a", "b");
  daemon_->hold_operations();
  const braid_ticket ticket = submit_one(handles[1], 5);
  EXPECT_INVALID(unregister(handles), "the all-reduce of 'b', step 5 still has ticket 1");
  daemon_->complete_held();
  EXPECT_EQ(braid_wait(job_, ticket, 0), BRAID_OK);
  EXPECT_INVALID(unregister(handles), "still has ticket");
  EXPECT_EQ(braid_release(job_, ticket), BRAID_OK);
  EXPECT_EQ(unregister(handles), BRAID_OK) << braid_error_message();
}

// The daemon knows better than libbraid: nothing has changed then.
TEST_F(UnregisterTest, ARefusalLeavesThemWhereTheyAre) {
  const auto handles = register_two("a", "b");
  const uint32_t other = register_tensor(job_, "other", 4);
  const braid_ticket ticket = submit_one(other, 0);
  EXPECT_INVALID(unregister(handles), "a ticket is held");
  finish(ticket);
  finish(submit_one(handles[0], 0));
  EXPECT_EQ(unregister(handles), BRAID_OK);
}

TEST_F(UnregisterTest, NamesMayComeAgainAsFarAsLibbraidIsConcerned) {
  ASSERT_EQ(unregister(register_two("a", "b")), BRAID_OK);
  EXPECT_EQ(register_two("b", "c"), (std::vector<uint32_t>{2, 3}));
}

}  // namespace
}  // namespace braid

// SPDX-License-Identifier: Apache-2.0
#include "base/errors_testing.h"
#include "job/manager_world.h"

namespace braid {
namespace {

using testing::is_error;
using testing::TestTrainer;

// An I/O loop is busy: the status is never made.
class ClientAnswersTest : public testing::JobManagerTest {};

TEST_F(ClientAnswersTest, WhoAsksForTheStatusTooOftenIsClosed) {
  TestTrainer& asker = add_trainer();
  for (uint32_t i = 0; i <= ClientQueries::kPerClientMax; ++i) asker.ask_status();
  wait_for([&] { return asker.was_closed; });
  EXPECT_EQ(asker.failure.code(), StatusCode::ResourceExhausted);
}

// Questions wait for their answers, with all that is in them.
TEST_F(ClientAnswersTest, NoQuestionIsAboutAJobWhoseNameIsTooLong) {
  add_trainer().ask_plans(std::string(OpenRequest::kJobNameBytesMax, 'x'));
  wait_for([&] { return trainers_[0]->status_reply == "[]"; });
  add_trainer().ask_plans(std::string(OpenRequest::kJobNameBytesMax + 1, 'x'));
  wait_for([&] { return !trainers_[1]->failure.is_ok(); });
  EXPECT_TRUE(is_error(trainers_[1]->failure, StatusCode::InvalidArgument, {"255 bytes", "256"}));
}

}  // namespace
}  // namespace braid

// SPDX-License-Identifier: Apache-2.0
#include "telling/client_queries.h"

#include <memory>
#include <string>
#include <vector>

#include "base/errors_testing.h"
#include "ipc/client_server.h"
#include "ipc/temporary_directory.h"
#include "job/manager_world.h"
#include "job/test_trainer.h"
#include "loop/loop_testing.h"

namespace braid {
namespace {

using testing::is_error;

using Kind = ClientQueries::Kind;
using Question = ClientQueries::Question;

class SteppedClock final : public Clock {
 public:
  uint64_t now_ns() const override { return ns; }
  uint64_t ns = 1;
};

// Clients are numbers here. Those that have connected are one and the same connection; whom an
// answer is for tells `find`.
class ClientQueriesTest : public testing::LoopTest, public ClientHandler {
 protected:
  static constexpr uint64_t kMillisecond = 1'000'000;

  ClientQueriesTest() {
    UserLimits limits;
    limits[UserResource::Queries] = 40;
    quotas_ = std::make_shared<UserQuotas>(limits, std::set<uid_t>{0});
    ClientServerOptions options;
    options.path = directory_.file("socket");
    server_ = ClientServer::create(*loop_, options, *this).value();
    trainer_ = std::make_unique<testing::TestTrainer>(options.path);
    run_until([&] { return connection_ != nullptr; });
    queries_ = std::make_unique<ClientQueries>(
        *loop_, clock_, quotas_,
        [this](uint64_t client) {
          found_ = client;
          return gone_ == client ? nullptr : connection_;
        },
        [this](uid_t viewer, const Question& question, ClientQueries::Made made) {
          begun_.push_back(std::to_string(viewer) + ":" + question.job);
          clock_.ns += begin_ns_;
          if (is_slow_)
            slow_.push_back(std::move(made));
          else
            tell(made);
        });
  }
  ~ClientQueriesTest() override { queries_.reset(); }

  void on_client_connected(ClientConnection& connection) override { connection_ = &connection; }
  void on_client_message(ClientConnection&, const proto::ClientMessage&, std::vector<Fd>) override {
  }
  void on_client_closed(ClientConnection&, const Status&) override {}

  // The answer has three parts, each of which takes send_ns_.
  void tell(const ClientQueries::Made& made) {
    made(
        [this] {
          ++built_;
          return [this](ClientConnection&, uint32_t part) {
            clock_.ns += send_ns_;
            if (part == 2) answered_.push_back(found_);
            sent_ += found_ < 1000 ? 'a' : 'b';
            return part < 2;
          };
        },
        0);
  }
  Status ask(uint64_t client, uid_t user, const std::string& job = "", Kind kind = Kind::Status) {
    return queries_->ask(client, user, user, {kind, job});
  }

  const TemporaryDirectory directory_;
  SteppedClock clock_;
  std::shared_ptr<UserQuotas> quotas_;
  std::unique_ptr<ClientServer> server_;
  std::unique_ptr<testing::TestTrainer> trainer_;
  ClientConnection* connection_ = nullptr;
  uint64_t found_ = 0;
  uint64_t gone_ = 0;
  uint64_t begin_ns_ = 0;
  uint64_t send_ns_ = 0;
  bool is_slow_ = false;
  std::vector<ClientQueries::Made> slow_;
  std::vector<std::string> begun_;
  std::vector<uint64_t> answered_;
  std::string sent_;
  int built_ = 0;
  std::unique_ptr<ClientQueries> queries_;
};

TEST_F(ClientQueriesTest, OneAnswerIsMadeForAllWhoAskTheSame) {
  for (uint64_t client = 1; client <= 30; ++client) ASSERT_TRUE(ask(client, 7));
  ASSERT_TRUE(ask(31, 7, "one"));
  ASSERT_TRUE(ask(1001, 8));
  EXPECT_TRUE(begun_.empty()) << "never from within the call";
  run_until([&] { return answered_.size() == 32; });
  EXPECT_EQ(begun_, (std::vector<std::string>{"7:", "8:", "7:one"}))
      << "who sees something else gets another one";
  EXPECT_EQ(built_, 3);
  EXPECT_EQ(queries_->answers_made(), 3u);
  EXPECT_EQ(quotas_->used(7, UserResource::Queries), 0u);
}

TEST_F(ClientQueriesTest, WhoAsksWhileAStatusIsMadeGetsTheNext) {
  is_slow_ = true;
  ASSERT_TRUE(ask(1, 7));
  run_until([&] { return slow_.size() == 1; });
  ASSERT_TRUE(ask(2, 7));
  ASSERT_TRUE(ask(3, 7));
  run_rounds(5);
  EXPECT_EQ(slow_.size(), 1u) << "one at a time";
  tell(slow_[0]);
  run_until([&] { return slow_.size() == 2; });
  EXPECT_EQ(answered_, std::vector<uint64_t>{1});
  tell(slow_[1]);
  run_until([&] { return answered_.size() == 3; });
}

TEST_F(ClientQueriesTest, WhoAsksWhileNodesGatherGetsWhatTheyGather) {
  is_slow_ = true;
  ASSERT_TRUE(ask(1, 7, "train", Kind::Facts));
  run_until([&] { return slow_.size() == 1; });
  ASSERT_TRUE(ask(2, 7, "train", Kind::Facts));
  tell(slow_[0]);
  run_until([&] { return answered_.size() == 2; });
  EXPECT_EQ(slow_.size(), 1u);
}

TEST_F(ClientQueriesTest, ARoundHasAMillisecondOfAnswersAndUsersTakeTurns) {
  send_ns_ = UserTurns::kRoundNs / 2;
  for (uint64_t client = 1; client <= 30; ++client) ASSERT_TRUE(ask(client, 7));
  ASSERT_TRUE(ask(1001, 8));
  for (int round = 0; round < 1000 && answered_.empty(); ++round) run_rounds(1);
  EXPECT_EQ(answered_, std::vector<uint64_t>{1001}) << "before the first of 30 others has all";
  const size_t before = sent_.size();
  run_rounds(1);
  EXPECT_EQ(sent_.size(), before + 2);
  run_until([&] { return answered_.size() == 31; });
}

TEST_F(ClientQueriesTest, WhatTakesLongIsNotMadeAgainAtOnce) {
  begin_ns_ = 5 * kMillisecond;
  ASSERT_TRUE(ask(1, 7));
  run_until([&] { return answered_.size() == 1; });
  ASSERT_TRUE(ask(1, 7));
  ASSERT_TRUE(ask(1001, 8));
  run_until([&] { return answered_.size() == 2; });
  EXPECT_EQ(answered_.back(), 1001u) << "others have pauses of their own";
  EXPECT_EQ(begun_.size(), 2u);
  clock_.ns += 5 * kMillisecond * ClientQueries::kPausesPerWork;
  run_until([&] { return answered_.size() == 3; });
}

TEST_F(ClientQueriesTest, ThoseThatWaitAreBoundedByClientAndByUser) {
  for (uint32_t i = 0; i < ClientQueries::kPerClientMax; ++i) ASSERT_TRUE(ask(1, 7));
  EXPECT_TRUE(is_error(ask(1, 7), StatusCode::ResourceExhausted, {"16 queries"}));
  for (uint64_t client = 2; client <= 25; ++client) ASSERT_TRUE(ask(client, 7));
  EXPECT_TRUE(is_error(ask(26, 7), StatusCode::ResourceExhausted, {"queries without an answer"}));
  EXPECT_TRUE(ask(1001, 8)) << "others are not held back";
  run_until([&] { return answered_.size() == 41; });
  EXPECT_TRUE(ask(1, 7)) << "they were answered";
}

TEST_F(ClientQueriesTest, WhoIsGoneIsForgotten) {
  gone_ = 1;
  ASSERT_TRUE(ask(1, 7));
  ASSERT_TRUE(ask(2, 7));
  run_until([&] { return answered_.size() == 1; });
  run_rounds(5);
  EXPECT_EQ(answered_, std::vector<uint64_t>{2});
  EXPECT_EQ(quotas_->used(7, UserResource::Queries), 0u);
}

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

// SPDX-License-Identifier: Apache-2.0
// One node's view of messages between two ranks: three nodes, of which this one is the second.
#include "operation/message_table.h"

#include <gtest/gtest.h>

#include "base/errors_testing.h"
#include "engine/exchange.h"
#include "engine/route.h"
#include "loop/loop_testing.h"
#include "proto/ring.h"

namespace braid {
namespace {

using testing::is_error;

class MessageTableTest : public testing::LoopTest, public OperationEngines, public OperationEvents {
 protected:
  struct Published {
    uint32_t local_rank;
    uint64_t ticket;
    uint64_t bytes;
    uint32_t source;
    bool operator==(const Published&) const = default;
  };
  struct Sink final : MessageSink {
    Sink(MessageTableTest& test, uint32_t local_rank) : test_(test), local_rank_(local_rank) {}
    void publish_message(uint64_t ticket, uint64_t /*result_offset*/, uint64_t result_bytes,
                         uint32_t source) override {
      test_.published_.push_back({local_rank_, ticket, result_bytes, source});
    }

   private:
    MessageTableTest& test_;
    const uint32_t local_rank_;
  };

  // Ranks 0 and 3 are on node 'a', 1 and 4 here on 'b', 2 on 'c'.
  void SetUp() override {
    auto ring = std::make_shared<Ring>();
    ring->nodes = 3;
    ring->self = 1;
    ring->world_size = 5;
    ring->ranks_of_node = {2, 2, 1};
    ring->block_of_rank = {0, 2, 4, 1, 3};
    ring->members = {100, 101, 102};
    ring->routes = basic_routes(3, 1);
    job_ = std::make_unique<JobOnNode>(JobOnNode{"train", 9, ring, {1, 4}});
    auto memory = ResultMemory::create(worker_, "train", 1 << 20, {});
    ASSERT_TRUE(memory.is_ok());
    memory_ = *memory;
    get_memory();
    table_ = std::make_unique<MessageTable>(
        *job_, memory_,
        MessageServices{
            *this,
            *this,
            {&first_, &second_},
            [this](uint32_t place, const MessageOffer& offer) {
              offers_.emplace_back(place, offer);
              return Status::ok();
            },
            [this](uint32_t place, const MessageName& name) {
              accepts_.emplace_back(place, name);
              return Status::ok();
            },
            [this](uint32_t) { return is_reached_; },
            [](uint32_t place) { return std::string(1, static_cast<char>('a' + place)); },
            [this] {
              ++leavers_awaited_;
              return Status::ok();
            },
            [this](const Status& status) { failure_ = status; },
            numbers_,
            &timeline_,
            [this] { return now_ns_; }});
  }
  void get_memory() {
    const auto all = memory_->allocate(memory_->size());
    ASSERT_TRUE(all.is_ok());
    memory_->free(*all);
    run_until([&] { return memory_->has_memory(0, memory_->size()); });
  }

  bool start(Operation operation) override {
    started_.push_back(std::move(operation));
    return true;
  }
  bool go(const OperationKey& key) override {
    EXPECT_EQ(key, started_.back().key);
    return true;
  }
  void on_done(const OperationKey& key) override { others_done_.push_back(key); }
  void on_retired(const OperationKey& key) override { others_retired_.push_back(key); }

  MessageEnd end(uint32_t local_rank, uint64_t ticket, uint32_t peer, uint64_t tag,
                 uint64_t bytes = 64) {
    MessageEnd end;
    end.local_rank = local_rank;
    end.ticket = ticket;
    end.peer = peer;
    end.tag = tag;
    end.bytes = bytes;
    end.input = input_;
    end.submitted_ns = 10 * ticket;
    end.deadline_ns = 1000 * ticket;
    end.timeout_ms = 5;
    return end;
  }
  // The engine's last operation has ended, and its chunks are settled.
  void finish() {
    const OperationKey key = started_.back().key;
    table_->on_done(key);
    table_->on_retired(key);
  }
  bool memory_is_free() {
    const auto all = memory_->allocate(memory_->size());
    if (all) memory_->free(*all);
    return all.is_ok();
  }

  alignas(64) uint8_t input_[64] = {};
  WorkThread worker_{*loop_, "work"};
  std::unique_ptr<JobOnNode> job_;
  std::shared_ptr<ResultMemory> memory_;
  Sink first_{*this, 0};
  Sink second_{*this, 1};
  std::unique_ptr<MessageTable> table_;
  std::vector<std::pair<uint32_t, MessageOffer>> offers_;
  std::vector<std::pair<uint32_t, MessageName>> accepts_;
  std::vector<Operation> started_;
  std::vector<Published> published_;
  std::vector<OperationKey> others_done_;
  std::vector<OperationKey> others_retired_;
  Status failure_;
  bool is_reached_ = true;
  int leavers_awaited_ = 0;
  const std::shared_ptr<JobNumbers> numbers_ = std::make_shared<JobNumbers>();
  LoopTimeline timeline_{64};
  uint64_t now_ns_ = 0;
};

TEST_F(MessageTableTest, ASendIsOfferedAndGoesWhenItIsAccepted) {
  ASSERT_TRUE(table_->send(end(0, 1, 3, 7)).is_ok());
  ASSERT_EQ(offers_.size(), 1u);
  EXPECT_EQ(offers_[0].first, 0u);
  const MessageOffer& offer = offers_[0].second;
  EXPECT_EQ(offer.name.from, 1u);
  EXPECT_EQ(offer.name.to, 3u);
  EXPECT_EQ(offer.name.number, 0u);
  EXPECT_EQ(offer.tag, 7u);
  EXPECT_EQ(offer.bytes, 64u);
  EXPECT_TRUE(started_.empty());
  ASSERT_TRUE(table_->on_accept(0, offer.name).is_ok());
  ASSERT_EQ(started_.size(), 1u);
  EXPECT_EQ(started_[0].ring->members, (std::vector<NodeId>{101, 100}));
  EXPECT_EQ(started_[0].ring->self, 0u);
  EXPECT_EQ(started_[0].exchange->bytes_to(1), 64u);
  finish();
  EXPECT_EQ(published_, (std::vector<Published>{{0, 1, 0, 0}}));
  EXPECT_EQ(table_->unfinished(), 0u);
  ASSERT_TRUE(table_->release(0, 1).is_ok());
  EXPECT_EQ(table_->size(), 0u);
}

TEST_F(MessageTableTest, MessagesOfTwoRanksAreNumbered) {
  for (uint64_t ticket = 1; ticket <= 2; ++ticket)
    ASSERT_TRUE(table_->send(end(0, ticket, 3, ticket)).is_ok());
  ASSERT_TRUE(table_->send(end(0, 3, 0, 1)).is_ok());
  ASSERT_TRUE(table_->send(end(1, 1, 3, 1)).is_ok());
  std::vector<uint64_t> numbers;
  for (const auto& [place, offer] : offers_) numbers.push_back(offer.name.number);
  EXPECT_EQ(numbers, (std::vector<uint64_t>{0, 1, 0, 0}));
}

TEST_F(MessageTableTest, OffersWaitInTheirOrderUntilTheirNodeIsReached) {
  is_reached_ = false;
  for (uint64_t ticket = 1; ticket <= 3; ++ticket)
    ASSERT_TRUE(table_->send(end(0, ticket, 2, ticket)).is_ok());
  EXPECT_TRUE(offers_.empty());
  is_reached_ = true;
  ASSERT_TRUE(table_->on_reached().is_ok());
  ASSERT_EQ(offers_.size(), 3u);
  for (uint64_t i = 0; i < 3; ++i) EXPECT_EQ(offers_[i].second.tag, i + 1);
}

TEST_F(MessageTableTest, AReceiveIsAcceptedWhenItsMessageIsOffered) {
  ASSERT_TRUE(table_->receive(end(1, 5, 0, 7)).is_ok());
  ASSERT_TRUE(table_->on_offer(0, {{3, 4, 0}, 7, 64}).is_ok()) << "of another sender";
  EXPECT_TRUE(accepts_.empty());
  ASSERT_TRUE(table_->on_offer(0, {{0, 4, 0}, 7, 64}).is_ok());
  ASSERT_EQ(accepts_.size(), 1u);
  EXPECT_EQ(accepts_[0].first, 0u);
  EXPECT_EQ(accepts_[0].second.from, 0u);
  ASSERT_EQ(started_.size(), 1u);
  EXPECT_EQ(started_[0].ring->members, (std::vector<NodeId>{100, 101}));
  EXPECT_EQ(started_[0].ring->self, 1u);
  EXPECT_EQ(started_[0].exchange->bytes_from(0), 64u);
  finish();
  EXPECT_EQ(published_, (std::vector<Published>{{1, 5, 64, 0}}));
  EXPECT_FALSE(memory_is_free());
  ASSERT_TRUE(table_->release(1, 5).is_ok());
  EXPECT_TRUE(memory_is_free());
}

TEST_F(MessageTableTest, AReceiveFromAnyRankIsToldWhoseMessageItGot) {
  ASSERT_TRUE(table_->on_offer(2, {{2, 1, 0}, 7, 64}).is_ok());
  ASSERT_TRUE(table_->receive(end(0, 5, proto::kAnyRank, 7)).is_ok());
  finish();
  EXPECT_EQ(published_, (std::vector<Published>{{0, 5, 64, 2}}));
}

TEST_F(MessageTableTest, WithinTheNodeNobodyIsAsked) {
  ASSERT_TRUE(table_->send(end(0, 1, 4, 7)).is_ok());
  ASSERT_TRUE(table_->receive(end(1, 2, 1, 7)).is_ok());
  EXPECT_TRUE(offers_.empty());
  EXPECT_TRUE(accepts_.empty());
  ASSERT_EQ(started_.size(), 1u);
  EXPECT_EQ(started_[0].ring->nodes, 1u);
  finish();
  EXPECT_EQ(published_, (std::vector<Published>{{0, 1, 0, 0}, {1, 2, 64, 1}}));
  ASSERT_TRUE(table_->release(0, 1).is_ok());
  EXPECT_FALSE(memory_is_free());
  ASSERT_TRUE(table_->release(1, 2).is_ok());
  EXPECT_TRUE(memory_is_free());
}

TEST_F(MessageTableTest, FewMessagesOfANodeAreWithTheEnginesAtATime) {
  constexpr size_t kMost = MessageTable::kLocalRunningMax;
  for (uint64_t ticket = 1; ticket <= kMost + 1; ++ticket) {
    ASSERT_TRUE(table_->send(end(0, ticket, 4, 7)).is_ok());
    ASSERT_TRUE(table_->receive(end(1, ticket, 1, 7)).is_ok());
  }
  EXPECT_EQ(started_.size(), kMost);
  table_->on_done(started_.front().key);
  EXPECT_EQ(started_.size(), kMost + 1);
  EXPECT_TRUE(failure_.is_ok());
}

TEST_F(MessageTableTest, EndsOfDifferentSizesAreBothNamed) {
  ASSERT_TRUE(table_->receive(end(1, 5, 0, 7, 400)).is_ok());
  EXPECT_TRUE(is_error(table_->on_offer(0, {{0, 4, 0}, 7, 300}), StatusCode::Mismatch,
                       {"job 'train': rank 0 on node 'a' sends 300 bytes with tag 7 to rank 4 on "
                        "node 'b', which expects 400 bytes"}));
}

TEST_F(MessageTableTest, WhatNoNodeOfThisVersionSaysEndsTheJob) {
  const auto is_refused = [&](const Status& status) {
    return status.code() == StatusCode::Protocol;
  };
  EXPECT_TRUE(is_refused(table_->on_offer(0, {{2, 4, 0}, 7, 64}))) << "not its rank";
  EXPECT_TRUE(is_refused(table_->on_offer(0, {{77, 4, 0}, 7, 64}))) << "no rank";
  EXPECT_TRUE(is_refused(table_->on_offer(0, {{0, 2, 0}, 7, 64}))) << "for another node";
  EXPECT_TRUE(is_refused(table_->on_offer(0, {{0, 4, 0}, 7, kTensorBytesMax + 1})));
  ASSERT_TRUE(table_->on_offer(0, {{0, 4, 0}, 7, 64}).is_ok());
  EXPECT_TRUE(is_refused(table_->on_offer(0, {{0, 4, 0}, 7, 64}))) << "twice";
  ASSERT_TRUE(table_->send(end(0, 1, 3, 7)).is_ok());
  EXPECT_TRUE(is_refused(table_->on_accept(2, {1, 3, 0}))) << "not its rank";
  EXPECT_TRUE(is_refused(table_->on_accept(0, {1, 3, 1}))) << "not offered";
  EXPECT_TRUE(is_refused(table_->on_accept(0, {1, 77, 0}))) << "no rank";
  ASSERT_TRUE(table_->on_accept(0, {1, 3, 0}).is_ok());
  EXPECT_TRUE(is_refused(table_->on_accept(0, {1, 3, 0}))) << "twice";
}

TEST_F(MessageTableTest, ATicketIsNotGivenBackBeforeItsMessageIsOver) {
  ASSERT_TRUE(table_->send(end(0, 1, 3, 7)).is_ok());
  ASSERT_TRUE(table_->receive(end(0, 2, 3, 7)).is_ok());
  EXPECT_EQ(table_->release(0, 1).code(), StatusCode::Protocol);
  EXPECT_EQ(table_->release(0, 2).code(), StatusCode::Protocol);
  EXPECT_EQ(table_->release(0, 3).code(), StatusCode::Protocol);
}

TEST_F(MessageTableTest, TheDeadlineThatPassedFirstIsToldOnce) {
  ASSERT_TRUE(table_->send(end(0, 2, 3, 7)).is_ok());
  ASSERT_TRUE(table_->receive(end(0, 1, 3, 8)).is_ok());
  EXPECT_TRUE(table_->check_deadlines(999).is_ok());
  EXPECT_TRUE(is_error(table_->check_deadlines(5000), StatusCode::DeadlineExceeded,
                       {"job 'train': the receive of 64 bytes, tag 8, at rank 1 on node 'b' from "
                        "rank 3 on node 'a' did not end within 5 ms: no such message was sent"}));
  EXPECT_TRUE(table_->check_deadlines(5000).is_ok());
}

TEST_F(MessageTableTest, ARankThatLeavesWithoutReceivingEndsTheJob) {
  ASSERT_TRUE(table_->on_offer(0, {{0, 4, 0}, 7, 64}).is_ok());
  EXPECT_TRUE(is_error(table_->on_rank_left(1, "its script ended"), StatusCode::JobFailed,
                       {"job 'train': rank 4 on node 'b' left the job (its script ended) without "
                        "the receive of 64 bytes, tag 7, that rank 0 on node 'a' has sent it"}));
}

TEST_F(MessageTableTest, WhatIsSentToARankThatHasLeftEndsTheJob) {
  ASSERT_TRUE(table_->on_rank_left(1, "").is_ok());
  EXPECT_EQ(table_->on_offer(0, {{0, 4, 0}, 7, 64}).code(), StatusCode::JobFailed);
  EXPECT_EQ(table_->send(end(0, 1, 4, 7)).code(), StatusCode::JobFailed);
  EXPECT_EQ(table_->receive(end(0, 2, 4, 7)).code(), StatusCode::JobFailed);
}

TEST_F(MessageTableTest, AReceiveFromARankThatLeavesEndsTheJob) {
  ASSERT_TRUE(table_->receive(end(0, 2, 4, 7)).is_ok());
  EXPECT_EQ(table_->on_rank_left(1, "").code(), StatusCode::JobFailed);
}

TEST_F(MessageTableTest, WhatALeaverHasSentCounts) {
  ASSERT_TRUE(table_->send(end(1, 1, 3, 7)).is_ok());
  ASSERT_TRUE(table_->receive(end(1, 2, 0, 7)).is_ok());
  ASSERT_TRUE(table_->on_rank_left(1, "").is_ok());
  EXPECT_EQ(table_->unfinished(), 1u);
  ASSERT_TRUE(table_->on_accept(0, {4, 3, 0}).is_ok());
  finish();
  EXPECT_TRUE(published_.empty());
  EXPECT_EQ(table_->size(), 0u);
}

TEST_F(MessageTableTest, LeaversAreAwaitedOnceOneOfAnotherNodeMayBeWaitedFor) {
  ASSERT_TRUE(table_->send(end(0, 1, 3, 7)).is_ok());
  ASSERT_TRUE(table_->receive(end(0, 2, 4, 7)).is_ok());
  EXPECT_EQ(leavers_awaited_, 0) << "of this node";
  ASSERT_TRUE(table_->on_offer(0, {{0, 4, 0}, 7, 64}).is_ok());
  ASSERT_TRUE(table_->receive(end(1, 1, 0, 7)).is_ok());
  EXPECT_EQ(leavers_awaited_, 0) << "it does not wait";
  ASSERT_TRUE(table_->receive(end(1, 2, 0, 7)).is_ok());
  ASSERT_TRUE(table_->receive(end(1, 3, proto::kAnyRank, 7)).is_ok());
  EXPECT_EQ(leavers_awaited_, 1);
}

TEST_F(MessageTableTest, AReceiveFromARankThatLeftOnAnotherNodeEndsTheJob) {
  ASSERT_TRUE(table_->receive(end(0, 2, 3, 7)).is_ok());
  EXPECT_TRUE(table_->on_other_left({0, "", SentMessages()}).is_ok()) << "another one";
  EXPECT_TRUE(is_error(table_->on_other_left({3, "its script ended", SentMessages()}),
                       StatusCode::JobFailed,
                       {"job 'train': rank 3 on node 'a' left the job (its script ended) without a "
                        "message for the receive of 64 bytes, tag 7, at rank 1 on node 'b'"}));
  EXPECT_EQ(table_->receive(end(0, 3, 0, 7)).code(), StatusCode::JobFailed) << "it left before";
}

TEST_F(MessageTableTest, WhatARankOfAnotherNodeHasSentBeforeItLeftIsReceived) {
  ASSERT_TRUE(table_->receive(end(0, 2, 3, 7)).is_ok());
  ASSERT_TRUE(table_->on_other_left({3, "", SentMessages{{1, 2}, {4, 1}}}).is_ok());
  ASSERT_TRUE(table_->on_offer(0, {{3, 4, 0}, 7, 64}).is_ok()) << "for the other rank";
  ASSERT_TRUE(table_->on_offer(0, {{3, 1, 0}, 8, 64}).is_ok()) << "with another tag";
  ASSERT_TRUE(table_->on_offer(0, {{3, 1, 1}, 7, 64}).is_ok());
  EXPECT_EQ(accepts_.size(), 1u);
  ASSERT_TRUE(table_->receive(end(0, 3, 3, 8)).is_ok()) << "it has come already";
  EXPECT_EQ(table_->receive(end(0, 4, 3, 7)).code(), StatusCode::JobFailed) << "there are no more";
}

TEST_F(MessageTableTest, TheLastMessageOfALeaverMayBeAnotherOneThanIsWaitedFor) {
  ASSERT_TRUE(table_->receive(end(0, 2, 3, 7)).is_ok());
  ASSERT_TRUE(table_->on_other_left({3, "", SentMessages{{1, 1}}}).is_ok());
  EXPECT_TRUE(is_error(table_->on_offer(0, {{3, 1, 0}, 8, 64}), StatusCode::JobFailed,
                       {"rank 3 on node 'a' left the job", "64 bytes, tag 7"}));
}

TEST_F(MessageTableTest, AReceiveFromAnyRankWaitsUntilNoneIsLeft) {
  ASSERT_TRUE(table_->receive(end(0, 2, proto::kAnyRank, 7)).is_ok());
  ASSERT_TRUE(table_->on_other_left({0, "", SentMessages()}).is_ok());
  ASSERT_TRUE(table_->on_other_left({0, "", SentMessages()}).is_ok()) << "told twice";
  ASSERT_TRUE(table_->on_rank_left(1, "").is_ok());
  ASSERT_TRUE(table_->on_other_left({2, "", SentMessages{{1, 1}}}).is_ok());
  ASSERT_TRUE(table_->on_other_left({3, "", SentMessages()}).is_ok());
  EXPECT_TRUE(is_error(table_->on_offer(2, {{2, 1, 0}, 8, 64}), StatusCode::JobFailed,
                       {"job 'train': all other ranks left the job without a message for the "
                        "receive of 64 bytes, tag 7, at rank 1 on node 'b' from any rank"}));
}

TEST_F(MessageTableTest, WhatIsSaidOfRanksThatLeftIsChecked) {
  ASSERT_TRUE(table_->receive(end(0, 2, 4, 7)).is_ok());
  ASSERT_TRUE(table_->receive(end(0, 3, 3, 7)).is_ok());
  EXPECT_TRUE(table_->on_other_left({4, "", SentMessages()}).is_ok()) << "one of this node";
  EXPECT_TRUE(table_->on_other_left({77, "", SentMessages()}).is_ok()) << "no rank";
  EXPECT_TRUE(table_->on_other_left({3, "", {}}).is_ok()) << "its messages are not told";
}

TEST_F(MessageTableTest, WhatALeaverHasSentToOtherNodesIsCounted) {
  ASSERT_TRUE(table_->send(end(0, 1, 4, 7)).is_ok());
  EXPECT_TRUE(table_->sent_by(0).empty());
  is_reached_ = false;
  for (uint64_t ticket = 2; ticket <= 3; ++ticket)
    ASSERT_TRUE(table_->send(end(0, ticket, 2, 7)).is_ok());
  EXPECT_EQ(table_->sent_by(0), (SentMessages{{2, 2}}));
  EXPECT_TRUE(table_->sent_by(1).empty());
}

TEST_F(MessageTableTest, WhatIsSentAndReceivedIsCounted) {
  ASSERT_TRUE(table_->send(end(0, 1, 3, 7)).is_ok());
  ASSERT_TRUE(table_->send(end(0, 2, 4, 7)).is_ok());
  ASSERT_TRUE(table_->receive(end(1, 3, 1, 7)).is_ok());
  ASSERT_TRUE(table_->receive(end(1, 4, 1, 8)).is_ok());
  EXPECT_EQ(numbers_->sends.pending.get(), 2u);
  EXPECT_EQ(numbers_->receives.pending.get(), 2u);
  finish();
  EXPECT_EQ(numbers_->sends.ended.get(), 1u);
  EXPECT_EQ(numbers_->receives.ended.get(), 1u);
  EXPECT_EQ(numbers_->sends.bytes.get(), 64u);
  EXPECT_EQ(numbers_->receives.bytes.get(), 64u);
  EXPECT_EQ(table_->unfinished(), 2u);
  ASSERT_TRUE(table_->on_rank_left(1, "").is_ok());
  EXPECT_EQ(numbers_->receives.pending.get(), 0u);
  EXPECT_EQ(numbers_->receives.ended.get(), 1u);
}

TEST_F(MessageTableTest, TellsWhoWaitsForWhom) {
  ASSERT_TRUE(table_->send(end(0, 1, 3, 7)).is_ok());
  ASSERT_TRUE(table_->receive(end(1, 2, proto::kAnyRank, 8, 32)).is_ok());
  ASSERT_TRUE(table_->receive(end(1, 3, 0, 9)).is_ok());
  ASSERT_TRUE(table_->on_offer(0, {{0, 4, 0}, 9, 64}).is_ok());
  ASSERT_TRUE(table_->on_offer(0, {{3, 4, 0}, 7, 64}).is_ok()) << "nobody waits for it";
  std::vector<PendingMessage> pending = table_->pending();
  std::ranges::sort(pending, {}, &PendingMessage::submitted_ns);
  ASSERT_EQ(pending.size(), 3u);
  EXPECT_TRUE(pending[0].is_send);
  EXPECT_EQ(pending[0].rank, 1u);
  EXPECT_EQ(pending[0].peer, 3u);
  EXPECT_EQ(pending[0].tag, 7u);
  EXPECT_FALSE(pending[0].is_on_its_way);
  EXPECT_FALSE(pending[1].is_send);
  EXPECT_EQ(pending[1].rank, 4u);
  EXPECT_EQ(pending[1].peer, proto::kAnyRank);
  EXPECT_EQ(pending[1].bytes, 32u);
  EXPECT_EQ(pending[1].submitted_ns, 20u);
  EXPECT_EQ(pending[2].peer, 0u);
  EXPECT_TRUE(pending[2].is_on_its_way);
}

TEST_F(MessageTableTest, AMessageIsASpanFromItsLastEndToItsResult) {
  ASSERT_TRUE(table_->send(end(0, 1, 4, 7)).is_ok());
  now_ns_ = 50;
  ASSERT_TRUE(table_->receive(end(1, 2, 1, 7)).is_ok());
  ASSERT_TRUE(table_->receive(end(1, 3, proto::kAnyRank, 7)).is_ok());
  const auto name_of = [this](const TimelineEvent& span) {
    return *table_->names().at(span.tensor);
  };
  std::vector<TimelineEvent> open = table_->unfinished_spans();
  std::ranges::sort(open, {}, &TimelineEvent::begin_ns);
  ASSERT_EQ(open.size(), 2u);
  EXPECT_EQ(open[0].go_or_peer, 50u);
  EXPECT_EQ(open[1].go_or_peer, 0u);
  EXPECT_EQ(name_of(open[1]), "messages from any rank to rank 4");
  now_ns_ = 70;
  finish();
  EXPECT_EQ(table_->unfinished_spans().size(), 1u);
  std::vector<TimelineEvent> spans;
  LoopTimeline::Cursor cursor = timeline_.begin();
  while (!cursor.is_at_end()) timeline_.copy({9, 0, UINT64_MAX}, cursor, spans);
  ASSERT_EQ(spans.size(), 1u);
  EXPECT_EQ(spans[0].kind, SpanKind::Operation);
  EXPECT_EQ(name_of(spans[0]), "messages from rank 1 to rank 4");
  EXPECT_EQ(spans[0].step, 0u);
  EXPECT_EQ(spans[0].begin_ns, 20u);
  EXPECT_EQ(spans[0].go_or_peer, 50u);
  EXPECT_EQ(spans[0].end_ns, 70u);
  EXPECT_EQ(spans[0].bytes, 64u);
}

TEST_F(MessageTableTest, TooManyMessagesThatNobodyReceivesEndTheJob) {
  for (uint64_t number = 0; number < MessageTable::kOfferedMax; ++number)
    ASSERT_TRUE(table_->on_offer(0, {{0, 4, number}, number, 0}).is_ok());
  EXPECT_EQ(table_->on_offer(0, {{0, 4, MessageTable::kOfferedMax}, 0, 0}).code(),
            StatusCode::ResourceExhausted);
}

TEST_F(MessageTableTest, WhatIsNoMessageGoesToTheOperations) {
  const OperationKey other{9, 1, 2};
  table_->on_done(other);
  table_->on_retired(other);
  EXPECT_EQ(others_done_, std::vector<OperationKey>{other});
  EXPECT_EQ(others_retired_, std::vector<OperationKey>{other});
}

}  // namespace
}  // namespace braid

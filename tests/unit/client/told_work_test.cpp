// SPDX-License-Identifier: Apache-2.0
// braid_work.h: what a trainer tells its daemon of placed work.
#include <cmath>
#include <functional>
#include <thread>

#include <braid_place.h>
#include <braid_work.h>

#include "connection.h"
#include "open_job_fixture.h"

namespace braid {
namespace {

// Two items and two spans that make sense until a test changes them.
class ToldWorkTest : public OpenJobTest {
 protected:
  ToldWorkTest() {
    const uint64_t now_ns = client::now_ns();
    items_ = {{sizeof(braid_work_item), "layer0.A", 0, 0.003, 0.002},
              {sizeof(braid_work_item), "layer1.A", BRAID_EVERYBODY, 0.007, 0}};
    spans_ = {{sizeof(braid_work_span), now_ns - 500, now_ns - 300, 0, 0},
              {sizeof(braid_work_span), now_ns - 300, now_ns, 1, 1}};
    work_.struct_size = sizeof(work_);
    work_.name = "inverses";
    work_.updates = 3;
    work_.seconds = 0.01;
  }
  int tell() {
    work_.items = items_.data();
    work_.item_count = items_.size();
    work_.spans = spans_.data();
    work_.span_count = spans_.size();
    return braid_tell_work(job_, &work_);
  }
  void expect_refused(const std::function<void()>& change, const std::string& text) {
    const auto items = items_;
    const auto spans = spans_;
    const braid_work work = work_;
    change();
    EXPECT_EQ(tell(), BRAID_ERROR_INVALID_ARGUMENT) << text;
    EXPECT_NE(std::string(braid_error_message()).find(text), std::string::npos)
        << braid_error_message();
    items_ = items;
    spans_ = spans;
    work_ = work;
  }

  std::vector<braid_work_item> items_;
  std::vector<braid_work_span> spans_;
  braid_work work_{};
};

TEST_F(ToldWorkTest, ComesToTheDaemon) {
  open({.takes_work = true});
  ASSERT_EQ(tell(), BRAID_OK) << braid_error_message();
  spans_.clear();
  work_.updates = 0;
  ASSERT_EQ(tell(), BRAID_OK) << braid_error_message();
  finish(done(all_reduce(register_tensor(job_, "a", 4), 0, values_.data())));
  EXPECT_EQ(daemon_->seen().told,
            (std::vector<std::string>{"inverses: 2 items, 2 spans, load of 3 updates",
                                      "inverses: 2 items, 0 spans, no load"}));
}

TEST_F(ToldWorkTest, ADaemonThatIsOlderIsNotTold) {
  ASSERT_EQ(tell(), BRAID_OK);
  finish(done(all_reduce(register_tensor(job_, "a", 4), 0, values_.data())));
  EXPECT_TRUE(daemon_->seen().told.empty());
}

TEST_F(ToldWorkTest, NeverWaitsForADaemonThatStands) {
  open({.takes_work = true});
  daemon_->stop();
  items_.resize(1000, items_[0]);
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(tell(), BRAID_OK) << "what has no room is lost";
  daemon_->go_on();
  finish(done(all_reduce(register_tensor(job_, "a", 4), 0, values_.data())));
  EXPECT_LT(daemon_->seen().told.size(), 1000u);
  EXPECT_GE(daemon_->seen().told.size(), 1u);
}

TEST_F(ToldWorkTest, ThatMakesNoSenseIsRefused) {
  expect_refused([&] { work_.struct_size = 0; }, "struct_size");
  expect_refused([&] { work_.name = nullptr; }, "name is NULL");
  expect_refused([&] { work_.name = ""; }, "0 bytes");
  expect_refused([&] { items_[0].name = nullptr; }, "item's name");
  expect_refused([&] { items_[0].owner = 7; }, "owner 7");
  expect_refused([&] { items_[1].struct_size = 8; }, "struct_size");
  expect_refused([&] { items_[1].seconds = -1; }, "-1");
  expect_refused([&] { items_[1].least_seconds = std::nan(""); }, "nan");
  expect_refused([&] { work_.makespan_seconds = HUGE_VAL; }, "makespan_seconds");
  expect_refused([&] { spans_[0].item = 2; }, "item 2");
  expect_refused([&] { spans_[0].begin_ns = spans_[0].end_ns + 1; }, "span 0");
  expect_refused([&] { spans_[1].end_ns += 3'600'000'000'000; }, "span 1");
  expect_refused([&] { items_.resize(1025, items_[0]); }, "1025");
  expect_refused([&] { spans_.resize(4097, spans_[0]); }, "4097");
  EXPECT_EQ(braid_tell_work(job_, nullptr), BRAID_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(tell(), BRAID_OK) << braid_error_message();
}

TEST_F(ToldWorkTest, AJobThatHasFailedSaysSo) {
  open({.takes_work = true});
  daemon_->fail_jobs("rank 7 is dead");
  while (braid_check(job_) == BRAID_OK) std::this_thread::yield();
  EXPECT_EQ(tell(), BRAID_ERROR_JOB_FAILED);
}

}  // namespace
}  // namespace braid

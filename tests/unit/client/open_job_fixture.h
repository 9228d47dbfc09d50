// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "client_fixture.h"

namespace braid {

// A job that is open, of one rank unless open() was called again.
class OpenJobTest : public ClientTest {
 protected:
  void SetUp() override { open({}); }
  void TearDown() override {
    if (job_ != nullptr) {
      EXPECT_EQ(braid_close(job_), BRAID_OK);
    }
  }
  void open(TestDaemon::Options options, uint32_t rank = 0, uint64_t arena_bytes = 64 << 20) {
    if (job_ != nullptr) {
      EXPECT_EQ(braid_close(std::exchange(job_, nullptr)), BRAID_OK);
    }
    daemon_.reset();
    auto given = job_options();
    given.rank = rank;
    given.arena_bytes = arena_bytes;
    given.world_size = static_cast<uint32_t>(options.block_of_rank.size());
    start_daemon(std::move(options));
    job_ = open_job(given);
    ASSERT_NE(job_, nullptr);
  }

  static std::vector<float> iota(size_t count) {
    std::vector<float> values(count);
    std::iota(values.begin(), values.end(), 1.0f);
    return values;
  }

  // A ticket of `operation`, which is done.
  braid_ticket done(const braid_operation& operation) {
    const braid_ticket ticket = submit(job_, operation);
    EXPECT_EQ(braid_wait(job_, ticket, 0), BRAID_OK) << braid_error_message();
    return ticket;
  }
  // A ticket of tensor 'a', step 7, which stays in flight as all others do from now on.
  braid_ticket held() {
    const uint32_t tensor = register_tensor(job_, "a", values_.size());
    daemon_->hold_operations();
    return submit(job_, all_reduce(tensor, 7, values_.data()));
  }
  int refused(const braid_operation& operation) {
    braid_ticket ticket = 0;
    return braid_submit(job_, &operation, &ticket);
  }
  void finish(braid_ticket ticket) {
    EXPECT_EQ(braid_wait(job_, ticket, 0), BRAID_OK) << braid_error_message();
    EXPECT_EQ(braid_release(job_, ticket), BRAID_OK) << braid_error_message();
  }

  std::vector<float> copied(braid_ticket ticket, size_t count) {
    std::vector<float> out(count);
    EXPECT_EQ(braid_copy_result(job_, ticket, out.data(), count * sizeof(float)), BRAID_OK)
        << braid_error_message();
    return out;
  }

  braid_job* job_ = nullptr;
  const std::vector<float> values_ = iota(4);
};

}  // namespace braid

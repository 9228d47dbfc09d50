// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "control/fake_control_plane.h"
#include "coordinator/coordinator.h"
#include "loop/loop_testing.h"

namespace braid::testing {

// A coordinator on node 'c' (id 1), and the other nodes 'a' (10), 'b' (20) and 'd' (40), all
// connected.
class CoordinatorTest : public LoopTest {
 protected:
  static constexpr uint32_t kLongMs = 600'000;

  CoordinatorTest() {
    for (const Peer& peer : {a_, b_, d_}) control_plane_.add_peer(peer);
  }

  void tell(const Peer& from, ControlBuffer message) {
    EXPECT_TRUE(coordinator_.on_control_message(from, as_message(message)));
  }
  void join(const Peer& from, uint32_t rank, uint32_t world_size, uint32_t timeout_ms = kLongMs,
            const std::string& name = "train", uint32_t weight = 1, const JobOwner& owner = {},
            uint32_t user = 0) {
    tell(from, make_join_job(name, world_size, rank, 100 + rank, timeout_ms, {}, weight, "", owner,
                             user));
  }

  template <typename Table>
  std::vector<const Table*> sent_to(const Peer& peer) const {
    return control_plane_.sent_to<Table>(peer.id);
  }
  // What the peer was told of the one job that begins.
  const proto::JobStart& start_at(const Peer& peer) const {
    const auto starts = sent_to<proto::JobStart>(peer);
    EXPECT_EQ(starts.size(), 1u) << peer.name;
    return *starts.at(0);
  }
  // The one failure that the peer was told.
  Status failure_of(const Peer& peer) const {
    const auto failures = sent_to<proto::JobFailed>(peer);
    EXPECT_EQ(failures.size(), 1u) << peer.name;
    return failures.empty() ? Status::ok()
                            : failure_status(failures.back()->code(), failures.back()->reason());
  }

  // Two ranks on 'a', one on 'b': started, ready and running. Returns the job's key; nothing is
  // left in `sent`.
  uint64_t run_job(const std::string& name = "train") {
    join(a_, 0, 3, kLongMs, name);
    join(a_, 1, 3, kLongMs, name);
    join(b_, 2, 3, kLongMs, name);
    const uint64_t key = sent_to<proto::JobStart>(a_).back()->job_key();
    tell(a_, make_job_ready(key));
    tell(b_, make_job_ready(key));
    EXPECT_FALSE(sent_to<proto::JobGo>(a_).empty());
    control_plane_.sent.clear();
    return key;
  }

  const Peer self_{1, "c", "10.0.0.1", 7410};
  const Peer a_{10, "a", "10.0.0.10", 7410};
  const Peer b_{20, "b", "10.0.0.20", 7410};
  const Peer d_{40, "d", "10.0.0.40", 7410};
  FakeControlPlane control_plane_{*loop_, self_};
  Coordinator coordinator_{*loop_, control_plane_};
};

}  // namespace braid::testing

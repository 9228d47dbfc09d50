// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <unistd.h>

#include "check/path_checks.h"
#include "control/fake_control_plane.h"
#include "ipc/client_server.h"
#include "ipc/temporary_directory.h"
#include "job/job_manager.h"
#include "job/test_trainer.h"
#include "loop/loop_testing.h"
#include "net/fake_transport.h"
#include "telling/telling.h"

namespace braid::testing {

// The job layer of one node, 'here' (id 1), with a real client socket and real engines; trainers
// are the test's. The other nodes are only what the test says in their name: 'b' (id
// 20, 10.0.0.20) is connected.
class JobManagerTest : public LoopTest {
 protected:
  static constexpr const char* kThisNode = "127.0.0.1";

  explicit JobManagerTest(uint32_t farewell_ms = 60'000);
  ~JobManagerTest() override;

  TestTrainer& add_trainer();
  // Runs the loop, and the trainers, until the condition holds.
  void wait_for(const std::function<bool()>& condition);
  // Until it holds for each of the trainers.
  void wait_for_all(const std::function<bool(const TestTrainer&)>& condition) {
    wait_for([&] {
      return std::ranges::all_of(trainers_, [&](const auto& one) { return condition(*one); });
    });
  }
  void settle() { run_rounds(5); }

  // `world_size` trainers of this node open one job and register tensor 0, 'w', of `count` floats.
  void open_job(uint32_t world_size, uint64_t count = 4);
  // Opens a job that b leads, with this node's ranks and then those of others. The first one
  // returns when JobStart has come, the second one when the job runs.
  TestTrainer& start_job_on(const std::vector<MemberNode>& nodes,
                            const Algorithms& algorithms = {});
  TestTrainer& open_job_on(const std::vector<MemberNode>& nodes, const Algorithms& algorithms = {});
  // The same for a rank here, and one on b, d and e each.
  TestTrainer& start_with_b(uint32_t world_size = 2, const Algorithms& algorithms = {}) {
    return start_job_on(nodes_with_b(world_size), algorithms);
  }
  TestTrainer& open_with_b(uint32_t world_size = 2, const Algorithms& algorithms = {}) {
    return open_job_on(nodes_with_b(world_size), algorithms);
  }
  void end_job_of_b();  // as failed
  template <typename Table>
  std::vector<const Table*> sent_to_b() const {
    return control_plane_.sent_to<Table>(b_.id);
  }
  // Waits until so many were sent to the node; returns the last one.
  template <typename Table>
  const Table& last_to(const Peer& peer, size_t count = 1) {
    wait_for([&] { return control_plane_.sent_to<Table>(peer.id).size() == count; });
    return *control_plane_.sent_to<Table>(peer.id).back();
  }
  // Waits until b was told of so many failures; returns the last of them.
  Status failure_told_to_b(size_t failures = 1);
  // Waits until the trainer is told.
  Status failure_of(const TestTrainer& trainer);
  void register_w(TestTrainer& trainer);
  // All trainers register 't0', which is planned, and reduce what they have registered last.
  void register_planned();
  void finish_steps(uint64_t begin, uint64_t end);

  std::vector<DaemonStatus::Job> statuses(uid_t viewer = 0) {
    return telling_->questions().statuses(viewer);
  }
  // A message from another node.
  void hear(const Peer& from, ControlBuffer message) {
    manager_->on_control_message(from, as_message(message));
  }

  // Messages about jobs of this process's user without a token, as its node's coordinators say
  // them.
  static ControlBuffer make_job_start(const std::string& name, uint32_t world_size, uint32_t epoch,
                                      uint64_t key, std::span<const MemberNode> nodes,
                                      const Algorithms& algorithms = {}) {
    return braid::make_job_start(name, world_size, epoch, key, nodes, algorithms, 1, owner(name));
  }
  static ControlBuffer make_job_failed(uint64_t key, const std::string& name,
                                       const Status& reason) {
    return braid::make_job_failed(key, name, reason, owner(name));
  }
  static JobOwner owner(const std::string& job_name, const std::string& token = {}) {
    return job_owner(job_name, {reinterpret_cast<const uint8_t*>(token.data()), token.size()},
                     ::geteuid());
  }

  // What tests keep is small, and a sanitizer ends who asks for more than a machine has.
  static constexpr uint64_t kMemoryOfAll = 1 << 30;
  // A user's limit: two jobs' results, which take all of their address space at once, and some
  // more.
  static constexpr uint64_t kResultBytes = 1 << 20;
  static constexpr uint64_t kMemoryOfUser = 2 * kResultBytes + TestTrainer::kArenaBytes / 2;

  const Peer self_{1, "here", "10.0.0.1", 7410};
  const Peer b_{20, "b", "10.0.0.20", 7410};
  const Peer d_{40, "d", "10.0.0.40", 7410};
  const Peer e_{50, "e", "10.0.0.50", 7410};
  static constexpr uint64_t kKey = 99;  // of a job that b leads

 private:
  std::vector<MemberNode> nodes_with_b(uint32_t world_size);

 protected:
  const TemporaryDirectory directory_;
  const std::string timelines_ = directory_.file("timelines");  // of jobs that failed
  std::shared_ptr<UserQuotas> quotas_;                          // this process's user is exempt
  SystemClock clock_;
  JobCounters counters_;
  JobBoard board_;
  FakeControlPlane control_plane_{*loop_, self_};
  FakeTransport transport_{*loop_};
  WorkThread worker_{*loop_, "work"};
  WorkThread planner_{*loop_, "plan"};
  std::unique_ptr<EnginePool> engines_;
  std::unique_ptr<ClientServer> server_;
  std::unique_ptr<JobManager> manager_;
  PathChecks path_checks_{*loop_, {}, control_plane_, transport_, worker_, {}};
  std::unique_ptr<Telling> telling_;
  std::vector<std::unique_ptr<TestTrainer>> trainers_;
};

}  // namespace braid::testing

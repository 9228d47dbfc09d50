// SPDX-License-Identifier: Apache-2.0
#include "job/manager_world.h"

#include <algorithm>

namespace braid::testing {

JobManagerTest::JobManagerTest(uint32_t farewell_ms) {
  control_plane_.add_peer(b_);
  JobManagerOptions options;
  options.jobs_max = 2;
  options.cut = {1 << 20, 4096, 1};
  options.idle_link_ms = 40;
  options.planning.worker = &planner_;
  UserLimits limits;
  limits[UserResource::Jobs] = 3;
  limits[UserResource::Tensors] = 4;
  limits[UserResource::NameBytes] = 64;
  limits[UserResource::Descriptors] = 60;
  limits[UserResource::ArenaBytes] = 5 * TestTrainer::kArenaBytes;
  limits.memory_of_all = kMemoryOfAll;
  limits.memory_of_user = kMemoryOfUser;
  limits[UserResource::Operations] = 6;
  quotas_ = std::make_shared<UserQuotas>(limits, std::set<uid_t>{::geteuid()});
  options.session = {4 * TestTrainer::kArenaBytes, 60'000, farewell_ms, quotas_};
  manager_ = std::make_unique<JobManager>(*loop_, clock_, options);
  control_plane_.set_handler(*manager_);

  EngineOptions engine;
  engine.io_loops = 2;
  engine.unit_bytes = 256;
  auto engines = EnginePool::create(*loop_, engine, 1024);
  EXPECT_TRUE(engines.is_ok());
  engines_ = std::move(engines).value();
  engines_->set_polling(PollingMode::Adaptive);
  engines_->set_transport(transport_);
  engines_->run_threads();
  manager_->set_services({*loop_, clock_, control_plane_, transport_, *engines_, counters_, board_,
                          worker_, kResultBytes, proto::kChunkBytesMax, quotas_});

  ClientServerOptions server;
  server.path = directory_.file("braidd.sock");
  server.node_name = self_.name;
  server.daemon_version = "0";
  server.worker = &planner_;
  auto created = ClientServer::create(*loop_, server, *manager_);
  EXPECT_TRUE(created.is_ok()) << created.status().message();
  server_ = std::move(created).value();
  TellingOptions telling;
  telling.timeline_directory = timelines_;
  telling_ = std::make_unique<Telling>(
      *manager_, path_checks_, telling, [this](uint64_t id) { return server_->find(id); },
      [](uid_t, const auto&) {});  // no test waits for the daemon's status
}

// As the daemon does it.
JobManagerTest::~JobManagerTest() {
  engines_->stop_threads();
  telling_.reset();
  manager_.reset();
  server_.reset();
}

TestTrainer& JobManagerTest::add_trainer() {
  trainers_.push_back(std::make_unique<TestTrainer>(directory_.file("braidd.sock")));
  return *trainers_.back();
}

void JobManagerTest::wait_for(const std::function<bool()>& condition) {
  run_until([&] {
    for (auto& trainer : trainers_) trainer->poll();
    return condition();
  });
}

void JobManagerTest::open_job(uint32_t world_size, uint64_t count) {
  const size_t first = trainers_.size();
  for (uint32_t rank = 0; rank < world_size; ++rank)
    add_trainer().open("train", rank, world_size, kThisNode);
  const auto all = [&](const std::function<bool(const TestTrainer&)>& holds) {
    return std::all_of(trainers_.begin() + static_cast<ptrdiff_t>(first), trainers_.end(),
                       [&](const auto& trainer) { return holds(*trainer); });
  };
  wait_for([&] { return all([](const TestTrainer& trainer) { return trainer.is_open; }); });
  for (size_t i = first; i < trainers_.size(); ++i) trainers_[i]->register_tensors({{"w", count}});
  wait_for(
      [&] { return all([](const TestTrainer& trainer) { return !trainer.registered.empty(); }); });
}

std::vector<MemberNode> JobManagerTest::nodes_with_b(uint32_t world_size) {
  std::vector<MemberNode> nodes = {{self_, {0}}};
  for (const Peer& other : {b_, d_, e_}) {
    if (nodes.size() < world_size) nodes.push_back({other, {static_cast<uint32_t>(nodes.size())}});
  }
  return nodes;
}

TestTrainer& JobManagerTest::start_job_on(const std::vector<MemberNode>& nodes,
                                          const Algorithms& algorithms) {
  uint32_t world_size = 0;
  for (const MemberNode& node : nodes) {
    world_size += static_cast<uint32_t>(node.ranks.size());
    if (node.peer.id != self_.id && control_plane_.find(node.peer.id) == nullptr)
      control_plane_.add_peer(node.peer);
  }
  const size_t first = trainers_.size();
  for (const uint32_t rank : nodes.front().ranks)
    add_trainer().open("train", rank, world_size, b_.address);
  wait_for([&] { return sent_to_b<proto::JoinJob>().size() == nodes.front().ranks.size(); });
  hear(b_, make_job_start("train", world_size, 4, kKey, nodes, algorithms));
  return *trainers_[first];
}

TestTrainer& JobManagerTest::open_job_on(const std::vector<MemberNode>& nodes,
                                         const Algorithms& algorithms) {
  TestTrainer& trainer = start_job_on(nodes, algorithms);
  wait_for([&] { return !sent_to_b<proto::JobReady>().empty(); });
  hear(b_, make_job_go(kKey));
  wait_for_all([](const auto& one) { return one.is_open; });
  return trainer;
}

void JobManagerTest::end_job_of_b() {
  hear(b_, make_job_failed(kKey, "train", Status(StatusCode::JobFailed, "a test")));
  wait_for([&] { return manager_->jobs().size() == 0; });
}

Status JobManagerTest::failure_told_to_b(size_t failures) {
  wait_for([&] { return sent_to_b<proto::FailJob>().size() >= failures; });
  const auto told = sent_to_b<proto::FailJob>();
  const proto::FailJob& last = *told.at(failures - 1);
  return {static_cast<StatusCode>(last.code()), last.reason()->str()};
}

Status JobManagerTest::failure_of(const TestTrainer& trainer) {
  wait_for([&] { return !trainer.failure.is_ok(); });
  return trainer.failure;
}

void JobManagerTest::register_w(TestTrainer& trainer) {
  const size_t before = trainer.registered.size();
  trainer.register_tensors({{"w", 4}});
  wait_for([&] { return trainer.registered.size() > before; });
}

void JobManagerTest::register_planned() {
  const size_t before = trainers_[0]->registered.size();
  for (auto& trainer : trainers_) trainer->register_tensors({{"t0", 10}}, DataType::Float32, true);
  wait_for_all([&](const auto& trainer) { return trainer.registered.size() == before + 1; });
}

void JobManagerTest::finish_steps(uint64_t begin, uint64_t end) {
  for (uint64_t step = begin; step < end; ++step) {
    for (auto& trainer : trainers_) {
      trainer->done.clear();
      trainer->submit(step + 100, trainer->registered.back(), step);
    }
    wait_for_all([](const auto& trainer) { return trainer.done.size() == 1; });
    for (auto& trainer : trainers_) trainer->release(step + 100);
  }
}

}  // namespace braid::testing

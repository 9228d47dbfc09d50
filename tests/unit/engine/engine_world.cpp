// SPDX-License-Identifier: Apache-2.0
#include "engine_world.h"

#include <algorithm>
#include <deque>
#include <iterator>
#include <map>

#include <gtest/gtest.h>

namespace braid::test {

struct EngineWorld::Memory final : JobMemory {
  std::vector<std::vector<uint8_t>> inputs;
  std::vector<uint8_t> result;
};

struct EngineWorld::NodePart {
  std::shared_ptr<Memory> memory;  // dropped when the job layer lets go of it
  std::weak_ptr<Memory> watch;
  bool is_submitted = false;
  bool was_told_go = false;
  uint32_t done = 0;  // events, of all loops
  uint32_t retired = 0;
  std::vector<uint8_t> result;  // as it was when the last loop was done
};

struct EngineWorld::Running {
  OperationCase operation;
  OperationKey key;
  std::vector<NodePart> parts{};  // by node
  bool is_aborted = false;
};

struct EngineWorld::Endpoint final : Links {
  std::unique_ptr<Engine> engine;
  std::map<NodeId, std::unique_ptr<FakeLink>> links;
  NodeId successor = 0;
  std::deque<std::function<void()>> door;

  Link* find(NodeId peer) override {
    const auto found = links.find(peer);
    return found == links.end() ? nullptr : found->second.get();
  }
  void limit(uint64_t, const LinkLimits&) override {}
  bool is_idle() const {
    return std::all_of(links.begin(), links.end(),
                       [](const auto& link) { return link.second->is_idle(); });
  }
  void step_link(Random& random) {
    if (links.empty()) return;
    std::next(links.begin(), static_cast<int64_t>(random() % links.size()))->second->step();
  }
  void drain() {
    while (!door.empty()) {
      const auto message = std::move(door.front());
      door.pop_front();
      message();
    }
  }
};

EngineWorld::EngineWorld(WorldOptions options, uint64_t seed)
    : options_(std::move(options)), random_(seed) {
  loop_ = std::move(Loop::create("world")).value();
  for (uint32_t node = 0; node < nodes(); ++node) {
    auto& loops = endpoints_.emplace_back();
    for (uint32_t io_loop = 0; io_loop < options_.io_loops; ++io_loop) {
      auto endpoint = std::make_unique<Endpoint>();
      Engine::Events events;
      events.on_done = [this, node](const OperationKey& key) { on_done(node, key); };
      events.on_retired = [this, node](const OperationKey& key) { on_retired(node, key); };
      events.drain_door = [e = endpoint.get()] { e->drain(); };
      const EngineOptions engine_options{options_.io_loops, io_loop, options_.unit_bytes,
                                         options_.chunk_bytes, options_.streams};
      endpoint->engine = Engine::create(*loop_, engine_options, std::move(events));
      loops.push_back(std::move(endpoint));
    }
  }
  for (uint32_t node = 0; node < nodes(); ++node) {
    const uint32_t next = (node + 1) % nodes();
    for (uint32_t io_loop = 0; io_loop < options_.io_loops; ++io_loop) {
      Endpoint& endpoint = *endpoints_[node][io_loop];
      endpoint.successor = id_of(next);
      const bool sends_to_all =
          options_.direct_bytes != 0 || options_.route != nullptr || options_.is_meshed;
      for (uint32_t to = 0; to < nodes(); ++to) {
        if (to != next && (to == node || !sends_to_all)) continue;
        endpoint.links[id_of(to)] = std::make_unique<FakeLink>(random_, options_.hostility,
                                                               id_of(node), engine(to, io_loop));
      }
      endpoint.engine->set_links(endpoint);
    }
  }
}

EngineWorld::~EngineWorld() = default;

Engine& EngineWorld::engine(uint32_t node, uint32_t io_loop) {
  return *endpoints_[node][io_loop]->engine;
}

void EngineWorld::add(const OperationSpec& spec) {
  auto running =
      std::make_unique<Running>(Running{{spec, options_.ranks_of_node, running_.size()},
                                        {spec.job_key, 0x7e45 + running_.size() * 31, spec.step}});
  const OperationCase& operation = running->operation;
  for (uint32_t node = 0; node < nodes(); ++node) {
    NodePart& part = running->parts.emplace_back();
    part.memory = std::make_shared<Memory>();
    part.watch = part.memory;
    for (uint32_t rank = operation.first_rank_of(node); rank < operation.first_rank_of(node + 1);
         ++rank) {
      part.memory->inputs.push_back(operation.memory_of(rank));
    }
    part.memory->result.assign(operation.result_bytes_of(node), 0xCD);
  }
  for (auto& node : endpoints_) {
    for (auto& endpoint : node) endpoint->engine->begin_job(spec.job_key, {});
  }
  running_.push_back(std::move(running));
}

Operation EngineWorld::operation_of(size_t index, uint32_t node) const {
  const Running& running = *running_[index];
  const OperationSpec& spec = running.operation.spec();
  const NodePart& part = running.parts[node];
  const uint32_t world_size = running.operation.world_size();
  auto ring = std::make_shared<Ring>();
  ring->nodes = nodes();
  ring->self = node;
  ring->routes = basic_routes(nodes(), node);
  ring->world_size = world_size;
  ring->ranks_of_node = options_.ranks_of_node;
  for (uint32_t rank = 0; rank < world_size; ++rank) ring->block_of_rank.push_back(rank);
  for (uint32_t place = 0; place < nodes(); ++place) ring->members.push_back(id_of(place));
  ring->direct_bytes = options_.direct_bytes;
  Operation operation;
  operation.key = running.key;
  operation.collective = spec.collective;
  operation.dtype = spec.dtype;
  operation.reduction = spec.reduction;
  operation.count = spec.count;
  operation.root_local_input = spec.root_rank;
  while (operation.root_local_input >= options_.ranks_of_node[operation.root_node]) {
    operation.root_local_input -= options_.ranks_of_node[operation.root_node++];
  }
  const uint64_t bytes = input_bytes(spec.collective, spec.dtype, spec.count, world_size);
  operation.is_direct = spec.collective == Collective::AllReduce && nodes() > 1 && bytes != 0 &&
                        bytes <= options_.direct_bytes;
  if (operation.collective == Collective::AllReduce && nodes() > 1 && options_.route != nullptr) {
    ring->halving = std::make_shared<Route>(options_.route(nodes(), node));
    operation.route = ring->halving.get();
    if (options_.early_from && bytes >= *options_.early_from) operation.signature = kSignature;
  }
  if (operation.is_direct) operation.signature = kSignature;
  operation.ring = ring;
  operation.urgency = spec.urgency;
  operation.memory = part.memory;
  if (is_exchange(operation.collective)) {
    add_exchange(running, operation, part);
    return operation;
  }
  for (const auto& input : part.memory->inputs)
    operation.inputs.push_back(running.operation.input_in(input));
  operation.result = part.memory->result.data();
  if (options_.adjust) options_.adjust(operation);
  return operation;
}

void EngineWorld::add_exchange(const Running& running, Operation& operation,
                               const NodePart& part) const {
  const size_t element = element_bytes(operation.dtype);
  auto exchange = std::make_shared<Exchange>(*operation.ring, element);
  std::vector<uint8_t*> results;
  uint8_t* result = part.memory->result.data();
  for (const auto& input : part.memory->inputs) {
    const auto local_rank = static_cast<uint32_t>(results.size());
    auto splits = std::make_shared<const Splits>(running.operation.splits_of(
        running.operation.first_rank_of(operation.ring->self) + local_rank));
    results.push_back(result);
    result += splits->from.sum() * element;
    exchange->add(local_rank, std::move(splits), input.data());
  }
  exchange->place(results);
  operation.exchange = std::move(exchange);
}

void EngineWorld::submit(Running& running, uint32_t node) {
  running.parts[node].is_submitted = true;
  const auto at = std::find_if(running_.begin(), running_.end(),
                               [&](const auto& r) { return r.get() == &running; });
  const Operation operation = operation_of(static_cast<size_t>(at - running_.begin()), node);
  if (is_early(operation)) running.parts[node].was_told_go = true;  // it waits for nobody
  for (auto& endpoint : endpoints_[node]) {
    endpoint->door.push_back(
        [engine = endpoint->engine.get(), operation] { engine->start(operation); });
  }
}

bool EngineWorld::may_go(const Running& running, uint32_t node) const {
  std::vector<uint32_t> targets{(node + 1) % nodes()};
  if (running.operation.spec().collective == Collective::AllReduce && options_.route != nullptr)
    targets = options_.route(nodes(), node).targets;
  if (is_exchange(running.operation.spec().collective))
    targets = exchange_route(nodes(), node).targets;
  return std::all_of(targets.begin(), targets.end(),
                     [&](uint32_t target) { return running.parts[target].is_submitted; });
}

void EngineWorld::say_go(Running& running, uint32_t node) {
  running.parts[node].was_told_go = true;
  for (auto& endpoint : endpoints_[node]) {
    endpoint->door.push_back(
        [engine = endpoint->engine.get(), key = running.key] { engine->go(key); });
  }
}

void EngineWorld::step() {
  const uint32_t node = static_cast<uint32_t>(random_() % nodes());
  Endpoint& endpoint = *endpoints_[node][random_() % options_.io_loops];
  if (options_.happens && random_() % 8 == 0) options_.happens();
  switch (random_() % 16) {
    case 0: {  // a node submits, or learns that its successor has
      if (running_.empty()) return;
      Running& running = *running_[random_() % running_.size()];
      NodePart& part = running.parts[node];
      if (running.is_aborted) return;
      if (!part.is_submitted) {
        submit(running, node);
      } else if (!part.was_told_go && may_go(running, node)) {
        say_go(running, node);
      }
      return;
    }
    case 1:
      endpoint.drain();
      return;
    case 2:
    case 3:
      uv_run(loop_->uv(), UV_RUN_NOWAIT);
      return;
    default:
      endpoint.step_link(random_);
  }
}

bool EngineWorld::is_quiet() const {
  for (const auto& node : endpoints_) {
    for (const auto& endpoint : node) {
      if (!endpoint->door.empty() || !endpoint->is_idle()) return false;
    }
  }
  for (const auto& running : running_) {
    for (const auto& part : running->parts) {
      if (!running->is_aborted && part.retired != options_.io_loops) return false;
    }
  }
  return true;
}

void EngineWorld::run_some(size_t steps) {
  for (size_t i = 0; i < steps; ++i) step();
}

bool EngineWorld::run() {
  constexpr size_t kSteps = 40'000'000;
  for (size_t i = 0; i < kSteps; ++i) {
    if (i % 64 == 0 && is_quiet()) {
      uv_run(loop_->uv(), UV_RUN_NOWAIT);
      return true;
    }
    step();
  }
  return false;
}

void EngineWorld::abort_job(uint64_t job_key) {
  for (auto& running : running_) {
    if (running->operation.spec().job_key != job_key) continue;
    running->is_aborted = true;
    for (auto& part : running->parts) part.memory.reset();
  }
  for (auto& node : endpoints_) {
    for (auto& endpoint : node) {
      endpoint->drain();
      endpoint->engine->abort_job(job_key);
    }
  }
}

void EngineWorld::lose_links_of(uint32_t node) {
  for (auto& endpoint : endpoints_[node]) {
    for (auto& [to, link] : endpoint->links) link->lose();
  }
}

EngineWorld::Running* EngineWorld::find(const OperationKey& key) {
  for (auto& running : running_) {
    if (running->key == key) return running.get();
  }
  return nullptr;
}

void EngineWorld::on_done(uint32_t node, const OperationKey& key) {
  Running* running = find(key);
  ASSERT_NE(running, nullptr);
  NodePart& part = running->parts[node];
  ASSERT_FALSE(running->is_aborted) << "an event after the abort";
  ASSERT_TRUE(part.was_told_go || nodes() == 1);
  ASSERT_LE(++part.done, options_.io_loops) << "done twice";
  if (part.done < options_.io_loops) return;
  if (running->operation.spec().collective == Collective::AllReduce &&
      running->operation.spec().is_added && nodes() > 1 && running->operation.spec().count > 0) {
    for (const NodePart& other : running->parts)
      ASSERT_TRUE(other.is_submitted) << "a sum without the inputs of all";
  }
  part.result = running->operation.final_part(part.memory->result, node);
  for (auto& input : part.memory->inputs) std::fill(input.begin(), input.end(), 0xEE);
}

void EngineWorld::on_retired(uint32_t node, const OperationKey& key) {
  Running* running = find(key);
  ASSERT_NE(running, nullptr);
  NodePart& part = running->parts[node];
  ASSERT_FALSE(running->is_aborted) << "an event after the abort";
  ASSERT_LE(++part.retired, part.done) << "retired before done, or twice";
  if (part.retired < options_.io_loops) return;
  EXPECT_EQ(part.result, running->operation.final_part(part.memory->result, node))
      << "the result changed after done";
  std::fill(part.memory->result.begin(), part.memory->result.end(), 0xDD);
  part.memory.reset();
}

size_t EngineWorld::retired_operations(uint64_t job_key) const {
  size_t retired = 0;
  for (const auto& running : running_) {
    for (const auto& part : running->parts) {
      retired +=
          running->operation.spec().job_key == job_key && part.retired == options_.io_loops ? 1 : 0;
    }
  }
  return retired;
}

bool EngineWorld::any_done(uint64_t job_key) const {
  for (const auto& running : running_) {
    for (const auto& part : running->parts) {
      if (running->operation.spec().job_key == job_key && part.done != 0) return true;
    }
  }
  return false;
}

const std::vector<uint8_t>& EngineWorld::result(size_t index, uint32_t node) const {
  return running_[index]->parts[node].result;
}

EngineCounters EngineWorld::counters() const {
  EngineCounters sum;
  for (const auto& node : endpoints_) {
    for (const auto& endpoint : node) {
      const EngineCounters counters = endpoint->engine->counters();
      sum.units_done += counters.units_done;
      sum.bytes_reduced += counters.bytes_reduced;
      sum.bytes_carried += counters.bytes_carried;
      sum.chunks_duplicate += counters.chunks_duplicate;
      sum.chunks_stale += counters.chunks_stale;
      sum.chunks_malformed += counters.chunks_malformed;
    }
  }
  return sum;
}

IntakeCounts EngineWorld::intake_counts() const {
  IntakeCounts sum;
  for (const auto& node : endpoints_) {
    for (const auto& endpoint : node) {
      for (const auto& [to, link] : endpoint->links) sum += link->intake_counts();
    }
  }
  return sum;
}

void EngineWorld::expect_all_ended() {
  for (const auto& running : running_) {
    SCOPED_TRACE(to_string(running->operation.spec()));
    if (running->is_aborted) continue;
    for (uint32_t node = 0; node < nodes(); ++node) {
      const NodePart& part = running->parts[node];
      EXPECT_EQ(part.done, options_.io_loops);
      EXPECT_EQ(part.retired, options_.io_loops);
      running->operation.expect_right(part.result, node);
      EXPECT_TRUE(running->operation.spec().collective == Collective::ReduceScatter ||
                  is_exchange(running->operation.spec().collective) ||
                  part.result == running->parts[0].result);
      EXPECT_TRUE(part.watch.expired()) << "memory is held after the end";
      if (testing::Test::HasFailure()) return;
    }
  }
}

void EngineWorld::expect_no_memory_held(uint64_t job_key) {
  for (const auto& running : running_) {
    if (running->operation.spec().job_key != job_key) continue;
    for (const auto& part : running->parts)
      EXPECT_TRUE(part.watch.expired()) << to_string(running->operation.spec());
  }
}

}  // namespace braid::test

// SPDX-License-Identifier: Apache-2.0
#include "engine_world.h"

#include <algorithm>
#include <numeric>

#include <gtest/gtest.h>

#include "engine_world_parts.h"
#include "reference.h"

namespace braid::test {

std::string to_string(const OperationSpec& spec) {
  return fmt::format("{} {} {} × {}, root {}", to_string(spec.collective),
                     to_string(spec.reduction), spec.count, to_string(spec.dtype), spec.root_rank);
}

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

namespace {

// Ends of `pieces` pieces of nearly equal length, in whole elements.
uint64_t end_of_piece(uint64_t bytes, uint32_t pieces, uint32_t piece, size_t element) {
  return bytes / element * (piece + 1) / pieces * element;
}

// The pieces of `input` from the last to the first.
std::vector<uint8_t> scatter(const std::vector<uint8_t>& input, uint32_t pieces, size_t element) {
  if (pieces == 1) return input;
  std::vector<uint8_t> scattered;
  for (uint32_t piece = pieces; piece-- > 0;) {
    const uint64_t begin = piece == 0 ? 0 : end_of_piece(input.size(), pieces, piece - 1, element);
    const uint64_t end = end_of_piece(input.size(), pieces, piece, element);
    scattered.insert(scattered.end(), input.begin() + static_cast<int64_t>(begin),
                     input.begin() + static_cast<int64_t>(end));
  }
  return scattered;
}

OperationInput scattered(const std::vector<uint8_t>& memory, uint32_t pieces, uint64_t bytes,
                         size_t element) {
  if (pieces == 1) return {memory.data()};
  OperationInput input;
  uint64_t begin = 0;
  for (uint32_t piece = 0; piece < pieces; ++piece) {
    const uint64_t end = end_of_piece(bytes, pieces, piece, element);
    input.append(memory.data() + (bytes - end), end - begin);
    begin = end;
  }
  return input;
}

}  // namespace

Engine& EngineWorld::engine(uint32_t node, uint32_t io_loop) {
  return *endpoints_[node][io_loop]->engine;
}

uint32_t EngineWorld::world_size() const {
  return std::accumulate(options_.ranks_of_node.begin(), options_.ranks_of_node.end(), 0U);
}

uint32_t EngineWorld::first_rank_of(uint32_t node) const {
  return std::accumulate(options_.ranks_of_node.begin(), options_.ranks_of_node.begin() + node, 0U);
}

Splits EngineWorld::splits_of(const OperationSpec& spec, uint32_t rank) const {
  std::vector<uint64_t> to;
  std::vector<uint64_t> from;
  for (uint32_t other = 0; other < world_size(); ++other) {
    to.push_back(elements_between(spec, rank, other));
    from.push_back(elements_between(spec, other, rank));
  }
  return {SplitCounts(to), SplitCounts(from)};
}

void EngineWorld::add(const OperationSpec& spec) {
  auto running = std::make_unique<Running>();
  running->spec = spec;
  running->key = {spec.job_key, 0x7e45 + running_.size() * 31, spec.step};
  const size_t element = element_bytes(spec.dtype);
  // The data depend on the operation alone, not on the seed: so runs can be compared bit by bit.
  Random data(spec.count * 31 + running_.size() * 7 + static_cast<uint64_t>(spec.dtype));
  std::uniform_real_distribution<double> floats(0.5, 1.5);
  for (uint32_t rank = 0; rank < world_size(); ++rank) {
    uint64_t bytes = input_bytes(spec.collective, spec.dtype, spec.count, world_size());
    if (is_exchange(spec.collective)) bytes = splits_of(spec, rank).to.sum() * element;
    const uint64_t elements = bytes / element;
    auto& input = running->inputs.emplace_back(bytes);
    for (uint64_t i = 0; i < elements; ++i) {
      const double integer =
          static_cast<double>(data() % 200) - (spec.dtype == DataType::Uint8 ? 0 : 100);
      store_double(spec.dtype, is_float(spec.dtype) ? floats(data) : integer, input.data(), i);
    }
  }
  uint32_t first_rank = 0;
  for (uint32_t node = 0; node < nodes(); ++node) {
    NodePart& part = running->parts.emplace_back();
    part.memory = std::make_shared<Memory>();
    part.watch = part.memory;
    for (uint32_t k = 0; k < options_.ranks_of_node[node]; ++k) {
      part.memory->inputs.push_back(
          scatter(running->inputs[first_rank++], spec.pieces, element_bytes(spec.dtype)));
    }
    uint64_t bytes = result_bytes(spec.collective, spec.dtype, spec.count, world_size());
    for (uint32_t k = 0; is_exchange(spec.collective) && k < options_.ranks_of_node[node]; ++k)
      bytes += splits_of(spec, first_rank_of(node) + k).from.sum() * element;
    part.memory->result.assign(bytes, 0xCD);
  }
  for (auto& node : endpoints_) {
    for (auto& endpoint : node) endpoint->engine->begin_job(spec.job_key, {});
  }
  running_.push_back(std::move(running));
}

Operation EngineWorld::operation_of(size_t index, uint32_t node) const {
  const Running& running = *running_[index];
  const NodePart& part = running.parts[node];
  auto ring = std::make_shared<Ring>();
  ring->nodes = nodes();
  ring->self = node;
  ring->routes = basic_routes(nodes(), node);
  ring->world_size = world_size();
  ring->ranks_of_node = options_.ranks_of_node;
  for (uint32_t rank = 0; rank < world_size(); ++rank) ring->block_of_rank.push_back(rank);
  for (uint32_t place = 0; place < nodes(); ++place) ring->members.push_back(id_of(place));
  ring->direct_bytes = options_.direct_bytes;
  Operation operation;
  operation.key = running.key;
  operation.collective = running.spec.collective;
  operation.dtype = running.spec.dtype;
  operation.reduction = running.spec.reduction;
  operation.count = running.spec.count;
  operation.root_local_input = running.spec.root_rank;
  while (operation.root_local_input >= options_.ranks_of_node[operation.root_node]) {
    operation.root_local_input -= options_.ranks_of_node[operation.root_node++];
  }
  const uint64_t bytes =
      input_bytes(running.spec.collective, running.spec.dtype, running.spec.count, world_size());
  operation.is_direct = running.spec.collective == Collective::AllReduce && nodes() > 1 &&
                        bytes != 0 && bytes <= options_.direct_bytes;
  if (operation.collective == Collective::AllReduce && nodes() > 1 && options_.route != nullptr) {
    ring->halving = std::make_shared<Route>(options_.route(nodes(), node));
    operation.route = ring->halving.get();
    if (options_.early_from && bytes >= *options_.early_from) operation.signature = kSignature;
  }
  if (operation.is_direct) operation.signature = kSignature;
  operation.ring = ring;
  operation.urgency = running.spec.urgency;
  operation.memory = part.memory;
  if (is_exchange(operation.collective)) {
    add_exchange(running.spec, operation, part);
    return operation;
  }
  const size_t element = element_bytes(operation.dtype);
  for (const auto& input : part.memory->inputs)
    operation.inputs.push_back(
        scattered(input, running.spec.pieces, operation.count * element, element));
  operation.result = part.memory->result.data();
  if (options_.adjust) options_.adjust(operation);
  return operation;
}

void EngineWorld::add_exchange(const OperationSpec& spec, Operation& operation,
                               const NodePart& part) const {
  const size_t element = element_bytes(spec.dtype);
  auto exchange = std::make_shared<Exchange>(*operation.ring, element);
  std::vector<uint8_t*> results;
  uint8_t* result = part.memory->result.data();
  for (const auto& input : part.memory->inputs) {
    const auto local_rank = static_cast<uint32_t>(results.size());
    auto splits = std::make_shared<const Splits>(
        splits_of(spec, first_rank_of(operation.ring->self) + local_rank));
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
  if (running.spec.collective == Collective::AllReduce && options_.route != nullptr)
    targets = options_.route(nodes(), node).targets;
  if (is_exchange(running.spec.collective)) targets = exchange_route(nodes(), node).targets;
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
    if (running->spec.job_key != job_key) continue;
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
  if (running->spec.collective == Collective::AllReduce && running->spec.is_added && nodes() > 1 &&
      running->spec.count > 0) {
    for (const NodePart& other : running->parts)
      ASSERT_TRUE(other.is_submitted) << "a sum without the inputs of all";
  }
  part.result = final_part(*running, node);
  for (auto& input : part.memory->inputs) std::fill(input.begin(), input.end(), 0xEE);
}

void EngineWorld::on_retired(uint32_t node, const OperationKey& key) {
  Running* running = find(key);
  ASSERT_NE(running, nullptr);
  NodePart& part = running->parts[node];
  ASSERT_FALSE(running->is_aborted) << "an event after the abort";
  ASSERT_LE(++part.retired, part.done) << "retired before done, or twice";
  if (part.retired < options_.io_loops) return;
  EXPECT_EQ(part.result, final_part(*running, node)) << "the result changed after done";
  std::fill(part.memory->result.begin(), part.memory->result.end(), 0xDD);
  part.memory.reset();
}

size_t EngineWorld::retired_operations(uint64_t job_key) const {
  size_t retired = 0;
  for (const auto& running : running_) {
    for (const auto& part : running->parts) {
      retired += running->spec.job_key == job_key && part.retired == options_.io_loops ? 1 : 0;
    }
  }
  return retired;
}

bool EngineWorld::any_done(uint64_t job_key) const {
  for (const auto& running : running_) {
    for (const auto& part : running->parts) {
      if (running->spec.job_key == job_key && part.done != 0) return true;
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

}  // namespace braid::test

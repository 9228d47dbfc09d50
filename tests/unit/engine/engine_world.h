// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "engine/engine.h"
#include "fake_network.h"
#include "operation_case.h"

namespace braid::test {

// How many worlds a test makes by chance. Sanitizers look for other things, and are slow.
constexpr uint64_t worlds(uint64_t all) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return (all + 2) / 3;
#else
  return all;
#endif
}

struct WorldOptions {
  std::vector<uint32_t> ranks_of_node = {1, 1};
  uint32_t io_loops = 1;
  uint64_t unit_bytes = 4096;
  uint32_t chunk_bytes = 256;
  uint32_t streams = 2;
  uint64_t direct_bytes = 0;
  bool is_meshed = false;  // links lead to all nodes, not to the successor alone
  // By which the all-reduces go, from the number of nodes and the place; none: around the ring.
  std::function<Route(uint32_t, uint32_t)> route;
  // Whether those of at least so many bytes are early.
  std::optional<uint64_t> early_from{};
  // Done to every operation that a node starts.
  std::function<void(Operation&)> adjust;
  // May happen at any time.
  std::function<void()> happens;
  Hostility hostility;
};

// Some nodes with one engine per I/O loop each, joined by fake links, and the part of the job layer
// that starts operations when the nodes have submitted them and says go when those that the node
// sends to have. All in one thread; what happens next is chosen by chance from the seed. It checks
// what no engine may ever do: report an operation twice, or read inputs after it reported done
// (they are overwritten then), or change a result between done and retired.
class EngineWorld {
 public:
  EngineWorld(WorldOptions options, uint64_t seed);
  ~EngineWorld();

  // All nodes will submit the operation, each at some time.
  void add(const OperationSpec& spec);
  // Runs until nothing can happen any more; false if that takes forever.
  bool run();
  // Runs `steps` steps.
  void run_some(size_t steps);
  void abort_job(uint64_t job_key);
  void lose_links_of(uint32_t node);  // from it to others

  // After run(): every operation ended once on all nodes, with the right result, the same bits
  // everywhere.
  void expect_all_ended();
  void expect_no_memory_held(uint64_t job_key);
  size_t retired_operations(uint64_t job_key) const;  // on all nodes
  bool any_done(uint64_t job_key) const;

  // The result of operation number `index`: the node's, for the nodes that are done. Only the final
  // part of it.
  const std::vector<uint8_t>& result(size_t index, uint32_t node) const;
  Engine& engine(uint32_t node, uint32_t io_loop);
  Operation operation_of(size_t index, uint32_t node) const;
  EngineCounters counters() const;  // sums
  IntakeCounts intake_counts() const;
  Loop& loop() { return *loop_; }
  static NodeId id_of(uint32_t node) { return 1000 + node; }
  static constexpr uint32_t kSignature = 0x5163;  // of early operations

 private:
  struct Memory;
  struct NodePart;  // an operation on a node
  struct Running;   // an operation
  struct Endpoint;  // a node's I/O loop

  uint32_t nodes() const { return static_cast<uint32_t>(options_.ranks_of_node.size()); }
  void add_exchange(const Running& running, Operation& operation, const NodePart& part) const;
  void submit(Running& running, uint32_t node);
  void say_go(Running& running, uint32_t node);
  bool may_go(const Running& running, uint32_t node) const;
  void on_done(uint32_t node, const OperationKey& key);
  void on_retired(uint32_t node, const OperationKey& key);
  Running* find(const OperationKey& key);
  void step();
  bool is_quiet() const;

  const WorldOptions options_;
  Random random_;
  std::unique_ptr<Loop> loop_;
  std::vector<std::vector<std::unique_ptr<Endpoint>>> endpoints_;
  std::vector<std::unique_ptr<Running>> running_;
};

}  // namespace braid::test

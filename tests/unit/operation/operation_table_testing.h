// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "loop/loop_testing.h"
#include "operation/operation_table.h"

namespace braid::testing {

// Writes down what the table makes happen.
struct RecordingActions final : OperationEngines, OperationObserver {
  struct Published {
    uint32_t local_rank;
    uint64_t ticket;
    uint64_t offset;
    uint64_t bytes;
  };

  // The sink of one local rank.
  struct Sink final : ResultSink {
    Sink(RecordingActions& actions, uint32_t local_rank)
        : actions_(actions), local_rank_(local_rank) {}
    void publish(uint64_t ticket, uint64_t result_offset, uint64_t result_bytes) override {
      actions_.published.push_back({local_rank_, ticket, result_offset, result_bytes});
    }

   private:
    RecordingActions& actions_;
    const uint32_t local_rank_;
  };

  OperationServices services(size_t local_ranks) {
    std::vector<ResultSink*> all;
    for (uint32_t i = 0; i < local_ranks; ++i)
      all.push_back(sinks_.emplace_back(std::make_unique<Sink>(*this, i)).get());
    return {*this,
            *this,
            counters,
            all,
            [this](uint32_t place, const OperationKey& key, const Signature& signature) {
              log.push_back("ready");
              told.push_back(place);
              ready.emplace_back(key, signature);
              return Status::ok();
            },
            [this] { return is_reached; },
            [](const Status&) {},
            [this](uint64_t ended_ns) { last_end_ns = ended_ns; },
            numbers,
            nullptr,
            [this] { return now_ns; }};
  }

  bool start(Operation operation) override {
    log.push_back("start");
    started.push_back(std::move(operation));
    return !refuses;
  }
  bool go(const OperationKey& key) override {
    log.push_back("go");
    gone.push_back(key);
    return true;
  }
  void on_start(const OperationKey& key, uint64_t result_bytes) override {
    observed.push_back({"start", key, result_bytes});
  }
  void on_go(const OperationKey& key) override { observed.push_back({"go", key, 0}); }
  void on_done(const OperationKey& key) override {
    observed.push_back({"done", key, published.size()});
  }

  // All that was written down.
  void forget() {
    log.clear();
    started.clear();
    gone.clear();
    ready.clear();
    told.clear();
    published.clear();
    observed.clear();
  }

  std::vector<std::string> log;  // start, ready, go
  std::vector<Operation> started;
  std::vector<OperationKey> gone;
  std::vector<std::pair<OperationKey, Signature>> ready;
  std::vector<uint32_t> told;  // to which places
  std::vector<Published> published;
  // What its observer is told: what, of which operation, of how many bytes; of "done": how many
  // results were published before.
  std::vector<std::tuple<std::string, OperationKey, uint64_t>> observed;
  JobCounters counters;
  std::shared_ptr<JobNumbers> numbers = std::make_shared<JobNumbers>();
  uint64_t now_ns = 0;
  uint64_t last_end_ns = 0;  // of an operation
  bool refuses = false;
  bool is_reached = true;  // links lead to all nodes

 private:
  std::vector<std::unique_ptr<Sink>> sinks_;
};

inline Signature all_reduce(uint64_t count, DataType dtype = DataType::Float32,
                            Reduction reduction = Reduction::Sum) {
  Signature signature;
  signature.count = count;
  signature.dtype = dtype;
  signature.reduction = reduction;
  return signature;
}

inline Signature signature_of(Collective collective, uint64_t count = 0, uint32_t root = 0) {
  Signature signature;
  signature.collective = collective;
  signature.count = count;
  signature.root = root;
  return signature;
}

// The table of one node of a job 'train' with key 9.
class OperationTableTest : public LoopTest {
 protected:
  static constexpr uint64_t kJob = 9;
  static constexpr uint64_t kTensor = 1000;

  // `ranks_of_node`: the ring, ranks given out in ring order; this node is `self`.
  void make(std::vector<std::vector<uint32_t>> ranks_of_node, uint32_t self,
            uint64_t memory_bytes = 1 << 20, uint64_t direct_bytes = 0,
            bool memory_is_there = true) {
    auto ring = std::make_shared<Ring>();
    ring->nodes = static_cast<uint32_t>(ranks_of_node.size());
    ring->self = self;
    ring->world_size = 0;
    ring->direct_bytes = direct_bytes;
    for (const auto& ranks : ranks_of_node) ring->world_size += static_cast<uint32_t>(ranks.size());
    ring->block_of_rank.resize(ring->world_size);
    uint32_t block = 0;
    for (const auto& ranks : ranks_of_node) {
      ring->ranks_of_node.push_back(static_cast<uint32_t>(ranks.size()));
      for (const uint32_t rank : ranks) ring->block_of_rank[rank] = block++;
    }
    ring->routes = basic_routes(ring->nodes, self);
    auto memory = ResultMemory::create(worker_, "train", memory_bytes, {});
    ASSERT_TRUE(memory.is_ok());
    memory_ = *memory;
    if (memory_is_there) get_memory();
    ring_ = ring;
    table_ =
        std::make_unique<OperationTable>(JobOnNode{"train", kJob, ring, ranks_of_node[self]},
                                         memory_, actions_.services(ranks_of_node[self].size()));
  }

  // All of it.
  void get_memory() {
    const auto all = memory_->allocate(memory_->size());
    ASSERT_TRUE(all.is_ok());
    memory_->free(*all);
    run_until([&] { return memory_->has_memory(0, memory_->size()); });
  }

  static OperationKey key(uint64_t step, uint64_t tensor = kTensor) { return {kJob, tensor, step}; }

  Submission submission(uint32_t local_rank, uint64_t step, const Signature& signature) {
    Submission result;
    result.local_rank = local_rank;
    result.ticket = 10 * step + local_rank + 1;
    result.tensor = kTensor;
    result.step = step;
    result.signature = signature;
    result.input = inputs_ + 64 * local_rank;
    result.deadline_ns = 1'000'000;
    result.timeout_ms = 5;
    result.name = name_;
    return result;
  }
  // The form of a planned tensor that is not merged with others.
  OperationForm form_of(uint64_t count, uint64_t first_in_set = 0) const {
    auto group = std::make_shared<TensorGroup>();
    group->members.push_back({kTensor, name_, count, 0, 0, first_in_set});
    group->count = count;
    OperationForm form;
    form.plan = 0;
    form.group = std::move(group);
    return form;
  }
  static PlannedTensor planned_as(OperationForm form, uint32_t member = 0) {
    return {std::make_shared<const OperationForm>(std::move(form)), member};
  }
  Status submit(uint32_t local_rank, uint64_t step, const Signature& signature) {
    return table_->submit(submission(local_rank, step, signature));
  }
  Status on_successor_ready(const OperationKey& key, const Signature& signature) {
    return table_->on_node_ready((ring_->self + 1) % ring_->nodes, key, signature);
  }
  // Submitted by `local_ranks` ranks, done and published; neither retired nor released.
  void publish(uint64_t step, const Signature& signature, uint32_t local_ranks) {
    for (uint32_t i = 0; i < local_ranks; ++i) ASSERT_TRUE(submit(i, step, signature).is_ok());
    table_->on_done(key(step));
  }
  // Nothing of the result memory is in use.
  bool memory_is_free() {
    const auto all = memory_->allocate(memory_->size());
    if (all) memory_->free(*all);
    return all.is_ok();
  }
  bool input_is(const Operation& operation, size_t index, uint32_t local_rank) const {
    return operation.inputs[index] == inputs_ + 64 * local_rank;
  }

  alignas(64) uint8_t inputs_[64 * 8] = {};
  const std::shared_ptr<const std::string> name_ =
      std::make_shared<const std::string>("layer.weight");
  WorkThread worker_{*loop_, "work"};
  RecordingActions actions_;
  std::shared_ptr<Ring> ring_;  // may be given routes before the first submission
  std::shared_ptr<ResultMemory> memory_;
  std::unique_ptr<OperationTable> table_;
};

}  // namespace braid::testing

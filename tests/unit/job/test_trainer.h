// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/status.h"
#include "ipc/frame_reader.h"
#include "ipc/rings.h"
#include "ipc/shared_memory.h"
#include "job/tensor_table.h"
#include "proto/client_generated.h"
#include "proto/types.h"

namespace braid::testing {

// A trainer as the daemon sees one: a socket, arenas, two rings. Unlike libbraid it says whatever
// the test wants, also what makes no sense. Never blocks: call poll() while the loop runs.
class TestTrainer {
 public:
  static constexpr uint64_t kArenaBytes = 1 << 20;
  static constexpr uint32_t kRingCapacity = 16;

  explicit TestTrainer(const std::string& socket_path);

  void open(const std::string& job, uint32_t rank, uint32_t world_size, const std::string& master,
            uint32_t timeout_ms = 60'000, uint32_t weight = 0, const std::string& token = {},
            uint64_t master_node = 0);
  void register_tensors(const std::vector<std::pair<std::string, uint64_t>>& tensors,
                        DataType dtype = DataType::Float32, bool planned = false);
  struct Described {
    std::string name;
    uint8_t dtype = 0;
    uint64_t count = 1;
    bool is_dynamic = false;
    bool is_planned = false;
    uint32_t backward_order = 3;
    const char* codec = nullptr;
    uint8_t state_slots = 0;
  };
  void register_described(std::span<const Described> tensors);
  void unregister_tensors(uint32_t first, uint32_t count);
  // One more arena, that says of itself to have so many bytes.
  void register_memory(uint64_t bytes = kArenaBytes, uint64_t said_bytes = kArenaBytes);
  // One item that it needs so many seconds for, and a moment in which it did.
  void tell_work(const std::string& work, const std::string& item, double seconds);
  void ask_plans(const std::string& job);
  void ask_facts(const std::string& job);
  void ask_explanation(const std::string& job);
  void ask_name(const std::string& wanted);
  void ask_timeline(const std::string& job, uint32_t steps);
  void ask_status();
  void leave(const std::string& reason = {}, bool fails_job = false);
  void hang_up() { socket_.reset(); }

  // An all-reduce (sum) of `tensor`; `change` makes it something else.
  void submit(uint64_t ticket, uint32_t tensor, uint64_t step, uint64_t offset = 0,
              const std::function<void(proto::SubmitEntry&)>& change = {});
  void release(uint64_t ticket);

  // Takes what has come.
  void poll();

  float* floats(uint64_t offset = 0, uint32_t arena = 0) {
    return reinterpret_cast<float*>(arenas_[arena].data() + offset);
  }
  const float* result(const proto::DoneEntry& entry) const {
    return reinterpret_cast<const float*>(results_.data() + entry.result_offset);
  }

  bool may_poll() const { return done_ring_.may_poll(); }

  bool wakes_daemon = true;  // else entries lie in the ring until it looks by itself

  bool is_open = false;
  bool takes_work = false;  // the daemon wants to be told
  uint32_t nodes = 0;       // of the job, as the daemon says
  bool has_left = false;
  bool was_closed = false;  // by the daemon
  uint32_t epoch = 0;
  std::vector<uint32_t> block_of_rank;
  std::vector<uint32_t> registered;  // first handles
  uint32_t unregistered = 0;         // answers
  std::vector<uint32_t> arenas;      // registered
  std::string refusal;               // of a registration
  std::string status_reply;
  std::string explanation;  // or why there is none
  std::string given_name;
  bool reply_goes_on = false;  // status_reply is not whole
  uint32_t jobs_hidden = 0;
  Status failure;
  std::vector<proto::DoneEntry> done;

 private:
  void send(flatbuffers::FlatBufferBuilder& builder, std::span<const int> fds = {});
  void handle(const proto::ClientMessage& message, std::vector<Fd> fds);
  void push(const proto::SubmitEntry& entry);

  Fd socket_;
  FrameReader reader_;
  std::vector<SharedMemory> arenas_;
  SharedMemory rings_;
  SharedMemory results_;
  Fd submit_wake_;
  RingProducer<proto::SubmitEntry> submit_;
  RingConsumer<proto::DoneEntry> done_ring_;
};

// What a node makes of a registration of these tensors.
Result<RegisteredTensors> read_registration(std::span<const TestTrainer::Described> tensors,
                                            const JobHash& job,
                                            const CodecKinds& allowed = CodecKinds().set());

}  // namespace braid::testing

// SPDX-License-Identifier: Apache-2.0
// The operations of one group, carried between the ranks.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "communicator.h"
#include "signature.h"

namespace fake_nccl {

/// One call of a collective, ncclSend or ncclRecv. Memory is given by device addresses.
struct Operation {
  Signature signature;
  std::uintptr_t input, result;
  bool is_send;          // of a pair
  int peer;              // of a pair
  std::uint64_t number;  // of the process's operations, from 1

  std::size_t bytes() const { return signature.count * bytes_of(signature.type); }
};

/// Carries out operations, as their order allows: every rank sends each other rank what it needs,
/// and adds what it gets in the order of the ranks.
class Transfer {
 public:
  /// Throws CUresult if memory is not the device's any more.
  Transfer(Communicator& communicator, const std::vector<Operation>& operations);

  /// Sends and takes what can be sent and taken now. False: nothing could.
  bool step();
  bool is_done() const { return open_legs_ == 0; }
  /// After the last step: adds, and copies what stays on this rank.
  void finish();

 private:
  /// A message's way from one rank to another: a greeting of no bytes, or an operation's bytes.
  struct Leg {
    Signature signature;
    std::byte* memory;
    std::size_t bytes, moved = 0;
    bool has_begun = false;
  };
  struct Route {
    std::deque<Leg> legs;
    Mailbox* mailbox;
    int peer;
  };
  struct Running {
    Operation operation;
    std::byte *input, *result;
    std::vector<std::vector<std::byte>> parts;  // of the other ranks
  };

  void add(const Operation& operation);
  void add_collective(Running& running);
  void send(int peer, const Operation& operation, const std::byte* memory, std::size_t bytes);
  void receive(int peer, const Operation& operation, std::byte* memory, std::size_t bytes);
  bool send_some(Route& route);
  bool take_some(Route& route);
  void finish(const Running& running) const;

  Communicator& communicator_;
  std::deque<Running> running_;
  std::array<std::vector<Route>, 2> outgoing_, incoming_;  // by lane and peer
  std::size_t open_legs_ = 0;
};

}  // namespace fake_nccl

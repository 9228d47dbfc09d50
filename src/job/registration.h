// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "ipc/user_quotas.h"
#include "job/tensor_table.h"
#include "loop/user_turns.h"
#include "loop/user_work.h"
#include "planning/plan_book.h"

namespace braid {

class Job;
class Session;

// Where what a registration needs is done.
struct RegistrationServices {
  UserWork& work;    // what takes long
  UserTurns& turns;  // what only the loop can do, in pieces
};

// What changes which tensors one job's trainers on this node have registered, in the order in which
// it came. The first change is under way.
class RegistrationQueue {
 public:
  class Change {
   public:
    virtual ~Change() = default;
    // It is the first one.
    virtual void begin() = 0;
  };

  bool is_empty() const { return changes_.empty(); }
  void add(Change& change);
  // It is over, or does not matter any more.
  void remove(Change& change);

 private:
  std::deque<Change*> changes_;
};

// A trainer's RegisterTensors. A small one is made at once. A large one is read on another thread;
// then the loop adds its tensors, some of them in each loop round. Quotas are charged
// before the work begins, and given back if it is refused. Control loop only; destroying it stops
// it.
class Registration final : private RegistrationQueue::Change {
 public:
  // A message up to this size is a small one: some hundred tensors.
  static constexpr size_t kSmallBytesMax = 16 << 10;
  // So many tensors are one piece of the loop's work.
  static constexpr size_t kPieceTensors = 64;

  // The trainer that registers, and where its tensors go. All of it outlives the registration.
  struct Trainer {
    const Session& session;
    Job& job;
    TensorTable& table;
    UserCharge& tensors_charge;
    UserCharge& names_charge;
    CodecKinds codecs;  // that tensors may have
  };
  using Bytes = std::shared_ptr<const std::vector<uint8_t>>;  // with the message in it

  Registration(Trainer trainer, RegistrationServices services, Bytes bytes,
               const proto::RegisterTensors& message);
  ~Registration() override;

  // At once; returns the first handle. For a small one while no other one of the job is under way.
  Result<uint32_t> make_now();
  // Later, and after those of the job that came before; `made` comes once.
  void start(std::function<void(Result<uint32_t> first)> made);

 private:
  // What another thread reads and makes.
  struct Content;
  enum class Phase : uint8_t { Check, AddPlanned, Add };

  void begin() override;
  Status take_room_for_tensors();
  Status take_room_for_names();
  void read();
  // Whether there is more to do; not if it has failed.
  bool make_piece();
  void finish();
  Result<uint32_t> outcome();

  const Trainer trainer_;
  const RegistrationServices services_;
  const uid_t user_;
  const uint64_t tensors_before_;  // charged
  const uint64_t name_bytes_before_;
  std::shared_ptr<Content> content_;
  Phase phase_ = Phase::Check;
  size_t done_ = 0;     // tensors, of this phase
  size_t planned_ = 0;  // of these, or of all
  uint32_t first_ = 0;
  Status status_;
  std::function<void(Result<uint32_t> first)> made_;
};

}  // namespace braid

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "job/registration.h"

namespace braid {

// A trainer's UnregisterTensors: takes out what one registration has put in. Its handles are gone
// at once; names and hashes go in pieces, and what takes long to free is freed on another thread.
// Control loop only; destroying it stops it.
class Unregistration final : private RegistrationQueue::Change {
 public:
  // `removed`: what the trainer's table had of the registration.
  Unregistration(const Registration::Trainer& trainer, RegistrationServices services,
                 TensorTable::Registered removed);
  ~Unregistration() override;

  // After the job's registrations that came before; `done` comes once.
  void start(std::function<void()> done);

 private:
  void begin() override;
  // Whether there is more to do.
  bool remove_piece();
  void finish();

  const Registration::Trainer trainer_;
  const RegistrationServices services_;
  const uid_t user_;
  std::shared_ptr<TensorTable::Registered> removed_;
  std::shared_ptr<void> set_;  // that no rank of this node has any more
  size_t done_tensors_ = 0;
  uint64_t name_bytes_ = 0;
  std::function<void()> done_;
};

}  // namespace braid

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include <braid.h>

#include "base/status.h"
#include "proto/types.h"

namespace braid::client {

struct Tensor {
  std::string name;
  DataType dtype = DataType::Float32;
  uint64_t count = 0;
  uint32_t backward_order = BRAID_NO_ORDER;
  bool dynamic = false;
  bool planned = false;
  std::string codec;                  // the daemon knows what is one
  uint32_t state_slots = 0;           // 0: no weight that the daemons update
  std::optional<uint64_t> last_step;  // that was submitted
};

// The job's registered tensors, by handle. Not thread-safe.
class TensorTable {
 public:
  // Checks an array of braid_tensor_options, whatever size the caller's struct has, also against
  // what is registered.
  Status parse(const braid_tensor_options* options, size_t count,
               std::vector<Tensor>& tensors) const;
  // The tensors of one registration.
  void add(std::vector<Tensor> tensors);

  const Tensor* find(uint32_t handle) const;
  Tensor& at(uint32_t handle);
  size_t size() const { return names_.size(); }
  // That the next registration's first tensor gets.
  uint32_t next_handle() const { return next_handle_; }

  // A registration: its first handle and its tensors.
  using Registrations = std::map<uint32_t, std::vector<Tensor>>;
  using Registration = Registrations::node_type;
  // An error unless these are all handles of one registration.
  Status check_registration(const uint32_t* handles, size_t count) const;
  // Takes out the registration of this first handle; its tensors are gone then, or come back. Names
  // and handles that are gone are not given again.
  Registration take(uint32_t first) { return registrations_.extract(first); }
  void put_back(Registration registration) { registrations_.insert(std::move(registration)); }
  void forget_names(const Registration& registration);

 private:
  const std::vector<Tensor>* registration_of(uint32_t handle, uint32_t& place) const;

  Registrations registrations_;
  uint32_t next_handle_ = 0;
  std::unordered_set<std::string> names_;
};

}  // namespace braid::client

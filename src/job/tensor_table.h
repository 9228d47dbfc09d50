// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/hash_tree.h"
#include "base/status.h"
#include "codec/codec_spec.h"
#include "messages/job_hash.h"
#include "operation/ended_tensors.h"
#include "proto/client_generated.h"
#include "proto/types.h"

namespace braid {

// A tensor that one trainer has registered.
struct Tensor {
  std::shared_ptr<const std::string> name;
  uint64_t hash = 0;  // of the name, in the job: what names it between nodes
  DataType dtype = DataType::Float32;
  uint64_t count = 0;
  uint32_t backward_order = UINT32_MAX;
  bool is_dynamic = false;   // each operation brings its own dtype and count
  uint64_t plan_set = 0;     // names the tensors that are planned together; 0: not planned
  CodecSpec codec;           // how it travels between nodes
  uint32_t state_slots = 0;  // what its owners keep for each element; 0: it is no weight
  std::optional<uint64_t> last_step;
};

// What one registration asks for. The planned tensors are a set, named by all of them: so it has
// the same name on all ranks that register the same.
struct RegisteredTensors {
  static constexpr size_t kNameBytesMax = 1023;
  static constexpr size_t kCodecsMax = 64;  // different ones

  // Any thread. `allowed`: the codecs that tensors may have; none they always may.
  static Result<RegisteredTensors> read(const proto::RegisterTensors& message, const JobHash& job,
                                        const CodecKinds& allowed);

  std::vector<Tensor> tensors;
  uint64_t set = 0;  // 0: none is planned
};

// The tensors of one trainer of a job by handle. However many there are, one more takes no time
// that anybody would notice. They go as they have come: all of one registration. A handle is never
// given again.
class TensorTable {
 public:
  static constexpr size_t kTensorsMax = 1 << 20;  // at a time

  // The tensors of one registration.
  struct Registered {
    std::vector<Tensor> tensors;
    size_t operations = 0;  // that the trainer has submitted and not given back
  };

  // ResourceExhausted: there is no room for so many more.
  Status check_room(size_t count) const;
  // AlreadyExists: one of them has its name or its hash, or had it and was taken out lately.
  Status check(const Tensor& tensor) const;
  // What is added next is of one registration of so many. Returns the handle of the first one; the
  // others follow it.
  uint32_t begin(size_t count);
  // Checked.
  void add(Tensor tensor);
  Tensor* find(uint32_t handle);
  const Tensor* find(uint32_t handle) const;
  const Tensor* find_hash(uint64_t hash) const;

  // An operation of the tensor is submitted; is given back.
  void hold(uint32_t handle);
  void let_go(uint32_t handle);

  // Takes out all tensors of one registration, whose handles are from `first` on. An error, if they
  // are not that, or not all, or if there are operations of them.
  Result<Registered> take(uint32_t first, uint32_t count);
  // Call it for each tensor that was taken out: its name may not come again for a while, for other
  // nodes may still speak of it.
  void end(const Tensor& tensor);

 private:
  using Registrations = std::map<uint32_t, Registered>;  // by their first handles

  // The one that holds the tensor; end(): there is none.
  template <typename AnyRegistrations>
  static auto registration_of(AnyRegistrations& registrations, uint32_t handle);

  Registrations registrations_;
  size_t size_ = 0;  // tensors
  uint32_t next_handle_ = 0;
  HashTree<uint32_t> by_hash_;
  EndedTensors ended_;
};

}  // namespace braid

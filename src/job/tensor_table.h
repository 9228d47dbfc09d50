// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/hash_tree.h"
#include "base/status.h"
#include "codec/codec_spec.h"
#include "messages/job_hash.h"
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
// that anybody would notice.
class TensorTable {
 public:
  static constexpr size_t kTensorsMax = 1 << 20;

  // AlreadyExists: one of them has its name or its hash.
  Status check(const Tensor& tensor) const;
  // Checked. Its handle is the number of those before it.
  void add(Tensor tensor);
  uint32_t size() const { return static_cast<uint32_t>(tensors_.size()); }
  Tensor* find(uint32_t handle) { return handle < tensors_.size() ? &tensors_[handle] : nullptr; }
  const Tensor* find_hash(uint64_t hash) const;

 private:
  std::deque<Tensor> tensors_;
  HashTree<uint32_t> by_hash_;
};

}  // namespace braid

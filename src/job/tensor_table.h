// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

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

// The tensors of one trainer of a job by handle.
class TensorTable {
 public:
  static constexpr size_t kTensorsMax = 1 << 20;
  static constexpr size_t kNameBytesMax = 1023;

  // `codecs`: that tensors may have; none they always may.
  explicit TensorTable(const CodecKinds& codecs = CodecKinds().set()) : codecs_(codecs) {
    codecs_.set(static_cast<size_t>(CodecKind::None));
  }

  // All or none. Returns the first handle. The planned ones are a set from then on, named by all of
  // them: so it has the same name on all ranks that register the same.
  Result<uint32_t> add(const proto::RegisterTensors& message, const JobHash& job);
  // The last registration was refused elsewhere: forgets the tensors from `first` on.
  void take_back(uint32_t first);
  Tensor* find(uint32_t handle) { return handle < tensors_.size() ? &tensors_[handle] : nullptr; }
  const Tensor* find_hash(uint64_t hash) const;
  std::span<const Tensor> from(uint32_t first) const { return std::span(tensors_).subspan(first); }

 private:
  CodecKinds codecs_;
  std::vector<Tensor> tensors_;
  std::unordered_map<uint64_t, uint32_t> by_hash_;
};

}  // namespace braid

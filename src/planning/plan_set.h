// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "codec/codec_spec.h"
#include "engine/transfer_settings.h"
#include "messages/job_hash.h"
#include "operation/operation_form.h"

namespace braid {

// Groups (hashes), each of which is parted into its tensors that `is_plain` names and the others,
// the part with the group's first tensor first.
std::vector<std::vector<uint64_t>> part_groups(
    std::span<const std::vector<uint64_t>> groups,
    const std::function<bool(uint64_t tensor)>& is_plain);

// The gradients of one model, which are planned together (braid_register says what their trainer
// promises), and which groups they form in which step. Control loop only, where nothing else is
// said.
class PlanSet {
 public:
  struct Tensor {
    uint64_t hash = 0;  // of the name, in the job
    std::shared_ptr<const std::string> name;
    DataType dtype = DataType::Float32;
    uint64_t count = 0;
    uint32_t backward_order = 0;
    CodecSpec codec{};         // how it travels between nodes, as long as no plan says plain
    uint32_t state_slots = 0;  // what its owners keep for each element; the same for all of a set
    uint64_t bytes() const { return count * element_bytes(dtype); }
    bool operator==(const Tensor& other) const;  // by content
  };
  using Tensors = std::vector<Tensor>;
  // The sizes of the plan that every set begins with: a small group first, so that the network gets
  // something to do, then groups that are large enough for the startup of a reduction not to
  // matter.
  static constexpr uint64_t kFirstGroupBytes = 1 << 20;
  static constexpr uint64_t kGroupBytes = 8 << 20;
  // Older plans are forgotten: no step of theirs can still be submitted when so many have followed.
  static constexpr size_t kPlansKept = 8;

  struct AgreedPlan {
    uint32_t number = 0;  // 0: the one that every set begins with
    uint64_t from_step = 0;
    std::vector<std::shared_ptr<const TensorGroup>> groups;  // in sending order
    // How they travel; nullptr: as each node's configuration says.
    std::shared_ptr<const TransferSettings> settings;
    bool reports_steps = false;
  };
  // What this node has for the set's operations.
  struct Kept {
    std::vector<std::shared_ptr<const CodedTensors>> coded;  // by codecs(); one node: none
    std::shared_ptr<ShardState> shard;                       // nullptr: its owners keep nothing
    uint32_t sample_every_steps = 0;
  };

  // InvalidArgument: these are too large for a set. It has no numbers that do not add up.
  static Status check_sizes(std::span<const Tensor> tensors);
  // `registered` in that order; their sizes were checked. The same tensors give the same set, and
  // the same first plan, on every node of the job. Any thread.
  PlanSet(const JobHash& job, uint64_t id, Tensors registered);

  uint64_t id() const { return id_; }
  // In the order in which backward is said to make them.
  const Tensors& tensors() const { return tensors_; }
  const std::shared_ptr<const Tensors>& shared_tensors() const { return shared_tensors_; }
  // A tensor of the set by its hash: its place in tensors(); nothing: it is not in the set.
  std::optional<uint32_t> index_of(uint64_t hash) const;
  // Those that tensors have, each once; not `none`.
  const std::vector<CodecSpec>& codecs() const { return codecs_; }
  // A tensor's codec, and where the tensor begins among the elements of all tensors that have it.
  struct CodedTensor {
    uint32_t codec = 0;  // in codecs()
    uint64_t first_element = 0;
  };
  std::optional<CodedTensor> coded(uint32_t tensor) const { return coded_[tensor]; }
  uint64_t coded_elements(uint32_t codec) const { return coded_elements_[codec]; }
  // Where a tensor begins among the elements of all, in the order of tensors(), and how many there
  // are.
  uint64_t first_element(uint32_t tensor) const { return first_elements_[tensor]; }
  uint64_t elements() const { return elements_; }
  // Whether these are a set's tensors(): what has its id may be something else. Any thread.
  static bool are_of(const Tensors& set, Tensors registered);

  // Before the first operation.
  void keep(Kept kept);
  const Kept& kept() const { return kept_; }
  // The form of the tensor's operation in this step, and the tensor's place in it.
  PlannedTensor find(uint32_t tensor, uint64_t step) const {
    const Version& version = version_of(step);
    const Place& place = version.places[tensor];
    return {version.forms[place.group], place.member};
  }
  // The plan that the step's operations follow.
  const AgreedPlan& plan_of(uint64_t step) const { return version_of(step).plan; }
  // The latest; it may begin with a step to come.
  const AgreedPlan& current() const { return plans_.back().plan; }
  // The tensor's codec in this step: its own, or none where a plan says plain.
  const CodecSpec& codec_of(uint32_t tensor, uint64_t step) const {
    return codec_in(version_of(step), tensor);
  }
  // By tensor: whether its codec has ended, as of the latest plan.
  const std::vector<bool>& current_plain() const { return plans_.back().is_plain; }
  // As of the latest plan.
  const CodecSpec& current_codec(uint32_t tensor) const { return codec_in(plans_.back(), tensor); }

  // Whether `groups` (hashes) hold every tensor once, and tensors of one dtype and codec each, as
  // of the latest plan.
  Status check(std::span<const std::vector<uint64_t>> groups) const;
  // Whether the latest plan merges the same tensors as `groups` (checked), in whatever order.
  bool merges_as(std::span<const std::vector<uint64_t>> groups) const;
  // Whether all of them (hashes) are tensors of the set that have a codec.
  Status check_plain(std::span<const uint64_t> tensors) const;
  // Holds from `from_step` on; checked, and later than the plans before it. The settings of the
  // plan before it stay.
  void add(uint32_t number, uint64_t from_step, std::span<const std::vector<uint64_t>> groups);
  // The groups of the plan before it, with other settings.
  void add(uint32_t number, uint64_t from_step, const TransferSettings& settings,
           bool reports_steps);
  // These tensors (hashes; checked) have no codec in this plan and those that follow it. Groups and
  // settings of the plan before it stay, but groups that hold some of them are parted.
  void add_plain(uint32_t number, uint64_t from_step, std::span<const uint64_t> tensors);
  // Hash of dtypes and counts in the order of tensors(), and bytes of all. It leads to what was
  // learned of a model's settings; the wrong ones cost time and nothing else.
  uint64_t tensors_hash() const { return tensors_hash_; }
  uint64_t bytes() const { return bytes_; }

 private:
  struct Place {
    uint32_t group = 0;
    uint32_t member = 0;
  };
  struct Version {
    AgreedPlan plan;
    std::vector<std::shared_ptr<const OperationForm>> forms;  // by group
    std::vector<Place> places;                                // by tensor
    std::vector<bool> is_plain;                               // by tensor: its codec has ended
  };
  const Version& version_of(uint64_t step) const;
  const CodecSpec& codec_in(const Version& version, uint32_t tensor) const;
  void make_groups(Version& version, std::span<const std::vector<uint64_t>> groups) const;
  void make_forms(Version& version) const;
  void append(Version version);
  void find_codecs();
  bool go_together(uint32_t tensor, uint32_t other) const;
  std::vector<std::vector<uint64_t>> first_groups() const;

  const JobHash job_;
  const uint64_t id_;
  const std::shared_ptr<const Tensors> shared_tensors_;
  const Tensors& tensors_;  // these
  uint64_t tensors_hash_ = 0;
  std::unordered_map<uint64_t, uint32_t> index_;
  std::vector<CodecSpec> codecs_;
  std::vector<uint64_t> coded_elements_;           // by codec
  std::vector<std::optional<CodedTensor>> coded_;  // by tensor
  std::vector<uint64_t> first_elements_;           // by tensor
  uint64_t elements_ = 0;
  uint64_t bytes_ = 0;
  Kept kept_;
  std::deque<Version> plans_;
};

}  // namespace braid

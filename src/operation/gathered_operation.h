// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/checked.h"
#include "base/status.h"
#include "operation/job_on_node.h"
#include "operation/node_exchange.h"
#include "operation/operation_form.h"

namespace braid {

// Where one local rank's results go: its done ring.
class ResultSink {
 public:
  virtual ~ResultSink() = default;
  virtual void publish(uint64_t ticket, uint64_t result_offset, uint64_t result_bytes) = 0;
};

// One operation as the ranks of this node have submitted it: who has, what they agree on, where
// their inputs lie, and which parts of the result are whose. The operation of a group has several
// members, the tensors that a plan has merged; all others have one. Control loop only.
class GatheredOperation {
 public:
  // One member of one local rank.
  struct Part {
    bool is_submitted = false;
    bool is_released = false;
    uint64_t submitted_ns = 0;
    uint64_t ticket = 0;
    const uint8_t* input = nullptr;
    uint64_t result_start =
        0;  // only in an exchange: where the rank's result is in the operation's
  };
  struct Times {
    uint64_t first_submitted_ns = 0;
    uint64_t last_submitted_ns = 0;
    uint64_t deadline_ns = 0;  // of the most hurried part
    uint32_t timeout_ms = 0;   // of this part
  };

  // `first` is only looked at: add() comes next. `job` outlives the operation.
  GatheredOperation(const JobOnNode& job, const OperationKey& key, const Submission& first,
                    std::shared_ptr<const OperationForm> form);

  // An error: what the rank says is not what those before it have said.
  Status add(const Submission& submission, const PlannedTensor& planned);
  bool is_complete() const { return submitted_ == parts_.size(); }
  bool has(uint32_t local_rank) const;
  // The first local rank of these that has not submitted all of it.
  std::optional<uint32_t> first_without(const std::vector<bool>& local_ranks) const;

  const OperationKey& key() const { return key_; }
  // Complete: with what the owners are to do.
  const Signature& signature() const { return signature_; }
  const OperationForm& form() const;
  const std::string& name() const { return *name_; }  // of the first member
  const std::shared_ptr<const std::string>& shared_name() const { return name_; }
  uint32_t first_rank() const { return first_rank_; }  // whose signature it is
  const Times& times() const { return times_; }
  const std::vector<Part>& parts() const { return parts_; }
  std::span<const Part> parts_of(uint32_t local_rank) const {
    return {&parts_[local_rank * members()], members()};
  }
  size_t members() const { return form().members(); }
  size_t parts_missing() const { return parts_.size() - submitted_; }
  std::string describe() const;

  // The form's, where the operation's elements are encoded; nullptr: they travel as they are.
  const CodedTensors* coded() const { return is_coded_ ? form_->coded.get() : nullptr; }
  ShardState* shard() const { return form().shard.get(); }
  const std::vector<std::optional<UpdateStep>>& updates() const { return updates_; }
  OperationInput input_of(uint32_t local_rank) const;
  NodeExchange* exchange() const { return exchange_.get(); }  // nullptr: it is none

  // What codecs and owners keep: no two steps use it at once.
  bool may_use_kept() const;
  void begin_using_kept() const;
  void end_using_kept() const;

  // Only for an exchange: gives each rank its part of the result, and returns the bytes of all.
  CheckedNumber lay_out_results();
  void publish(uint32_t local_rank, uint64_t result_offset, uint64_t result_bytes,
               ResultSink& sink) const;
  void release(uint32_t local_rank, uint32_t member);
  void release_all(uint32_t local_rank);
  bool is_released() const { return released_ == parts_.size(); }

 private:
  Status check_member(const Submission& submission, uint32_t member) const;
  Status check_update(const Submission& submission, uint32_t member);
  Status add_to_exchange(const Submission& submission);
  void sign_updates();

  const JobOnNode& job_;
  const OperationKey key_;
  const std::shared_ptr<const OperationForm> form_;  // nullptr: not planned
  Signature signature_;
  const std::shared_ptr<const std::string> name_;
  const uint32_t first_rank_;
  const bool is_coded_;
  std::vector<Part> parts_;  // the first local rank's members, the second's, …
  std::vector<std::optional<UpdateStep>> updates_;  // by member; of an operation with state
  std::unique_ptr<NodeExchange> exchange_;
  size_t submitted_ = 0;  // parts
  size_t released_ = 0;
  Times times_;
};

// Why the ranks of two splits, or of one node and another, do not fit each other.
Status splits_disagree(const JobOnNode& job, const GatheredOperation& submitted,
                       const std::string& disagreement);

}  // namespace braid

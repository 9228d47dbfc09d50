// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ipc/user_quotas.h"
#include "operation/gathered_operation.h"

namespace braid {

// What the other nodes of a job are ready for: kept until this node's ranks have submitted it, and
// compared with what they say. Every node's word is compared, because nodes that disagree about the
// size may take different algorithms. Control loop only.
class Readiness {
 public:
  // Operations that others are ready for and no local rank has submitted yet; a peer with more is
  // broken.
  static constexpr size_t kEarlyMax = 1 << 16;
  // What a node's readiness for one of them takes, about; they count in steps.
  static constexpr uint64_t kCostBytes = 256;
  static constexpr uint64_t kStepBytes = 256 << 10;

  // What a node is ready for.
  struct Word {
    uint32_t place = 0;
    Signature signature;
  };
  using Words = std::unordered_map<OperationKey, std::vector<Word>, OperationKeyHash>;

  // `job` outlives it.
  explicit Readiness(const JobOnNode& job) : job_(job) {}

  // What is kept counts there.
  void set_charge(UserCharge charge) { charge_ = std::move(charge); }
  // The operation does not run yet. What the node said of it before is forgotten.
  Status keep(const OperationKey& key, const Word& word);
  // All that was kept of an operation.
  Result<std::vector<Word>> take(const OperationKey& key);
  const Words& kept() const { return early_; }
  // An error: the node asks for something else than this node's ranks. Splits are only compared
  // once the operation is placed.
  Status check(const GatheredOperation& submitted, const Word& word, bool is_placed) const;

 private:
  Status count(uint64_t words);

  const JobOnNode& job_;
  Words early_;
  uint64_t count_ = 0;  // of all nodes
  UserCharge charge_;
};

}  // namespace braid

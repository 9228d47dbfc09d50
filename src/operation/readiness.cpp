// SPDX-License-Identifier: Apache-2.0
#include "operation/readiness.h"

#include <algorithm>

namespace braid {

Status Readiness::keep(const OperationKey& key, const Word& word) {
  if (early_.size() >= kEarlyMax && !early_.contains(key)) {
    return make_status(StatusCode::Protocol,
                       "job '{}': other nodes are ready for {} operations nobody here knows",
                       job_.name, kEarlyMax);
  }
  std::vector<Word>& words = early_[key];
  const size_t again =
      std::erase_if(words, [&word](const Word& other) { return other.place == word.place; });
  words.push_back(word);
  return count(count_ + 1 - again);
}

Result<std::vector<Readiness::Word>> Readiness::take(const OperationKey& key) {
  std::vector<Word> words;
  if (early_.empty()) return words;
  if (auto early = early_.extract(key); !early.empty()) words = std::move(early.mapped());
  if (!words.empty()) BRAID_RETURN_IF_ERROR(count(count_ - words.size()));
  return words;
}

Status Readiness::count(uint64_t words) {
  count_ = words;
  Status room = charge_.set_in_steps(words * kCostBytes, kStepBytes);
  if (room) return room;
  return room.with_context(fmt::format(
      "job '{}': other nodes are ready for {} operations that not all ranks here have submitted",
      job_.name, early_.size()));
}

Status Readiness::check(const GatheredOperation& submitted, const Word& word,
                        bool is_placed) const {
  const Signature& own = submitted.signature();
  if (own.collective == Collective::AllToAll && word.signature.collective == own.collective &&
      word.signature.dtype == own.dtype && word.signature.codec == own.codec &&
      word.signature.owner_step == own.owner_step) {
    if (!is_placed) return Status::ok();
    return splits_disagree(job_, submitted,
                           submitted.exchange()->disagreement_with(word.place, word.signature));
  }
  Signature said = word.signature;
  // What the node's own ranks ask for is known once all of them have.
  if (own.updates == 0) {
    said.update = own.update;
    said.updates = own.updates;
  }
  if (said == own) return Status::ok();
  // The first rank of the other node speaks for it: its own ranks agree, or it would not be ready.
  const Ring& ring = *job_.ring;
  uint32_t block = 0;
  for (uint32_t node = 0; node < word.place; ++node) block += ring.ranks_of_node[node];
  const auto rank = std::ranges::find(ring.block_of_rank, block) - ring.block_of_rank.begin();
  return make_status(
      StatusCode::Mismatch,
      "job '{}': ranks disagree about '{}' step {}: rank {} says {}, rank {} says {}", job_.name,
      submitted.name(), submitted.key().step, submitted.first_rank(), to_string(own), rank,
      to_string(word.signature));
}

}  // namespace braid

// SPDX-License-Identifier: Apache-2.0
// What a table does for a gather, a scatter and an all-to-all: where each rank's result lies, and
// whether ranks agree about who gives how much to whom.
#include <numeric>

#include <fmt/ranges.h>

#include "base/checked.h"
#include "operation/operation_table.h"

namespace braid {
namespace {

constexpr uint64_t kResultAlignment = 64;

uint64_t sum(const std::vector<uint64_t>& counts) {
  return std::accumulate(counts.begin(), counts.end(), uint64_t{0});
}

}  // namespace

uint64_t OperationTable::result_bytes_of(const LocalPart& part, DataType dtype) {
  return sum(part.splits->from) * element_bytes(dtype);
}

Status OperationTable::place_exchange(const OperationKey& key, Entry& entry, Operation operation) {
  const DataType dtype = entry.signature.dtype;
  CheckedNumber result_bytes = 0;
  for (LocalPart& part : entry.parts) {
    part.result_start = result_bytes.value_or(0);
    result_bytes += checked_round_up(result_bytes_of(part, dtype), kResultAlignment);
  }
  // What its ranks expect of other nodes nobody has compared yet.
  if (!result_bytes.is_at_most(memory_->size())) {
    return make_status(StatusCode::ResourceExhausted,
                       "job '{}': no room for the result of {}: its ranks expect more than the {} "
                       "bytes of results that collective.result_bytes_max allows",
                       job_name_, describe(entry, key), memory_->size());
  }
  entry.result_bytes = result_bytes.value_or(0);
  BRAID_RETURN_IF_ERROR(allocate(key, entry));
  std::vector<Exchange::LocalRank> ranks;
  for (const LocalPart& part : entry.parts) {
    ranks.push_back(
        {part.splits.get(), part.input, memory_->data() + entry.result_offset + part.result_start});
  }
  entry.exchange = std::make_shared<const Exchange>(*ring_, ranks, element_bytes(dtype));
  operation.exchange = entry.exchange;
  for (const uint32_t target : ring_->routes->exchange.targets) {
    if (is_between(entry, entry.exchange->bytes_to(target))) entry.awaited.push_back(target);
  }
  return start_in_turn(entry, std::move(operation));
}

// Whether two nodes have to agree before one sends so many bytes to the other. In an all-to-all
// they always have: one of them may think that there is nothing to send, and be wrong.
bool OperationTable::is_between(const Entry& entry, uint64_t bytes) {
  return bytes != 0 || entry.signature.collective == Collective::AllToAll;
}

Status OperationTable::tell_exchange_sources(const Entry& entry, const OperationKey& key) {
  for (const uint32_t source : ring_->routes->exchange.sources) {
    if (!is_between(entry, entry.exchange->bytes_from(source))) continue;
    BRAID_RETURN_IF_ERROR(services_.send_ready(source, key, said_to(entry, source)));
  }
  return Status::ok();
}

std::span<const uint32_t> OperationTable::ranks_at(uint32_t place) const {
  const auto& counts = ring_->ranks_of_node;
  const auto first = std::accumulate(counts.begin(), counts.begin() + place, size_t{0});
  return std::span(ring_order_).subspan(first, counts[place]);
}

// Elements between this node and the one at `place`, in the order of the streams, see Exchange.
std::vector<uint64_t> OperationTable::splits_from(const Entry& entry, uint32_t place) const {
  std::vector<uint64_t> splits;
  for (const LocalPart& part : entry.parts) {
    for (const uint32_t from : ranks_at(place)) splits.push_back(part.splits->from[from]);
  }
  return splits;
}

std::vector<uint64_t> OperationTable::splits_to(const Entry& entry, uint32_t place) const {
  std::vector<uint64_t> splits;
  for (const uint32_t to : ranks_at(place)) {
    for (const LocalPart& part : entry.parts) splits.push_back(part.splits->to[to]);
  }
  return splits;
}

// What a node says that expects and gives so many elements.
Signature OperationTable::with_splits(Signature signature, const std::vector<uint64_t>& expected,
                                      const std::vector<uint64_t>& given) const {
  signature.count = sum(expected);
  signature.given = sum(given);
  for (const auto* splits : {&expected, &given}) {
    for (const uint64_t elements : *splits)
      signature.bucket = hash_.of(JobHash::Splits, {signature.bucket, elements});
  }
  return signature;
}

Signature OperationTable::said_to(const Entry& entry, uint32_t place) const {
  if (entry.signature.collective != Collective::AllToAll) return entry.signature;
  return with_splits(entry.signature, splits_from(entry, place), splits_to(entry, place));
}

// With the local ranks that were there before, and with itself: so the last rank to come does not
// compare all of them with all at once.
Status OperationTable::check_local_splits(const OperationKey& key, const Entry& entry,
                                          uint32_t local_rank) const {
  const auto check = [&](size_t giver, size_t taker) {
    const uint64_t given = entry.parts[giver].splits->to[local_ranks_[taker]];
    const uint64_t expected = entry.parts[taker].splits->from[local_ranks_[giver]];
    if (given == expected) return Status::ok();
    return make_status(
        StatusCode::Mismatch,
        "job '{}': ranks disagree about '{}' step {}, {}: rank {} gives {} elements to rank {}, "
        "which expects {}",
        job_name_, *entry.name, key.step, to_string(entry.signature), local_ranks_[giver], given,
        local_ranks_[taker], expected);
  };
  for (size_t other = 0; other < local_ranks_.size(); ++other) {
    if (entry.parts[other].splits == nullptr) continue;
    BRAID_RETURN_IF_ERROR(check(local_rank, other));
    BRAID_RETURN_IF_ERROR(check(other, local_rank));
  }
  return Status::ok();
}

Status OperationTable::check_splits(const Entry& entry, const OperationKey& key,
                                    const NodeReady& ready) const {
  if (entry.exchange == nullptr) return Status::ok();  // compared when it is placed
  const Signature right =
      with_splits(entry.signature, splits_to(entry, ready.place), splits_from(entry, ready.place));
  const Signature& said = ready.signature;
  if (said == right) return Status::ok();
  const std::string here = fmt::format("rank {}", fmt::join(local_ranks_, " and "));
  const std::string there = fmt::format("rank {}", fmt::join(ranks_at(ready.place), " and "));
  std::string text =
      fmt::format("{} and {} split what they give to each other otherwise", here, there);
  const auto differs = [](const std::string& giver, uint64_t given, const std::string& taker,
                          uint64_t expected) {
    return fmt::format("what {} gives to {} is {} elements, and expected there are {}", giver,
                       taker, given, expected);
  };
  if (said.count != right.count) {
    text = differs(here, right.count, there, said.count);
  } else if (said.given != right.given) {
    text = differs(there, said.given, here, right.given);
  }
  return make_status(StatusCode::Mismatch, "job '{}': ranks disagree about '{}' step {}, {}: {}",
                     job_name_, *entry.name, key.step, to_string(entry.signature), text);
}

}  // namespace braid

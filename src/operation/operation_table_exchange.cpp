// SPDX-License-Identifier: Apache-2.0
// What a table does for a gather, a scatter and an all-to-all: where each rank's result lies, and
// who is waited for.
#include "base/checked.h"
#include "operation/operation_table.h"

namespace braid {
namespace {

constexpr uint64_t kResultAlignment = 64;

}  // namespace

Status OperationTable::add_to_exchange(const OperationKey& key, Entry& entry,
                                       const Submission& submission) {
  if (entry.exchange == nullptr)
    entry.exchange = std::make_unique<NodeExchange>(*ring_, hash_, entry.signature);
  return check_splits(
      key, entry, entry.exchange->add(submission.local_rank, submission.splits, submission.input));
}

Status OperationTable::place_exchange(const OperationKey& key, Entry& entry, Operation operation) {
  CheckedNumber result_bytes = 0;
  for (uint32_t i = 0; i < entry.parts.size(); ++i) {
    entry.parts[i].result_start = result_bytes.value_or(0);
    result_bytes += checked_round_up(entry.exchange->result_bytes(i), kResultAlignment);
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
  std::vector<uint8_t*> results;
  for (const LocalPart& part : entry.parts)
    results.push_back(memory_->data() + entry.result_offset + part.result_start);
  operation.exchange = entry.exchange->place(results);
  entry.awaited = entry.exchange->given_to(ring_->routes->exchange.targets);
  return start_in_turn(entry, std::move(operation));
}

Status OperationTable::tell_exchange_sources(const Entry& entry, const OperationKey& key) {
  for (const uint32_t source : entry.exchange->expected_from(ring_->routes->exchange.sources))
    BRAID_RETURN_IF_ERROR(services_.send_ready(source, key, entry.exchange->said_to(source)));
  return Status::ok();
}

Status OperationTable::check_splits(const OperationKey& key, const Entry& entry,
                                    const std::string& disagreement) const {
  if (disagreement.empty()) return Status::ok();
  return make_status(StatusCode::Mismatch, "job '{}': ranks disagree about '{}' step {}, {}: {}",
                     job_name_, *entry.name, key.step, to_string(entry.signature), disagreement);
}

}  // namespace braid

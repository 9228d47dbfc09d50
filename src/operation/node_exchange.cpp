// SPDX-License-Identifier: Apache-2.0
#include "operation/node_exchange.h"

#include <fmt/ranges.h>

#include "engine/operation.h"

namespace braid {

NodeExchange::NodeExchange(const Ring& ring, const JobHash& hash, const Signature& signature)
    : hash_(hash),
      signature_(signature),
      self_(ring.self),
      exchange_(std::make_shared<Exchange>(ring, element_bytes(signature.dtype))),
      given_(ring.nodes),
      expected_(ring.nodes) {}

std::string NodeExchange::add(uint32_t local_rank, std::shared_ptr<const Splits> splits,
                              const uint8_t* input) {
  exchange_->add(local_rank, std::move(splits), input);
  if (!is_all_to_all()) return {};  // one count says it all, and the signature has it
  const auto local_ranks = static_cast<uint32_t>(exchange_->ranks_of(self_).size());
  for (uint32_t other = 0; other < local_ranks; ++other) {
    if (exchange_->splits_of(other) == nullptr) continue;
    std::string disagreement = local_disagreement(local_rank, other);
    if (disagreement.empty()) disagreement = local_disagreement(other, local_rank);
    if (!disagreement.empty()) return disagreement;
  }
  add_sums(local_rank);
  return {};
}

std::string NodeExchange::local_disagreement(uint32_t giver, uint32_t taker) const {
  const std::span<const uint32_t> ranks = exchange_->ranks_of(self_);
  const uint64_t given = exchange_->splits_of(giver)->to[ranks[taker]];
  const uint64_t expected = exchange_->splits_of(taker)->from[ranks[giver]];
  if (given == expected) return {};
  return fmt::format("rank {} gives {} elements to rank {}, which expects {}", ranks[giver], given,
                     ranks[taker], expected);
}

void NodeExchange::add_sums(uint32_t local_rank) {
  const Splits& splits = *exchange_->splits_of(local_rank);
  const uint32_t own = exchange_->ranks_of(self_)[local_rank];
  const auto add = [&](Sums& sums, uint32_t giver, uint32_t taker, uint64_t elements) {
    if (elements == 0) return;
    sums.elements += elements;
    sums.hashes += hash_.of(JobHash::Splits, {giver, taker, elements});
  };
  for (uint32_t place = 0; place < exchange_->nodes(); ++place) {
    if (place == self_) continue;  // compared rank by rank
    for (const uint32_t other : exchange_->ranks_of(place)) {
      add(given_[place], own, other, splits.to[other]);
      add(expected_[place], other, own, splits.from[other]);
    }
  }
}

uint64_t NodeExchange::result_bytes(uint32_t local_rank) const {
  return exchange_->splits_of(local_rank)->from.sum() * element_bytes(signature_.dtype);
}

std::shared_ptr<const Exchange> NodeExchange::place(std::span<uint8_t* const> results) {
  exchange_->place(results);
  return exchange_;
}

std::vector<uint32_t> NodeExchange::given_to(std::span<const uint32_t> places) const {
  std::vector<uint32_t> given;
  for (const uint32_t place : places) {
    if (is_all_to_all() || exchange_->bytes_to(place) != 0) given.push_back(place);
  }
  return given;
}

std::vector<uint32_t> NodeExchange::expected_from(std::span<const uint32_t> places) const {
  std::vector<uint32_t> expected;
  for (const uint32_t place : places) {
    if (is_all_to_all() || exchange_->bytes_from(place) != 0) expected.push_back(place);
  }
  return expected;
}

Signature NodeExchange::with_sums(const Sums& expected, const Sums& given) const {
  Signature signature = signature_;
  signature.count = expected.elements;
  signature.given = given.elements;
  signature.group = hash_.of(JobHash::Splits, {expected.hashes, given.hashes});
  return signature;
}

Signature NodeExchange::said_to(uint32_t place) const {
  return is_all_to_all() ? with_sums(expected_[place], given_[place]) : signature_;
}

std::string NodeExchange::disagreement_with(uint32_t place, const Signature& said) const {
  const Signature right = with_sums(given_[place], expected_[place]);
  if (said == right) return {};
  const auto named = [&](uint32_t node) {
    return fmt::format("rank {}", fmt::join(exchange_->ranks_of(node), " and "));
  };
  const std::string here = named(self_);
  const std::string there = named(place);
  const auto differs = [](const std::string& giver, uint64_t given, const std::string& taker,
                          uint64_t expected) {
    return fmt::format("{0} gives {2} elements to {1}, which expects {3}", giver, taker, given,
                       expected);
  };
  if (said.count != right.count) return differs(here, right.count, there, said.count);
  if (said.given != right.given) return differs(there, said.given, here, right.given);
  return fmt::format("{} and {} split their elements for each other in different ways", here,
                     there);
}

}  // namespace braid

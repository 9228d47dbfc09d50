// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/exchange.h"
#include "messages/signature.h"

namespace braid {

// One gather, scatter or all-to-all of this node's ranks, from the first submission on: what moves,
// and whether all agree about who gives how much to whom.
//
// Ranks of one node are compared as they come, each with those before it. Two nodes compare sums: a
// sum of keyed hashes stands for how they split what they give to each other, so both add to it
// while their ranks submit, in any order (MSet-Add-Hash: Clarke et al., "Incremental Multiset Hash
// Functions and Their Application to Memory Integrity Checking", ASIACRYPT 2003, section 5). A
// submission takes as many steps as the world has ranks.
class NodeExchange {
 public:
  // `signature`: what all ranks of the node ask for.
  NodeExchange(const Ring& ring, const JobHash& hash, const Signature& signature);

  // What a local rank gives and gets, and where its input lies. Returns who disagrees with whom, at
  // which the job ends; "": nobody.
  std::string add(uint32_t local_rank, std::shared_ptr<const Splits> splits, const uint8_t* input);
  // Bytes of that local rank's result.
  uint64_t result_bytes(uint32_t local_rank) const;
  // When all are there: where each one's result lies.
  std::shared_ptr<const Exchange> place(std::span<uint8_t* const> results);

  // Once placed:

  // The places in the ring, of these, that this node gives something to, or expects something from.
  // In an all-to-all nodes also agree that they give nothing: one of them may be wrong.
  std::vector<uint32_t> given_to(std::span<const uint32_t> places) const;
  std::vector<uint32_t> expected_from(std::span<const uint32_t> places) const;
  // What the node at `place` is told when it may send.
  Signature said_to(uint32_t place) const;
  // Who disagrees with whom, by what that node said of an all-to-all; "": nobody.
  std::string disagreement_with(uint32_t place, const Signature& said) const;

 private:
  // What one node gives to another.
  struct Sums {
    uint64_t elements = 0;
    uint64_t hashes = 0;
  };

  bool is_all_to_all() const { return signature_.collective == Collective::AllToAll; }
  std::string local_disagreement(uint32_t giver, uint32_t taker) const;
  void add_sums(uint32_t local_rank);
  Signature with_sums(const Sums& expected, const Sums& given) const;

  const JobHash hash_;
  const Signature signature_;
  const uint32_t self_;
  std::shared_ptr<Exchange> exchange_;
  std::vector<Sums> given_;     // by place
  std::vector<Sums> expected_;  // by place
};

}  // namespace braid

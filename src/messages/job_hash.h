// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "base/siphash.h"

namespace braid {

// What stands for names, sets, groups and signatures of one job between its nodes: the
// same on all of them. Trainers choose what is hashed, and two contents of one hash would be taken
// for one another; so the hash has a key that follows from the job's, which daemons alone know.
// Within a node contents are compared all the same. Any thread.
class JobHash {
 public:
  // In front of what is hashed, so that one kind never stands for another.
  enum Kind : uint64_t { Name = 1, Set, Group, Signature = 5, Splits, Message };

  explicit JobHash(uint64_t job_key);

  // Never 0.
  uint64_t of_name(std::string_view name) const;
  uint64_t of(Kind kind, std::initializer_list<uint64_t> words) const;

 private:
  SipKey key_;
};

}  // namespace braid

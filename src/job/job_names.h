// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

namespace braid {

// What new jobs of this node are called, so that each name means one job. Control loop only.
class JobNames {
 public:
  // An asker whose job has not come after this time gets no job of that name.
  static constexpr uint64_t kHeldMs = 60'000;
  // Beyond that the name that was given first is no longer held.
  static constexpr size_t kHeldMax = 1024;

  // `wanted`, or with a number behind it ("train-2") where a job in `taken` is called so, or
  // another asker's job will be. The name is held for the asker until its job comes.
  std::string give(std::string_view wanted, const std::unordered_set<std::string>& taken,
                   uint64_t now_ms);
  // A job of that name is here.
  void came(const std::string& name) { held_.erase(name); }

 private:
  void forget_late(uint64_t now_ms);

  std::unordered_map<std::string, uint64_t> held_;  // until when
};

}  // namespace braid

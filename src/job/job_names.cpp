// SPDX-License-Identifier: Apache-2.0
#include "job/job_names.h"

#include <algorithm>

#include <fmt/format.h>

#include "job/open_request.h"

namespace braid {

std::string JobNames::give(std::string_view wanted, const std::unordered_set<std::string>& taken,
                           uint64_t now_ms) {
  forget_late(now_ms);
  std::string name(wanted);
  for (uint32_t number = 2; taken.contains(name) || held_.contains(name); ++number) {
    const std::string part = fmt::format("-{}", number);
    name = fmt::format("{}{}", wanted.substr(0, OpenRequest::kJobNameBytesMax - part.size()), part);
  }
  held_[name] = now_ms + kHeldMs;
  return name;
}

void JobNames::forget_late(uint64_t now_ms) {
  std::erase_if(held_, [now_ms](const auto& name) { return name.second <= now_ms; });
  if (held_.size() < kHeldMax) return;
  held_.erase(std::ranges::min_element(held_, {}, [](const auto& name) { return name.second; }));
}

}  // namespace braid

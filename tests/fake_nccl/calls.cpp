// SPDX-License-Identifier: Apache-2.0
#include "calls.h"

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <utility>

#include <unistd.h>

namespace fake_nccl {
namespace {

constexpr std::array kNames = {
#define FAKE_NCCL_NAME(Returned, name, ...) "nccl" #name,
    FAKE_NCCL_FUNCTIONS(FAKE_NCCL_NAME)
#undef FAKE_NCCL_NAME
};

struct Record {
  std::mutex mutex;
  std::map<std::pair<int, std::size_t>, std::uint64_t> calls;  // by thread and function
  std::array<std::uint64_t, kNames.size()> all{};
  std::string last_refusal;
};

Record& record() {
  static Record* const kRecord = new Record;
  return *kRecord;
}

}  // namespace

bool is_function(std::string_view name) { return std::ranges::find(kNames, name) != kNames.end(); }

std::optional<NcclResult> count_call(Function function) {
  const auto at = static_cast<std::size_t>(function);
  std::uint64_t number = 0;
  {
    const std::scoped_lock lock(record().mutex);
    ++record().calls[{gettid(), at}];
    number = ++record().all[at];
  }
  const auto& failure = settings().failure;
  if (!failure || failure->function != kNames[at] || failure->call != number) return std::nullopt;
  return refuse(failure->result, "FAKE_NCCL_FAIL");
}

NcclResult refuse(NcclResult result, std::string text) {
  const std::scoped_lock lock(record().mutex);
  record().last_refusal = std::move(text);
  return result;
}

std::string last_refusal() {
  const std::scoped_lock lock(record().mutex);
  return record().last_refusal;
}

void for_each_call(const EachCall& each) {
  const std::scoped_lock lock(record().mutex);
  for (const auto& [key, calls] : record().calls) each(key.first, kNames[key.second], calls);
}

}  // namespace fake_nccl

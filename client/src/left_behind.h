// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace braid::client {

// Keeps what something may still use until the process ends, where tools that look for leaks find
// it. Any thread.
template <typename Type>
void leave_behind(std::unique_ptr<Type> object) {
  static auto* const mutex = new std::mutex();
  static auto* const objects = new std::vector<std::unique_ptr<Type>>();
  const std::lock_guard lock(*mutex);
  objects->push_back(std::move(object));
}

}  // namespace braid::client

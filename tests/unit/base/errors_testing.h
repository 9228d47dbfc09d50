// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <initializer_list>
#include <string_view>

#include <gtest/gtest.h>

#include "base/status.h"

namespace braid::testing {

using WantedNames = std::initializer_list<std::string_view>;

// Whether a text for people names what it must, in this order: keys, ranks, nodes, tensors,
// numbers. Its other words may change.
inline ::testing::AssertionResult names(std::string_view text, WantedNames wanted) {
  size_t from = 0;
  for (const std::string_view name : wanted) {
    const size_t at = text.find(name, from);
    if (at == std::string_view::npos)
      return ::testing::AssertionFailure()
             << "\"" << name << "\" is not where it should be: " << text;
    from = at + name.size();
  }
  return ::testing::AssertionSuccess();
}

inline ::testing::AssertionResult is_error(const Status& status, StatusCode code,
                                           WantedNames wanted = {}) {
  if (status.code() != code)
    return ::testing::AssertionFailure()
           << status.to_string() << " is not " << status_code_name(code);
  return names(status.message(), wanted);
}

template <typename T>
::testing::AssertionResult is_error(const Result<T>& result, StatusCode code,
                                    WantedNames wanted = {}) {
  return is_error(result.status(), code, wanted);
}

}  // namespace braid::testing

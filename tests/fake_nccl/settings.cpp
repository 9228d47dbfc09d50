// SPDX-License-Identifier: Apache-2.0
#include "settings.h"

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <string_view>

#include <unistd.h>

#include "calls.h"

namespace fake_nccl {
namespace {

constexpr std::string_view kPrefix = "FAKE_NCCL_";
constexpr auto kMostCalls = std::numeric_limits<std::uint64_t>::max();

/// One variable, and what a right value of it is.
struct Variable {
  std::string_view name, value;

  [[noreturn]] void refuse(const char* right) const {
    std::fprintf(stderr, "fake NCCL: %s%s='%s': right is %s\n", kPrefix.data(),
                 std::string(name).c_str(), std::string(value).c_str(), right);
    std::abort();
  }

  std::uint64_t number(std::string_view text, std::uint64_t least, std::uint64_t most,
                       const char* right) const {
    std::uint64_t result = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), result);
    if (error != std::errc() || end != text.data() + text.size() || result < least ||
        result > most) {
      refuse(right);
    }
    return result;
  }

  NcclResult result(std::string_view text, const char* right) const {
    return static_cast<NcclResult>(number(text, 1, 7, right));
  }

  CallFailure failure() const {
    constexpr const char* kRight = "FUNCTION:CALL or FUNCTION:CALL:RESULT, as in ncclGroupEnd:2:1";
    const std::size_t first = value.find(':');
    if (first == std::string_view::npos || !is_function(value.substr(0, first))) refuse(kRight);
    const std::string_view rest = value.substr(first + 1);
    const std::size_t second = rest.find(':');
    return {std::string(value.substr(0, first)),
            number(rest.substr(0, second), 1, kMostCalls, kRight),
            second == std::string_view::npos ? NcclResult::InternalError
                                             : result(rest.substr(second + 1), kRight)};
  }
};

void read_variable(const Variable& one, Settings& to) {
  if (one.name == "HANG") {
    to.hang = one.number(one.value, 1, kMostCalls, "the number of a collective, from 1");
  } else if (one.name == "FAIL") {
    to.failure = one.failure();
  } else if (one.name == "ASYNC_ERROR") {
    constexpr const char* kRight = "NUMBER:RESULT, as in 3:6";
    const std::size_t colon = one.value.find(':');
    if (colon == std::string_view::npos) one.refuse(kRight);
    to.async_error_from = one.number(one.value.substr(0, colon), 1, kMostCalls, kRight);
    to.async_error = one.result(one.value.substr(colon + 1), kRight);
  } else if (one.name == "INIT_HANG") {
    to.init_hangs = one.number(one.value, 0, 1, "0 or 1") == 1;
  } else if (one.name == "INIT_SECONDS") {
    to.init_seconds = one.number(one.value, 1, 3600, "1 to 3600");
  } else if (one.name == "VERSION") {
    to.version = static_cast<int>(one.number(one.value, 20900, 99999, "20900 to 99999"));
  } else {
    one.refuse("one of the settings in tests/fake_nccl/settings.h");
  }
}

Settings read_variables() {
  Settings result;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    const std::size_t equals = text.find('=');
    if (text.starts_with(kPrefix) && equals != std::string_view::npos) {
      read_variable({text.substr(kPrefix.size(), equals - kPrefix.size()), text.substr(equals + 1)},
                    result);
    }
  }
  return result;
}

}  // namespace

const Settings& settings() {
  static const Settings* const kSettings =
      new Settings(read_variables());  // kernels use it until the very end
  return *kSettings;
}

}  // namespace fake_nccl

// SPDX-License-Identifier: Apache-2.0
#include "functions.h"

#include <algorithm>
#include <array>

namespace fake_cuda {
namespace {

constexpr std::array kRows = {
#define FAKE_CUDA_ROW(name, suffix, version) FunctionRow{"cu" #name, "cu" #name #suffix, version},
    FAKE_CUDA_FUNCTIONS(FAKE_CUDA_ROW)
#undef FAKE_CUDA_ROW
};

}  // namespace

std::span<const FunctionRow> function_rows() { return kRows; }

bool is_function(std::string_view name) {
  return std::ranges::any_of(kRows, [&](const FunctionRow& row) { return row.is_called(name); });
}

}  // namespace fake_cuda

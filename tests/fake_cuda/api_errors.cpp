// SPDX-License-Identifier: Apache-2.0
// Names and texts of errors.
#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include <cuda.h>

#include "calls.h"

using namespace fake_cuda;  // NOLINT: this file is only the API

namespace {

struct Row {
  int error;
  const char* name;
};

constexpr std::array kRows = {
    Row{0, "CUDA_SUCCESS"},
    Row{1, "CUDA_ERROR_INVALID_VALUE"},
    Row{2, "CUDA_ERROR_OUT_OF_MEMORY"},
    Row{3, "CUDA_ERROR_NOT_INITIALIZED"},
    Row{4, "CUDA_ERROR_DEINITIALIZED"},
    Row{5, "CUDA_ERROR_PROFILER_DISABLED"},
    Row{6, "CUDA_ERROR_PROFILER_NOT_INITIALIZED"},
    Row{7, "CUDA_ERROR_PROFILER_ALREADY_STARTED"},
    Row{8, "CUDA_ERROR_PROFILER_ALREADY_STOPPED"},
    Row{34, "CUDA_ERROR_STUB_LIBRARY"},
    Row{36, "CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER"},
    Row{46, "CUDA_ERROR_DEVICE_UNAVAILABLE"},
    Row{100, "CUDA_ERROR_NO_DEVICE"},
    Row{101, "CUDA_ERROR_INVALID_DEVICE"},
    Row{102, "CUDA_ERROR_DEVICE_NOT_LICENSED"},
    Row{200, "CUDA_ERROR_INVALID_IMAGE"},
    Row{201, "CUDA_ERROR_INVALID_CONTEXT"},
    Row{202, "CUDA_ERROR_CONTEXT_ALREADY_CURRENT"},
    Row{205, "CUDA_ERROR_MAP_FAILED"},
    Row{206, "CUDA_ERROR_UNMAP_FAILED"},
    Row{207, "CUDA_ERROR_ARRAY_IS_MAPPED"},
    Row{208, "CUDA_ERROR_ALREADY_MAPPED"},
    Row{209, "CUDA_ERROR_NO_BINARY_FOR_GPU"},
    Row{210, "CUDA_ERROR_ALREADY_ACQUIRED"},
    Row{211, "CUDA_ERROR_NOT_MAPPED"},
    Row{212, "CUDA_ERROR_NOT_MAPPED_AS_ARRAY"},
    Row{213, "CUDA_ERROR_NOT_MAPPED_AS_POINTER"},
    Row{214, "CUDA_ERROR_ECC_UNCORRECTABLE"},
    Row{215, "CUDA_ERROR_UNSUPPORTED_LIMIT"},
    Row{216, "CUDA_ERROR_CONTEXT_ALREADY_IN_USE"},
    Row{217, "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED"},
    Row{218, "CUDA_ERROR_INVALID_PTX"},
    Row{219, "CUDA_ERROR_INVALID_GRAPHICS_CONTEXT"},
    Row{220, "CUDA_ERROR_NVLINK_UNCORRECTABLE"},
    Row{221, "CUDA_ERROR_JIT_COMPILER_NOT_FOUND"},
    Row{222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"},
    Row{223, "CUDA_ERROR_JIT_COMPILATION_DISABLED"},
    Row{224, "CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY"},
    Row{225, "CUDA_ERROR_UNSUPPORTED_DEVSIDE_SYNC"},
    Row{300, "CUDA_ERROR_INVALID_SOURCE"},
    Row{301, "CUDA_ERROR_FILE_NOT_FOUND"},
    Row{302, "CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND"},
    Row{303, "CUDA_ERROR_SHARED_OBJECT_INIT_FAILED"},
    Row{304, "CUDA_ERROR_OPERATING_SYSTEM"},
    Row{400, "CUDA_ERROR_INVALID_HANDLE"},
    Row{401, "CUDA_ERROR_ILLEGAL_STATE"},
    Row{402, "CUDA_ERROR_LOSSY_QUERY"},
    Row{500, "CUDA_ERROR_NOT_FOUND"},
    Row{600, "CUDA_ERROR_NOT_READY"},
    Row{700, "CUDA_ERROR_ILLEGAL_ADDRESS"},
    Row{701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"},
    Row{702, "CUDA_ERROR_LAUNCH_TIMEOUT"},
    Row{703, "CUDA_ERROR_LAUNCH_INCOMPATIBLE_TEXTURING"},
    Row{704, "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED"},
    Row{705, "CUDA_ERROR_PEER_ACCESS_NOT_ENABLED"},
    Row{708, "CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE"},
    Row{709, "CUDA_ERROR_CONTEXT_IS_DESTROYED"},
    Row{710, "CUDA_ERROR_ASSERT"},
    Row{711, "CUDA_ERROR_TOO_MANY_PEERS"},
    Row{712, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED"},
    Row{713, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED"},
    Row{714, "CUDA_ERROR_HARDWARE_STACK_ERROR"},
    Row{715, "CUDA_ERROR_ILLEGAL_INSTRUCTION"},
    Row{716, "CUDA_ERROR_MISALIGNED_ADDRESS"},
    Row{717, "CUDA_ERROR_INVALID_ADDRESS_SPACE"},
    Row{718, "CUDA_ERROR_INVALID_PC"},
    Row{719, "CUDA_ERROR_LAUNCH_FAILED"},
    Row{720, "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE"},
    Row{800, "CUDA_ERROR_NOT_PERMITTED"},
    Row{801, "CUDA_ERROR_NOT_SUPPORTED"},
    Row{802, "CUDA_ERROR_SYSTEM_NOT_READY"},
    Row{803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"},
    Row{804, "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE"},
    Row{805, "CUDA_ERROR_MPS_CONNECTION_FAILED"},
    Row{806, "CUDA_ERROR_MPS_RPC_FAILURE"},
    Row{807, "CUDA_ERROR_MPS_SERVER_NOT_READY"},
    Row{808, "CUDA_ERROR_MPS_MAX_CLIENTS_REACHED"},
    Row{809, "CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED"},
    Row{810, "CUDA_ERROR_MPS_CLIENT_TERMINATED"},
    Row{811, "CUDA_ERROR_CDP_NOT_SUPPORTED"},
    Row{812, "CUDA_ERROR_CDP_VERSION_MISMATCH"},
    Row{900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"},
    Row{901, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"},
    Row{902, "CUDA_ERROR_STREAM_CAPTURE_MERGE"},
    Row{903, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED"},
    Row{904, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED"},
    Row{905, "CUDA_ERROR_STREAM_CAPTURE_ISOLATION"},
    Row{906, "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT"},
    Row{907, "CUDA_ERROR_CAPTURED_EVENT"},
    Row{908, "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD"},
    Row{909, "CUDA_ERROR_TIMEOUT"},
    Row{910, "CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE"},
    Row{911, "CUDA_ERROR_EXTERNAL_DEVICE"},
    Row{912, "CUDA_ERROR_INVALID_CLUSTER_SIZE"},
    Row{999, "CUDA_ERROR_UNKNOWN"},
};

const Row* row_of(CUresult error) {
  const auto row = std::ranges::find(kRows, static_cast<int>(error), &Row::error);
  return row == kRows.end() ? nullptr : &*row;
}

/// "invalid value" of CUDA_ERROR_INVALID_VALUE.
std::vector<std::string> make_texts() {
  std::vector<std::string> texts;
  for (const Row& row : kRows) {
    std::string_view name = row.name;
    name.remove_prefix(name.starts_with("CUDA_ERROR_") ? 11 : 5);
    std::string& text = texts.emplace_back(name);
    std::ranges::transform(text, text.begin(),
                           [](char c) { return c == '_' ? ' ' : static_cast<char>(c | 0x20); });
  }
  return texts;
}

}  // namespace

extern "C" {

CUresult CUDAAPI cuGetErrorName(CUresult error, const char** name) {
  const Call call(Function::kGetErrorName, Needs::kNothing);
  if (call.is_refused()) return call.refusal();
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Row* const row = row_of(error);
  *name = row == nullptr ? nullptr : row->name;
  return row == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult CUDAAPI cuGetErrorString(CUresult error, const char** text) {
  static const auto* const kTexts = new std::vector<std::string>(make_texts());
  const Call call(Function::kGetErrorString, Needs::kNothing);
  if (call.is_refused()) return call.refusal();
  if (text == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Row* const row = row_of(error);
  *text =
      row == nullptr ? nullptr : (*kTexts)[static_cast<std::size_t>(row - kRows.data())].c_str();
  return row == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

}  // extern "C"

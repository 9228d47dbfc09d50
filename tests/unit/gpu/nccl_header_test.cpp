// SPDX-License-Identifier: Apache-2.0
// What braid declares of NCCL, against NCCL's own header.
#include <gtest/gtest.h>

#include "gpu/nccl.h"

// nccl.h includes cuda_runtime.h.
#if __has_include(<nccl.h>) && __has_include(<cuda_runtime.h>)
#include <type_traits>

#include <nccl.h>

namespace braid {
namespace {

// Pointers and enums are passed alike, and structs that are laid out alike.
template <typename Own, typename Theirs>
constexpr bool is_passed_like_nccl() {
  if constexpr (std::is_pointer_v<Own> && std::is_pointer_v<Theirs>) {
    return true;
  } else if constexpr (std::is_class_v<Own> && std::is_class_v<Theirs>) {
    return std::is_same_v<Own, NcclUniqueId> && std::is_same_v<Theirs, ncclUniqueId>;
  } else {
    return sizeof(Own) == sizeof(Theirs) && std::is_enum_v<Own> == std::is_enum_v<Theirs> &&
           (std::is_enum_v<Own> || std::is_same_v<Own, Theirs>);
  }
}
template <typename Own, typename Theirs>
struct LikeNccl : std::false_type {};
template <typename OwnResult, typename... Own, typename TheirResult, typename... Theirs>
requires(sizeof...(Own) ==
         sizeof...(Theirs)) struct LikeNccl<OwnResult (*)(Own...), TheirResult(Theirs...)>
    : std::bool_constant<is_passed_like_nccl<OwnResult, TheirResult>() &&
                         (is_passed_like_nccl<Own, Theirs>() && ...)> {
};
#define BRAID_LIKE_NCCL(Returned, name, ...) \
  static_assert(LikeNccl<decltype(Nccl::name), decltype(nccl##name)>::value, "nccl" #name);
BRAID_NCCL_FUNCTIONS(BRAID_LIKE_NCCL)
#undef BRAID_LIKE_NCCL
static_assert(LikeNccl<decltype(Nccl::GetLastError), decltype(ncclGetLastError)>::value);

static_assert(sizeof(NcclUniqueId) == sizeof(ncclUniqueId) &&
              alignof(NcclUniqueId) == alignof(ncclUniqueId));
// The streams of both are the same handles.
static_assert(std::is_same_v<cudaStream_t, CUstream>);

template <typename Own, typename Theirs>
constexpr bool is_number(Own own, Theirs theirs) {
  return static_cast<int>(own) == static_cast<int>(theirs);
}
static_assert(is_number(NcclResult::Success, ncclSuccess));
static_assert(is_number(NcclResult::UnhandledCudaError, ncclUnhandledCudaError));
static_assert(is_number(NcclResult::SystemError, ncclSystemError));
static_assert(is_number(NcclResult::InternalError, ncclInternalError));
static_assert(is_number(NcclResult::InvalidArgument, ncclInvalidArgument));
static_assert(is_number(NcclResult::InvalidUsage, ncclInvalidUsage));
static_assert(is_number(NcclResult::RemoteError, ncclRemoteError));
static_assert(is_number(NcclResult::InProgress, ncclInProgress));
static_assert(is_number(NcclType::Int8, ncclInt8));
static_assert(is_number(NcclType::Uint8, ncclUint8));
static_assert(is_number(NcclType::Int32, ncclInt32));
static_assert(is_number(NcclType::Uint32, ncclUint32));
static_assert(is_number(NcclType::Int64, ncclInt64));
static_assert(is_number(NcclType::Uint64, ncclUint64));
static_assert(is_number(NcclType::Float16, ncclFloat16));
static_assert(is_number(NcclType::Float32, ncclFloat32));
static_assert(is_number(NcclType::Float64, ncclFloat64));
static_assert(is_number(NcclType::Bfloat16, ncclBfloat16));
static_assert(is_number(NcclReduction::Sum, ncclSum));
static_assert(is_number(NcclReduction::Product, ncclProd));
static_assert(is_number(NcclReduction::Max, ncclMax));
static_assert(is_number(NcclReduction::Min, ncclMin));
static_assert(is_number(NcclReduction::Average, ncclAvg));
static_assert(kNcclLeastVersion == NCCL_VERSION(2, 10, 0));

}  // namespace
}  // namespace braid
#define BRAID_COMPARED_WITH_NCCL_H
#endif

// Compiled is tested; this says where it was not.
TEST(NcclHeader, IsWhatTheDeclarationsWereComparedWith) {
#ifndef BRAID_COMPARED_WITH_NCCL_H
  GTEST_SKIP() << "there is no nccl.h, or no cuda_runtime.h, here (/usr/local/cuda/include)";
#endif
}

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace braid {

// These numbers are braid_dtype, braid_reduction and braid_collective of braid.h, and cross every
// boundary.
enum class DataType : uint8_t { Float32 = 0, Float64, Float16, BFloat16, Int32, Int64, Uint8 };
enum class Reduction : uint8_t { Sum = 0, Average, Min, Max, Product };
enum class Collective : uint8_t {
  AllReduce = 0,
  Broadcast,
  AllGather,
  ReduceScatter,
  Barrier,
  Gather,
  Scatter,
  AllToAll
};

// What a chunk carries: said by its header. Plain: elements. Else what a codec has made of a part,
// which is what one node gives, or of the sum of several parts.
enum class Encoding : uint8_t { Plain = 0, Part, Sum };
// What the owner of a segment makes of its sum before the others get it. Plain: what the reduction
// asks for, which is an average's division. Optimizer: what update.h says.
enum class OwnerStepKind : uint8_t { Plain = 0, Optimizer };

inline constexpr uint8_t kDataTypeCount = 7;
inline constexpr uint8_t kReductionCount = 5;
inline constexpr uint8_t kCollectiveCount = 8;
inline constexpr uint8_t kEncodingCount = 3;
inline constexpr uint8_t kOwnerStepKindCount = 2;

// Those by which each rank gives every rank bytes of its own, of sizes that may differ. Nothing is
// added up.
constexpr bool is_exchange(Collective collective) {
  return collective == Collective::Gather || collective == Collective::Scatter ||
         collective == Collective::AllToAll;
}

constexpr bool has_root(Collective collective) {
  return collective == Collective::Broadcast || collective == Collective::Gather ||
         collective == Collective::Scatter;
}

// The bytes of one tensor, and of one rank's part in one operation. More can be mapped by no
// process (x86-64 gives it 2^47 bytes of addresses, arm64 2^48). Sums and products of such numbers,
// over the ranks of a node or the slots of an optimizer, stay far below 2^64.
inline constexpr uint64_t kTensorBytesMax = uint64_t{1} << 48;
// All planned tensors of one registration together: what is kept of a set is in one piece.
inline constexpr uint64_t kSetBytesMax = kTensorBytesMax;

// The number of a step. A few more than the last one must still be numbers of steps.
inline constexpr uint64_t kStepNumberMax = uint64_t{1} << 62;

// A job's share of a link, in proportion to those of the other jobs there: 1 to so much.
inline constexpr uint32_t kJobWeightMax = 100;

constexpr bool is_float(DataType dtype) {
  return dtype == DataType::Float32 || dtype == DataType::Float64 || dtype == DataType::Float16 ||
         dtype == DataType::BFloat16;
}

constexpr size_t element_bytes(DataType dtype) {
  switch (dtype) {
    case DataType::Float32:
    case DataType::Int32:
      return 4;
    case DataType::Float64:
    case DataType::Int64:
      return 8;
    case DataType::Float16:
    case DataType::BFloat16:
      return 2;
    case DataType::Uint8:
      return 1;
  }
  return 0;
}

constexpr const char* to_string(DataType dtype) {
  switch (dtype) {
    case DataType::Float32:
      return "float32";
    case DataType::Float64:
      return "float64";
    case DataType::Float16:
      return "float16";
    case DataType::BFloat16:
      return "bfloat16";
    case DataType::Int32:
      return "int32";
    case DataType::Int64:
      return "int64";
    case DataType::Uint8:
      return "uint8";
  }
  return "?";
}

constexpr const char* to_string(Reduction reduction) {
  switch (reduction) {
    case Reduction::Sum:
      return "sum";
    case Reduction::Average:
      return "average";
    case Reduction::Min:
      return "min";
    case Reduction::Max:
      return "max";
    case Reduction::Product:
      return "product";
  }
  return "?";
}

constexpr const char* to_string(Collective collective) {
  switch (collective) {
    case Collective::AllReduce:
      return "all-reduce";
    case Collective::Broadcast:
      return "broadcast";
    case Collective::AllGather:
      return "all-gather";
    case Collective::ReduceScatter:
      return "reduce-scatter";
    case Collective::Barrier:
      return "barrier";
    case Collective::Gather:
      return "gather";
    case Collective::Scatter:
      return "scatter";
    case Collective::AllToAll:
      return "all-to-all";
  }
  return "?";
}

constexpr const char* to_string(OwnerStepKind kind) {
  switch (kind) {
    case OwnerStepKind::Plain:
      return "plain";
    case OwnerStepKind::Optimizer:
      return "optimizer";
  }
  return "?";
}

}  // namespace braid

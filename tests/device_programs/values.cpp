// SPDX-License-Identifier: Apache-2.0
#include "values.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace braid::device_programs {
namespace {

template <typename Type>
void put(uint64_t value, uint8_t* to) {
  const auto typed = static_cast<Type>(value);
  std::memcpy(to, &typed, sizeof(typed));
}

void put_bfloat16(uint64_t value, uint8_t* to) {
  const auto bits = static_cast<uint16_t>(std::bit_cast<uint32_t>(static_cast<float>(value)) >> 16);
  std::memcpy(to, &bits, sizeof(bits));
}

uint32_t size_of(const Program& program, size_t step) {
  return static_cast<uint32_t>(program.groups[program.steps[step].group].size());
}

// What the ranks' elements at `index` give together.
uint64_t reduced(const Program& program, size_t step, uint64_t index) {
  const uint32_t size = size_of(program, step);
  const braid_reduction reduction = program.steps[step].reduction;
  uint64_t all = value_of(program, step, 0, index);
  for (uint32_t rank = 1; rank < size; ++rank) {
    const uint64_t value = value_of(program, step, rank, index);
    if (reduction == BRAID_SUM || reduction == BRAID_AVERAGE) all += value;
    if (reduction == BRAID_MIN) all = std::min(all, value);
    if (reduction == BRAID_MAX) all = std::max(all, value);
    if (reduction == BRAID_PRODUCT) all *= value;
  }
  return reduction == BRAID_AVERAGE ? all / size : all;
}

// Where the part of `from` for `to` begins in what it gives.
uint64_t begin_of_part(const Step& step, uint32_t from, uint32_t to) {
  if (!step.has_splits) return to * step.count;
  uint64_t begin = 0;
  for (uint32_t rank = 0; rank < to; ++rank) begin += split_of(step, from, rank);
  return begin;
}

uint64_t part_of(const Step& step, uint32_t from, uint32_t to) {
  return step.has_splits ? split_of(step, from, to) : step.count;
}

}  // namespace

size_t bytes_of(braid_dtype dtype) {
  constexpr size_t kBytes[] = {4, 8, 2, 2, 4, 8, 1};
  return kBytes[dtype];
}

uint64_t value_of(const Program& program, size_t step, uint32_t rank, uint64_t index) {
  const uint64_t mixed =
      (program.seed + step * 7919 + rank * 104'729 + index * 31) * 0x9E3779B97F4A7C15;
  const uint64_t value = 1 + (mixed >> 33) % 3;
  return program.steps[step].reduction == BRAID_AVERAGE ? value * size_of(program, step) : value;
}

void encode(uint64_t value, braid_dtype dtype, uint8_t* to) {
  switch (dtype) {
    case BRAID_FLOAT32:
      return put<float>(value, to);
    case BRAID_FLOAT64:
      return put<double>(value, to);
    case BRAID_FLOAT16:
      return put<_Float16>(value, to);
    case BRAID_BFLOAT16:
      return put_bfloat16(value, to);
    case BRAID_INT32:
      return put<int32_t>(value, to);
    case BRAID_INT64:
      return put<int64_t>(value, to);
    case BRAID_UINT8:
      return put<uint8_t>(value, to);
  }
}

uint64_t input_count(const Program& program, size_t index, uint32_t rank) {
  const Step& step = program.steps[index];
  const uint32_t size = size_of(program, index);
  const bool is_root = rank == step.root;
  switch (step.collective) {
    case BRAID_BARRIER:
      return 0;
    case BRAID_BROADCAST:
      return is_root ? step.count : 0;
    case BRAID_SCATTER:
      return is_root ? step.count * size : 0;
    case BRAID_REDUCE_SCATTER:
      return step.count * size;
    case BRAID_ALL_TO_ALL:
      return begin_of_part(step, rank, size);
    case BRAID_ALL_REDUCE:
    case BRAID_ALL_GATHER:
    case BRAID_GATHER:
      return step.count;
  }
  return 0;
}

std::vector<uint8_t> input_of(const Program& program, size_t index, uint32_t rank) {
  const braid_dtype dtype = program.steps[index].dtype;
  const size_t bytes = bytes_of(dtype);
  std::vector<uint8_t> input(input_count(program, index, rank) * bytes);
  for (uint64_t i = 0; i * bytes < input.size(); ++i)
    encode(value_of(program, index, rank, i), dtype, input.data() + i * bytes);
  return input;
}

std::vector<uint8_t> result_of(const Program& program, size_t index, uint32_t rank) {
  const Step& step = program.steps[index];
  const uint32_t size = size_of(program, index);
  const size_t bytes = bytes_of(step.dtype);
  std::vector<uint8_t> result;
  const auto add = [&](uint64_t count, auto&& value) {
    const size_t before = result.size();
    result.resize(before + count * bytes);
    for (uint64_t i = 0; i < count; ++i)
      encode(value(i), step.dtype, result.data() + before + i * bytes);
  };
  const auto add_from = [&](uint32_t from, uint64_t begin, uint64_t count) {
    add(count, [&](uint64_t i) { return value_of(program, index, from, begin + i); });
  };
  switch (step.collective) {
    case BRAID_BARRIER:
      break;
    case BRAID_ALL_REDUCE:
      add(step.count, [&](uint64_t i) { return reduced(program, index, i); });
      break;
    case BRAID_REDUCE_SCATTER:
      add(step.count, [&](uint64_t i) { return reduced(program, index, rank * step.count + i); });
      break;
    case BRAID_BROADCAST:
      add_from(step.root, 0, step.count);
      break;
    case BRAID_SCATTER:
      add_from(step.root, rank * step.count, step.count);
      break;
    case BRAID_GATHER:
      if (rank != step.root) break;
      [[fallthrough]];
    case BRAID_ALL_GATHER:
      for (uint32_t from = 0; from < size; ++from) add_from(from, 0, step.count);
      break;
    case BRAID_ALL_TO_ALL:
      for (uint32_t from = 0; from < size; ++from)
        add_from(from, begin_of_part(step, from, rank), part_of(step, from, rank));
      break;
  }
  return result;
}

}  // namespace braid::device_programs

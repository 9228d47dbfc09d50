// SPDX-License-Identifier: Apache-2.0
#include "bench/updates.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <functional>
#include <limits>
#include <vector>

#include "advise/measure_codec.h"
#include "bench/vectors.h"
#include "update/shard_state.h"
#include "update/state_bits.h"
#include "update/update_kernels.h"

namespace braid::bench {
namespace {

struct NamedUpdate {
  const char* name;
  UpdateStep update;
};

// What people train with, in the middle of a training.
std::vector<NamedUpdate> named_updates() {
  UpdateStep sgd;
  sgd.count = 100;
  sgd.learning_rate = 1e-6;
  sgd.weight_decay = 1e-4;
  UpdateStep momentum = sgd;
  momentum.momentum = 0.9;
  UpdateStep adamw = momentum;
  adamw.optimizer = Optimizer::Adam;
  adamw.flags = kUpdateDecoupledDecay;
  adamw.second_momentum = 0.999;
  adamw.epsilon = 1e-8;
  UpdateStep lion = adamw;
  lion.optimizer = Optimizer::Lion;
  lion.second_momentum = 0.99;
  lion.epsilon = 0;
  return {{"sgd", sgd}, {"sgd momentum", momentum}, {"adamw", adamw}, {"lion", lion}};
}

// One node's shard of a whole set, and what has come for it.
class ShardBench {
 public:
  ShardBench(std::shared_ptr<ShardState> state, DataType dtype, uint64_t elements)
      : state_(std::move(state)),
        dtype_(dtype),
        elements_(elements),
        sums_(elements * element_bytes(dtype)) {
    // Numbers of about a half, of each type, as weights and as gradients: nothing that is computed
    // of them is so small that processors slow down.
    for (size_t i = 1; i < sums_.size(); i += 2) sums_[i] = 0x38;
    load_values(dtype, StateBits::Rounded, sums_.data(), elements, slot(StateSlot::Weights));
    load_values(dtype, StateBits::Rounded, sums_.data(), elements, slot(StateSlot::First));
    load_values(dtype, StateBits::Rounded, sums_.data(), elements, slot(StateSlot::Second));
  }

  void update(const UpdateStep& update) {
    if (state_->is_float64()) {
      update_doubles(update, 1, elements_, values<double>(update), sums_.data());
    } else {
      update_floats(dtype_, update, 1, elements_, values<float>(update), sums_.data());
    }
  }

 private:
  uint8_t* slot(StateSlot which) {
    return state_->is_float64() ? reinterpret_cast<uint8_t*>(values_in<double>(which))
                                : reinterpret_cast<uint8_t*>(values_in<float>(which));
  }

  template <class Value>
  Value* values_in(StateSlot which) {
    return state_->values<Value>(which, 0, elements_).data();
  }

  template <class Value>
  ShardValues<Value> values(const UpdateStep& update) {
    ShardValues<Value> values;
    values.weights = values_in<Value>(StateSlot::Weights);
    if (update.slots() > 1) values.first = values_in<Value>(StateSlot::First);
    if (update.slots() > 2) values.second = values_in<Value>(StateSlot::Second);
    return values;
  }

  const std::shared_ptr<ShardState> state_;
  const DataType dtype_;
  const uint64_t elements_;
  std::vector<uint8_t> sums_;
};

// The fastest of several passes, in turn with the copy: so both meet what others take of memory.
void measure_in_turn(uint32_t repeats, UpdateTimes& times, const std::function<void()>& update,
                     const std::function<void()>& copy) {
  const auto seconds_of = [](const std::function<void()>& pass) {
    const double begin = thread_cpu_clock();
    pass();
    return thread_cpu_clock() - begin;
  };
  update();  // meets new memory
  copy();
  times.update = times.copy = std::numeric_limits<double>::infinity();
  for (uint32_t i = 0; i < repeats; ++i) {
    times.update = std::min(times.update, seconds_of(update));
    times.copy = std::min(times.copy, seconds_of(copy));
  }
}

void print(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

}  // namespace

Status run_updates(const UpdatesOptions& options) {
  if (options.bytes == 0 || options.bytes % sizeof(double) != 0) {
    return make_status(StatusCode::InvalidArgument,
                       "--bytes: {} is not a multiple of the 8 bytes of a float64, above 0",
                       options.bytes);
  }
  BRAID_RETURN_IF_ERROR(choose_vectors(options.vectors));
  if (!options.as_json) print(updates_heading(options.bytes));
  for (const DataType dtype :
       {DataType::Float32, DataType::Float64, DataType::Float16, DataType::BFloat16}) {
    const uint64_t value_bytes = dtype == DataType::Float64 ? sizeof(double) : sizeof(float);
    const uint64_t elements = options.bytes / value_bytes;
    auto state = ShardState::create({elements, elements, 1, 0}, kStateSlotCount, dtype);
    if (!state) return state.status();
    ShardBench shard(*state, dtype, elements);
    for (const NamedUpdate& one : named_updates()) {
      UpdateTimes times;
      times.optimizer = one.name;
      times.dtype = dtype;
      times.elements = elements;
      times.bytes = elements * update_bytes(one.update, dtype);
      const std::vector<uint8_t> from(times.bytes / 2, 1);
      std::vector<uint8_t> to(from.size());
      measure_in_turn(
          options.repeats, times, [&] { shard.update(one.update); },
          [&] { std::memcpy(to.data(), from.data(), from.size()); });
      print(options.as_json ? updates_json(times) : updates_row(times));
    }
  }
  return Status::ok();
}

}  // namespace braid::bench

// SPDX-License-Identifier: Apache-2.0
#include "update/update_step.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string_view>

#include "base/hash.h"

namespace braid {
namespace {

// Which optimizers have a number.
enum Optimizers : uint8_t { kSgd = 1, kAdam = 2, kLion = 4, kAllOptimizers = 7 };
constexpr std::array<Optimizers, kOptimizerCount> kOptimizerBits = {kSgd, kAdam, kLion};

enum class Limit : uint8_t { Finite, BelowOne, UpToOne };

struct Number {
  const char* name;
  double proto::UpdateEntry::*given;
  double UpdateStep::*taken;
  Limit limit;
  uint8_t optimizers;
};
constexpr std::array<Number, 6> kNumbers = {{
    {"learning_rate", &proto::UpdateEntry::learning_rate, &UpdateStep::learning_rate, Limit::Finite,
     kAllOptimizers},
    {"momentum", &proto::UpdateEntry::momentum, &UpdateStep::momentum, Limit::BelowOne,
     kAllOptimizers},
    {"dampening", &proto::UpdateEntry::dampening, &UpdateStep::dampening, Limit::UpToOne, kSgd},
    {"second_momentum", &proto::UpdateEntry::second_momentum, &UpdateStep::second_momentum,
     Limit::BelowOne, kAdam | kLion},
    {"epsilon", &proto::UpdateEntry::epsilon, &UpdateStep::epsilon, Limit::Finite, kAdam},
    {"weight_decay", &proto::UpdateEntry::weight_decay, &UpdateStep::weight_decay, Limit::Finite,
     kAllOptimizers},
}};

constexpr std::array<const char*, kOptimizerCount> kOptimizerNames = {"sgd", "adam", "lion"};
constexpr std::array<const char*, kStateSlotCount> kSlotNames = {"weights", "first moments",
                                                                 "second moments"};

const char* name_of(Optimizer optimizer) { return kOptimizerNames[static_cast<size_t>(optimizer)]; }

template <typename T>
Status wrong_field(const char* field, T value, std::string_view right) {
  return make_status(StatusCode::InvalidArgument, "update: {}={}: right is {}", field, value,
                     right);
}

// One of a field's names, which are numbered from 0 on.
template <typename E>
Status check_name(const char* field, uint8_t value, uint8_t names, std::string_view right,
                  E& taken) {
  if (value >= names) return wrong_field(field, value, right);
  taken = static_cast<E>(value);
  return Status::ok();
}

Status check_zero(const char* field, double value, const char* whose) {
  if (value == 0) return Status::ok();
  return wrong_field(field, value, fmt::format("0 {}", whose));
}

// State of 16-bit tensors is float32, and so is the arithmetic.
double largest_number(DataType dtype) {
  return dtype == DataType::Float64 ? std::numeric_limits<double>::max()
                                    : static_cast<double>(std::numeric_limits<float>::max());
}

bool is_within(Limit limit, double value, DataType dtype) {
  switch (limit) {
    case Limit::Finite:
      return value >= 0 && value <= largest_number(dtype);
    case Limit::BelowOne:
      return value >= 0 && value < 1;
    case Limit::UpToOne:
      return value >= 0 && value <= 1;
  }
  return false;
}

std::string range_of(Limit limit, DataType dtype) {
  switch (limit) {
    case Limit::Finite:
      return fmt::format("a number from 0 to {}", largest_number(dtype));
    case Limit::BelowOne:
      return "a number from 0 to below 1";
    case Limit::UpToOne:
      return "a number from 0 to 1";
  }
  return "?";
}

Status take_numbers(const proto::UpdateEntry& entry, DataType dtype, UpdateStep& step) {
  const Optimizers optimizer = kOptimizerBits[entry.optimizer];
  const std::string whose = fmt::format("for {}", name_of(step.optimizer));
  for (const Number& number : kNumbers) {
    const double value = entry.*number.given;
    if ((number.optimizers & optimizer) == 0) {
      BRAID_RETURN_IF_ERROR(check_zero(number.name, value, whose.c_str()));
    } else if (!is_within(number.limit, value, dtype)) {
      return wrong_field(number.name, value, range_of(number.limit, dtype));
    }
    step.*number.taken = value + 0.0;  // -0 becomes 0: what is equal has the same bits
  }
  return Status::ok();
}

Status check_flags(const UpdateStep& step, DataType dtype) {
  if ((step.flags & ~kUpdateFlags) != 0) {
    return wrong_field("flags", step.flags,
                       fmt::format("a sum of 1, 2 and 4, up to {}", kUpdateFlags));
  }
  if (step.has(kUpdateNesterov)) {
    if (step.optimizer != Optimizer::Sgd) {
      return wrong_field("flags", step.flags,
                         fmt::format("no Nesterov momentum (1) for {}", name_of(step.optimizer)));
    }
    if (step.momentum == 0) {
      return wrong_field("momentum", step.momentum, "above 0 with Nesterov momentum");
    }
    if (step.dampening != 0) {
      return wrong_field("dampening", step.dampening, "0 with Nesterov momentum");
    }
  }
  if (step.has(kUpdatePullBFloat16) && step.action == UpdateAction::Push) {
    return wrong_field("flags", step.flags, "no pull as bfloat16 (4) where nothing is pulled");
  }
  if (step.has(kUpdatePullBFloat16) && dtype != DataType::Float32) {
    return wrong_field(
        "flags", step.flags,
        fmt::format("a pull as bfloat16 (4) of float32 only, and this is {}", to_string(dtype)));
  }
  return Status::ok();
}

// Apply, Push and Estimate.
Status take_step(const proto::UpdateEntry& entry, DataType dtype, UpdateStep& step) {
  constexpr auto kWhose = "where weights are updated";
  BRAID_RETURN_IF_ERROR(check_zero("slot", entry.slot, kWhose));
  BRAID_RETURN_IF_ERROR(check_zero("bits", entry.bits, kWhose));
  if (entry.count == 0) return wrong_field("count", entry.count, "1 or more");
  step.flags = entry.flags;
  step.count = entry.count;
  BRAID_RETURN_IF_ERROR(take_numbers(entry, dtype, step));
  BRAID_RETURN_IF_ERROR(check_flags(step, dtype));
  if (step.optimizer == Optimizer::Lion && step.weight_decay != 0 &&
      !step.has(kUpdateDecoupledDecay)) {
    return wrong_field("weight_decay", step.weight_decay,
                       "0 for lion without decoupled decay (flag 2)");
  }
  return Status::ok();
}

// Load and Fetch.
Status take_move(const proto::UpdateEntry& entry, DataType dtype, UpdateStep& step) {
  constexpr auto kWhose = "where state is loaded or fetched";
  if (step.bits != StateBits::Rounded && element_bytes(dtype) != sizeof(uint16_t)) {
    return wrong_field("bits", entry.bits,
                       fmt::format("0 for {}: only tensors of 16 bits have values of two halves",
                                   to_string(dtype)));
  }
  BRAID_RETURN_IF_ERROR(check_zero("optimizer", entry.optimizer, kWhose));
  BRAID_RETURN_IF_ERROR(check_zero("flags", entry.flags, kWhose));
  if (entry.count != 0) return wrong_field("count", entry.count, fmt::format("0 {}", kWhose));
  step.count = 0;
  for (const Number& number : kNumbers) {
    BRAID_RETURN_IF_ERROR(check_zero(number.name, entry.*number.given, kWhose));
  }
  return Status::ok();
}

std::string decay_of(const UpdateStep& step) {
  if (step.weight_decay == 0 && !step.has(kUpdateDecoupledDecay)) return "";
  return fmt::format(", {}decay {}", step.has(kUpdateDecoupledDecay) ? "decoupled " : "",
                     step.weight_decay);
}

std::string numbers_of(const UpdateStep& step) {
  switch (step.optimizer) {
    case Optimizer::Sgd:
      return fmt::format("{}{}{}",
                         step.momentum == 0 ? "" : fmt::format(", momentum {}", step.momentum),
                         step.dampening == 0 ? "" : fmt::format(", dampening {}", step.dampening),
                         step.has(kUpdateNesterov) ? ", Nesterov" : "");
    case Optimizer::Adam:
      return fmt::format(", betas {} and {}, eps {}", step.momentum, step.second_momentum,
                         step.epsilon);
    case Optimizer::Lion:
      return fmt::format(", betas {} and {}", step.momentum, step.second_momentum);
  }
  return "?";
}

std::string describe_step(const UpdateStep& step) {
  const char* estimate = step.action == UpdateAction::Estimate ? "estimate of " : "";
  const char* pulled = "";
  if (step.action == UpdateAction::Push) pulled = ", not pulled";
  if (step.has(kUpdatePullBFloat16)) pulled = ", pulled as bfloat16";
  return fmt::format("{}{} (lr {}{}{}), update {}{}", estimate, name_of(step.optimizer),
                     step.learning_rate, numbers_of(step), decay_of(step), step.count, pulled);
}

std::string describe_move(const UpdateStep& step) {
  const char* bits = "";
  if (step.bits == StateBits::High) bits = " (upper bits)";
  if (step.bits == StateBits::Low) bits = " (lower bits)";
  return fmt::format("{} of {}{}", step.action == UpdateAction::Load ? "load" : "fetch",
                     kSlotNames[static_cast<size_t>(step.slot)], bits);
}

}  // namespace

uint32_t UpdateStep::slots() const {
  if (!takes_gradient()) return static_cast<uint32_t>(slot) + 1;
  switch (optimizer) {
    case Optimizer::Sgd:
      return momentum == 0 ? 1 : 2;
    case Optimizer::Adam:
      return 3;
    case Optimizer::Lion:
      return 2;
  }
  return kStateSlotCount;
}

Result<UpdateStep> parse_update(const proto::UpdateEntry& entry, DataType dtype,
                                uint32_t state_slots) {
  if (dtype > DataType::BFloat16) {
    return make_status(StatusCode::InvalidArgument,
                       "update: the tensor is {}: right is float32, float64, float16 or bfloat16",
                       to_string(dtype));
  }
  UpdateStep step;
  BRAID_RETURN_IF_ERROR(check_name("action", entry.action, kUpdateActionCount,
                                   "0 (apply), 1 (push), 2 (load), 3 (fetch) or 4 (estimate)",
                                   step.action));
  BRAID_RETURN_IF_ERROR(check_name("optimizer", entry.optimizer, kOptimizerCount,
                                   "0 (sgd), 1 (adam) or 2 (lion)", step.optimizer));
  BRAID_RETURN_IF_ERROR(check_name("slot", entry.slot, kStateSlotCount,
                                   "0 (weights), 1 (first moments) or 2 (second moments)",
                                   step.slot));
  BRAID_RETURN_IF_ERROR(check_name("bits", entry.bits, kStateBitsCount,
                                   "0 (rounded), 1 (upper) or 2 (lower)", step.bits));
  const Status taken =
      step.takes_gradient() ? take_step(entry, dtype, step) : take_move(entry, dtype, step);
  if (!taken) return taken;
  if (step.slots() <= state_slots) return step;
  return make_status(StatusCode::InvalidArgument,
                     "{} needs {} state slots; the tensor was registered with {}", to_string(step),
                     step.slots(), state_slots);
}

proto::UpdateEntry to_entry(const UpdateStep& step) {
  proto::UpdateEntry entry{};
  entry.action = static_cast<uint8_t>(step.action);
  entry.optimizer = static_cast<uint8_t>(step.optimizer);
  entry.slot = static_cast<uint8_t>(step.slot);
  entry.bits = static_cast<uint8_t>(step.bits);
  entry.flags = step.flags;
  entry.count = step.count;
  for (const Number& number : kNumbers) entry.*number.given = step.*number.taken + 0.0;
  return entry;
}

uint64_t hash_of(std::span<const UpdateStep> steps) {
  static_assert(sizeof(proto::UpdateEntry) == 4 + 4 + 8 + 6 * sizeof(double),
                "an entry has no padding");
  uint64_t hash = 0;
  for (const UpdateStep& step : steps) {
    const proto::UpdateEntry entry = to_entry(step);
    hash = mix64(hash ^ fnv1a64({reinterpret_cast<const char*>(&entry), sizeof(entry)}));
  }
  return std::max<uint64_t>(hash, 1);
}

std::string to_string(const UpdateStep& step) {
  return step.takes_gradient() ? describe_step(step) : describe_move(step);
}

}  // namespace braid

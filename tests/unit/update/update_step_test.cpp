// SPDX-License-Identifier: Apache-2.0
#include "update/update_step.h"

#include <cmath>
#include <functional>
#include <limits>
#include <random>

#include <gtest/gtest.h>

#include "update_reference.h"

namespace braid::test {
namespace {

uint64_t hash_of_one(const UpdateStep& step) { return hash_of({&step, 1}); }

using proto::UpdateEntry;

UpdateEntry move_entry(UpdateAction action, StateSlot slot = StateSlot::Weights,
                       StateBits bits = StateBits::Rounded) {
  UpdateEntry entry{};
  entry.action = static_cast<uint8_t>(action);
  entry.slot = static_cast<uint8_t>(slot);
  entry.bits = static_cast<uint8_t>(bits);
  return entry;
}

TEST(ParseUpdate, takes_every_update_that_is_right) {
  for (const UpdateStep& update : all_updates()) {
    for (const UpdateAction action :
         {UpdateAction::Apply, UpdateAction::Push, UpdateAction::Estimate}) {
      UpdateStep given = update;
      given.action = action;
      const auto parsed = parse_update(to_entry(given), DataType::Float16);
      ASSERT_TRUE(parsed.status()) << parsed.status().to_string();
      EXPECT_EQ(*parsed, given) << to_string(given);
    }
  }
  for (const UpdateAction action : {UpdateAction::Load, UpdateAction::Fetch}) {
    for (const StateSlot slot : {StateSlot::Weights, StateSlot::First, StateSlot::Second}) {
      for (const StateBits bits : {StateBits::Rounded, StateBits::High, StateBits::Low}) {
        const auto parsed = parse_update(move_entry(action, slot, bits), DataType::BFloat16);
        ASSERT_TRUE(parsed.status()) << parsed.status().to_string();
        EXPECT_EQ(parsed->action, action);
        EXPECT_EQ(parsed->slot, slot);
        EXPECT_EQ(parsed->bits, bits);
        EXPECT_EQ(*parse_update(to_entry(*parsed), DataType::BFloat16), *parsed);
      }
    }
  }
}

TEST(ParseUpdate, makes_minus_zero_zero) {
  UpdateEntry entry = to_entry(sgd(0.1));
  entry.weight_decay = -0.0;
  const auto parsed = parse_update(entry, DataType::Float32);
  ASSERT_TRUE(parsed.status());
  EXPECT_FALSE(std::signbit(parsed->weight_decay));
  EXPECT_EQ(hash_of_one(*parsed), hash_of_one(sgd(0.1)));
}

struct WrongUpdate {
  const char* name;
  UpdateEntry entry;
  DataType dtype;
  std::function<void(UpdateEntry&)> spoil;
  const char* message;
};

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr auto kF32 = DataType::Float32;
constexpr auto kBf16 = DataType::BFloat16;

UpdateEntry estimate_entry(UpdateStep update) {
  update.action = UpdateAction::Estimate;
  return to_entry(update);
}

std::vector<WrongUpdate> wrong_names() {
  const UpdateEntry right = to_entry(sgd(0.1));
  const UpdateEntry estimate = estimate_entry(sgd(0.1));
  return {
      {"action", right, kF32, [](auto& e) { e.action = 5; },
       "update: action=5: right is 0 (apply), 1 (push), 2 (load), 3 (fetch) or 4 (estimate)"},
      {"optimizer", right, kF32, [](auto& e) { e.optimizer = 3; },
       "update: optimizer=3: right is 0 (sgd), 1 (adam) or 2 (lion)"},
      {"slot", move_entry(UpdateAction::Load), kF32, [](auto& e) { e.slot = 3; },
       "update: slot=3: right is 0 (weights), 1 (first moments) or 2 (second moments)"},
      {"bits", move_entry(UpdateAction::Load), kBf16, [](auto& e) { e.bits = 3; },
       "update: bits=3: right is 0 (rounded), 1 (upper) or 2 (lower)"},
      {"flags", right, kF32, [](auto& e) { e.flags = 8; },
       "update: flags=8: right is a sum of 1, 2 and 4, up to 7"},
      {"slot_of_apply", right, kF32, [](auto& e) { e.slot = 1; },
       "update: slot=1: right is 0 where weights are updated"},
      {"slot_of_estimate", estimate, kF32, [](auto& e) { e.slot = 1; },
       "update: slot=1: right is 0 where weights are updated"},
      {"bits_of_apply", right, kBf16, [](auto& e) { e.bits = 1; },
       "update: bits=1: right is 0 where weights are updated"},
      {"integers", right, DataType::Int32, [](auto&) {},
       "update: the tensor is int32: right is float32, float64, float16 or bfloat16"},
      {"bytes", move_entry(UpdateAction::Fetch), DataType::Uint8, [](auto&) {},
       "update: the tensor is uint8: right is float32, float64, float16 or bfloat16"},
      {"unknown_dtype", right, static_cast<DataType>(200), [](auto&) {},
       "update: the tensor is ?: right is float32, float64, float16 or bfloat16"},
  };
}

std::vector<WrongUpdate> wrong_numbers() {
  const UpdateEntry right = to_entry(sgd(0.1, 0.9));
  const UpdateEntry right_adam = to_entry(adam(0.1));
  const UpdateEntry right_lion = to_entry(lion(0.1));
  return {
      {"count", right, kF32, [](auto& e) { e.count = 0; }, "update: count=0: right is 1 or more"},
      {"count_of_estimate", estimate_entry(lion(0.1)), kF32, [](auto& e) { e.count = 0; },
       "update: count=0: right is 1 or more"},
      {"rate_of_estimate", estimate_entry(adam(0.1)), kF32, [](auto& e) { e.learning_rate = -0.5; },
       "update: learning_rate=-0.5: right is a number from 0 to 3.4028234663852886e+38"},
      {"negative_rate", right, kF32, [](auto& e) { e.learning_rate = -0.5; },
       "update: learning_rate=-0.5: right is a number from 0 to 3.4028234663852886e+38"},
      {"nan_rate", right, kF32, [](auto& e) { e.learning_rate = kNan; },
       "update: learning_rate=nan: right is a number from 0 to 3.4028234663852886e+38"},
      {"infinite_rate", right, DataType::Float64, [](auto& e) { e.learning_rate = kInfinity; },
       "update: learning_rate=inf: right is a number from 0 to 1.7976931348623157e+308"},
      {"rate_beyond_float32", right, kBf16, [](auto& e) { e.learning_rate = 1e39; },
       "update: learning_rate=1e+39: right is a number from 0 to 3.4028234663852886e+38"},
      {"momentum_of_1", right, kF32, [](auto& e) { e.momentum = 1; },
       "update: momentum=1: right is a number from 0 to below 1"},
      {"nan_momentum", right_lion, kF32, [](auto& e) { e.momentum = kNan; },
       "update: momentum=nan: right is a number from 0 to below 1"},
      {"negative_momentum", right_adam, kF32, [](auto& e) { e.momentum = -0.1; },
       "update: momentum=-0.1: right is a number from 0 to below 1"},
      {"dampening", right, kF32, [](auto& e) { e.dampening = 1.5; },
       "update: dampening=1.5: right is a number from 0 to 1"},
      {"nan_dampening", right, kF32, [](auto& e) { e.dampening = kNan; },
       "update: dampening=nan: right is a number from 0 to 1"},
      {"dampening_of_adam", right_adam, kF32, [](auto& e) { e.dampening = 0.5; },
       "update: dampening=0.5: right is 0 for adam"},
      {"second_momentum_of_1", right_adam, kF32, [](auto& e) { e.second_momentum = 1; },
       "update: second_momentum=1: right is a number from 0 to below 1"},
      {"nan_second_momentum", right_adam, kF32, [](auto& e) { e.second_momentum = kNan; },
       "update: second_momentum=nan: right is a number from 0 to below 1"},
      {"second_momentum_of_sgd", right, kF32, [](auto& e) { e.second_momentum = 0.5; },
       "update: second_momentum=0.5: right is 0 for sgd"},
      {"negative_epsilon", right_adam, kF32, [](auto& e) { e.epsilon = -1e-8; },
       "update: epsilon=-1e-08: right is a number from 0 to 3.4028234663852886e+38"},
      {"epsilon_of_lion", right_lion, kF32, [](auto& e) { e.epsilon = 1e-8; },
       "update: epsilon=1e-08: right is 0 for lion"},
      {"nan_epsilon_of_sgd", right, kF32, [](auto& e) { e.epsilon = kNan; },
       "update: epsilon=nan: right is 0 for sgd"},
      {"infinite_decay", right, kF32, [](auto& e) { e.weight_decay = kInfinity; },
       "update: weight_decay=inf: right is a number from 0 to 3.4028234663852886e+38"},
      {"negative_decay", right_adam, kF32, [](auto& e) { e.weight_decay = -1; },
       "update: weight_decay=-1: right is a number from 0 to 3.4028234663852886e+38"},
  };
}

std::vector<WrongUpdate> wrong_combinations() {
  const UpdateEntry right = to_entry(sgd(0.1, 0.9));
  const UpdateEntry right_lion = to_entry(lion(0.1));
  const auto pull = [](auto& e) { e.flags |= kUpdatePullBFloat16; };
  const auto nesterov = [](auto& e) { e.flags |= kUpdateNesterov; };
  UpdateEntry push = right;
  push.action = static_cast<uint8_t>(UpdateAction::Push);
  UpdateEntry dampened = right;
  dampened.dampening = 0.5;
  return {
      {"nesterov_of_adam", to_entry(adam(0.1)), kF32, nesterov,
       "update: flags=1: right is no Nesterov momentum (1) for adam"},
      {"nesterov_of_lion", right_lion, kF32, nesterov,
       "update: flags=3: right is no Nesterov momentum (1) for lion"},
      {"nesterov_without_momentum", to_entry(sgd(0.1)), kF32, nesterov,
       "update: momentum=0: right is above 0 with Nesterov momentum"},
      {"nesterov_with_dampening", dampened, kF32, nesterov,
       "update: dampening=0.5: right is 0 with Nesterov momentum"},
      {"lion_with_coupled_decay", right_lion, kF32,
       [](auto& e) {
         e.flags = 0;
         e.weight_decay = 0.1;
       },
       "update: weight_decay=0.1: right is 0 for lion without decoupled decay (flag 2)"},
      {"pull_of_push", push, kF32, pull,
       "update: flags=4: right is no pull as bfloat16 (4) where nothing is pulled"},
      {"pull_of_estimated_float64", estimate_entry(sgd(0.1)), DataType::Float64, pull,
       "update: flags=4: right is a pull as bfloat16 (4) of float32 only, and this is float64"},
      {"pull_of_float64", right, DataType::Float64, pull,
       "update: flags=4: right is a pull as bfloat16 (4) of float32 only, and this is float64"},
      {"pull_of_bfloat16", right, kBf16, pull,
       "update: flags=4: right is a pull as bfloat16 (4) of float32 only, and this is bfloat16"},
  };
}

std::vector<WrongUpdate> wrong_moves() {
  const UpdateEntry load = move_entry(UpdateAction::Load);
  const UpdateEntry fetch = move_entry(UpdateAction::Fetch, StateSlot::First);
  return {
      {"halves_of_float32", load, kF32, [](auto& e) { e.bits = 1; },
       "update: bits=1: right is 0 for float32: only tensors of 16 bits have values of two halves"},
      {"halves_of_float64", fetch, DataType::Float64, [](auto& e) { e.bits = 2; },
       "update: bits=2: right is 0 for float64: only tensors of 16 bits have values of two halves"},
      {"optimizer_of_load", load, kF32, [](auto& e) { e.optimizer = 1; },
       "update: optimizer=1: right is 0 where state is loaded or fetched"},
      {"flags_of_fetch", fetch, kF32, [](auto& e) { e.flags = 4; },
       "update: flags=4: right is 0 where state is loaded or fetched"},
      {"count_of_load", load, kF32, [](auto& e) { e.count = 1; },
       "update: count=1: right is 0 where state is loaded or fetched"},
      {"rate_of_load", load, kF32, [](auto& e) { e.learning_rate = 0.1; },
       "update: learning_rate=0.1: right is 0 where state is loaded or fetched"},
      {"momentum_of_load", load, kF32, [](auto& e) { e.momentum = 0.1; },
       "update: momentum=0.1: right is 0 where state is loaded or fetched"},
      {"dampening_of_fetch", fetch, kF32, [](auto& e) { e.dampening = 0.1; },
       "update: dampening=0.1: right is 0 where state is loaded or fetched"},
      {"second_momentum_of_fetch", fetch, kF32, [](auto& e) { e.second_momentum = 0.1; },
       "update: second_momentum=0.1: right is 0 where state is loaded or fetched"},
      {"nan_epsilon_of_fetch", fetch, kF32, [](auto& e) { e.epsilon = kNan; },
       "update: epsilon=nan: right is 0 where state is loaded or fetched"},
      {"decay_of_fetch", fetch, kF32, [](auto& e) { e.weight_decay = 0.1; },
       "update: weight_decay=0.1: right is 0 where state is loaded or fetched"},
  };
}

class WrongUpdates : public testing::TestWithParam<WrongUpdate> {};

TEST_P(WrongUpdates, are_refused_by_name) {
  const WrongUpdate& one = GetParam();
  UpdateEntry entry = one.entry;
  one.spoil(entry);
  const auto parsed = parse_update(entry, one.dtype);
  EXPECT_EQ(parsed.status().code(), StatusCode::InvalidArgument);
  EXPECT_EQ(parsed.status().message(), one.message);
}

const auto kName = [](const auto& param) { return std::string(param.param.name); };
INSTANTIATE_TEST_SUITE_P(Names, WrongUpdates, testing::ValuesIn(wrong_names()), kName);
INSTANTIATE_TEST_SUITE_P(Numbers, WrongUpdates, testing::ValuesIn(wrong_numbers()), kName);
INSTANTIATE_TEST_SUITE_P(Combinations, WrongUpdates, testing::ValuesIn(wrong_combinations()),
                         kName);
INSTANTIATE_TEST_SUITE_P(Moves, WrongUpdates, testing::ValuesIn(wrong_moves()), kName);

// Whatever is taken has finite numbers within their limits.
TEST(ParseUpdate, withstands_any_bytes) {
  std::mt19937_64 random(1);
  uint64_t taken = 0;
  for (int i = 0; i < 200'000; ++i) {
    UpdateEntry entry = to_entry(all_updates()[random() % all_updates().size()]);
    auto* const bytes = reinterpret_cast<uint8_t*>(&entry);
    for (uint64_t changes = random() % 4; changes > 0; --changes) {
      bytes[random() % sizeof(entry)] = static_cast<uint8_t>(random());
    }
    const auto parsed = parse_update(entry, static_cast<DataType>(random() % 8));
    if (!parsed) continue;
    ++taken;
    EXPECT_TRUE(std::isfinite(parsed->learning_rate) && parsed->learning_rate >= 0);
    EXPECT_TRUE(parsed->momentum >= 0 && parsed->momentum < 1);
    EXPECT_TRUE(parsed->dampening >= 0 && parsed->dampening <= 1);
    EXPECT_TRUE(parsed->second_momentum >= 0 && parsed->second_momentum < 1);
    EXPECT_TRUE(std::isfinite(parsed->epsilon) && parsed->epsilon >= 0);
    EXPECT_TRUE(std::isfinite(parsed->weight_decay) && parsed->weight_decay >= 0);
    EXPECT_TRUE(parsed->slots() >= 1 && parsed->slots() <= 3);
    EXPECT_FALSE(to_string(*parsed).empty());
  }
  EXPECT_GT(taken, 10'000U) << "the test has met what is right, too";
}

TEST(UpdateHash, is_of_every_field) {
  const UpdateStep update = adam(0.1, 0.1, kUpdateDecoupledDecay);
  const std::vector<std::function<void(UpdateStep&)>> changes = {
      [](UpdateStep& u) { u.action = UpdateAction::Push; },
      [](UpdateStep& u) { u.action = UpdateAction::Estimate; },
      [](UpdateStep& u) { u.optimizer = Optimizer::Lion; },
      [](UpdateStep& u) { u.slot = StateSlot::First; },
      [](UpdateStep& u) { u.bits = StateBits::Low; },
      [](UpdateStep& u) { u.flags = 0; },
      [](UpdateStep& u) { u.count = 2; },
      [](UpdateStep& u) { u.learning_rate = 0.2; },
      [](UpdateStep& u) { u.momentum = 0.2; },
      [](UpdateStep& u) { u.dampening = 0.2; },
      [](UpdateStep& u) { u.second_momentum = 0.2; },
      [](UpdateStep& u) { u.epsilon = 0.2; },
      [](UpdateStep& u) { u.weight_decay = 0.2; }};
  EXPECT_EQ(hash_of_one(update), hash_of_one(adam(0.1, 0.1, kUpdateDecoupledDecay)));
  for (size_t i = 0; i < changes.size(); ++i) {
    UpdateStep changed = update;
    changes[i](changed);
    EXPECT_NE(hash_of_one(changed), hash_of_one(update)) << "change " << i;
  }
}

TEST(UpdateSlots, are_what_the_optimizer_needs) {
  EXPECT_EQ(sgd(0.1).slots(), 1U);
  EXPECT_EQ(sgd(0.1, 0.9).slots(), 2U);
  EXPECT_EQ(lion(0.1).slots(), 2U);
  EXPECT_EQ(adam(0.1).slots(), 3U);
  EXPECT_EQ(parse_update(estimate_entry(adam(0.1)), kF32)->slots(), 3U);
  const auto refused = parse_update(estimate_entry(adam(0.1)), kF32, 2);
  EXPECT_NE(refused.status().message().find("estimate of adam"), std::string::npos);
  EXPECT_NE(
      refused.status().message().find("needs 3 state slots; the tensor was registered with 2"),
      std::string::npos);
  EXPECT_EQ(parse_update(move_entry(UpdateAction::Load), kF32)->slots(), 1U);
  EXPECT_EQ(parse_update(move_entry(UpdateAction::Fetch, StateSlot::Second), kF32)->slots(), 3U);
}

TEST(UpdateText, says_what_an_update_does) {
  UpdateStep update = adam(0.001, 0.01, kUpdateDecoupledDecay);
  update.count = 7;
  EXPECT_EQ(to_string(update),
            "adam (lr 0.001, betas 0.9 and 0.999, eps 1e-08, decoupled decay 0.01), update 7");
  update.action = UpdateAction::Push;
  EXPECT_EQ(to_string(update),
            "adam (lr 0.001, betas 0.9 and 0.999, eps 1e-08, decoupled decay 0.01), update 7, not "
            "pulled");
  update = sgd(0.1);
  EXPECT_EQ(to_string(update), "sgd (lr 0.1), update 1");
  update = sgd(0.1, 0.9);
  update.flags = kUpdateNesterov | kUpdatePullBFloat16;
  update.weight_decay = 1e-4;
  EXPECT_EQ(to_string(update),
            "sgd (lr 0.1, momentum 0.9, Nesterov, decay 0.0001), update 1, pulled as bfloat16");
  update.action = UpdateAction::Estimate;
  EXPECT_EQ(to_string(update),
            "estimate of sgd (lr 0.1, momentum 0.9, Nesterov, decay 0.0001), update 1, pulled as "
            "bfloat16");
  update = sgd(0.1, 0.9);
  update.dampening = 0.1;
  EXPECT_EQ(to_string(update), "sgd (lr 0.1, momentum 0.9, dampening 0.1), update 1");
  EXPECT_EQ(to_string(lion(0.1, 1)),
            "lion (lr 0.1, betas 0.9 and 0.99, decoupled decay 1), update 1");
}

TEST(UpdateText, says_what_is_moved) {
  EXPECT_EQ(to_string(*parse_update(move_entry(UpdateAction::Load), kF32)), "load of weights");
  EXPECT_EQ(to_string(*parse_update(
                move_entry(UpdateAction::Fetch, StateSlot::First, StateBits::High), kBf16)),
            "fetch of first moments (upper bits)");
  EXPECT_EQ(to_string(*parse_update(
                move_entry(UpdateAction::Load, StateSlot::Second, StateBits::Low), kBf16)),
            "load of second moments (lower bits)");
}

}  // namespace
}  // namespace braid::test

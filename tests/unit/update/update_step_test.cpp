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
  const char* named;  // in the error
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
      {"action", right, kF32, [](auto& e) { e.action = 5; }, "action=5"},
      {"optimizer", right, kF32, [](auto& e) { e.optimizer = 3; }, "optimizer=3"},
      {"slot", move_entry(UpdateAction::Load), kF32, [](auto& e) { e.slot = 3; }, "slot=3"},
      {"bits", move_entry(UpdateAction::Load), kBf16, [](auto& e) { e.bits = 3; }, "bits=3"},
      {"flags", right, kF32, [](auto& e) { e.flags = 8; }, "flags=8"},
      {"slot_of_apply", right, kF32, [](auto& e) { e.slot = 1; }, "slot=1"},
      {"slot_of_estimate", estimate, kF32, [](auto& e) { e.slot = 1; }, "slot=1"},
      {"bits_of_apply", right, kBf16, [](auto& e) { e.bits = 1; }, "bits=1"},
      {"integers", right, DataType::Int32, [](auto&) {}, "the tensor is int32"},
      {"bytes", move_entry(UpdateAction::Fetch), DataType::Uint8, [](auto&) {},
       "the tensor is uint8"},
      {"unknown_dtype", right, static_cast<DataType>(200), [](auto&) {}, "the tensor is ?"},
  };
}

std::vector<WrongUpdate> wrong_numbers() {
  const UpdateEntry right = to_entry(sgd(0.1, 0.9));
  const UpdateEntry right_adam = to_entry(adam(0.1));
  const UpdateEntry right_lion = to_entry(lion(0.1));
  return {
      {"count", right, kF32, [](auto& e) { e.count = 0; }, "count=0"},
      {"count_of_estimate", estimate_entry(lion(0.1)), kF32, [](auto& e) { e.count = 0; },
       "count=0"},
      {"rate_of_estimate", estimate_entry(adam(0.1)), kF32, [](auto& e) { e.learning_rate = -0.5; },
       "learning_rate=-0.5"},
      {"negative_rate", right, kF32, [](auto& e) { e.learning_rate = -0.5; }, "learning_rate=-0.5"},
      {"nan_rate", right, kF32, [](auto& e) { e.learning_rate = kNan; }, "learning_rate=nan"},
      {"infinite_rate", right, DataType::Float64, [](auto& e) { e.learning_rate = kInfinity; },
       "learning_rate=inf"},
      {"rate_beyond_float32", right, kBf16, [](auto& e) { e.learning_rate = 1e39; },
       "learning_rate=1e+39"},
      {"momentum_of_1", right, kF32, [](auto& e) { e.momentum = 1; }, "momentum=1"},
      {"nan_momentum", right_lion, kF32, [](auto& e) { e.momentum = kNan; }, "momentum=nan"},
      {"negative_momentum", right_adam, kF32, [](auto& e) { e.momentum = -0.1; }, "momentum=-0.1"},
      {"dampening", right, kF32, [](auto& e) { e.dampening = 1.5; }, "dampening=1.5"},
      {"nan_dampening", right, kF32, [](auto& e) { e.dampening = kNan; }, "dampening=nan"},
      {"dampening_of_adam", right_adam, kF32, [](auto& e) { e.dampening = 0.5; }, "dampening=0.5"},
      {"second_momentum_of_1", right_adam, kF32, [](auto& e) { e.second_momentum = 1; },
       "second_momentum=1"},
      {"nan_second_momentum", right_adam, kF32, [](auto& e) { e.second_momentum = kNan; },
       "second_momentum=nan"},
      {"second_momentum_of_sgd", right, kF32, [](auto& e) { e.second_momentum = 0.5; },
       "second_momentum=0.5"},
      {"negative_epsilon", right_adam, kF32, [](auto& e) { e.epsilon = -1e-8; }, "epsilon=-1e-08"},
      {"epsilon_of_lion", right_lion, kF32, [](auto& e) { e.epsilon = 1e-8; }, "epsilon=1e-08"},
      {"nan_epsilon_of_sgd", right, kF32, [](auto& e) { e.epsilon = kNan; }, "epsilon=nan"},
      {"infinite_decay", right, kF32, [](auto& e) { e.weight_decay = kInfinity; },
       "weight_decay=inf"},
      {"negative_decay", right_adam, kF32, [](auto& e) { e.weight_decay = -1; }, "weight_decay=-1"},
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
      {"nesterov_of_adam", to_entry(adam(0.1)), kF32, nesterov, "flags=1"},
      {"nesterov_of_lion", right_lion, kF32, nesterov, "flags=3"},
      {"nesterov_without_momentum", to_entry(sgd(0.1)), kF32, nesterov, "momentum=0"},
      {"nesterov_with_dampening", dampened, kF32, nesterov, "dampening=0.5"},
      {"lion_with_coupled_decay", right_lion, kF32,
       [](auto& e) {
         e.flags = 0;
         e.weight_decay = 0.1;
       },
       "weight_decay=0.1"},
      {"pull_of_push", push, kF32, pull, "flags=4"},
      {"pull_of_estimated_float64", estimate_entry(sgd(0.1)), DataType::Float64, pull, "flags=4"},
      {"pull_of_float64", right, DataType::Float64, pull, "flags=4"},
      {"pull_of_bfloat16", right, kBf16, pull, "flags=4"},
  };
}

std::vector<WrongUpdate> wrong_moves() {
  const UpdateEntry load = move_entry(UpdateAction::Load);
  const UpdateEntry fetch = move_entry(UpdateAction::Fetch, StateSlot::First);
  return {
      {"halves_of_float32", load, kF32, [](auto& e) { e.bits = 1; }, "bits=1"},
      {"halves_of_float64", fetch, DataType::Float64, [](auto& e) { e.bits = 2; }, "bits=2"},
      {"optimizer_of_load", load, kF32, [](auto& e) { e.optimizer = 1; }, "optimizer=1"},
      {"flags_of_fetch", fetch, kF32, [](auto& e) { e.flags = 4; }, "flags=4"},
      {"count_of_load", load, kF32, [](auto& e) { e.count = 1; }, "count=1"},
      {"rate_of_load", load, kF32, [](auto& e) { e.learning_rate = 0.1; }, "learning_rate=0.1"},
      {"momentum_of_load", load, kF32, [](auto& e) { e.momentum = 0.1; }, "momentum=0.1"},
      {"dampening_of_fetch", fetch, kF32, [](auto& e) { e.dampening = 0.1; }, "dampening=0.1"},
      {"second_momentum_of_fetch", fetch, kF32, [](auto& e) { e.second_momentum = 0.1; },
       "second_momentum=0.1"},
      {"nan_epsilon_of_fetch", fetch, kF32, [](auto& e) { e.epsilon = kNan; }, "epsilon=nan"},
      {"decay_of_fetch", fetch, kF32, [](auto& e) { e.weight_decay = 0.1; }, "weight_decay=0.1"},
  };
}

class WrongUpdates : public testing::TestWithParam<WrongUpdate> {};

TEST_P(WrongUpdates, are_refused_by_name) {
  const WrongUpdate& one = GetParam();
  UpdateEntry entry = one.entry;
  one.spoil(entry);
  const auto parsed = parse_update(entry, one.dtype);
  EXPECT_EQ(parsed.status().code(), StatusCode::InvalidArgument);
  const std::string& message = parsed.status().message();
  EXPECT_TRUE(message.starts_with(fmt::format("update: {}: right is ", one.named))) << message;
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
  EXPECT_NE(refused.status().message().find("needs 3 state slots"), std::string::npos);
  EXPECT_EQ(parse_update(move_entry(UpdateAction::Load), kF32)->slots(), 1U);
  EXPECT_EQ(parse_update(move_entry(UpdateAction::Fetch, StateSlot::Second), kF32)->slots(), 3U);
}

TEST(UpdateText, says_what_an_update_does) {
  UpdateStep update = adam(0.001, 0.01, kUpdateDecoupledDecay);
  update.count = 7;
  EXPECT_EQ(to_string(update),
            "adam (lr 0.001, betas 0.9 and 0.999, eps 1e-08, decoupled decay 0.01), update 7");
  update.action = UpdateAction::Push;
  EXPECT_TRUE(to_string(update).ends_with(", update 7, not pulled")) << to_string(update);
  update = sgd(0.1);
  EXPECT_EQ(to_string(update), "sgd (lr 0.1), update 1");
  update = sgd(0.1, 0.9);
  update.flags = kUpdateNesterov | kUpdatePullBFloat16;
  update.weight_decay = 1e-4;
  EXPECT_EQ(to_string(update),
            "sgd (lr 0.1, momentum 0.9, Nesterov, decay 0.0001), update 1, pulled as bfloat16");
  update.action = UpdateAction::Estimate;
  EXPECT_TRUE(to_string(update).starts_with("estimate of sgd (lr 0.1")) << to_string(update);
  update = sgd(0.1, 0.9);
  update.dampening = 0.1;
  EXPECT_EQ(to_string(update), "sgd (lr 0.1, momentum 0.9, dampening 0.1), update 1");
  EXPECT_EQ(to_string(lion(0.1, 1)),
            "lion (lr 0.1, betas 0.9 and 0.99, decoupled decay 1), update 1");
}

TEST(UpdateText, says_what_is_moved) {
  const auto text = [](UpdateAction action, StateSlot slot, StateBits bits) {
    return to_string(*parse_update(move_entry(action, slot, bits), kBf16));
  };
  EXPECT_EQ(text(UpdateAction::Load, StateSlot::Weights, StateBits::Rounded), "load of weights");
  EXPECT_EQ(text(UpdateAction::Fetch, StateSlot::First, StateBits::High),
            "fetch of first moments (upper bits)");
}

}  // namespace
}  // namespace braid::test

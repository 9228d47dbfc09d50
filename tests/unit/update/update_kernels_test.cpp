// SPDX-License-Identifier: Apache-2.0
#include "update/update_kernels.h"

#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include <gtest/gtest.h>

#include "hwy/targets.h"
#include "reference.h"
#include "update_reference.h"

namespace braid::test {
namespace {

constexpr DataType kFloats[] = {DataType::Float32, DataType::Float64, DataType::Float16,
                                DataType::BFloat16};

// Each test runs once per instruction set that was compiled and that this processor has: all of
// them must make what the reference makes, to the last bit.
class UpdateKernels : public testing::TestWithParam<int64_t> {
 protected:
  void SetUp() override {
    hwy::SetSupportedTargetsForTest(GetParam());
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
  void TearDown() override {
    hwy::SetSupportedTargetsForTest(0);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
};

template <typename T>
struct Case {
  ReferenceState<T> state;
  std::vector<uint8_t> sums;
};

// Numbers as training has them; second moments are not negative.
template <typename T>
Case<T> numbers_of(DataType dtype, uint64_t count, std::mt19937_64& random) {
  Case<T> one{ReferenceState<T>(count), std::vector<uint8_t>(count * element_bytes(dtype))};
  std::normal_distribution<double> normal(0, 1);
  for (uint64_t i = 0; i < count; ++i) {
    one.state.weights[i] = static_cast<T>(normal(random));
    one.state.first[i] = static_cast<T>(0.1 * normal(random));
    one.state.second[i] = static_cast<T>(0.01 * std::abs(normal(random)));
    store_double(dtype, normal(random), one.sums.data(), i);
  }
  return one;
}

// NaNs, infinities, subnormal numbers, zeros of both signs and all magnitudes.
template <typename T>
Case<T> bits_of(DataType dtype, uint64_t count, std::mt19937_64& random) {
  Case<T> one{ReferenceState<T>(count), std::vector<uint8_t>(count * element_bytes(dtype))};
  const auto any = [&]() -> T {
    using Bits = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
    switch (random() % 8) {
      case 0:
        return std::numeric_limits<T>::infinity();
      case 1:
        return -T{0};
      case 2:
        return std::numeric_limits<T>::quiet_NaN();
      default:
        return std::bit_cast<T>(static_cast<Bits>(random()));
    }
  };
  for (uint64_t i = 0; i < count; ++i) {
    one.state.weights[i] = any();
    one.state.first[i] = any();
    one.state.second[i] = any();
  }
  for (uint8_t& byte : one.sums) byte = static_cast<uint8_t>(random() % 5 == 0 ? 0x7f : random());
  return one;
}

template <typename T>
void update_case(DataType dtype, const UpdateStep& update, uint32_t divisor, Case<T>& one,
                 size_t shift) {
  constexpr uint8_t kGuard = 0xA5;
  // Slots that the optimizer has no need of are not there.
  ShardValues<T> values{one.state.weights.data(), nullptr, nullptr};
  if (update.slots() > 1) values.first = one.state.first.data();
  if (update.slots() > 2) values.second = one.state.second.data();
  std::vector<uint8_t> place(shift + one.sums.size() + 64, kGuard);
  const auto begin = place.begin() + static_cast<ptrdiff_t>(shift);
  std::copy(one.sums.begin(), one.sums.end(), begin);
  const uint64_t count = one.state.weights.size();
  if constexpr (sizeof(T) == sizeof(double)) {
    update_doubles(update, divisor, count, values, place.data() + shift);
  } else {
    update_floats(dtype, update, divisor, count, values, place.data() + shift);
  }
  std::copy_n(begin, one.sums.size(), one.sums.begin());
  place.erase(begin, begin + static_cast<ptrdiff_t>(one.sums.size()));
  EXPECT_EQ(place, std::vector<uint8_t>(shift + 64, kGuard)) << "bytes beside the sums";
}

template <typename T>
void expect_same(DataType dtype, const Case<T>& one, const Case<T>& expected) {
  constexpr DataType kState = sizeof(T) == sizeof(double) ? DataType::Float64 : DataType::Float32;
  const auto bytes = [](const std::vector<T>& values) {
    return reinterpret_cast<const uint8_t*>(values.data());
  };
  const uint64_t count = one.state.weights.size();
  EXPECT_TRUE(same_elements(dtype, one.sums.data(), expected.sums.data(), count)) << "results";
  EXPECT_TRUE(same_elements(kState, bytes(one.state.weights), bytes(expected.state.weights), count))
      << "weights";
  EXPECT_TRUE(same_elements(kState, bytes(one.state.first), bytes(expected.state.first), count))
      << "first moments";
  EXPECT_TRUE(same_elements(kState, bytes(one.state.second), bytes(expected.state.second), count))
      << "second moments";
}

template <typename T>
void expect_reference(DataType dtype, const UpdateStep& update, uint32_t divisor, Case<T> one,
                      size_t shift) {
  SCOPED_TRACE(fmt::format("{} of {} {}, shifted by {}", to_string(update),
                           one.state.weights.size(), to_string(dtype), shift));
  Case<T> expected = one;
  reference_update(dtype, update, divisor, expected.state, 0, expected.state.weights.size(),
                   expected.sums.data());
  update_case(dtype, update, divisor, one, shift);
  expect_same(dtype, one, expected);
}

void expect_reference(DataType dtype, const UpdateStep& update, uint64_t count, bool any_bits,
                      size_t shift, std::mt19937_64& random) {
  const auto divisor = static_cast<uint32_t>(1 + count % 5);
  if (dtype == DataType::Float64) {
    auto one =
        any_bits ? bits_of<double>(dtype, count, random) : numbers_of<double>(dtype, count, random);
    return expect_reference(dtype, update, divisor, std::move(one), shift);
  }
  auto one =
      any_bits ? bits_of<float>(dtype, count, random) : numbers_of<float>(dtype, count, random);
  expect_reference(dtype, update, divisor, std::move(one), shift);
}

TEST_P(UpdateKernels, equal_the_scalar_reference) {
  std::mt19937_64 random(1);
  for (const DataType dtype : kFloats) {
    for (const UpdateStep& update : all_updates()) {
      for (uint64_t count = 0; count <= 67; ++count) {
        expect_reference(dtype, update, count, false, count % 9, random);
        if (HasFailure()) return;
      }
      expect_reference(dtype, update, 10'007, false, 3, random);
      if (HasFailure()) return;
    }
  }
}

TEST_P(UpdateKernels, equal_the_scalar_reference_of_any_bits) {
  std::mt19937_64 random(2);
  for (const DataType dtype : kFloats) {
    for (const UpdateStep& update : all_updates()) {
      for (const uint64_t count : {1, 17, 67, 5003}) {
        expect_reference(dtype, update, count, true, count % 7, random);
        if (HasFailure()) return;
      }
    }
  }
}

TEST_P(UpdateKernels, round_pulled_weights_to_bfloat16_and_keep_exact_ones) {
  std::mt19937_64 random(3);
  for (UpdateStep update : all_updates()) {
    update.flags |= kUpdatePullBFloat16;
    for (const uint64_t count : {1, 16, 67, 5003}) {
      expect_reference(DataType::Float32, update, count, false, 5, random);
      expect_reference(DataType::Float32, update, count, true, 0, random);
      if (HasFailure()) return;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, UpdateKernels,
                         testing::ValuesIn(hwy::SupportedAndGeneratedTargets()),
                         [](const auto& param) {
                           return std::string(hwy::TargetName(param.param));
                         });

// --- trajectories ---

constexpr uint64_t kSteps = 100;

double gradient_at(uint64_t step, uint64_t element) {
  return (static_cast<double>((step * 7 + element * 3) % 11) - 5) / 8;
}

// Some weights after 100 updates.
template <typename T>
std::vector<T> trained(DataType dtype, UpdateStep update, uint64_t elements) {
  Case<T> one{ReferenceState<T>(elements), std::vector<uint8_t>(elements * element_bytes(dtype))};
  for (uint64_t i = 0; i < elements; ++i) {
    one.state.weights[i] = static_cast<T>(static_cast<double>(i + 1) / 4);
  }
  for (update.count = 1; update.count <= kSteps; ++update.count) {
    for (uint64_t i = 0; i < elements; ++i) {
      store_double(dtype, gradient_at(update.count, i), one.sums.data(), i);
    }
    update_case(dtype, update, 1, one, 0);
  }
  return one.state.weights;
}

struct Trajectory {
  UpdateStep update;
  std::vector<double> doubles;
  std::vector<float> floats;
};

// With momentum 0.9.
UpdateStep sgd_of(double learning_rate, double dampening, double weight_decay, uint32_t flags) {
  UpdateStep update = sgd(learning_rate, 0.9);
  update.dampening = dampening;
  update.weight_decay = weight_decay;
  update.flags = flags;
  return update;
}

// Made with torch 2.15, torch.optim on the CPU with foreach=False, in float64 and in float32.
const std::vector<Trajectory>& torchs() {
  static const std::vector<Trajectory> all = {
      {sgd(0.1),
       {0.22499999999999998, 0.4375, 0.7875, 1.0, 1.2125},
       {0.225f, 0.4375f, 0.7875f, 0.99999994f, 1.2125f}},
      {sgd(0.1, 0.9),
       {-0.227271299081723, 0.050910845375279214, 1.0312213498884162, 1.3290354088050285,
        1.074030633761572},
       {-0.2272712f, 0.050910912f, 1.0312213f, 1.3290354f, 1.0740315f}},
      {sgd_of(0.1, 0.3, 0.01, 0),
       {-0.09118201617045466, -0.0044737491682583915, 0.5601256161127478, 0.6181082804844472,
        0.48648812796812235},
       {-0.09118207f, -0.0044737644f, 0.5601256f, 0.61810875f, 0.48648825f}},
      {sgd_of(0.05, 0, 0.001, kUpdateNesterov),
       {0.021609266102186764, 0.2544493131083153, 0.8564683364956962, 1.0953599142298425,
        1.0982054349706885},
       {0.021609245f, 0.25444937f, 0.85646844f, 1.0953602f, 1.0982059f}},
      {adam(0.001),
       {0.24653344001879313, 0.49653875627804533, 0.7518449390650447, 1.0022812537454826,
        1.2485166923092044},
       {0.2465335f, 0.49653873f, 0.751845f, 1.0022808f, 1.2485168f}},
      {adam(0.01, 0.1),
       {0.1661745556482464, 0.36357069836843164, 0.5979649496520677, 0.7876516392969063,
        0.9675917098685044},
       {0.16617462f, 0.36357078f, 0.59796494f, 0.7876515f, 0.9675916f}},
      {adam(0.01, 0.1, kUpdateDecoupledDecay),
       {0.19469700984572721, 0.4210399688607914, 0.6954575284264453, 0.9254637918109504,
        1.1173947757799716},
       {0.19469722f, 0.4210404f, 0.69545835f, 0.9254648f, 1.1173972f}},
  };
  return all;
}

// torch multiplies and adds with one rounding where the processor can. The weights are about 1.
TEST(UpdateTrajectories, are_those_of_torch) {
  for (const Trajectory& one : torchs()) {
    const size_t elements = one.doubles.size();
    const auto doubles = trained<double>(DataType::Float64, one.update, elements);
    const auto floats = trained<float>(DataType::Float32, one.update, elements);
    for (size_t i = 0; i < elements; ++i) {
      EXPECT_NEAR(doubles[i], one.doubles[i], 1e-14) << to_string(one.update);
      EXPECT_NEAR(floats[i], one.floats[i], 1e-6) << to_string(one.update);
    }
  }
}

// The state of 16-bit tensors is float32: what is too small for their weights is not lost.
TEST(UpdateTrajectories, of_16_bit_tensors_are_those_of_float32) {
  for (const DataType dtype : {DataType::Float16, DataType::BFloat16}) {
    for (const UpdateStep& update : {sgd(1e-6, 0.9), adam(1e-6), lion(1e-6)}) {
      EXPECT_EQ(trained<float>(dtype, update, 33), trained<float>(DataType::Float32, update, 33))
          << to_string(dtype) << " " << to_string(update);
    }
  }
}

}  // namespace
}  // namespace braid::test

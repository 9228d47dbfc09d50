// SPDX-License-Identifier: Apache-2.0
#include "job/tensor_names.h"

#include <gtest/gtest.h>

#include "base/errors_testing.h"

namespace braid {
namespace {

using testing::is_error;

Tensor tensor(uint64_t hash, const std::string& name) {
  Tensor result;
  result.hash = hash;
  result.name = std::make_shared<const std::string>(name);
  return result;
}

TEST(TensorNamesTest, AllRanksMayHaveTheSameNames) {
  TensorNames names;
  const std::vector<Tensor> tensors = {tensor(1, "a"), tensor(2, "b")};
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_TRUE(names.check(tensors).is_ok());
    names.add(tensors);
  }
}

TEST(TensorNamesTest, NoTwoNamesHaveOneHash) {
  TensorNames names;
  names.add(std::vector<Tensor>{tensor(1, "a"), tensor(2, "b")});
  EXPECT_TRUE(is_error(names.check(std::vector<Tensor>{tensor(3, "c"), tensor(2, "x")}),
                       StatusCode::Mismatch, {"'b'", "'x'"}));
}

TEST(TensorNamesTest, ANameStaysAsLongAsOneRankHasIt) {
  TensorNames names;
  const std::vector<Tensor> tensors = {tensor(1, "a"), tensor(2, "b")};
  names.add(tensors);
  names.add(std::vector<Tensor>{tensors[1]});
  EXPECT_EQ(names.remove(tensors), std::vector<uint64_t>{1});
  EXPECT_EQ(names.find(1), nullptr);
  ASSERT_NE(names.find(2), nullptr);
  EXPECT_EQ(*names.find(2), "b");
  EXPECT_EQ(names.remove(std::vector<Tensor>{tensors[1]}), std::vector<uint64_t>{2});
  EXPECT_EQ(names.find(2), nullptr);
}

}  // namespace
}  // namespace braid

// SPDX-License-Identifier: Apache-2.0
// Operations whose codec is measured.
#include "operation/codec_gauge.h"
#include "operation/operation_table_testing.h"

namespace braid {
namespace {

// Also writes down what is lost.
class OperationTableSampleTest : public testing::OperationTableTest {
 protected:
  static constexpr uint64_t kCount = 64;

  struct LossObserver final : OperationObserver {
    void on_start(const OperationKey&, uint64_t) override {}
    void on_go(const OperationKey&) override {}
    void on_done(const OperationKey&) override {}
    void on_loss(const OperationKey& key, const CodecLoss& loss) override {
      keys.push_back(key);
      losses.push_back(loss);
    }
    std::vector<OperationKey> keys;
    std::vector<CodecLoss> losses;
  };

  void make_observed(uint64_t direct_bytes) {
    make({{0}, {1}}, 0, 1 << 20, direct_bytes);
    OperationServices services = actions_.services(1);
    table_ = std::make_unique<OperationTable>(
        JobOnNode{"train", kJob, ring_, {0}}, memory_,
        OperationServices{actions_, observer_, actions_.counters, services.sinks,
                          services.send_ready, services.reach_all});
    auto coded = std::make_shared<CodedTensors>();
    coded->sum = *make_coded_sum(default_codec_spec(CodecKind::Int8), 2, 1);
    coded_ = std::move(coded);
  }
  void submit_coded(uint64_t step, bool is_sampled) {
    OperationForm form = form_of(kCount);
    form.codec = default_codec_spec(CodecKind::Int8);
    form.coded = coded_;
    form.sample_every_steps = is_sampled ? 1 : 0;
    const Submission one = submission(0, step, testing::all_reduce(kCount));
    ASSERT_TRUE(table_->submit(one, planned_as(std::move(form))).is_ok());
  }
  // What the engine does with an operation that has a Hop.
  static void encode(const Operation& operation, Encoding encoding) {
    const std::vector<float> values(kCount, 1.5F);
    std::vector<uint8_t> bytes(operation.hop->encoded_bytes_max(encoding, kCount));
    operation.hop->encode(encoding, {0, kCount * sizeof(float)}, values, bytes);
  }

  LossObserver observer_;
  std::shared_ptr<const CodedTensors> coded_;
};

TEST_F(OperationTableSampleTest, TellsWhatWasLostWhenItIsDone) {
  make_observed(0);
  submit_coded(3, true);
  ASSERT_EQ(actions_.started.size(), 1u);
  encode(actions_.started[0], Encoding::Part);
  encode(actions_.started[0], Encoding::Sum);
  EXPECT_TRUE(observer_.losses.empty());
  table_->on_done(key(3));
  ASSERT_EQ(observer_.losses.size(), 1u);
  EXPECT_EQ(observer_.keys[0], key(3));
  EXPECT_EQ(observer_.losses[0].elements, 2 * kCount);
  // By two hops the sum is the result, and the part is none.
  EXPECT_TRUE(observer_.losses[0].has_sketches);
  EXPECT_NEAR(observer_.losses[0].cosine().value(), 1, 1e-3);
  double squares = 0;
  for (const double sum : observer_.losses[0].decoded) squares += sum * sum;
  EXPECT_NEAR(squares, kCount * 1.5 * 1.5, kCount);
}

TEST_F(OperationTableSampleTest, OfADirectOneThePartsAreTheResult) {
  make_observed(4096);
  submit_coded(3, true);
  ASSERT_TRUE(actions_.started.at(0).is_direct);
  encode(actions_.started[0], Encoding::Part);
  table_->on_done(key(3));
  ASSERT_EQ(observer_.losses.size(), 1u);
  EXPECT_TRUE(observer_.losses[0].cosine().has_value());
}

TEST_F(OperationTableSampleTest, OthersAreNotMeasured) {
  make_observed(0);
  submit_coded(3, false);
  encode(actions_.started.at(0), Encoding::Part);
  table_->on_done(key(3));
  EXPECT_TRUE(observer_.losses.empty());
}

}  // namespace
}  // namespace braid

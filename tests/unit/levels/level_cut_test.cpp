// SPDX-License-Identifier: Apache-2.0
// The steps of all ranks, carried out in host memory, give what one level gives.
#include "levels/level_cut.h"

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include <gtest/gtest.h>

namespace braid::client {
namespace {

using Values = std::vector<int32_t>;

CUdeviceptr address(const Values& values) { return reinterpret_cast<CUdeviceptr>(values.data()); }
int32_t* at(CUdeviceptr memory) { return reinterpret_cast<int32_t*>(memory); }

// One rank: what it gives and gets, and its steps.
struct OneRank {
  LevelPlace place;
  Values input;
  Values result;
  std::vector<Values> results;  // of an all-gather into memory that lies apart
  std::unique_ptr<DeviceRequest> request;
  std::unique_ptr<LevelCut> cut;
  LevelPiece piece;
  Values scratch;
};

// A job of some nodes, whose operations are carried out step by step on all ranks at once.
class LevelCutTest : public testing::TestWithParam<std::pair<uint32_t, uint32_t>> {
 protected:
  enum class Form { Apart, InPlace, ResultsApart };

  uint32_t nodes() const { return GetParam().first; }
  uint32_t node_ranks() const { return GetParam().second; }
  uint32_t size() const { return nodes() * node_ranks(); }

  static int32_t value(uint32_t rank, uint64_t index) {
    return static_cast<int32_t>((rank + 1) * 1000 + index % 997);
  }

  // Makes all ranks of an operation, with inputs of so many elements and results of so many.
  void make(Collective collective, uint64_t count, uint64_t inputs, uint64_t results, Form form,
            uint32_t root = 0) {
    ranks_ = std::vector<OneRank>(size());
    for (uint32_t rank = 0; rank < size(); ++rank) {
      OneRank& one = ranks_[rank];
      one.place = {nodes(), node_ranks(), rank / node_ranks(), rank % node_ranks()};
      one.input.resize(inputs);
      for (uint64_t i = 0; i < inputs; ++i) one.input[i] = value(rank, i);
      one.result.assign(results, -7);
      one.request = std::make_unique<DeviceRequest>(Pieces(Piece()));
      one.request->operation.collective = static_cast<uint32_t>(collective);
      one.request->operation.count = count;
      one.request->operation.dtype = BRAID_INT32;
      one.request->operation.root = root;
      one.request->input = address(one.input);
      one.request->result = address(one.result);
      if (form == Form::InPlace) {
        const uint64_t own = collective == Collective::AllGather ? rank * count : 0;
        std::ranges::copy(one.input, one.result.begin() + static_cast<ptrdiff_t>(own));
        one.request->input = one.request->result + own * sizeof(int32_t);
      }
      if (form == Form::ResultsApart) {
        one.results.assign(size(), Values(count, -7));
        for (const Values& each : one.results) one.request->result_of_rank.push_back(address(each));
        one.request->result = 0;
      }
      one.cut = std::make_unique<LevelCut>(*one.request, one.place);
    }
  }

  void carry_out() {
    const uint32_t pieces = ranks_[0].cut->count();
    for (uint32_t i = 0; i < pieces; ++i) {
      for (OneRank& rank : ranks_) {
        ASSERT_EQ(rank.cut->count(), pieces);
        rank.scratch.assign(rank.cut->scratch_bytes(i) / sizeof(int32_t), -7);
        rank.piece = rank.cut->piece(i, address(rank.scratch));
      }
      for (uint32_t node = 0; node < nodes(); ++node) do_local(node, &LevelPiece::before);
      for (uint32_t local = 0; local < node_ranks(); ++local) do_across(local);
      for (OneRank& rank : ranks_) spoil_awaited(rank);
      for (uint32_t node = 0; node < nodes(); ++node) do_local(node, &LevelPiece::after);
    }
  }

  // That a rank's awaited parts all come, and nothing else of its memory is spoiled.
  static void spoil_awaited(OneRank& rank) {
    for (const DevicePart& part : rank.piece.awaited)
      std::fill_n(at(part.memory), part.bytes / sizeof(int32_t), -1);
  }

  void do_local(uint32_t node, std::vector<LocalStep> LevelPiece::*steps) {
    const auto ranks = std::span(ranks_).subspan(node * node_ranks(), node_ranks());
    const size_t count = (ranks[0].piece.*steps).size();
    for (size_t i = 0; i < count; ++i) {
      std::vector<LocalStep> all;
      for (OneRank& rank : ranks) {
        ASSERT_EQ((rank.piece.*steps).size(), count);
        all.push_back((rank.piece.*steps)[i]);
        ASSERT_EQ(all.back().kind, all.front().kind);
        ASSERT_EQ(all.back().count, all.front().count);
        ASSERT_EQ(all.back().root, all.front().root);
      }
      do_step(all);
    }
  }

  // As NCCL has them.
  static void do_step(const std::vector<LocalStep>& all) {
    const LocalStep& first = all.front();
    const uint64_t count = first.count;
    const auto sum = [&](uint64_t begin) {
      Values total(count);
      for (const LocalStep& step : all)
        for (uint64_t i = 0; i < count; ++i) total[i] += at(step.from)[begin + i];
      return total;
    };
    const auto put = [&](const Values& values, CUdeviceptr to, uint64_t begin) {
      std::ranges::copy(values, at(to) + begin);
    };
    switch (first.kind) {
      case LocalStep::Kind::ReduceScatter: {
        std::vector<Values> sums;
        for (size_t j = 0; j < all.size(); ++j) sums.push_back(sum(j * count));
        for (size_t j = 0; j < all.size(); ++j) put(sums[j], all[j].to, 0);
        break;
      }
      case LocalStep::Kind::Reduce:
        put(sum(0), all[first.root].to, 0);
        break;
      case LocalStep::Kind::AllGather: {
        std::vector<Values> blocks;
        for (const LocalStep& step : all) blocks.emplace_back(at(step.from), at(step.from) + count);
        for (const LocalStep& step : all)
          for (size_t j = 0; j < all.size(); ++j) put(blocks[j], step.to, j * count);
        break;
      }
      case LocalStep::Kind::Broadcast: {
        const CUdeviceptr from = all[first.root].from;
        const Values values(at(from), at(from) + count);
        for (const LocalStep& step : all) put(values, step.to, 0);
        break;
      }
    }
  }

  // As the daemons do it, for one local rank of all nodes.
  void do_across(uint32_t local) {
    std::vector<const AcrossStep*> all;
    for (uint32_t node = 0; node < nodes(); ++node) {
      const auto& across = ranks_[node * node_ranks() + local].piece.across;
      if (across) all.push_back(&*across);
    }
    if (all.empty()) return;
    ASSERT_EQ(all.size(), nodes());
    std::vector<Values> inputs;
    for (const AcrossStep* step : all) {
      ASSERT_EQ(step->count, all[0]->count);
      ASSERT_LE(std::max(step->piece.input.bytes(), step->piece.result.bytes()), kDevicePieceBytes);
      const Rows& rows = step->piece.input;
      const int32_t* from = at(step->input + rows.offset);
      inputs.emplace_back(from, from + rows.bytes() / sizeof(int32_t));
    }
    for (uint32_t node = 0; node < nodes(); ++node) put_across(*all[node], inputs, node);
  }

  static void put_across(const AcrossStep& step, const std::vector<Values>& inputs, uint32_t node) {
    const uint64_t count = step.count;
    const auto to = at(step.result + step.piece.result.offset);
    switch (step.collective) {
      case Collective::AllReduce:
      case Collective::ReduceScatter: {
        const uint64_t begin = step.collective == Collective::AllReduce ? 0 : node * count;
        for (uint64_t i = 0; i < count; ++i) {
          to[i] = 0;
          for (const Values& input : inputs) to[i] += input[begin + i];
        }
        break;
      }
      case Collective::AllGather:
        for (size_t other = 0; other < inputs.size(); ++other)
          std::ranges::copy(inputs[other], at(step.result_of_node[other]));
        break;
      default:
        if (step.piece.result.bytes() != 0) std::ranges::copy(inputs[step.root], to);
        break;
    }
  }

  int32_t sum_at(uint64_t index) const {
    int32_t sum = 0;
    for (uint32_t rank = 0; rank < size(); ++rank) sum += value(rank, index);
    return sum;
  }

  // The whole of an all-reduce, or a broadcast, of two pieces.
  uint64_t large_count() const { return node_ranks() * kDevicePieceBytes / sizeof(int32_t) + 5; }

  std::vector<OneRank> ranks_;
};

// Whether so many values are what `expected` gives by index.
template <typename Expected>
bool are(const Values& values, uint64_t begin, uint64_t count, Expected&& expected) {
  for (uint64_t i = 0; i < count; ++i)
    if (values[begin + i] != expected(i)) return false;
  return true;
}

// Fewer than ranks of a node, and such as do not divide.
const std::vector<uint64_t> kCounts = {0, 1, 5, 1000};

TEST_P(LevelCutTest, AllReduce) {
  const auto check = [&](uint64_t count, Form form) {
    make(Collective::AllReduce, count, count, count, form);
    carry_out();
    for (const OneRank& rank : ranks_)
      EXPECT_TRUE(are(rank.result, 0, count, [&](uint64_t i) { return sum_at(i); })) << count;
  };
  for (const uint64_t count : kCounts)
    for (const Form form : {Form::Apart, Form::InPlace}) check(count, form);
  check(large_count(), Form::InPlace);
  EXPECT_EQ(ranks_[0].cut->count(), 2u);
}

TEST_P(LevelCutTest, ReduceScatter) {
  for (const uint64_t count : {uint64_t{0}, uint64_t{5}, large_count() / size()}) {
    make(Collective::ReduceScatter, count, count * size(), count, Form::Apart);
    carry_out();
    for (uint32_t rank = 0; rank < size(); ++rank) {
      const auto expected = [&](uint64_t i) { return sum_at(rank * count + i); };
      EXPECT_TRUE(are(ranks_[rank].result, 0, count, expected)) << count;
    }
  }
  EXPECT_EQ(ranks_[0].cut->count(), 2u);
}

TEST_P(LevelCutTest, AllGather) {
  for (const uint64_t count : {uint64_t{0}, uint64_t{5}, large_count() / size()}) {
    for (const Form form : {Form::Apart, Form::InPlace, Form::ResultsApart}) {
      make(Collective::AllGather, count, count, count * size(), form);
      carry_out();
      for (const OneRank& rank : ranks_) {
        for (uint32_t other = 0; other < size(); ++other) {
          const bool is_apart = form == Form::ResultsApart;
          const auto expected = [&](uint64_t i) { return value(other, i); };
          EXPECT_TRUE(are(is_apart ? rank.results[other] : rank.result,
                          is_apart ? 0 : other * count, count, expected))
              << count;
        }
      }
    }
  }
  EXPECT_EQ(ranks_[0].cut->count(), 2u);
}

TEST_P(LevelCutTest, Broadcast) {
  const auto check = [&](uint64_t count, uint32_t root, Form form) {
    make(Collective::Broadcast, count, count, count, form, root);
    carry_out();
    for (const OneRank& rank : ranks_)
      EXPECT_TRUE(are(rank.result, 0, count, [&](uint64_t i) { return value(root, i); })) << count;
  };
  for (const uint64_t count : kCounts)
    for (const uint32_t root : {0U, size() - 1, node_ranks()})
      for (const Form form : {Form::Apart, Form::InPlace}) check(count, root, form);
  check(kDevicePieceBytes / sizeof(int32_t) + 5, 1, Form::Apart);
  EXPECT_EQ(ranks_[0].cut->count(), 2u);
}

INSTANTIATE_TEST_SUITE_P(Nodes, LevelCutTest,
                         testing::Values(std::pair{2U, 2U}, std::pair{3U, 2U}, std::pair{2U, 3U}));

TEST(LevelCut, WhatGainsNothingGoesInOneLevel) {
  DeviceRequest request{Pieces(Piece())};
  const auto takes = [&](Collective collective, braid_dtype dtype, braid_reduction reduction) {
    request.operation.collective = static_cast<uint32_t>(collective);
    request.operation.dtype = dtype;
    request.operation.reduction = reduction;
    return LevelCut::takes(request);
  };
  EXPECT_TRUE(takes(Collective::AllReduce, BRAID_FLOAT16, BRAID_AVERAGE));
  EXPECT_TRUE(takes(Collective::AllReduce, BRAID_INT32, BRAID_SUM));
  EXPECT_TRUE(takes(Collective::AllGather, BRAID_INT32, BRAID_AVERAGE));
  EXPECT_TRUE(takes(Collective::Broadcast, BRAID_UINT8, BRAID_SUM));
  EXPECT_FALSE(takes(Collective::AllReduce, BRAID_INT32, BRAID_AVERAGE));
  EXPECT_FALSE(takes(Collective::ReduceScatter, BRAID_UINT8, BRAID_AVERAGE));
  for (const auto other :
       {Collective::Barrier, Collective::Gather, Collective::Scatter, Collective::AllToAll})
    EXPECT_FALSE(takes(other, BRAID_FLOAT32, BRAID_SUM));
}

}  // namespace
}  // namespace braid::client

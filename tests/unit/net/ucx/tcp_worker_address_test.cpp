// SPDX-License-Identifier: Apache-2.0
#include "net/ucx/tcp_worker_address.h"

#include <algorithm>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <ifaddrs.h>
#include <net/if.h>

#include "base/clock.h"
#include "net/ucx/ucx_endpoint.h"
#include "net/ucx/ucx_worker.h"

namespace braid {
namespace {

using ::testing::HasSubstr;
using Bytes = std::vector<uint8_t>;

constexpr Sha256Digest kWorkerKey{1};

std::vector<std::string> usable_rails() {
  std::vector<std::string> found;
  ifaddrs* all = nullptr;
  EXPECT_EQ(::getifaddrs(&all), 0);
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
    constexpr unsigned kUsable = IFF_UP | IFF_RUNNING;
    if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET ||
        (one->ifa_flags & kUsable) != kUsable)
      continue;
    if (std::find(found.begin(), found.end(), one->ifa_name) == found.end())
      found.emplace_back(one->ifa_name);
  }
  ::freeifaddrs(all);
  return found;
}

// Each test over the loopback device and what else this machine has: their addresses differ.
class TcpWorkerAddressTest : public ::testing::TestWithParam<std::string> {
 protected:
  std::unique_ptr<UcxWorker> worker() {
    return std::move(UcxWorker::create(context_, kWorkerKey, strangers_)).value();
  }

  const std::shared_ptr<UcxContext> context_ =
      std::move(UcxContext::create({GetParam(), {"tcp"}, 64 << 10})).value();
  std::atomic<uint64_t> strangers_ = 0;
};

// UCX's own word.
Bytes address_from_ucx(const UcxWorker& worker) {
  ucp_address_t* address = nullptr;
  size_t bytes = 0;
  EXPECT_EQ(ucp_worker_get_address(worker.handle(), &address, &bytes), UCS_OK);
  const auto* begin = reinterpret_cast<const uint8_t*>(address);
  Bytes whole(begin, begin + bytes);
  ucp_worker_release_address(worker.handle(), address);
  return whole;
}

TEST_P(TcpWorkerAddressTest, IsBuiltFromItsPartsAsUcxWouldGiveIt) {
  const auto one = worker();
  const auto other = worker();
  EXPECT_LE(other->address().size(), 8u + 2 + 16);
  const auto whole = one->whole_address(other->address()).value();
  EXPECT_EQ(whole, address_from_ucx(*other));
}

TEST_P(TcpWorkerAddressTest, OtherLengthsAreRefused) {
  const auto one = worker();
  const Bytes good = worker()->address();
  for (size_t bytes = 0; bytes < 300; ++bytes) {
    Bytes changed = good;
    changed.resize(bytes, 1);
    if (bytes == good.size()) continue;
    const auto endpoint = UcxEndpoint::create(*one, changed);
    ASSERT_FALSE(endpoint.is_ok()) << bytes;
    EXPECT_EQ(endpoint.status().code(), StatusCode::Protocol);
  }
  // As UCX writes it.
  EXPECT_FALSE(UcxEndpoint::create(*one, address_from_ucx(*worker())).is_ok());
}

TEST_P(TcpWorkerAddressTest, WhatIsNobodysAddressIsRefused) {
  const auto one = worker();
  const Bytes good = worker()->address();
  const auto refusal_of = [&](size_t at, size_t bytes, uint8_t value) {
    Bytes changed = good;
    std::fill_n(changed.begin() + static_cast<ptrdiff_t>(at), bytes, value);
    return UcxEndpoint::create(*one, changed).status().message();
  };
  EXPECT_THAT(refusal_of(0, 8, 0), HasSubstr("nobody's")) << "the worker's number";
  EXPECT_THAT(refusal_of(8, 2, 0), HasSubstr("nobody's")) << "the port";
  if (good.size() == 14) {
    EXPECT_THAT(refusal_of(10, 4, 0), HasSubstr("nobody's")) << "0.0.0.0";
    EXPECT_THAT(refusal_of(10, 4, 224), HasSubstr("nobody's")) << "multicast";
    EXPECT_THAT(refusal_of(10, 4, 255), HasSubstr("nobody's")) << "broadcast";
  }
  EXPECT_THAT(UcxEndpoint::create(*one, one->address()).status().message(), HasSubstr("own"));
}

// What a peer may say: each is refused, or UCX does with it as with the address of a host that does
// not answer. This process goes on.
TEST_P(TcpWorkerAddressTest, ChangedOnesAreRefusedOrDoNoHarm) {
  constexpr int kRounds = 400;
  constexpr int kRoundsPerWorker = 20;
  std::mt19937 random(4711);
  std::unique_ptr<UcxWorker> one;
  const auto other = worker();
  const Bytes parts = other->address();
  const Bytes whole = address_from_ucx(*other);
  int refused = 0;
  for (int round = 0; round < kRounds; ++round) {
    if (round % kRoundsPerWorker == 0) one = worker();
    Bytes changed = round % 4 == 0 ? whole : parts;
    const size_t changes = 1 + random() % 4;
    for (size_t i = 0; i < changes && !changed.empty(); ++i) {
      const size_t at = random() % changed.size();
      switch (random() % 8) {
        case 0:
          changed.resize(at);
          break;
        case 1:
          changed.insert(changed.end(), random() % 64, static_cast<uint8_t>(random()));
          break;
        case 2:
          changed[at] = static_cast<uint8_t>(random());
          break;
        default:
          changed[at] ^= static_cast<uint8_t>(1u << (random() % 8));
      }
    }
    auto endpoint = UcxEndpoint::create(*one, changed);
    if (!endpoint) {
      ++refused;
      continue;
    }
    for (int i = 0; i < 20; ++i) one->progress();
    (*endpoint)->close();
  }
  EXPECT_GT(refused, kRounds / 4);
  EXPECT_LT(refused, kRounds);
}

INSTANTIATE_TEST_SUITE_P(Rails, TcpWorkerAddressTest, ::testing::ValuesIn(usable_rails()),
                         [](const auto& rail) { return "Rail" + std::to_string(rail.index); });

TEST(TcpWorkerAddress, WhatUcxWritesInAnotherWayIsNotTakenApart) {
  const auto listening = *SocketAddress::parse("192.0.2.7", 40000);
  EXPECT_FALSE(TcpWorkerAddress::take_apart({}, 1, listening));
  EXPECT_FALSE(TcpWorkerAddress::take_apart(Bytes(64, 7), 0x0707070707070707, listening));
}

}  // namespace
}  // namespace braid

// SPDX-License-Identifier: Apache-2.0
#include "net/ucx_worker.h"

#include <gtest/gtest.h>

#include "net/ucx_context.h"
#include "net/ucx_endpoint.h"

namespace braid {
namespace {

class Nobody final : public UcxEndpointHandler {
  void on_endpoint_error(const Status&) override {}
  void on_send_done(uint64_t, const Status&) override {}
};

// From where a connection was begun to make an endpoint.
std::vector<SocketAddress> sources_of(UcxWorker& worker, UcxWorker& remote) {
  Nobody nobody;
  const auto endpoint = UcxEndpoint::create(worker, remote.address().value(), nobody);
  return endpoint ? (*endpoint)->sources() : std::vector<SocketAddress>();
}

TEST(UcxWorker, OneThatIsConnectedToBeginsNoConnection) {
  auto context = UcxContext::create({"lo", {"tcp"}, 64 << 10});
  ASSERT_TRUE(context.is_ok());
  const auto sender = std::move(UcxWorker::create(*context)).value();
  const auto receiver = std::move(UcxWorker::create(*context)).value();
  EXPECT_FALSE(sources_of(*sender, *receiver).empty());
  receiver->never_connect();
  EXPECT_TRUE(sources_of(*receiver, *sender).empty());
}

}  // namespace
}  // namespace braid

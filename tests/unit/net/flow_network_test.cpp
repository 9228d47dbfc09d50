// SPDX-License-Identifier: Apache-2.0
#include "net/flow_network.h"

#include <gtest/gtest.h>

#include "base/errors_testing.h"

namespace braid {
namespace {

TEST(NetworkOfFlows, RefusesToCarryInClearWhatIsToBeEncrypted) {
  TransportOptions options;
  options.rails = {"lo"};
  options.transports = {"tcp"};
  options.encrypts = true;
  EXPECT_TRUE(FlowNetwork::check(options).is_ok());
  options.tcp = TcpTransport::Ucx;
  EXPECT_TRUE(testing::is_error(FlowNetwork::check(options), StatusCode::InvalidArgument,
                                {"UCX", "in clear"}));
  EXPECT_TRUE(testing::is_error(FlowNetwork::open(options, 1), StatusCode::InvalidArgument));
  options.tcp = TcpTransport::Native;
  options.transports = {"rc"};
  EXPECT_TRUE(testing::is_error(FlowNetwork::open(options, 1), StatusCode::InvalidArgument));
}

}  // namespace
}  // namespace braid

// SPDX-License-Identifier: Apache-2.0
// UCX_… variables that a daemon inherits, which are meant for somebody else's MPI or NCCL.
#include <algorithm>
#include <cstdlib>

#include <gmock/gmock.h>
#include <unistd.h>

#include "net/transport_testing.h"
#include "net/ucx/ucx_endpoint.h"
#include "net/ucx/ucx_settings.h"
#include "net/ucx/ucx_worker.h"

namespace braid::testing {
namespace {

using ::testing::HasSubstr;

const UcxContextOptions kOptions{"lo", {"tcp"}, 64 << 10};

class Variable {
 public:
  // "UCX_TLS=rc"
  explicit Variable(const std::string& setting) : name_(setting.substr(0, setting.find('='))) {
    ::setenv(name_.c_str(), setting.substr(name_.size() + 1).c_str(), 1);
  }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;
  ~Variable() { ::unsetenv(name_.c_str()); }

 private:
  const std::string name_;
};

class ForeignVariable : public ::testing::TestWithParam<const char*> {};

TEST_P(ForeignVariable, DoesNotStopFlows) {
  const Variable variable(GetParam());
  TwoNodes nodes;
  const Status opened = nodes.open();
  ASSERT_TRUE(opened) << opened.message();
  const auto source = nodes.submit(60 << 10, 50);
  nodes.expect_delivered_once(*source, 50);
  EXPECT_EQ(nodes.b->transport().counters().chunks_rejected, 0u);
}

INSTANTIATE_TEST_SUITE_P(
    Ucx, ForeignVariable,
    ::testing::Values("UCX_TLS=rc,sm", "UCX_NET_DEVICES=mlx5_0:1", "UCX_RNDV_THRESH=8192",
                      "UCX_TCP_TX_SEG_SIZE=8k", "UCX_TCP_RX_SEG_SIZE=8k", "UCX_TCP_AF_PRIO=inet6",
                      "UCX_TCP_CONN_NB=n", "UCX_TCP_ALLOC=huge", "UCX_PROTO_ENABLE=y",
                      "UCX_TCP_MAX_NUM_EPS=1", "UCX_SOCKADDR_TLS_PRIORITY=rdmacm",
                      "UCX_MAX_RNDV_RAILS=4", "UCX_MAX_EAGER_LANES=4", "UCX_IB_GID_INDEX=3",
                      "UCX_RC_TIMEOUT=1s", "UCX_ADDRESS_VERSION=v2", "UCX_UNIFIED_MODE=y",
                      "UCX_ADDRESS_DEBUG_INFO=y", "UCX_KEEPALIVE_INTERVAL=1s",
                      "UCX_MEMTYPE_CACHE=n"),
    [](const auto& variable) {
      const std::string text = variable.param;
      return text.substr(0, text.find('='));
    });

TEST(UcxEnvironment, AValueThatUcxDoesNotReadIsNamed) {
  const Variable variable("UCX_RNDV_SCHEME=nope");
  const auto context = UcxContext::create(kOptions);
  ASSERT_FALSE(context.is_ok());
  EXPECT_THAT(context.status().message(), HasSubstr("UCX_RNDV_SCHEME=nope"));
}

TEST(UcxEnvironment, AValueThatWorkersDoNotReadIsNamed) {
  const Variable variable("UCX_TCP_RX_SEG_SIZE=abc");
  std::atomic<uint64_t> strangers = 0;
  const auto context = UcxContext::create(kOptions);
  const Status status =
      context.is_ok() ? UcxWorker::create(*context, {}, strangers).status() : context.status();
  ASSERT_FALSE(status.is_ok());
  EXPECT_THAT(status.message(), HasSubstr("UCX_TCP_RX_SEG_SIZE=abc"));
}

TEST(UcxEnvironment, WithoutVariablesNothingIsSaid) { EXPECT_EQ(ucx_environment(kOptions), ""); }

// Ports that no other process is likely to use, another one's run of this test included.
std::string port_range(int ports) {
  const int first = 20000 + ::getpid() % 250 * 40;
  return fmt::format("UCX_TCP_PORT_RANGE={}-{}", first, first + ports - 1);
}

TEST(UcxEnvironment, ARangeOfTooFewPortsIsNamed) {
  const std::string range = port_range(2);
  const Variable variable(range);
  auto options = TwoNodes::default_options();
  options.tcp = TcpTransport::Ucx;
  TwoNodes nodes(options);  // they share the ports of this host
  nodes.a->transport().open_link(nodes.b->id(), [](const Status&) {});
  EXPECT_TRUE(nodes.run_until([&] {
    const auto flows = nodes.flows(*nodes.a);
    return std::any_of(flows.begin(), flows.end(), [&](const FlowStatus& flow) {
      return flow.error.find("no port of " + range + " is free") != std::string::npos;
    });
  }));
}

TEST(UcxEnvironment, FlowsThatHavePortsAreUsed) {
  const Variable variable(port_range(40));
  auto options = TwoNodes::default_options();
  options.tcp = TcpTransport::Ucx;
  options.flows_per_link = 32;  // of which each takes two ports
  options.open_timeout_ms = 60'000;
  TwoNodes nodes(options);
  const Status opened = nodes.open();
  ASSERT_TRUE(opened) << opened.message();
  EXPECT_GE(open_flows(nodes), 1u);
  EXPECT_LE(open_flows(nodes), 20u);
  const auto source = nodes.submit(60 << 10, 50);
  EXPECT_TRUE(nodes.settles(*source, 50));
}

}  // namespace
}  // namespace braid::testing

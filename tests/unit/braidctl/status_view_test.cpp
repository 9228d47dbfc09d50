// SPDX-License-Identifier: Apache-2.0
#include "braidctl/status_view.h"

#include <gtest/gtest.h>

#include "explain/job_view.h"

namespace braid {
namespace {

DaemonStatus busy_node() {
  DaemonStatus status;
  status.version = "0.1.0";
  status.node = {"node-a", "00000000000000ff", "192.0.2.1"};
  status.uptime_seconds = 3723;
  status.transport = "UCX 1.13.1, tcp on eth0";
  status.rails = {"eth0", "eth1"};
  status.rails_down = {"eth1"};
  status.peers = {{"node-b", "192.0.2.2", 7410}};
  status.flows = {
      {"node-b", "out", 0, 0, "eth0", "open", 1024, 10, 0, "", 0.4},
      {"node-b", "out", 0, 1, "eth1", "open", 512, 10, 2, "long ago", 0.4},
      {"node-b", "out", 0, 2, "eth0", "failed", 0, 0, 1, "flow 2: nothing acknowledged", 0.4},
      {"node-c", "in", 0, 0, "eth0", "opening", 0, 3 << 20, 0, "", 0}};
  status.jobs = {{"train",
                  3,
                  "running",
                  3,
                  4,
                  {{"node-a", "192.0.2.1", {0, 1}}, {"node-b", "192.0.2.2", {2}, "r7"}},
                  {{0, 4711, 1000, 3 << 20}, {1, 4712, 1000, 2048}},
                  10,
                  5,
                  1,
                  1536,
                  (3 << 20) + 2048,
                  8 << 20,
                  1024}};
  return status;
}

TEST(RenderStatus, ShowsABusyNode) {
  EXPECT_EQ(render_status(busy_node()),
            "braidd 0.1.0 on node-a (192.0.2.1), up 1h 2m\n"
            "transport: UCX 1.13.1, tcp on eth0\n"
            "rails:     eth0, eth1 (down)\n"
            "peers:     node-b (192.0.2.2:7410)\n"
            "\n"
            "LINK    DIRECTION  FLOWS             SENT     RECEIVED  FAILURES\n"
            "node-b  out        1 failed, 2 open  1.5 KiB  20 B      3\n"
            "node-c  in         1 opening         0 B      3.0 MiB   0\n"
            "flows that do not work:\n"
            "  failed: flow 2: nothing acknowledged\n"
            "\n"
            "JOB    EPOCH  STATE    NODES  RANKS  WEIGHT  STEPS  OPERATIONS  PENDING  BYTES\n"
            "train  3      running  2      3      4       5      10          1        1.5 KiB\n"
            "\n"
            "ranks of train:\n"
            "  node-a (192.0.2.1): 0-1\n"
            "  node-b (192.0.2.2, rack r7): 2\n"
            "  rank 0 is process 4711 of user 1000: 3.0 MiB in input arenas\n"
            "  rank 1 is process 4712 of user 1000: 2.0 KiB in input arenas\n"
            "  memory for results: 8.0 MiB, 1.0 KiB in use\n");
}

TEST(RenderStatus, SaysWhatPollingDoesToAJob) {
  DaemonStatus status = busy_node();
  const auto says = [&](const DaemonStatus::DuelFound& found, const std::string& line) {
    status.jobs[0].polling = found;
    EXPECT_TRUE(render_status(status).ends_with(line)) << render_status(status);
  };
  says({false, 0, 0}, "in use\n");
  says({true, 2, 1},
       "  polling makes operations 50 % shorter, so threads that wait poll (1 duel)\n");
  says({false, 0.8, 3},
       "  polling makes operations 25 % longer, so threads that wait sleep (3 duels)\n");
  says({false, 1.001, 2}, "  polling makes no difference, so threads that wait sleep (2 duels)\n");
}

TEST(RenderStatus, SaysWhatFewFlowsDoToAJob) {
  DaemonStatus status = busy_node();
  const auto says = [&](const DaemonStatus::DuelFound& found, const std::string& line) {
    status.jobs[0].few_flows = found;
    EXPECT_TRUE(render_status(status).ends_with(line)) << render_status(status);
  };
  says({false, 0, 0}, "in use\n");
  says({true, 1.25, 2},
       "  one flow for each rail makes operations 20 % shorter, so no other is used (2 duels)\n");
  says({false, 1.25, 1},
       "  one flow for each rail makes operations 20 % shorter, but not clearly, so all flows are "
       "used (1 duel)\n");
  says({false, 0.5, 1},
       "  one flow for each rail makes operations 100 % longer, so all flows are used (1 duel)\n");
}

TEST(RenderStatus, ShowsAnIdleNode) {
  EXPECT_NE(render_status({}).find("peers:     none\n\nno links to other nodes\n\nno jobs\n"),
            std::string::npos);
}

TEST(RenderStatus, KeepsControlCharactersFromTheTerminal) {
  DaemonStatus status = busy_node();
  for (std::string* text :
       {&status.version, &status.node.name, &status.node.address, &status.transport,
        &status.rails[0], &status.peers[0].name, &status.flows[0].peer, &status.flows[0].state,
        &status.flows[0].direction, &status.jobs[0].name, &status.jobs[0].state,
        &status.jobs[0].nodes[0].name, &status.jobs[0].nodes[0].address,
        &status.jobs[0].nodes[1].rack}) {
    *text = "a\x1b[2J\r\x7f\u009b";
  }
  const std::string shown = render_status(status);
  EXPECT_EQ(shown.find('\x1b'), std::string::npos);
  EXPECT_EQ(shown.find('\r'), std::string::npos);
  EXPECT_EQ(shown.find('\x7f'), std::string::npos);
  EXPECT_EQ(shown.find("\u009b"), std::string::npos);
  EXPECT_NE(shown.find("a\\x1b[2J\\x0d\\x7f\\xc2\\x9b"), std::string::npos);
}

TEST(FormatRanks, JoinsNeighbours) {
  EXPECT_EQ(format_ranks({}), "none");
  EXPECT_EQ(format_ranks({5}), "5");
  EXPECT_EQ(format_ranks({0, 1, 2, 3}), "0-3");
  EXPECT_EQ(format_ranks({7, 0, 2, 1, 9, 8}), "0-2, 7-9");
}

TEST(FormatDuration, HasTheTwoLargestUnits) {
  EXPECT_EQ(format_duration(-1), "0s");
  EXPECT_EQ(format_duration(59.9), "59s");
  EXPECT_EQ(format_duration(60), "1m 0s");
  EXPECT_EQ(format_duration(3600), "1h 0m");
  EXPECT_EQ(format_duration(90'061), "1d 1h");
}

}  // namespace
}  // namespace braid

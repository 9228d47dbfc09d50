// SPDX-License-Identifier: Apache-2.0
#include "braidctl/gpu_view.h"

#include <gtest/gtest.h>

namespace braid {
namespace {

constexpr uint64_t kReadAt = 1'795'842'180;  // 2026-11-28 05:03 UTC

DaemonStatus node_with_gpus() {
  GpuFacts well;
  well.name = "NVIDIA H100";
  well.read_at = kReadAt;
  well.numa_node = 0;
  well.near_rails = {"eth0"};
  well.clock_mhz = well.clock_max_mhz = 1980;
  well.temperature_celsius = 60;
  well.utilization = 0.953;
  well.memory_used_bytes = 10ull << 30;
  well.memory_bytes = 80ull << 30;
  well.processes = {{4711, 1, "train", 0}, {4712, 1, "train", 1}};
  GpuFacts hot = well;
  hot.index = 1;
  hot.clock_mhz = 1140;
  hot.temperature_celsius = 91;
  hot.reasons = {{"heat", kReadAt - 3600}, {"power_cap", kReadAt}};
  hot.pcie_width = 8;
  hot.pcie_width_max = 16;
  hot.ecc_uncorrected = 2;
  hot.processes.clear();
  hot.other_processes = 1;
  GpuFacts lost;
  lost.index = 2;
  lost.name = "NVIDIA H100";
  lost.read_at = kReadAt;
  lost.error = "GPU is lost";
  lost.xid_errors = 1;
  lost.last_xid = 79;
  lost.last_xid_at = kReadAt - 86'400;
  DaemonStatus status;
  status.gpus = {well, hot, lost};
  return status;
}

TEST(RenderGpus, ShowsThemAndWhatIsWrong) {
  EXPECT_EQ(
      render_gpus(node_with_gpus()),
      "GPU  NAME         CLOCK             LOW FOR          CELSIUS  BUSY  MEMORY                "
      "NUMA  NEAREST  RANKS\n"
      "0    NVIDIA H100  1980 of 1980 MHz  -                60       95 %  10.0 GiB of 80.0 GiB  "
      "0     eth0     train 0-1\n"
      "1    NVIDIA H100  1140 of 1980 MHz  heat, power_cap  91       95 %  10.0 GiB of 80.0 GiB  "
      "0     eth0     1 other\n"
      "2    NVIDIA H100  -                 -                -        -     -                     "
      "-     -        -\n"
      "  GPU 1: its clock is low since 04:03 UTC: heat\n"
      "  GPU 1: its clock is low since 05:03 UTC: power_cap\n"
      "  GPU 1: 2 uncorrectable memory errors since its driver was loaded\n"
      "  GPU 1: uses 8 of 16 lanes of PCIe\n"
      "  GPU 2: does not answer: GPU is lost\n"
      "  GPU 2: Xid 79 at 2026-11-27 05:03 UTC: the GPU has fallen off the bus; 1 since the daemon "
      "started\n"
      "\n");
}

TEST(RenderGpus, SaysThatTheLibraryIsSilent) {
  DaemonStatus status;
  status.gpus_silent_seconds = 34.2;
  EXPECT_NE(render_gpus(status).find("has not answered for 34 s"), std::string::npos);
}

TEST(RenderGpus, ANodeWithoutGpusShowsNothing) { EXPECT_EQ(render_gpus({}), ""); }

}  // namespace
}  // namespace braid

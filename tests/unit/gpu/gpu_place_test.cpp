// SPDX-License-Identifier: Apache-2.0
#include "gpu/gpu_place.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace braid {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
namespace fs = std::filesystem;

// A folder that is laid out as /sys.
class GpuPlaceTest : public ::testing::Test {
 protected:
  GpuPlaceTest() {
    std::string name = (fs::temp_directory_path() / "braid-sys-XXXXXX").string();
    sys_ = ::mkdtemp(name.data());
  }
  ~GpuPlaceTest() override { fs::remove_all(sys_); }

  // `path`: below /sys/devices; its last part is the PCI address.
  void add_device(const std::string& path, int numa_node) {
    const fs::path device = sys_ / "devices" / path;
    fs::create_directories(device);
    std::ofstream(device / "numa_node") << numa_node << '\n';
    fs::create_directories(sys_ / "bus/pci/devices");
    fs::create_symlink(device, sys_ / "bus/pci/devices" / device.filename());
  }
  void add_rail(const std::string& rail, const std::string& path, int numa_node) {
    add_device(path, numa_node);
    fs::create_directories(sys_ / "class/net" / rail);
    fs::create_symlink(sys_ / "devices" / path, sys_ / "class/net" / rail / "device");
  }
  std::vector<std::string> nearest(const std::string& pci, const std::vector<std::string>& rails) {
    return nearest_rails(sys_.string(), pci, rails);
  }

  fs::path sys_;
};

TEST_F(GpuPlaceTest, ReadsTheNumaNode) {
  add_device("pci0000:16/0000:16:01.0/0000:17:00.0", 1);
  add_device("pci0000:80/0000:81:00.0", -1);
  EXPECT_EQ(numa_node_of(sys_.string(), "0000:17:00.0"), 1);
  EXPECT_EQ(numa_node_of(sys_.string(), "0000:81:00.0"), -1);
  EXPECT_EQ(numa_node_of(sys_.string(), "0000:99:00.0"), -1);
}

TEST_F(GpuPlaceTest, TheNearestRailHangsOnTheSameSwitch) {
  add_device("pci0000:16/0000:16:01.0/0000:17:00.0/0000:18:00.0/0000:19:00.0", 0);
  add_rail("eth0", "pci0000:16/0000:16:01.0/0000:17:00.0/0000:18:01.0/0000:1a:00.0", 0);
  add_rail("eth1", "pci0000:16/0000:16:02.0/0000:20:00.0", 0);
  add_rail("eth2", "pci0000:80/0000:81:00.0", 0);
  EXPECT_THAT(nearest("0000:19:00.0", {"eth1", "eth0", "eth2"}), ElementsAre("eth0"));
  EXPECT_THAT(nearest("0000:19:00.0", {"eth1", "eth2"}), ElementsAre("eth1"));
}

TEST_F(GpuPlaceTest, WithoutACommonBridgeTheNumaNodeDecides) {
  add_device("pci0000:16/0000:17:00.0", 1);
  add_rail("eth0", "pci0000:80/0000:81:00.0", 0);
  add_rail("eth1", "pci0000:a0/0000:a1:00.0", 1);
  add_rail("eth2", "pci0000:b0/0000:b1:00.0", 1);
  EXPECT_THAT(nearest("0000:17:00.0", {"eth0", "eth1", "eth2"}), ElementsAre("eth1", "eth2"));
}

TEST_F(GpuPlaceTest, NoRailIsNearWhenNobodyKnows) {
  add_device("pci0000:16/0000:17:00.0", -1);
  add_rail("eth0", "pci0000:80/0000:81:00.0", -1);
  fs::create_directories(sys_ / "class/net/veth0");
  EXPECT_THAT(nearest("0000:17:00.0", {"eth0", "veth0", "eth9"}), IsEmpty());
  EXPECT_THAT(nearest("0000:99:00.0", {"eth0"}), IsEmpty());
}

}  // namespace
}  // namespace braid

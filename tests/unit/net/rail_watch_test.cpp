// SPDX-License-Identifier: Apache-2.0
#include "net/rail_watch.h"

#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>

namespace braid {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr unsigned kIsUp = IFF_UP | IFF_RUNNING;

// A datagram as the kernel would send it.
class Datagram {
 public:
  Datagram& device(uint16_t type, unsigned flags, const std::string& name) {
    const size_t begin = bytes_.size();
    nlmsghdr header{};
    header.nlmsg_type = type;
    add(&header, sizeof(header));
    ifinfomsg body{};
    body.ifi_flags = flags;
    add(&body, sizeof(body));
    const uint32_t mtu = 1500;
    attribute(IFLA_MTU, &mtu, sizeof(mtu));
    attribute(IFLA_IFNAME, name.c_str(), name.size() + 1);
    set_length(begin, static_cast<uint32_t>(bytes_.size() - begin));
    return *this;
  }
  void set_length(size_t begin, uint32_t length) {
    std::memcpy(bytes_.data() + begin + offsetof(nlmsghdr, nlmsg_len), &length, sizeof(length));
  }
  std::vector<uint8_t>& bytes() { return bytes_; }
  std::vector<DeviceState> states() const { return read_device_states(bytes_); }

 private:
  void add(const void* data, size_t size) {
    const auto* begin = static_cast<const uint8_t*>(data);
    bytes_.insert(bytes_.end(), begin, begin + size);
    bytes_.resize(NLMSG_ALIGN(bytes_.size()));
  }
  void attribute(uint16_t type, const void* data, size_t size) {
    const rtattr head{static_cast<uint16_t>(RTA_LENGTH(size)), type};
    add(&head, sizeof(head));
    add(data, size);
  }

  std::vector<uint8_t> bytes_;
};

TEST(ReadDeviceStates, TellsWhatIsUp) {
  Datagram datagram;
  datagram.device(RTM_NEWLINK, kIsUp, "eth0")
      .device(RTM_NEWLINK, IFF_UP, "eth1")       // no carrier
      .device(RTM_NEWLINK, IFF_RUNNING, "eth2")  // switched off
      .device(RTM_DELLINK, kIsUp, "eth3");       // taken away
  EXPECT_THAT(datagram.states(),
              ElementsAre(DeviceState{"eth0", true}, DeviceState{"eth1", false},
                          DeviceState{"eth2", false}, DeviceState{"eth3", false}));
}

TEST(ReadDeviceStates, LeavesOutOtherMessages) {
  Datagram datagram;
  datagram.device(RTM_NEWADDR, kIsUp, "eth0").device(RTM_NEWLINK, kIsUp, "eth1");
  EXPECT_THAT(datagram.states(), ElementsAre(DeviceState{"eth1", true}));
}

TEST(ReadDeviceStates, EndsWhereALengthIsImpossible) {
  for (const uint32_t length : {0U, 1U, 15U, 4096U, UINT32_MAX}) {
    Datagram datagram;
    datagram.device(RTM_NEWLINK, kIsUp, "eth0");
    const size_t second = datagram.bytes().size();
    datagram.device(RTM_NEWLINK, kIsUp, "eth1");
    datagram.set_length(second, length);
    EXPECT_THAT(datagram.states(), ElementsAre(DeviceState{"eth0", true})) << length;
  }
}

TEST(ReadDeviceStates, TakesNoAttributeThatIsNotWhole) {
  Datagram whole;
  whole.device(RTM_NEWLINK, kIsUp, "eth0");
  for (size_t length = 0; length < whole.bytes().size(); ++length) {
    Datagram cut = whole;
    cut.bytes().resize(length);
    if (length >= sizeof(nlmsghdr)) cut.set_length(0, static_cast<uint32_t>(length));
    const auto states = cut.states();
    // The name's own end and the padding behind it may be missing.
    if (length + 8 < whole.bytes().size()) {
      EXPECT_THAT(states, IsEmpty()) << length;
    } else if (!states.empty()) {
      EXPECT_THAT(states, ElementsAre(DeviceState{"eth0", true})) << length;
    }
  }
}

TEST(ReadDeviceStates, ANameNeedNotEnd) {
  Datagram datagram;
  datagram.device(RTM_NEWLINK, kIsUp, "eth0");
  for (uint8_t& byte : datagram.bytes()) {
    if (&byte >= datagram.bytes().data() + datagram.bytes().size() - 8) byte = 'x';
  }
  const auto states = datagram.states();
  ASSERT_EQ(states.size(), 1u);
  EXPECT_LE(states[0].name.size(), 8u);
}

TEST(RailWatch, HearsWhatTheKernelSaysOfTheLoopbackDevice) {
  auto loop = std::move(Loop::create("watch")).value();
  std::vector<size_t> changed;
  auto watch = RailWatch::create(*loop, {"lo", "mlx5_0:1"}, [&](size_t rail, bool is_up) {
    EXPECT_FALSE(is_up);
    changed.push_back(rail);
  });
  ASSERT_TRUE(watch.is_ok()) << watch.status().message();
  EXPECT_THAT(changed, IsEmpty()) << "not from within create";
  uv_run(loop->uv(), UV_RUN_ONCE);  // the answer about all devices is there
  EXPECT_THAT(changed, IsEmpty()) << "lo is up, and the kernel knows nothing of the other one";
}

}  // namespace
}  // namespace braid

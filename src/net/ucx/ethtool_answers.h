// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <linux/ethtool.h>
#include <net/if.h>

namespace braid {

// What the kernel has said of a device's speed (ETHTOOL_GSET). UCX asks some forty times for each
// endpoint, also on the I/O loop when the other side connects, and the kernel answers under a lock
// that it holds for 20 ms where a network namespace is made or removed. So each device is asked
// once. Used by one thread at a time.
class EthtoolAnswers {
 public:
  using Ioctl = int (*)(int socket, unsigned long request, void* argument);

  // What ioctl(socket, SIOCETHTOOL, request) does; `ask` does it where the answer is not known.
  int answer(int socket, ifreq& request, Ioctl ask);

 private:
  struct Known {
    std::string device;
    int result;
    int error;
    ethtool_cmd answer;
  };
  std::vector<Known> known_;
};

}  // namespace braid

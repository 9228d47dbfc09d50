// SPDX-License-Identifier: Apache-2.0
#include "net/ucx/ethtool_answers.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <linux/sockios.h>

namespace braid {

int EthtoolAnswers::answer(int socket, ifreq& request, Ioctl ask) {
  auto* const command = reinterpret_cast<ethtool_cmd*>(request.ifr_data);
  // The other questions have structures of their own.
  if (command == nullptr || command->cmd != ETHTOOL_GSET) return ask(socket, SIOCETHTOOL, &request);
  const std::string device(request.ifr_name, ::strnlen(request.ifr_name, IFNAMSIZ));
  auto known = std::find_if(known_.begin(), known_.end(),
                            [&](const Known& other) { return other.device == device; });
  if (known == known_.end()) {
    errno = 0;
    const int result = ask(socket, SIOCETHTOOL, &request);
    known = known_.insert(known_.end(), {device, result, errno, *command});
  }
  *command = known->answer;
  errno = known->error;
  return known->result;
}

}  // namespace braid

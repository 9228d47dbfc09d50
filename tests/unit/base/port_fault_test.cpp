// SPDX-License-Identifier: Apache-2.0
#include "base/port_fault.h"

#include <cerrno>

#include "base/errors_testing.h"

namespace braid {
namespace {

using testing::names;

TEST(PortFault, NamesWhatHelps) {
  const SocketAddress address = *SocketAddress::parse("fe80::1%lo", 441);
  EXPECT_EQ(port_fault("a.port", address, EADDRINUSE, "another port"),
            "a.port: 441 is taken at fe80::1%lo; stop what listens there (ss -ltnp 'sport = :441' "
            "names it), or use another port");
  EXPECT_TRUE(names(port_fault("a.port", address, EACCES, "another port"),
                    {"a.port: 441", "fe80::1%lo", "user", "; use another port"}));
}

TEST(PortFault, AdvisesNoOtherPortWhereItIsNotThePort) {
  const SocketAddress address = *SocketAddress::parse("127.0.0.1", 441);
  for (const int error : {EADDRNOTAVAIL, EMFILE}) {
    const std::string told = port_fault("a.port", address, error, "another port");
    EXPECT_TRUE(names(told, {"a.port: 441", "127.0.0.1"}));
    EXPECT_EQ(told.find("use "), std::string::npos) << told;
  }
}

}  // namespace
}  // namespace braid

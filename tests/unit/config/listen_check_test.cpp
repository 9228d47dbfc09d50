// SPDX-License-Identifier: Apache-2.0
#include "config/listen_check.h"

#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/fd.h"
#include "base/socket_address.h"

namespace braid {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

constexpr const char* kHere = "127.0.0.1";

uint16_t port_of(const Fd& socket) {
  sockaddr_storage bound{};
  socklen_t bytes = sizeof(bound);
  ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&bound), &bytes);
  return SocketAddress::from(reinterpret_cast<const sockaddr*>(&bound))->port();
}

class ListenCheckTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::array<char, 32> name{"/tmp/listen_check_XXXXXX"};
    folder_ = ::mkdtemp(name.data());
    config_.client.socket = folder_ + "/braidd.sock";
    config_.metrics.port = 0;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  auto troubles() const { return check_listening(config_, kHere).troubles; }
  static void write(const std::string& path) { std::ofstream(path) << "x"; }
  // Listens at a port of the kernel's choice until the test ends.
  uint16_t take_port(const std::string& host = kHere) {
    const SocketAddress address = *SocketAddress::parse(host, 0);
    taken_ = Fd(::socket(address.get()->sa_family, SOCK_STREAM, 0));
    EXPECT_EQ(::bind(taken_.get(), address.get(), address.bytes()), 0);
    EXPECT_EQ(::listen(taken_.get(), 1), 0);
    return port_of(taken_);
  }

  // A port that others may listen at, and that the kernel gives nobody until the test ends.
  uint16_t reserve_port() {
    const SocketAddress address = *SocketAddress::parse(kHere, 0);
    taken_ = Fd(::socket(AF_INET, SOCK_STREAM, 0));
    const int on = 1;
    ::setsockopt(taken_.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    EXPECT_EQ(::bind(taken_.get(), address.get(), address.bytes()), 0);
    return port_of(taken_);
  }

  std::string folder_;
  DaemonConfig config_;
  Fd taken_;
};

TEST_F(ListenCheckTest, HasNothingAgainstWhatIsFree) {
  EXPECT_THAT(troubles(), IsEmpty());
  config_.client.socket = folder_ + "/new/braidd.sock";
  EXPECT_THAT(troubles(), IsEmpty()) << "the daemon makes this folder";
  EXPECT_TRUE(std::filesystem::is_empty(folder_)) << "and the check does not";
}

TEST_F(ListenCheckTest, NamesFoldersThatNobodyMakes) {
  config_.client.socket = folder_ + "/a/b/braidd.sock";
  EXPECT_THAT(troubles(),
              ElementsAre(AllOf(StartsWith("client.socket: the folder " + folder_ + "/a/b is not"),
                                HasSubstr("another folder"))));
  write(folder_ + "/file");
  config_.client.socket = folder_ + "/file/braidd.sock";
  EXPECT_THAT(troubles(), ElementsAre(HasSubstr("/file is no folder")));
}

TEST_F(ListenCheckTest, NamesWhatIsInTheSocketsPlace) {
  write(config_.client.socket);
  EXPECT_THAT(troubles(), ElementsAre(HasSubstr("is there and is no socket; remove it")));
}

TEST_F(ListenCheckTest, NamesPortsThatAreTaken) {
  config_.metrics.port = take_port();
  const std::string port = std::to_string(*config_.metrics.port);
  EXPECT_THAT(troubles(),
              ElementsAre(AllOf(StartsWith("metrics.port: " + port + " is taken at 127.0.0.1; "),
                                HasSubstr("ss -ltnp 'sport = :" + port + "'"),
                                HasSubstr("or 0 for no metrics"))));
  config_.control.port = config_.metrics.port;
  config_.metrics.port = 0;
  EXPECT_THAT(troubles(), IsEmpty()) << "without a key the port is not opened";
  config_.control.cluster_key_file = "/a/key";
  EXPECT_THAT(troubles(), ElementsAre(StartsWith("control.port: " + port + " is taken")));
  config_.control.listen = "203.0.113.9";
  EXPECT_THAT(troubles(), IsEmpty()) << "that it is no own address is said elsewhere";
}

TEST_F(ListenCheckTest, LooksAtIpv6AsWell) {
  config_.control.port = take_port("::1");
  const std::string port = std::to_string(*config_.control.port);
  config_.control.cluster_key_file = "/a/key";
  for (const char* address : {"::1", "::"}) {
    config_.control.listen = address;
    EXPECT_THAT(troubles(),
                ElementsAre(StartsWith("control.port: " + port + " is taken at " + address)));
  }
  config_.control.listen = kHere;
  EXPECT_THAT(troubles(), IsEmpty());
  config_.control.port = take_port();
  config_.control.listen = "::";
  EXPECT_THAT(troubles(), ElementsAre(StartsWith("control.port: "))) << ":: takes IPv4 as well";
}

TEST_F(ListenCheckTest, HoldsThePortsThatItHasTried) {
  config_.metrics.port = reserve_port();
  const ListenCheck check = check_listening(config_, kHere);
  EXPECT_THAT(check.troubles, IsEmpty());
  EXPECT_THAT(troubles(), ElementsAre(StartsWith("metrics.port: ")));
}

TEST_F(ListenCheckTest, WhereADaemonAnswersItHasThePorts) {
  config_.metrics.port = take_port();
  const Fd daemon(::socket(AF_UNIX, SOCK_STREAM, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, config_.client.socket.c_str(), config_.client.socket.size() + 1);
  ASSERT_EQ(::bind(daemon.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  EXPECT_FALSE(check_listening(config_, kHere).is_served) << "what is left of a dead one";
  ASSERT_EQ(::listen(daemon.get(), 1), 0);
  const ListenCheck check = check_listening(config_, kHere);
  EXPECT_TRUE(check.is_served);
  EXPECT_THAT(check.troubles, IsEmpty());
}

}  // namespace
}  // namespace braid

// SPDX-License-Identifier: Apache-2.0
// Runs random programs of collectives on device memory, over real daemons and the fake CUDA driver:
//   device_programs [--first SEED] [--programs N] [--node-ranks L] SOCKET...
// Each program has two to four ranks, each a process; rank i's daemon is the one of SOCKET i,
// around and around. With --node-ranks each SOCKET has L ranks, with a GPU each, and NCCL is the
// fake one (tests/fake_nccl): they go in two levels. Prints each program that fails, with its
// faults, and ends with 1 if there was one.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rank.h"

namespace braid::device_programs {
namespace {

// Far beyond what a program takes: a rank that still runs hangs.
constexpr auto kHangs = std::chrono::seconds(150);
constexpr auto kLook = std::chrono::milliseconds(2);

int usage() {
  std::fputs("usage: device_programs [--first SEED] [--programs N] [--node-ranks L] SOCKET...\n",
             stderr);
  return 2;
}

// In a process of its own, so that the fake driver reads its settings.
pid_t start_rank(const Program& program, uint32_t rank, const std::vector<std::string>& sockets,
                 const Place& master) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  (void)::prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (const auto& [name, value] : program.settings) ::setenv(name.c_str(), value.c_str(), 1);
  const std::string seed = std::to_string(program.seed);
  const std::string number = std::to_string(rank);
  const std::string node = std::to_string(master.master_node);
  const std::string nodes = std::to_string(sockets.size());
  const std::string node_ranks = std::to_string(program.node_ranks);
  const size_t socket = program.node_ranks == 0 ? rank % sockets.size() : rank / program.node_ranks;
  ::execl("/proc/self/exe", "device_programs", "--rank", number.c_str(), seed.c_str(),
          nodes.c_str(), node_ranks.c_str(), sockets[socket].c_str(), master.master_address.c_str(),
          node.c_str(), master.token.c_str(), nullptr);
  std::_Exit(127);
}

int be_rank(char** arguments) {
  const auto number = [&](int index) { return std::strtoull(arguments[index], nullptr, 10); };
  const auto rank = static_cast<uint32_t>(number(0));
  const Program program =
      program_of(number(1), static_cast<uint32_t>(number(2)), static_cast<uint32_t>(number(3)));
  const Place place = {arguments[4], arguments[5], number(6), arguments[7]};
  const std::string faults = run_rank(program, rank, place);
  if (faults.empty()) return 0;
  std::printf("program %llu, rank %u: %s", static_cast<unsigned long long>(program.seed), rank,
              faults.c_str());
  return 1;
}

std::string describe(const Program& program) {
  std::string text = std::to_string(program.ranks) + " ranks";
  for (const auto& [name, value] : program.settings) text += ", " + name + "=" + value;
  return text;
}

bool run(const Program& program, const std::vector<std::string>& sockets, const Place& master) {
  std::vector<pid_t> ranks;
  for (uint32_t rank = 0; rank < program.ranks; ++rank)
    ranks.push_back(start_rank(program, rank, sockets, master));
  bool is_right = true;
  const auto deadline = std::chrono::steady_clock::now() + kHangs;
  for (const pid_t rank : ranks) {
    int status = 0;
    pid_t ended = 0;
    while ((ended = ::waitpid(rank, &status, WNOHANG)) == 0 &&
           std::chrono::steady_clock::now() < deadline)
      std::this_thread::sleep_for(kLook);
    if (ended == rank && WIFEXITED(status) && WEXITSTATUS(status) == 0) continue;
    is_right = false;
    if (ended == rank && WIFEXITED(status) && WEXITSTATUS(status) == 1)
      continue;  // it has said why
    std::printf("program %llu: process %d %s\n", static_cast<unsigned long long>(program.seed),
                rank,
                ended == 0 ? "hangs" : ("ended with status " + std::to_string(status)).c_str());
    if (ended == 0) {
      (void)::kill(rank, SIGKILL);
      (void)::waitpid(rank, &status, 0);
    }
  }
  if (!is_right) {
    std::printf("program %llu failed: %s\n", static_cast<unsigned long long>(program.seed),
                describe(program).c_str());
  }
  return is_right;
}

int run_all(uint64_t first, uint64_t programs, uint32_t node_ranks,
            const std::vector<std::string>& sockets) {
  char address[256] = "";
  Place master;
  if (braid_master(sockets[0].c_str(), 0, address, sizeof(address), &master.master_node) !=
      BRAID_OK) {
    std::fprintf(stderr, "%s\n", braid_error_message());
    return 2;
  }
  master.master_address = address;
  master.token = "device-programs-" + std::to_string(::getpid());
  uint64_t failed = 0;
  for (uint64_t seed = first; seed < first + programs; ++seed) {
    const auto nodes = static_cast<uint32_t>(sockets.size());
    if (!run(program_of(seed, nodes, node_ranks), sockets, master)) ++failed;
    (void)std::fflush(stdout);
  }
  std::printf("%llu programs, %llu failed\n", static_cast<unsigned long long>(programs),
              static_cast<unsigned long long>(failed));
  return failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace braid::device_programs

int main(int argc, char** argv) {
  using namespace braid::device_programs;
  if (argc == 10 && std::strcmp(argv[1], "--rank") == 0) return be_rank(argv + 2);
  uint64_t first = 1;
  uint64_t programs = 30;
  uint32_t node_ranks = 0;
  std::vector<std::string> sockets;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--first" && i + 1 < argc) {
      first = std::strtoull(argv[++i], nullptr, 10);
    } else if (argument == "--programs" && i + 1 < argc) {
      programs = std::strtoull(argv[++i], nullptr, 10);
    } else if (argument == "--node-ranks" && i + 1 < argc) {
      node_ranks = static_cast<uint32_t>(std::strtoul(argv[++i], nullptr, 10));
    } else if (argument.starts_with("-")) {
      return usage();
    } else {
      sockets.push_back(argument);
    }
  }
  return sockets.empty() ? usage() : run_all(first, programs, node_ranks, sockets);
}

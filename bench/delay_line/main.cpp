// SPDX-License-Identifier: Apache-2.0
// braid-delay-line: the network of an emulated cluster with delay and loss. scripts/cluster starts
// it: it makes a NIC (a TAP device) in the network namespace of each node, says "ready", carries
// frames until SIGTERM, and then says what it has counted.
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <CLI/CLI.hpp>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "arguments/parse_arguments.h"
#include "bench/delay_line/carrier.h"

namespace {

using braid::Fd;
using braid::Result;
using braid::Status;
using braid::delay_line::Carrier;
using braid::delay_line::Counts;
using braid::delay_line::LineOptions;
using braid::delay_line::Network;
using braid::delay_line::Tap;

constexpr double kNanosecondsPerMillisecond = 1e6;
constexpr double kDelayMsMax = 10'000;
constexpr uint64_t kBytesPerMib = 1 << 20;
// A wire does not wait for a processor that the nodes keep busy.
constexpr int kNice = -15;

struct Arguments {
  std::string interface;
  std::vector<std::string> namespaces;
  LineOptions line;
};

Result<Fd> stop_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  sigprocmask(SIG_BLOCK, &set, nullptr);
  Fd fd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd.is_valid()) return Status::from_errno(errno, "signalfd");
  return fd;
}

// The nodes are dealt out to as many carriers as there are processors.
Result<Counts> carry(const Network& network, LineOptions options, int stop_fd) {
  const size_t threads = std::clamp<size_t>(std::thread::hardware_concurrency(), 1, network.size());
  std::vector<std::unique_ptr<Carrier>> carriers;
  for (size_t i = 0; i < threads; ++i) {
    std::vector<size_t> nodes;
    for (size_t node = i; node < network.size(); node += threads) nodes.push_back(node);
    carriers.push_back(std::make_unique<Carrier>(network, nodes, options));
    ++options.seed;
  }
  std::vector<Status> ends(threads);
  std::vector<std::thread> running;
  for (size_t i = 0; i < threads; ++i) {
    running.emplace_back([&carrier = *carriers[i], &end = ends[i], stop_fd] {
      end = carrier.run(stop_fd);
      if (!end) ::kill(::getpid(), SIGTERM);  // the others stop, too
    });
  }
  Counts counts;
  for (size_t i = 0; i < threads; ++i) {
    running[i].join();
    counts += carriers[i]->counts();
  }
  for (const Status& end : ends) BRAID_RETURN_IF_ERROR(end);
  return counts;
}

Status run(const Arguments& arguments) {
  std::signal(SIGPIPE, SIG_IGN);
  auto stop = stop_signals();
  if (!stop) return stop.status();
  ::setpriority(PRIO_PROCESS, 0, kNice);     // without the permission it goes without
  ::prctl(PR_SET_TIMERSLACK, 1UL, 0, 0, 0);  // nanoseconds
  std::vector<Tap> taps;
  for (const std::string& path : arguments.namespaces) {
    auto tap = Tap::create(path, arguments.interface);
    if (!tap) return tap.status();
    taps.push_back(std::move(*tap));
  }
  const Network network(std::move(taps));
  std::puts("ready");
  std::fflush(stdout);
  const auto counts = carry(network, arguments.line, stop->get());
  if (!counts) return counts.status();
  fmt::print("{{\"frames\": {}, \"bytes\": {}, \"lost\": {}, \"dropped\": {}, \"refused\": {}}}\n",
             counts->frames, counts->bytes, counts->lost, counts->dropped, counts->refused);
  return Status::ok();
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("braid-delay-line: the network of an emulated cluster (scripts/cluster starts it)");
  Arguments arguments;
  double delay_ms = 0;
  double jitter_ms = 0;
  uint64_t queue_mib = 64;
  app.add_option("--interface", arguments.interface, "its name on every node")->required();
  app.add_option("--delay-ms", delay_ms, "from a node to another")
      ->check(CLI::Range(0.0, kDelayMsMax));
  app.add_option("--jitter-ms", jitter_ms, "more or less than that")
      ->check(CLI::Range(0.0, kDelayMsMax));
  app.add_option("--loss-percent", arguments.line.loss_percent, "of all packets, each way")
      ->check(CLI::Range(0.0, 99.0));
  app.add_option("--seed", arguments.line.seed, "of jitter and loss")->capture_default_str();
  app.add_option("--queue-mib", queue_mib, "under way from a node at most; what is more is dropped")
      ->capture_default_str()
      ->check(CLI::Range(uint64_t{1}, uint64_t{4096}));
  app.add_option("NAMESPACE", arguments.namespaces, "the file of each node's network namespace")
      ->required();
  if (const auto code = braid::parse_arguments(app, argc, argv)) return *code;
  arguments.line.delay_ns = static_cast<uint64_t>(delay_ms * kNanosecondsPerMillisecond);
  arguments.line.jitter_ns = static_cast<uint64_t>(jitter_ms * kNanosecondsPerMillisecond);
  arguments.line.queue_bytes_max = queue_mib * kBytesPerMib;

  Status status = arguments.line.jitter_ns > arguments.line.delay_ns
                      ? braid::make_status(braid::StatusCode::InvalidArgument,
                                           "--jitter-ms is more than --delay-ms")
                      : run(arguments);
  if (status.is_ok()) return 0;
  std::fprintf(stderr, "braid-delay-line: %s\n", status.message().c_str());
  return 1;
}

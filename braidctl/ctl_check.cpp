// SPDX-License-Identifier: Apache-2.0
#include "braidctl/ctl_check.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <set>
#include <thread>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "arguments/format_option.h"
#include "base/printable.h"
#include "client/status_client.h"

namespace braid {
namespace {

using CheckJson = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

constexpr size_t kPeersMax = 64;  // as many as a daemon checks at the same time
// All of it, and its parts.
constexpr uint32_t kTotalMs = 60'000;
constexpr uint32_t kReachMs = 25'000;
// For all measurements of all peers: the rest of the minute is for connecting and for answers that
// come late.
constexpr uint32_t kMeasuringMs = 24'000;
constexpr uint32_t kMeasurementsOfPeer = 4;
constexpr uint32_t kMeasurementMsMin = 50;
constexpr uint32_t kMeasurementMsMax = 1'000;
// What the daemon says first of who may not ask, or of a socket where none listens, it says of all.
constexpr uint32_t kAnswerMsMin = 1'000;

uint32_t left_ms(Clock::time_point deadline) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
  return left.count() <= 0 ? 0 : static_cast<uint32_t>(left.count());
}

Result<PathFacts> ask(const std::string& socket, const HostPort& peer, uint32_t measure_ms,
                      uint32_t timeout_ms) {
  const auto json = query_path(socket, peer.host, peer.port, measure_ms, timeout_ms);
  return json ? parse_path_facts(*json) : json.status();
}

// All at once, since one that does not answer takes seconds.
std::vector<Result<PathFacts>> reach_all(const std::string& socket,
                                         const std::vector<HostPort>& peers) {
  std::vector<Result<PathFacts>> reached(peers.size(), PathFacts{});
  std::vector<std::thread> threads;
  threads.reserve(peers.size());
  for (size_t i = 0; i < peers.size(); ++i)
    threads.emplace_back([&, i] { reached[i] = ask(socket, peers[i], 0, kReachMs); });
  for (std::thread& thread : threads) thread.join();
  return reached;
}

// Keeps what is known of the peer where nothing more can be said.
void measure(const std::string& socket, const HostPort& address, uint32_t measure_ms,
             Clock::time_point deadline, CheckedPeer& peer) {
  const uint32_t timeout_ms = left_ms(deadline);
  auto facts = timeout_ms < kAnswerMsMin
                   ? Status(StatusCode::DeadlineExceeded, "other nodes took the whole minute")
                   : ask(socket, address, measure_ms, timeout_ms);
  if (facts) {
    peer.facts = std::move(*facts);
    peer.findings = path_findings(peer.facts);
  } else {
    peer.findings.push_back(
        {"rate", false, "not measured: " + facts.status().message() + "; check this node alone"});
  }
}

void say_progress(const std::string& what) {
  if (::isatty(STDERR_FILENO) == 1) std::fprintf(stderr, "braidctl: %s\n", what.c_str());
}

std::string name_of(const CheckedPeer& peer) {
  return peer.facts.there.name.empty() ? peer.peer : peer.facts.there.name;
}

}  // namespace

Result<HostPort> parse_peer(const std::string& text) {
  auto peer = parse_host_port(text);
  if (peer) return peer;
  return Status(StatusCode::InvalidArgument, "'" + text + "' " + peer.status().message());
}

CLI::App* add_check_command(CLI::App& app, CheckCommand& command) {
  CLI::App* check = app.add_subcommand(
      "check", "check the way from this node to others before a job runs on them");
  check->fallthrough();
  check
      ->add_option("--peer", command.peers,
                   "the other nodes: name or address, with :PORT if their control.port is another "
                   "one than here")
      ->required()
      ->expected(1, static_cast<int>(kPeersMax))
      ->check(CLI::Validator(
          [](const std::string& text) {
            const auto peer = parse_peer(text);
            return peer ? std::string() : peer.status().message();
          },
          "NODE"));
  add_format_options(*check, command.as_json);
  return check;
}

Result<CommandOutput> run_check(const DaemonSource& daemon, const CheckCommand& command) {
  const auto deadline = Clock::now() + std::chrono::milliseconds(kTotalMs);
  const auto path = daemon.socket("check");
  if (!path) return path.status();
  std::vector<CheckedPeer> peers;
  std::vector<HostPort> addresses;
  std::set<std::string> known;
  for (const std::string& text : command.peers) {
    if (!known.insert(text).second) continue;
    peers.push_back({text, {}, {}});
    addresses.push_back(*parse_peer(text));
  }
  say_progress(fmt::format("looks whether {} can be reached",
                           peers.size() == 1 ? "it" : fmt::format("{} nodes", peers.size())));
  const auto reached = reach_all(*path, addresses);
  size_t to_measure = 0;
  for (size_t i = 0; i < peers.size(); ++i) {
    // The daemon of this node does not answer.
    if (!reached[i]) return reached[i].status();
    peers[i].facts = *reached[i];
    peers[i].findings = path_findings(peers[i].facts);
    if (peers[i].facts.error.empty()) ++to_measure;
  }
  if (to_measure != 0) {
    const auto measure_ms =
        std::clamp(kMeasuringMs / static_cast<uint32_t>(to_measure * kMeasurementsOfPeer),
                   kMeasurementMsMin, kMeasurementMsMax);
    for (size_t i = 0; i < peers.size(); ++i) {
      if (!peers[i].facts.error.empty()) continue;
      say_progress(fmt::format("measures the way to {}", printable(name_of(peers[i]))));
      measure(*path, addresses[i], measure_ms, deadline, peers[i]);
    }
  }
  const bool is_good =
      std::ranges::all_of(peers, [](const CheckedPeer& peer) { return are_good(peer.findings); });
  return CommandOutput{
      command.as_json ? check_json(peers) : check_text(peers), {}, is_good ? 0 : 1};
}

std::string check_text(const std::vector<CheckedPeer>& peers) {
  std::string text;
  std::vector<std::string> bad;
  for (const CheckedPeer& peer : peers) {
    text += fmt::format("{}\n", peer.peer);
    for (const PathFinding& finding : peer.findings) {
      text += fmt::format("  {:<8}  {:<3}  {}\n", finding.check, finding.is_good ? "ok" : "BAD",
                          printable(finding.text));
    }
    if (!are_good(peer.findings)) bad.push_back(printable(name_of(peer)));
  }
  if (bad.empty()) {
    return text + fmt::format("verdict: good, {} of {} nodes are ready for a job with this one\n",
                              peers.size(), peers.size());
  }
  return text + fmt::format("verdict: bad, {} of {} nodes: {}; the lines with BAD say what to do\n",
                            bad.size(), peers.size(), fmt::join(bad, ", "));
}

std::string check_json(const std::vector<CheckedPeer>& peers) {
  CheckJson all = CheckJson::array();
  bool is_good = true;
  for (const CheckedPeer& peer : peers) {
    CheckJson checks = CheckJson::array();
    for (const PathFinding& finding : peer.findings) {
      checks.push_back(
          {{"check", finding.check}, {"good", finding.is_good}, {"text", finding.text}});
    }
    is_good = is_good && are_good(peer.findings);
    all.push_back({{"peer", peer.peer},
                   {"good", are_good(peer.findings)},
                   {"checks", std::move(checks)},
                   {"facts", CheckJson::parse(to_json(peer.facts))}});
  }
  return CheckJson({{"good", is_good}, {"peers", std::move(all)}})
             .dump(2, ' ', false, CheckJson::error_handler_t::replace) +
         '\n';
}

}  // namespace braid

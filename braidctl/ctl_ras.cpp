// SPDX-License-Identifier: Apache-2.0
#include "braidctl/ctl_ras.h"

#include <algorithm>
#include <array>
#include <chrono>

#include <fmt/chrono.h>
#include <nlohmann/json.hpp>

#include "base/hash.h"
#include "braidctl/ctl_explain.h"
#include "client/status_client.h"
#include "explain/pending.h"

namespace braid {
namespace {

using Json = nlohmann::ordered_json;

// Values of ncclResult_t, which nccl.h fixes.
constexpr int kNcclSuccess = 0;
constexpr int kNcclInProgress = 7;
constexpr uint32_t kStatusTimeoutMs = 5000;

struct RasCollective {
  const char* nccl;
  const char* own;
};
// NCCL has no barrier; a tool that sums counts up by name shows one more row.
constexpr std::array<RasCollective, 8> kRasCollectives = {{{"AllGather", "all-gather"},
                                                           {"AllReduce", "all-reduce"},
                                                           {"AlltoAll", "all-to-all"},
                                                           {"Broadcast", "broadcast"},
                                                           {"Gather", "gather"},
                                                           {"ReduceScatter", "reduce-scatter"},
                                                           {"Scatter", "scatter"},
                                                           {"Barrier", "barrier"}}};

Json collective_counts(const NodeFacts& node) {
  Json counts;
  for (const RasCollective& one : kRasCollectives) {
    const auto found = node.collectives.find(one.own);
    counts[one.nccl] = found == node.collectives.end() ? 0 : found->second;
  }
  return counts;
}

uint32_t epoch_of(const JobFacts& facts) {
  return facts.nodes.empty() ? 0 : facts.nodes.front().epoch;
}

// As this node's daemon knows the job; nullptr: it is over.
const DaemonStatus::Job* status_of(const DaemonStatus& status, const JobFacts& facts) {
  const auto found = std::ranges::find_if(status.jobs, [&](const DaemonStatus::Job& job) {
    return job.name == facts.job && job.epoch == epoch_of(facts);
  });
  return found == status.jobs.end() ? nullptr : &*found;
}

std::vector<Json> ranks_of(const NodeFacts& node, bool is_running) {
  std::vector<Json> ranks;
  for (size_t i = 0; i < node.ranks.size(); ++i) {
    const int64_t pid = i < node.pids.size() ? node.pids[i] : 0;
    ranks.push_back({{"rank", node.ranks[i]},
                     {"host", node.address},
                     {"pid", pid > 0 ? pid : -1},
                     {"status",
                      {{"init_state", is_running ? kNcclSuccess : kNcclInProgress},
                       {"async_error", kNcclSuccess},
                       {"finalize_called", pid < 0}}},
                     {"collective_counts", collective_counts(node)}});
  }
  return ranks;
}

Json missing_ranks(const JobFacts& facts, const DaemonStatus::Job* job) {
  Json missing = Json::array();
  if (job == nullptr) return missing;
  for (const DaemonStatus::JobNode& node : job->nodes) {
    if (std::ranges::find(facts.missing, node.name) == facts.missing.end()) continue;
    for (const uint32_t rank : node.ranks) {
      missing.push_back({{"rank", rank},
                         {"host", node.address},
                         {"pid", -1},
                         {"status", {{"unresponsive", true}, {"considered_dead", false}}}});
    }
  }
  return missing;
}

Json communicator_of(const JobFacts& facts, const DaemonStatus::Job* job) {
  std::vector<Json> ranks;
  uint32_t size = job == nullptr ? 0 : job->world_size;
  for (const NodeFacts& node : facts.nodes) {
    size = std::max(size, node.world_size);
    for (Json& rank : ranks_of(node, job == nullptr || job->state == "running"))
      ranks.push_back(std::move(rank));
  }
  std::ranges::sort(ranks, {}, [](const Json& rank) { return rank.at("rank").get<uint32_t>(); });
  Json missing = missing_ranks(facts, job);
  const std::string identity = facts.job + '\0' + std::to_string(epoch_of(facts));
  return {
      {"hash", fmt::format("{:#x}", mix64(fnv1a64(identity)))},
      {"size", size},
      {"ranks_count", ranks.size()},
      {"missing_ranks_count", missing.size()},
      {"ranks", std::move(ranks)},
      {"missing_ranks", std::move(missing)},
      {"braid",
       {{"job", facts.job},
        {"epoch", epoch_of(facts)},
        {"pending", Json::parse(pending_json(facts, pending_operations(facts)))["operations"]}}}};
}

}  // namespace

std::string ras_json(const DaemonStatus& status, const std::vector<JobFacts>& jobs,
                     const RasTimes& times) {
  Json communicators = Json::array();
  size_t timeouts = 0;
  for (const JobFacts& job : jobs) {
    timeouts += job.missing.size();
    communicators.push_back(communicator_of(job, status_of(status, job)));
  }
  return Json({{"braid_version", status.version},
               {"timestamp", fmt::format("{:%F %T}", fmt::localtime(times.now))},
               {"communicators_count", jobs.size()},
               {"communicators", std::move(communicators)},
               {"ras",
                {{"collection_time_sec", times.collection_seconds}, {"timeouts_count", timeouts}}}})
             .dump(2, ' ', false, Json::error_handler_t::replace) +
         '\n';
}

Result<CommandOutput> run_ras_status(const DaemonSource& daemon) {
  const auto began = std::chrono::steady_clock::now();
  const auto told = daemon.status(kStatusTimeoutMs);
  if (!told) return told.status();
  const auto status = parse_status(*told);
  if (!status) return status.status();
  const auto answer = daemon.facts("", kFactsTimeoutMs);
  if (!answer) return answer.status();
  const auto jobs = parse_job_facts(answer->json);
  if (!jobs) return jobs.status();
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - began;
  return CommandOutput{ras_json(*status, *jobs, {std::time(nullptr), passed.count()}), {}};
}

}  // namespace braid

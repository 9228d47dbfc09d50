// SPDX-License-Identifier: Apache-2.0
#include "telling/gpu_ranks.h"

#include <map>

namespace braid {
namespace {

struct Trainer {
  const Job* job = nullptr;
  uint32_t rank = 0;
};

std::map<pid_t, Trainer> trainers_of(const std::vector<const Job*>& jobs) {
  std::map<pid_t, Trainer> trainers;
  for (const Job* job : jobs) {
    for (size_t i = 0; i < job->sessions().size(); ++i) {
      const Session* session = job->sessions()[i];
      // 0: in a PID namespace that the daemon does not see.
      if (session == nullptr || session->credentials().pid == 0) continue;
      Trainer& trainer = trainers[session->credentials().pid];
      if (trainer.job == nullptr || trainer.job->planned_bytes() < job->planned_bytes())
        trainer = {job, job->membership().local_ranks[i]};
    }
  }
  return trainers;
}

}  // namespace

std::vector<GpuFacts> with_ranks(std::vector<GpuFacts> gpus, const std::vector<const Job*>& jobs) {
  const std::map<pid_t, Trainer> trainers = trainers_of(jobs);
  for (GpuFacts& gpu : gpus) {
    std::vector<GpuFacts::Process> told;
    for (GpuFacts::Process& process : gpu.processes) {
      const auto trainer = trainers.find(static_cast<pid_t>(process.pid));
      if (trainer == trainers.end()) {
        ++gpu.other_processes;
        continue;
      }
      process.job = trainer->second.job->name();
      process.rank = trainer->second.rank;
      told.push_back(std::move(process));
    }
    gpu.processes = std::move(told);
  }
  return gpus;
}

}  // namespace braid

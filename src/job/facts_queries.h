// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "job/job.h"
#include "loop/timer.h"
#include "net/control_plane.h"

namespace braid {

// Who has asked what the nodes of a job know of its steps, and what has come so far. A node asks
// the job's coordinator, which asks all nodes, since only the coordinator is connected to all of
// them. Whoever does not answer in time is named as missing. Control loop only.
class FactsQueries {
 public:
  static constexpr uint32_t kAnswerTimeoutMs = 2000;       // of a node
  static constexpr uint32_t kCoordinatorTimeoutMs = 2500;  // of all nodes, through the coordinator
  static constexpr size_t kGatheringsMax = 64;
  static constexpr size_t kFactsBytesMax = 256 << 10;  // of one node

  // What this node knows of the job, as JSON (explain/node_facts.h); nothing: the job is over.
  // Calls back once, later.
  using Told = std::function<void(std::optional<std::string>)>;
  using Tell = std::function<void(uint64_t job_key, Told told)>;
  // {"job", "nodes", "missing"}, as parse_job_facts reads it.
  using Gathered = std::function<void(std::string json)>;

  FactsQueries(Loop& loop, ControlPlane& control_plane, Tell tell)
      : loop_(loop), control_plane_(control_plane), tell_(std::move(tell)) {}
  ~FactsQueries() { lifetime_.end(); }

  // `gathered` comes once, never from within this call, within kCoordinatorTimeoutMs.
  // ResourceExhausted: kGatheringsMax are under way.
  Status gather(const Job& job, Gathered gathered);

  // From a node of the job, or its coordinator.
  void on_query(const Peer& from, const Job& job, const proto::FactsQuery& query);
  // Answers to what nobody has asked, or not any more, are dropped.
  void on_reply(const Peer& from, const proto::FactsReply& reply);

 private:
  struct Gathering {
    explicit Gathering(Loop& loop) : deadline(loop) {}
    uint64_t job_key = 0;
    std::string job_name;
    std::vector<Peer> nodes;  // of the job, in ring order
    NodeId coordinator = 0;
    bool is_asked_of_coordinator = false;  // else of all nodes
    std::vector<NodeId> awaited;           // that have been asked and not answered
    std::map<NodeId, std::string> told;    // by node
    std::optional<std::string> all_told;   // by the coordinator, of all nodes
    Gathered gathered;
    Timer deadline;
  };
  void ask(Gathering& gathering, uint64_t question);
  void on_answer(uint64_t question, NodeId from, std::optional<std::string> json);
  void conclude(uint64_t question);
  void reply(NodeId to, uint64_t job_key, uint64_t question, const std::string& json);

  Loop& loop_;
  ControlPlane& control_plane_;
  const Tell tell_;
  uint64_t last_question_ = 0;
  std::map<uint64_t, std::unique_ptr<Gathering>> gatherings_;  // by question
  Lifetime lifetime_;
};

}  // namespace braid

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "control/control_plane.h"
#include "job/job.h"
#include "loop/timer.h"
#include "loop/work_thread.h"
#include "telling/parted_answers.h"
#include "timeline/clock_offset.h"

namespace braid {

// Who has asked what the nodes of a job know of its steps, and what has come so far: facts, or the
// timeline of its latest steps. A node asks the job's coordinator, which asks all nodes, since only
// the coordinator is connected to all of them. A node that does not answer in time is named as
// missing. Before a node is asked for its timeline, its clock is compared with this node's. Control
// loop only.
class NodeQueries {
 public:
  static constexpr size_t kGatheringsMax = 64;
  static constexpr size_t kTimelinesMax = 4;  // of these
  static constexpr size_t kGatheringsOfUserMax = 24;
  static constexpr size_t kTimelinesOfUserMax = 2;
  static constexpr size_t kFactsBytesMax = 256 << 10;  // of one node
  static constexpr size_t kTimelineBytesMax = 2 << 20;
  static constexpr size_t kTimelineBytesOfAllMax = 8 << 20;
  static constexpr uint32_t kStepsMax = 64;

  // A span of time on this node.
  struct Window {
    uint64_t first_step = 0;
    uint64_t begin_ns = 0;
    uint64_t end_ns = 0;
  };
  // What this node knows of the job, as JSON: explain/node_facts.h, or timeline/node_timeline.h
  // where a timeline is asked for. Nothing: the job is over, or too much is asked. Calls back once,
  // later.
  using Told = std::function<void(std::optional<std::string>)>;
  struct Sources {
    std::function<void(const Job& job, Told told)> facts;
    std::function<void(const Job& job, const TimelineSpan& span, Told told)> timeline;
    // When the latest `steps` were.
    std::function<Window(const Job& job, uint32_t steps)> window;
  };
  struct Question {
    uint32_t timeline_steps = 0;  // 0: facts
    std::optional<uid_t> user{};  // who asks; none: this daemon itself
    bool is_timeline() const { return timeline_steps != 0; }
  };
  // As parse_job_facts and parse_job_timeline read it.
  using Gathered = std::function<void(std::shared_ptr<const std::string> json)>;

  // `joiner`: puts answers together.
  NodeQueries(Loop& loop, const Clock& clock, ControlPlane& control_plane, WorkThread& joiner,
              Sources sources)
      : loop_(loop),
        clock_(clock),
        control_plane_(control_plane),
        joiner_(joiner),
        sources_(std::move(sources)),
        answers_(loop) {}
  ~NodeQueries() { lifetime_.end(); }

  // `gathered` comes once, never from within this call, within 2.5 s, of timelines 7 s.
  // ResourceExhausted: as many as may be are under way.
  Status gather(const Job& job, Question question, Gathered gathered);

  // From a node of the job, or its coordinator.
  void on_query(const Peer& from, const Job& job, const proto::FactsQuery& query);
  void on_clock_query(const Peer& from, const proto::ClockQuery& query);
  // Answers to what nobody has asked, or not any more, are dropped.
  void on_reply(const Peer& from, const proto::FactsReply& reply);
  void on_clock_reply(const Peer& from, const proto::ClockReply& reply);

 private:
  struct Node {
    Peer peer;
    bool is_awaited = false;  // it was asked and has not answered
    ClockOffset clock;
    uint32_t rounds_asked = 0;
    uint64_t asked_ns = 0;  // in the latest of these
    PartedText coming;
    std::optional<std::string> told;
  };
  struct Gathering {
    explicit Gathering(Loop& loop) : deadline(loop) {}
    uint64_t number = 0;
    Question question;
    uint64_t job_key = 0;
    std::string job_name;
    Window window;            // of a timeline
    uint64_t bytes_max = 0;   // of each node
    std::vector<Node> nodes;  // of the job, in ring order
    NodeId coordinator = 0;
    bool is_asked_of_coordinator = false;  // else of all nodes
    PartedText all_coming;
    std::optional<std::string> all_told;  // by the coordinator, of all nodes
    Gathered gathered;
    Timer deadline;
  };
  // What the answer is made of, on another thread.
  struct Answers;

  Status check_user(const Question& question) const;
  Gathering* find(uint64_t question, uint64_t job_key);
  static Node* find_awaited(Gathering& gathering, NodeId node);
  void ask(Gathering& gathering, const Job& job);
  void ask_other(Gathering& gathering, Node& node);
  // False: it cannot be asked.
  bool ask_clock(Gathering& gathering, Node& node);
  bool ask_timeline(Gathering& gathering, Node& node);
  void ask_self(Gathering& gathering, const Job& job);
  void drop(Gathering& gathering, Node& node);
  void on_answer(uint64_t question, NodeId from, std::optional<std::string> json);
  void conclude(uint64_t question);
  void reply(NodeId to, uint64_t job_key, uint64_t question,
             std::shared_ptr<const std::string> json);
  Told reply_to(NodeId to, uint64_t job_key, uint64_t question);

  Loop& loop_;
  const Clock& clock_;
  ControlPlane& control_plane_;
  WorkThread& joiner_;
  const Sources sources_;
  PartedAnswers answers_;
  uint64_t last_question_ = 0;
  std::map<uint64_t, std::unique_ptr<Gathering>> gatherings_;  // by question
  Lifetime lifetime_;
};

}  // namespace braid

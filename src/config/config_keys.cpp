// SPDX-License-Identifier: Apache-2.0
#include "config/config_keys.h"

#include <array>

#include "config/checks.h"
#include "engine/early_limits.h"
#include "proto/chunk.h"

namespace braid {
namespace {

constexpr uint64_t kKiB = 1ull << 10;
constexpr uint64_t kMiB = 1ull << 20;
constexpr uint64_t kGiB = 1ull << 30;
constexpr uint64_t kTiB = 1ull << 40;
constexpr uint64_t kDayMs = 86'400'000;

constexpr std::array<ConfigSection, 12> kSections = {{
    {"node", "Who this node is."},
    {"control", "The connections between daemons."},
    {"client", "The Unix socket through which trainers come."},
    {"transport", "The flows that carry gradients between nodes."},
    {"collective", "How reductions are cut and limited."},
    {"plan",
     "What is merged: of the jobs that this node coordinates (those whose rank 0 runs here)."},
    {"tune",
     "How gradients travel, found out while jobs train: of the jobs that this node coordinates. "
     "See "
     "tuning.md."},
    {"guard",
     "How much codecs lose, and when that is too much: of the jobs that this node coordinates. See "
     "compression.md."},
    {"timeline", "What was done when, for braidctl trace. See timeline.md."},
    {"metrics", "The HTTP port, with /metrics for Prometheus, /healthz and /readyz."},
    {"page", "The daemon's own page, on the same port. See page.md."},
    {"log", "What is logged, to stderr (under systemd: to the journal)."},
}};

// A pointer to the member, as a function of the config.
#define BRAID_FIELD(member) [](DaemonConfig& config) -> ConfigField { return &config.member; }

constexpr ConfigKey text(std::string_view name, ConfigField (*field)(DaemonConfig&),
                         Status (*check)(const std::string&), std::string_view allowed,
                         std::string_view help) {
  return {.name = name,
          .kind = ConfigKind::Text,
          .field = field,
          .allowed = allowed,
          .check = check,
          .help = help};
}

constexpr ConfigKey list(std::string_view name, ConfigField (*field)(DaemonConfig&),
                         Status (*check)(const std::string&), std::string_view allowed,
                         std::string_view help) {
  return {.name = name,
          .kind = ConfigKind::List,
          .field = field,
          .allowed = allowed,
          .check = check,
          .help = help};
}

constexpr ConfigKey number(std::string_view name, ConfigField (*field)(DaemonConfig&), uint64_t min,
                           uint64_t max, std::string_view help) {
  return {.name = name,
          .kind = ConfigKind::Integer,
          .field = field,
          .min = min,
          .max = max,
          .help = help};
}

constexpr ConfigKey bytes(std::string_view name, ConfigField (*field)(DaemonConfig&), uint64_t min,
                          uint64_t max, std::string_view help) {
  return {.name = name,
          .kind = ConfigKind::Bytes,
          .field = field,
          .min = min,
          .max = max,
          .help = help};
}

constexpr ConfigKey bytes_or_auto(std::string_view name, ConfigField (*field)(DaemonConfig&),
                                  uint64_t max, std::string_view help) {
  ConfigKey key = bytes(name, field, 0, max, help);
  key.kind = ConfigKind::BytesOrAuto;
  return key;
}

constexpr ConfigKey share(std::string_view name, ConfigField (*field)(DaemonConfig&),
                          std::string_view help) {
  return {.name = name, .kind = ConfigKind::Share, .field = field, .help = help};
}

constexpr ConfigKey mode(std::string_view name, ConfigField (*field)(DaemonConfig&),
                         std::string_view allowed, std::string_view help) {
  return {.name = name, .kind = ConfigKind::Mode, .field = field, .allowed = allowed, .help = help};
}

constexpr ConfigKey reloadable(ConfigKey key) {
  key.reloadable = true;
  return key;
}

constexpr std::array kKeys = {
    text("node.name", BRAID_FIELD(node.name), check_node_name, "a name, or auto",
         "What messages, metrics and status call this node; auto: the host name."),
    text("node.address", BRAID_FIELD(node.address), check_address_or_auto,
         "an IPv4 address, or auto",
         "Where other nodes reach this one; auto: the IPv4 address of the first rail."),
    text("node.rack", BRAID_FIELD(node.rack), check_rack, "a name, or empty",
         "The rack that this node is in; the same name on all nodes there. Where every node of a "
         "job has one, the ring crosses each rack's border once each way. Empty: not known."),
    text(
        "node.polling", BRAID_FIELD(node.polling), check_polling, "off, adaptive or always",
        "Whether braidd's loops and the trainers' waiting threads look again and again for a short "
        "time before they sleep: an all-reduce of 1 kB between two nodes then takes half as long. "
        "adaptive: up to 0.1 ms at a time, not where that brings nothing, and not while others "
        "need "
        "the processor. always: for cores that nobody else uses; as long as a job is open."),

    number("control.port", BRAID_FIELD(control.port), 1, 65535,
           "TCP port of the connections between daemons; the same on all nodes."),
    text("control.listen", BRAID_FIELD(control.listen), check_address_or_auto,
         "an IPv4 address, or auto",
         "The address that port is opened on, if there is a cluster key; auto: node.address."),
    text("control.cluster_key_file", BRAID_FIELD(control.cluster_key_file), check_cluster_key_file,
         "an absolute path, or empty",
         "File with the secret that daemons prove to each other; the same secret on all nodes. "
         "Empty: control.port is not opened, and jobs are of this node only."),
    number("control.heartbeat_interval_ms", BRAID_FIELD(control.heartbeat_interval_ms), 10, 60'000,
           "Time between two signs of life to each peer, in milliseconds."),
    number(
        "control.peer_timeout_ms", BRAID_FIELD(control.peer_timeout_ms), 100, 600'000,
        "A peer that is silent for so long, in milliseconds, is lost, and its jobs fail. So is a "
        "link on which no flow is open for so long, but not before 5 s."),
    number(
        "control.connect_timeout_ms", BRAID_FIELD(control.connect_timeout_ms), 100, 600'000,
        "Most time for connecting to a peer and shaking hands, in milliseconds. Opening a link's "
        "flows may take as long, or 5 s if that is more."),

    text("client.socket", BRAID_FIELD(client.socket), check_socket_path,
         "an absolute path of at most 107 bytes",
         "Path of the socket; trainers find it there or through BRAID_SOCKET."),
    text("client.group", BRAID_FIELD(client.group), check_group, "the name of a group, or empty",
         "The socket belongs to this group: its members may train through this daemon. Empty: the "
         "daemon's own group."),
    mode("client.mode", BRAID_FIELD(client.mode), "an octal mode without rights for others",
         "File mode of the socket."),
    number("client.jobs_max", BRAID_FIELD(client.jobs_max), 1, 4096,
           "Most jobs with ranks on this node at the same time."),
    number("client.job_weight_max", BRAID_FIELD(client.job_weight_max), 1, 100,
           "Largest weight that a trainer may ask for with BRAID_JOB_WEIGHT."),
    bytes("client.arena_bytes_max", BRAID_FIELD(client.arena_bytes_max), kMiB, 16 * kTiB,
          "Most that a trainer's input arenas have together: address space."),
    number("client.user_connections_max", BRAID_FIELD(client.user_connections_max), 1, 4096,
           "Most connections of one user's processes. This limit and the following ones of a user "
           "are for others than root and the user as whom the daemon runs."),
    number("client.user_jobs_max", BRAID_FIELD(client.user_jobs_max), 1, 4096,
           "Most jobs of one user on this node at the same time, those included that wait for "
           "ranks."),
    bytes("client.user_arena_bytes_max", BRAID_FIELD(client.user_arena_bytes_max), kMiB, 64 * kTiB,
          "Most that one user's input arenas have together: address space."),
    bytes("client.user_result_bytes_max", BRAID_FIELD(client.user_result_bytes_max), 0, 16 * kTiB,
          "Most memory of the daemon that one user has: the results of its jobs, inputs that were "
          "never written before they were submitted, buffers (rings, unfinished messages, what "
          "came early from other nodes), and what its processes keep of all that after their jobs, "
          "together; 0: half of what the machine has, or of what the daemon's control group allows "
          "it (MemoryMax) if that is less."),
    number("client.user_tensors_max", BRAID_FIELD(client.user_tensors_max), 1, 1u << 30,
           "Most tensors that one user's trainers have registered."),
    bytes("client.user_reply_bytes_max", BRAID_FIELD(client.user_reply_bytes_max), kMiB, kTiB,
          "Most bytes of messages that one user's processes have not read; a connection that goes "
          "beyond it is closed."),
    number("client.user_queries_max", BRAID_FIELD(client.user_queries_max), 1, 1u << 16,
           "Most queries (braidctl) of one user that wait for an answer."),
    bytes("client.user_name_bytes_max", BRAID_FIELD(client.user_name_bytes_max), kMiB, kTiB,
          "Most bytes of names of the tensors that one user's trainers have registered."),
    number("client.user_descriptors_max", BRAID_FIELD(client.user_descriptors_max), 0, 1u << 20,
           "Most file descriptors that the daemon has open for one user's processes; 0: a quarter "
           "of those that it may have (LimitNOFILE in its unit, ulimit -n)."),
    number(
        "client.user_operations_max", BRAID_FIELD(client.user_operations_max), 1, 1u << 30,
        "Most operations that one user's trainers have submitted and whose results they have not "
        "released, those of each rank counted; a job that goes beyond it fails."),
    list("client.codecs", BRAID_FIELD(client.codecs), check_codec, "names of codecs, none, or all",
         "What gradients may travel as between nodes where a trainer asks for it, whatever the "
         "parameters; a tensor with another codec is refused. none: only as they are."),

    list("transport.rails", BRAID_FIELD(transport.rails), check_rail, "network devices, or auto",
         "Network devices that carry flows; auto: the interface of the default route, else the one "
         "that has node.address, else the first that has a link and is no bridge (docker0), else a "
         "bridge, else lo. One rail needs a link when the daemon starts; the others are used "
         "as soon as they have one."),
    list("transport.transports", BRAID_FIELD(transport.transports), check_transport,
         "names of UCX transports", "What UCX may use on the rails (UCX_TLS)."),
    number("transport.flows_per_link", BRAID_FIELD(transport.flows_per_link), 0, 128,
           "Flows to each other node, per I/O thread; 0: four per core, 4 to 16."),
    number("transport.io_threads", BRAID_FIELD(transport.io_threads), 0, 64,
           "Threads that move and add gradients; 0: one per four cores. The same on all nodes."),
    bytes("transport.chunk_bytes", BRAID_FIELD(transport.chunk_bytes), 4 * kKiB,
          proto::kChunkBytesMax, "Size of one message on a flow; the same on all nodes."),
    bytes("transport.window_bytes", BRAID_FIELD(transport.window_bytes), 4 * kKiB, kGiB,
          "A flow with so many unacknowledged bytes takes no further chunk."),
    number("transport.slow_flow_percent", BRAID_FIELD(transport.slow_flow_percent), 0, 90,
           "A flow that stays below this share of the median rate of its link's flows is opened "
           "again, for another path through the network; 0: never."),
    number("transport.idle_link_seconds", BRAID_FIELD(transport.idle_link_seconds), 1,
           kDayMs / 1000,
           "Connections to a node to which no job has sent for this time are closed."),

    bytes("collective.unit_bytes", BRAID_FIELD(collective.unit_bytes), 64 * kKiB, 16 * kGiB,
          "A tensor or group larger than this is cut into units of this size; the same on all "
          "nodes."),
    number("collective.streams", BRAID_FIELD(collective.streams), 1, 64,
           "Most units in flight at once, per job and I/O thread."),
    bytes_or_auto(
        "collective.direct_bytes", BRAID_FIELD(collective.direct_bytes), direct_bytes_max(2),
        "All-reduces of up to this size, and of no more than transport.chunk_bytes, go from every "
        "node to every other one, in jobs of up to 8 nodes that this node coordinates (rank 0 "
        "runs here); 0: none; auto: those for which that takes the least time, by the distance "
        "of the nodes. Among n nodes 4MiB / (n - 1)² are the most: 4 MiB among 2, 1 MiB among 3, "
        "455 KiB among 4, 83 KiB among 8. Where this says more, the log tells what is used "
        "instead."),
    bytes_or_auto(
        "collective.two_hops_bytes", BRAID_FIELD(collective.two_hops_bytes), kGiB,
        "Larger all-reduces of up to this size go by two hops, each node's part of a segment "
        "straight to its owner and the sum straight to all, in jobs of 3 to 32 nodes that this "
        "node coordinates; 0: none; auto: as above, in jobs of up to 8 nodes."),
    bytes_or_auto(
        "collective.halving_bytes", BRAID_FIELD(collective.halving_bytes), kGiB,
        "Larger all-reduces of up to this size go by recursive halving and doubling, in jobs of 4 "
        "nodes or more that this node coordinates; 0: none; auto: as above."),
    text("collective.hierarchical", BRAID_FIELD(collective.hierarchical), check_on_off, "on or off",
         "Whether all larger ones go by racks, in jobs that this node coordinates and whose racks "
         "(node.rack) are two or more, of the same number of nodes, at least two; otherwise they "
         "go around the ring."),
    reloadable(number("collective.operation_timeout_ms",
                      BRAID_FIELD(collective.operation_timeout_ms), 100, kDayMs,
                      "An operation for which trainers give no timeout fails its job after this "
                      "time, in milliseconds.")),
    bytes("collective.result_bytes_max", BRAID_FIELD(collective.result_bytes_max), kMiB, 16 * kTiB,
          "Size of a job's result memory on this node: address space; memory is taken as it is "
          "used."),
    bytes("collective.result_memory_max", BRAID_FIELD(collective.result_memory_max), 0, 16 * kTiB,
          "Most memory of the daemon that all users have, of what client.user_result_bytes_max "
          "counts; 0: three quarters of what the machine has, or of what the daemon's control "
          "group allows it (MemoryMax) if that is less."),
    number("collective.leave_timeout_ms", BRAID_FIELD(collective.leave_timeout_ms), 100, kDayMs,
           "Where some ranks of a job have left it and others neither leave nor die for this time, "
           "in milliseconds, the job is ended for those, in jobs that this node coordinates."),

    text("plan.planner", BRAID_FIELD(plan.planner), check_planner,
         "the name of a planner, or first",
         "Plans which gradients are merged, from what the job's nodes measure while it trains; "
         "first: every job keeps the plan it begins with."),
    share("plan.min_gain", BRAID_FIELD(plan.min_gain),
          "A running job changes to a new plan when that is predicted to take at least this share "
          "less time per iteration, than the plan that holds is predicted to and was measured to."),

    text("tune.mode", BRAID_FIELD(tune.mode), check_on_off, "on or off",
         "Whether jobs of several nodes try other settings in their first steps, and keep what is "
         "faster than the configured ones."),
    text("tune.searcher", BRAID_FIELD(tune.searcher), check_tune_searcher, "grid or portfolio",
         "What proposes the settings that are tried: a lattice around the best ones; or five "
         "searchers, a lattice among them, to which a bandit gives the turns."),
    list("tune.pin", BRAID_FIELD(tune.pin), check_tune_pin,
         "flows_per_link, streams, unit_bytes, chunk_bytes, window_bytes, direct_bytes, "
         "two_hops_bytes, halving_bytes, hierarchical; or none",
         "What stays as it is configured. Where plan.planner is first, unit_bytes, direct_bytes, "
         "two_hops_bytes, halving_bytes and hierarchical stay, too."),
    number("tune.steps", BRAID_FIELD(tune.steps), 30, 3000,
           "Most steps of a job that are measured for it; more where what was learned earlier does "
           "not hold any longer."),
    text("tune.state_directory", BRAID_FIELD(tune.state_directory), check_state_directory,
         "an absolute path, auto, or empty",
         "Where it is kept what tuning has learned, in tuning.json, for the next start of the same "
         "job or one that is alike; auto: $STATE_DIRECTORY, which systemd sets (/var/lib/braid), "
         "and "
         "without it nowhere; empty: nowhere."),

    number(
        "guard.every_steps", BRAID_FIELD(guard.every_steps), 0, 1'000'000'000,
        "What codecs lose is measured in one of so many steps; 0: never. Three measurements in a "
        "row beyond one of the following limits send a group of tensors back to plain elements."),
    number(
        "guard.residual_max", BRAID_FIELD(guard.residual_max), 0, 1'000'000'000,
        "Largest norm of what error feedback holds back, in norms of the gradient; 0: no limit."),
    share("guard.cosine_min", BRAID_FIELD(guard.cosine_min),
          "Smallest cosine between the sum that all ranks get and the exact one; 0: no limit."),
    share("guard.saturation_max", BRAID_FIELD(guard.saturation_max),
          "Largest share of elements that the codec cannot send: of 2bit those that still hold a "
          "whole threshold back, of fp16 those that became infinite; not for codecs with "
          "full-every; 0: no limit."),

    number(
        "timeline.events", BRAID_FIELD(timeline.events), 0, 1 << 20,
        "How many of its latest spans each I/O loop keeps for braidctl trace and for the files of "
        "jobs that fail, at 64 bytes each: half of them operations, units and submissions, half "
        "of them chunks; 0: none."),
    text("timeline.directory", BRAID_FIELD(timeline.directory), check_state_directory,
         "an absolute path, auto, or empty",
         "Where the timeline of a job that fails is written on each of its nodes, the latest 32 of "
         "them; auto: timelines in the directory of tune.state_directory, nowhere if "
         "that is nowhere; empty: nowhere."),

    text("metrics.address", BRAID_FIELD(metrics.address), check_address, "an IPv4 address",
         "The address /metrics and the page are served on."),
    number("metrics.port", BRAID_FIELD(metrics.port), 0, 65535,
           "The TCP port /metrics and the page are served on; 0: not at all."),
    number("metrics.explain_seconds", BRAID_FIELD(metrics.explain_seconds), 0, 86'400,
           "How often each job whose first rank is on this node is explained for "
           "braid_job_finding_ratio, where /metrics is served; 0: never."),

    text(
        "page.access", BRAID_FIELD(page.access), check_page_access, "off, loopback or token",
        "Who may read the page. loopback: users of this node, from this node, each of them his own "
        "jobs, root and the daemon's user all. token: everybody with the token, from anywhere, "
        "with a view of all jobs."),
    text("page.token_file", BRAID_FIELD(page.token_file), check_page_token_file,
         "an absolute path, or empty",
         "File with the token of page.access: token, of 16 bytes or more; closed to group and "
         "others."),

    reloadable(text("log.level", BRAID_FIELD(log.level), check_level,
                    "trace, debug, info, warn or error", "The least important lines to log.")),
    text("log.format", BRAID_FIELD(log.format), check_log_format, "auto, text or json",
         "How lines are written to stderr. auto: where systemd has connected it with the journal, "
         "to that, with fields for job, rank, peer, rail and flow; else as text. json: one object "
         "a line."),
    reloadable(
        number("log.progress_seconds", BRAID_FIELD(log.progress_seconds), 0, kDayMs / 1000,
               "A line tells how a job fares at most so often, in seconds, on the node of its "
               "rank 0, if steps or operations have ended meanwhile; 0: never, and not at "
               "its end either.")),
};

#undef BRAID_FIELD

}  // namespace

std::span<const ConfigKey> config_keys() { return kKeys; }
std::span<const ConfigSection> config_sections() { return kSections; }

const ConfigKey* find_config_key(std::string_view name) {
  for (const ConfigKey& key : kKeys) {
    if (key.name == name) return &key;
  }
  return nullptr;
}

}  // namespace braid

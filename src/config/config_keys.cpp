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

constexpr std::array<ConfigSection, 13> kSections = {{
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
    {"metrics", "The HTTP port, with /metrics for Prometheus, /healthz and /readyz."},
    {"page", "The daemon's own page, on the same port. See page.md."},
    {"gpu", "NVIDIA's GPUs of this node. See watching.md."},
    {"log", "What is logged, to stderr (under systemd: to the journal)."},
    {kDebugSection, "For tests of braid itself; not for operators, and may change at any time."},
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

constexpr ConfigKey integer_or_auto(std::string_view name, ConfigField (*field)(DaemonConfig&),
                                    uint64_t min, std::string_view help) {
  ConfigKey key = number(name, field, min, UINT16_MAX, help);
  key.kind = ConfigKind::IntegerOrAuto;
  return key;
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

constexpr ConfigKey reloadable(ConfigKey key) {
  key.reloadable = true;
  return key;
}

constexpr std::array kKeys = {
    text("node.name", BRAID_FIELD(node.name), check_node_name, "a name, or auto",
         "What messages, metrics and status call this node; auto: the host name."),
    text("node.address", BRAID_FIELD(node.address), check_address_or_auto,
         "an IPv4 or IPv6 address, or auto",
         "Where other nodes reach this one; auto: the address of the first rail, IPv4 if it has "
         "one. Flows go over the same family: the same on all nodes. A link-local address names "
         "its device, which other nodes call the same (fe80::7%eth0)."),
    text("node.rack", BRAID_FIELD(node.rack), check_rack, "a name, or empty",
         "The rack that this node is in; the same name on all nodes there. Where every node of a "
         "job has one, the ring crosses each rack's border once each way. Empty: not known."),
    text(
        "node.polling", BRAID_FIELD(node.polling), check_polling, "off, adaptive or always",
        "Whether braidd's loops and the trainers' waiting threads look again and again for a short "
        "time before they sleep. On some machines an all-reduce of 1 kB between two nodes then "
        "takes half as long, on others longer. adaptive: each job finds out by its own operations, "
        "and polls only where that makes them shorter; up to 0.1 ms at a time, and not while "
        "others need the processor. The node of rank 0 decides for its job; on nodes with off its "
        "threads sleep all the same. always: for cores that nobody else uses; as long as a job is "
        "open."),
    text("node.state_directory", BRAID_FIELD(node.state_directory), check_state_directory,
         "an absolute path, auto, or empty",
         "Where the daemon keeps what tuning has learned (tuning.json), for the next start of the "
         "same job or one that is alike, and the timelines of jobs that failed (timelines/, the "
         "latest 32); auto: $STATE_DIRECTORY, which systemd sets (/var/lib/braid), and without it "
         "nowhere; empty: nowhere."),

    integer_or_auto(
        "control.port", BRAID_FIELD(control.port), 1,
        "TCP port of the connections between daemons; the same on all nodes. auto: one that the "
        "kernel chooses, for jobs whose ranks learn it from rank 0's daemon, as PyTorch's do "
        "(braid_master)."),
    text("control.listen", BRAID_FIELD(control.listen), check_address_or_auto,
         "an IPv4 or IPv6 address, or auto",
         "The address that port is opened on, if there is a cluster key; auto: node.address. "
         "\"::\": all, IPv4 as well; 0.0.0.0: all of IPv4."),
    text("control.cluster_key_file", BRAID_FIELD(control.cluster_key_file), check_cluster_key_file,
         "an absolute path, or empty",
         "File with the secret that daemons prove to each other; the same secret on all nodes. "
         "Empty: control.port is not opened, and jobs are of this node only."),
    number(
        "control.peer_timeout_ms", BRAID_FIELD(control.peer_timeout_ms), 1000, 600'000,
        "A peer that is silent for so long, in milliseconds, is lost, and its jobs fail; signs of "
        "life go out twice a second. A link on which no flow is open for so long is lost, too, but "
        "not before 5 s."),

    text("client.socket", BRAID_FIELD(client.socket), check_socket_path,
         "an absolute path of at most 107 bytes",
         "Path of the socket; trainers find it there or through BRAID_SOCKET."),
    text("client.group", BRAID_FIELD(client.group), check_group, "the name of a group, or empty",
         "The socket belongs to this group: its members may train through this daemon. Empty: the "
         "daemon's own group."),
    reloadable(bytes(
        "client.arena_bytes_max", BRAID_FIELD(client.arena_bytes_max), kMiB, 16 * kTiB,
        "Most address space of a trainer's input arenas together, and of a job's results on this "
        "node; memory is taken as it is used.")),
    reloadable(number(
        "client.user_jobs_max", BRAID_FIELD(client.user_jobs_max), 1, 4096,
        "Most jobs of one user on this node at the same time, those included that wait for "
        "ranks. This limit and the following ones of a user are for others than root and the "
        "user as whom the daemon runs.")),
    reloadable(bytes("client.user_arena_bytes_max", BRAID_FIELD(client.user_arena_bytes_max), kMiB,
                     64 * kTiB, "Most that one user's input arenas have together: address space.")),
    reloadable(bytes(
        "client.user_result_bytes_max", BRAID_FIELD(client.user_result_bytes_max), 0, 16 * kTiB,
        "Most memory of the daemon that one user has: the results of its jobs, inputs that were "
        "never written before they were submitted, buffers (rings, unfinished messages, what "
        "came early from other nodes), and what its processes keep of all that after their jobs, "
        "together; 0: half of what the machine has, or of what the daemon's control group allows "
        "it (MemoryMax) if that is less.")),

    list("transport.rails", BRAID_FIELD(transport.rails), check_rail, "network devices, or auto",
         "Network devices that carry flows; auto: the interface of the default route, else the one "
         "that has node.address, else the first that has a link and is no bridge (docker0), else a "
         "bridge, else lo. One rail needs a link when the daemon starts; the others are used "
         "as soon as they have one."),
    list("transport.transports", BRAID_FIELD(transport.transports), check_transport,
         "names of UCX transports",
         "tcp, or what UCX may use on the rails instead (UCX_TLS); the same on all nodes."),
    text("transport.tcp", BRAID_FIELD(transport.tcp), check_tcp, "native or ucx",
         "What carries flows if transport.transports is tcp: sockets of braid's own, or UCX. The "
         "same on all nodes."),
    text("transport.encryption", BRAID_FIELD(transport.encryption), check_encryption, "on or off",
         "Whether all that nodes send each other is encrypted (AES-256-GCM), with keys made from "
         "the cluster key; the same on all nodes. on needs control.cluster_key_file and "
         "transport.tcp: native. See operations.md for what it costs, and what stays in clear."),
    number("transport.port", BRAID_FIELD(transport.port), 0, 65535 - 63,
           "native: the TCP port of flows, on each rail; each further I/O thread has the next one; "
           "0: ports that the kernel chooses."),
    number("transport.flows_per_link", BRAID_FIELD(transport.flows_per_link), 0, 128,
           "Flows to each other node, per I/O thread; 0: four per core, 4 to 16. A job uses fewer "
           "of them where its own operations are quicker so (tune.mode)."),
    number("transport.io_threads", BRAID_FIELD(transport.io_threads), 0, 64,
           "Threads that move and add gradients; 0: one per four cores. The same on all nodes."),
    bytes("transport.chunk_bytes", BRAID_FIELD(transport.chunk_bytes), 4 * kKiB,
          proto::kChunkBytesMax, "Size of one message on a flow; the same on all nodes."),
    bytes("transport.window_bytes", BRAID_FIELD(transport.window_bytes), 4 * kKiB, kGiB,
          "A flow with so many unacknowledged bytes takes no further chunk."),

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
    reloadable(number("collective.operation_timeout_ms",
                      BRAID_FIELD(collective.operation_timeout_ms), 100, kDayMs,
                      "An operation for which trainers give no timeout fails its job after this "
                      "time, in milliseconds.")),
    reloadable(bytes(
        "collective.result_memory_max", BRAID_FIELD(collective.result_memory_max), 0, 16 * kTiB,
        "Most memory of the daemon that all users have, of what client.user_result_bytes_max "
        "counts; 0: three quarters of what the machine has, or of what the daemon's control "
        "group allows it (MemoryMax) if that is less.")),

    text("plan.planner", BRAID_FIELD(plan.planner), check_planner,
         "the name of a planner, or first",
         "Plans which gradients are merged, from what the job's nodes measure while it trains; "
         "first: every job keeps the plan it begins with."),

    text("tune.mode", BRAID_FIELD(tune.mode), check_tune_mode, "on, portfolio or off",
         "Whether jobs of several nodes try other settings in their first steps, and keep what is "
         "faster than the configured ones. on: a lattice around the best ones proposes them; "
         "portfolio: five searchers do, a lattice among them, to which a bandit gives the turns."),

    reloadable(list(
        "guard.limits", BRAID_FIELD(guard.limits), check_guard_limit,
        "residual=X, cosine=X and saturation=X; or none",
        "What a codec may lose. Three measurements in a row beyond one of these limits, one in 64 "
        "steps, send a group of tensors back to plain elements. residual: the largest norm of "
        "what error feedback holds back, in norms of the gradient. cosine: the smallest cosine "
        "between the sum that all ranks get and the exact one. saturation: the largest share of "
        "elements that the codec cannot send: of 2bit those that still hold a whole threshold "
        "back, of fp16 those that became infinite; not for codecs with full-every.")),

    text("metrics.address", BRAID_FIELD(metrics.address), check_address, "an IPv4 or IPv6 address",
         "The address /metrics and the page are served on. \"::\": all, IPv4 as well; 0.0.0.0: all "
         "of IPv4."),
    integer_or_auto(
        "metrics.port", BRAID_FIELD(metrics.port), 0,
        "The TCP port /metrics and the page are served on; 0: not at all; auto: one that the "
        "kernel chooses, and the log names."),

    reloadable(text(
        "page.access", BRAID_FIELD(page.access), check_page_access,
        "off, loopback, or an absolute path",
        "Who may read the page. loopback: users of this node, from this node, each of them his own "
        "jobs, root and the daemon's user all. A path: everybody with the token in this file, from "
        "anywhere, with a view of all jobs; the token has 16 bytes or more, and the file is closed "
        "to "
        "group and others.")),

    number("gpu.watch_seconds", BRAID_FIELD(gpu.watch_seconds), 0, 3600,
           "How often the GPUs' clocks, temperatures and errors are read; 0: never. Where there is "
           "no libnvidia-ml.so.1, nothing is read."),

    reloadable(text("log.level", BRAID_FIELD(log.level), check_level,
                    "trace, debug, info, warn or error", "The least important lines to log.")),
    reloadable(text(
        "log.format", BRAID_FIELD(log.format), check_log_format, "auto, text or json",
        "How lines are written to stderr. auto: where systemd has connected it with the journal, "
        "to that, with fields for job, rank, peer, rail and flow; else as text. json: one object "
        "a line.")),

    number(
        "debug.connect_timeout_ms", BRAID_FIELD(debug.connect_timeout_ms), 100, 600'000,
        "Most time for connecting to a peer and shaking hands, in milliseconds. Opening a link's "
        "flows may take as long, or 5 s if that is more."),
    number("debug.jobs_max", BRAID_FIELD(debug.jobs_max), 1, 4096,
           "Most jobs with ranks on this node at the same time."),
    reloadable(number("debug.user_connections_max", BRAID_FIELD(debug.user_connections_max), 1,
                      4096, "Most connections of one user's processes.")),
    reloadable(number("debug.user_tensors_max", BRAID_FIELD(debug.user_tensors_max), 1, 1u << 30,
                      "Most tensors that one user's trainers have registered.")),
    reloadable(number("debug.user_queries_max", BRAID_FIELD(debug.user_queries_max), 1, 1u << 16,
                      "Most queries (braidctl) of one user that wait for an answer.")),
    reloadable(bytes("debug.result_bytes_max", BRAID_FIELD(debug.result_bytes_max), 0, 16 * kTiB,
                     "Size of a job's result memory on this node; 0: client.arena_bytes_max.")),
    list("debug.codecs", BRAID_FIELD(debug.codecs), check_codec, "names of codecs, none, or all",
         "What tensors may have; one with another codec is refused."),
    number("debug.slow_flow_percent", BRAID_FIELD(debug.slow_flow_percent), 0, 90,
           "A flow that stays below this share of the median rate of its link's flows is opened "
           "again, for another path through the network; 0: never."),
    number("debug.idle_link_seconds", BRAID_FIELD(debug.idle_link_seconds), 1, kDayMs / 1000,
           "Connections to a node to which no job has sent for this time are closed."),
    number("debug.leave_timeout_ms", BRAID_FIELD(debug.leave_timeout_ms), 100, kDayMs,
           "Where some ranks of a job have left it and others neither leave nor die for this time, "
           "in milliseconds, the job is ended for those."),
    number("debug.min_gain_percent", BRAID_FIELD(debug.min_gain_percent), 0, 100,
           "A running job changes to a new plan when that saves at least so much of an "
           "iteration."),
    list("debug.pin", BRAID_FIELD(debug.pin), check_tune_pin,
         "flows_per_link, streams, unit_bytes, chunk_bytes, window_bytes, direct_bytes, "
         "two_hops_bytes, halving_bytes, hierarchical; or none",
         "What is not tuned."),
    number("debug.tune_steps", BRAID_FIELD(debug.tune_steps), 30, 3000,
           "Most steps of a job that are measured to tune it."),
    reloadable(number("debug.guard_every_steps", BRAID_FIELD(debug.guard_every_steps), 0,
                      1'000'000'000,
                      "What codecs lose is measured in one of so many steps; 0: never.")),
    number("debug.timeline_events", BRAID_FIELD(debug.timeline_events), 0, 1 << 20,
           "How many of its latest spans each I/O loop keeps, at 64 bytes each; 0: none."),
    number("debug.explain_seconds", BRAID_FIELD(debug.explain_seconds), 0, 86'400,
           "How often a job whose first rank is here is explained for the metrics; 0: never."),
    reloadable(number("debug.progress_seconds", BRAID_FIELD(debug.progress_seconds), 0,
                      kDayMs / 1000,
                      "A line of the log tells how a job fares at most so often; 0: never.")),
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

# SPDX-License-Identifier: Apache-2.0
"""From what was seen of the daemons at a point to its figures. Pure functions."""

import dataclasses
import statistics

from .probe import Snapshot

ROLES = ("coordinator", "member")


@dataclasses.dataclass(frozen=True)
class Course:
    """Snapshots of one node, in the order of the parts of a point."""

    met_seconds: float  # when all jobs were open; from then on daemons send heartbeats
    base: Snapshot
    formed: Snapshot
    idle: Snapshot
    registered: Snapshot
    operated: Snapshot
    stepped: Snapshot


def sent(before: Snapshot, after: Snapshot, field: str) -> int:
    first, last = (sum(getattr(one, field) for one in seen.control.values()) for seen in (before, after))
    return last - first


def of_node(point, course: Course) -> dict[str, float]:
    """The figures of one node."""
    base, formed, idle = course.base, course.formed, course.idle
    seconds = idle.seconds - formed.seconds
    operations = course.operated.operations - course.registered.operations
    step_operations = course.stepped.operations - course.operated.operations
    return {
        "trainers": point.ranks_per_node * point.jobs,
        "peers": idle.peers,
        "flows": idle.flows,
        "control_sockets": idle.sockets["control"],
        "flow_sockets": idle.sockets["flow"],
        "descriptors": idle.descriptors.total(),
        "base_descriptors": base.descriptors.total(),
        "threads": idle.threads,
        "memory_bytes": idle.memory_bytes,
        "base_memory_bytes": base.memory_bytes,
        "resident_bytes": idle.resident_bytes,
        "idle_bytes_per_second": idle_rate(course, "bytes_sent"),
        "idle_packets_per_second": idle_rate(course, "packets_sent"),
        "idle_cpu_share": (idle.cpu_seconds - formed.cpu_seconds) / seconds,
        "formation_cpu_seconds": formed.cpu_seconds - base.cpu_seconds,
        "formation_messages_sent": formed.messages("sent") - base.messages("sent"),
        "formation_messages_received": formed.messages("received") - base.messages("received"),
        "formation_bytes_sent": _of_formation(course, "bytes_sent"),
        "formation_bytes_received": _of_formation(course, "bytes_received"),
        "operation_messages": _per(
            course.operated.messages("sent") - course.registered.messages("sent"), operations
        ),
        "operation_bytes": _per(_beyond_idle(course, "registered", "operated"), operations),
        "operation_chunks": _per(
            _grown(course.registered, course.operated, "braid_chunks_total.sent"), operations
        ),
        "step_operations": step_operations,
        "step_bytes_sent": _beyond_idle(course, "operated", "stepped"),
    }


def plan_traffic(courses: list[Course], addresses: list[str]) -> dict[str, float | None]:
    """The bytes of plans alone: what the nodes that are no neighbours of the coordinator exchange with it.

    A node sends OperationReady once per operation, and gets it once; what it sends and gets beyond
    that is PlanReport and PlanAnswer, PlanProposal and PlanVerdict.
    """
    coordinator = addresses[0]
    reports, rounds, report_bytes, round_bytes = [], [], [], []
    for course in courses[2:-1]:
        before, after = course.operated, course.stepped
        operations = after.operations - before.operations
        rounds.append((after.messages("received") - before.messages("received") - operations) / 2)
        answers = rounds[-1]
        reports.append(
            after.messages("sent") - before.messages("sent") - operations - answers
        )
        report_bytes.append(_plan_bytes(course, coordinator, "bytes_sent"))
        round_bytes.append(_plan_bytes(course, coordinator, "bytes_received"))
    if not reports:
        return dict.fromkeys(("plan_reports", "plan_rounds", "plan_report_bytes", "plan_round_bytes"))
    return {
        "plan_reports": statistics.median(reports),
        "plan_rounds": statistics.median(rounds),
        "plan_report_bytes": _per(sum(report_bytes), sum(reports)),
        "plan_round_bytes": _per(sum(round_bytes), sum(rounds)),
    }


def _plan_bytes(course: Course, peer: str, field: str) -> float:
    def bytes_of(snapshot: Snapshot) -> int:
        return getattr(snapshot.control[peer], field)

    idle = bytes_of(course.idle) - bytes_of(course.formed)
    rate = idle / (course.idle.seconds - course.formed.seconds)
    passed = course.stepped.seconds - course.operated.seconds
    return bytes_of(course.stepped) - bytes_of(course.operated) - rate * passed


def idle_rate(course: Course, field: str) -> float:
    """Heartbeats per second, or their bytes."""
    return sent(course.formed, course.idle, field) / (course.idle.seconds - course.formed.seconds)


def _of_formation(course: Course, field: str) -> float:
    heartbeats = idle_rate(course, field) * (course.formed.seconds - course.met_seconds)
    return sent(course.base, course.formed, field) - heartbeats


def _beyond_idle(course: Course, before: str, after: str) -> float:
    """Bytes sent in a part, without the heartbeats that would have been sent anyway."""
    first, last = getattr(course, before), getattr(course, after)
    passed = last.seconds - first.seconds
    return sent(first, last, "bytes_sent") - idle_rate(course, "bytes_sent") * passed


def _grown(before: Snapshot, after: Snapshot, counter: str) -> int:
    return after.counters[counter] - before.counters[counter]


def _per(amount: float, count: float) -> float:
    return amount / count if count else 0.0


def of_point(
    point, courses: list[Course], addresses: list[str], formation_seconds: float, step_seconds: float
) -> list[dict]:
    """A row for the coordinator, which is the first node, and one for a member: the median of the others."""
    nodes = [of_node(point, course) for course in courses]
    member = {name: statistics.median(one[name] for one in nodes[1:]) for name in nodes[0]}
    plans = plan_traffic(courses, addresses)
    of_all = {
        "point": str(point),
        **dataclasses.asdict(point),
        "formation_seconds": formation_seconds,
        "step_seconds": step_seconds,
    }
    return [
        {**of_all, "role": ROLES[0], **nodes[0], **dict.fromkeys(plans)},
        {**of_all, "role": ROLES[1], **member, **plans},
    ]

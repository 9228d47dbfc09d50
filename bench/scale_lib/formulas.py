# SPDX-License-Identifier: Apache-2.0
"""Which quantities there are, and what each depends on: docs/scaling.md says why. Pure functions."""

import dataclasses

from .figures import COORDINATOR, MEMBER
from .fit import least_squares

# What a formula may count. `links` of the coordinator's FlowOpen and the like hide in `flows`.
TERMS = {
    "1": lambda point, node: 1.0,
    "N": lambda point, node: float(point["nodes"]),
    "N^2": lambda point, node: float(point["nodes"] ** 2),
    "peers": lambda point, node: float(node["peers"]),
    "flows": lambda point, node: float(node["flows"]),
    "trainers": lambda point, node: float(node["trainers"]),
    "jobs*N": lambda point, node: float(point["jobs"] * point["nodes"]),
    "jobs*N^2": lambda point, node: float(point["jobs"] * point["nodes"] ** 2),
    "jobs*ranks*N": lambda point, node: node["trainers"] * float(point["nodes"]),
}
_BOTH = (COORDINATOR, MEMBER)


@dataclasses.dataclass(frozen=True)
class Formula:
    quantity: str
    terms: tuple[str, ...]
    roles: tuple[str, ...] = _BOTH


FORMULAS = (
    Formula("control_sockets", ("1", "peers")),
    Formula("flow_sockets", ("1", "flows")),
    Formula("listening_sockets", ("1", "flows")),
    Formula("descriptors", ("1", "peers", "flows", "trainers")),
    Formula("threads", ("1",)),
    Formula("memory_bytes", ("1", "peers", "flows", "trainers")),
    Formula("idle_bytes_per_second", ("1", "peers")),
    Formula("idle_packets_per_second", ("1", "peers")),
    Formula("idle_cpu_share", ("1", "peers")),
    Formula("formation_messages_sent", ("1", "jobs*N", "flows"), (COORDINATOR,)),
    Formula("formation_messages_received", ("1", "jobs*N", "jobs*ranks*N", "flows"), (COORDINATOR,)),
    Formula("formation_bytes_sent", ("1", "peers", "flows", "jobs*N^2"), (COORDINATOR,)),
    Formula("formation_bytes_received", ("peers", "flows", "jobs*ranks*N"), (COORDINATOR,)),
    Formula("formation_bytes_received", ("1", "flows", "jobs*N"), (MEMBER,)),
    Formula("operation_messages", ("1",)),
    Formula("operation_bytes", ("1",)),
)


def fitted(points: list[dict]) -> list[dict]:
    """Those of FORMULAS that these points determine."""
    found = []
    for formula in FORMULAS:
        samples = [(point, point[role]) for point in points for role in formula.roles]
        rows = [[TERMS[term](*sample) for term in formula.terms] for sample in samples]
        values = [float(node[formula.quantity]) for _, node in samples]
        fit = least_squares(rows, values)
        if fit is None:
            continue
        found.append(
            {
                "quantity": formula.quantity,
                "roles": list(formula.roles),
                "terms": dict(zip(formula.terms, fit.coefficients, strict=True)),
                "residual_max": fit.residual_max,
                "residual_share": fit.residual_share,
                "samples": len(samples),
            }
        )
    return found

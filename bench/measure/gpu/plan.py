# SPDX-License-Identifier: Apache-2.0
"""What is measured, in which order, and how long each step may take. Most valuable first: time may run out."""

import dataclasses

BRAID, NCCL, NCCL_SOCKETS, GLOO, IPERF = "braid", "nccl", "nccl-2x8", "gloo", "iperf3"
OPEN, CAPPED, UNEVEN = "open", "capped", "uneven"
NIC_MBIT = 2000
NODES = 2


@dataclasses.dataclass(frozen=True)
class Network:
    name: str
    nic_mbit: str | None = None
    flow_mbit: str | None = None

    @property
    def is_shaped(self) -> bool:
        return self.nic_mbit is not None

    @property
    def nic_gbit_per_second(self) -> float | None:
        return float(self.nic_mbit) / 1e3 if self.nic_mbit else None


NETWORKS = {
    OPEN: Network(OPEN),
    CAPPED: Network(CAPPED, str(NIC_MBIT), "500"),
    # One flow in four is slow: a system that cuts messages evenly waits for the slow one. A cap of 100 would still let
    # 16 equal parts fill the NIC.
    UNEVEN: Network(UNEVEN, str(NIC_MBIT), "500,500,500,25"),
}


@dataclasses.dataclass(frozen=True)
class Workload:
    """The sizes that a run uses. A rehearsal's are small."""

    device: str  # torch's name
    width: int  # of a square layer
    layers: int
    rows: int  # of the batch
    product: int  # rows and columns of the matrices of `beside`
    sizes_open: tuple[int, ...]  # bytes of an all-reduce
    sizes_capped: tuple[int, ...]
    seconds_per_test: float  # iterations are chosen to take about that long
    iterations_max: int
    start_limit_s: float  # for the workers of a system

    @property
    def gradient_bytes(self) -> int:
        """Those of the model, in float32, with biases."""
        return 4 * self.layers * (self.width * self.width + self.width)

    @property
    def largest(self) -> int:
        return self.sizes_capped[-1]


# 25 M parameters: 100 MB of gradients.
ON_A_GPU = Workload("cuda", 1024, 24, 32768, 4096, (4000, 64_000, 1_000_000, 25_000_000, 100_000_000),
                    (1_000_000, 25_000_000), 4.0, 20, 60.0)  # fmt: skip
REHEARSED = Workload("cpu", 512, 8, 64, 128, (4000, 4_000_000), (256_000, 4_000_000), 0.3, 5, 90.0)


@dataclasses.dataclass(frozen=True)
class Step:
    """One test of one system on one network."""

    network: str
    system: str
    test: str
    limit_s: float

    def __str__(self) -> str:
        return " ".join(filter(None, (self.network, self.system, self.test)))


def _steps(network: str, system: str, **limits: float) -> list[Step]:
    return [Step(network, system, test.replace("_", "-"), limit) for test, limit in limits.items()]


# A limit is some three times what a step is expected to take; a network's steps share a cluster.
DEVICE = [
    *_steps(OPEN, BRAID, collectives=40, rates=30, copies=20, ddp=30, ddp_buckets=30, fsdp=30),
    *_steps(CAPPED, BRAID, rates=20, ddp=40, fsdp=40, beside=20, ddp_buckets=40),
    *_steps(CAPPED, NCCL_SOCKETS, ddp=40, fsdp=40, rates=20),
    *_steps(CAPPED, NCCL, ddp=50, beside=20, rates=20, communicators=40),
    *_steps(UNEVEN, BRAID, rates=20),
    *_steps(UNEVEN, NCCL_SOCKETS, rates=40),
    *_steps(OPEN, NCCL, rates=30, ddp=30, fsdp=30, collectives=40),
    *_steps(OPEN, GLOO, rates=40, ddp=40),
    *_steps(OPEN, IPERF, rates=20),
    *_steps(CAPPED, GLOO, ddp=60),
]

# gloo takes NCCL's place, so that every line of the workers runs. The machine may be busy.
_REHEARSED_LIMIT_S = 90.0
REHEARSAL = [
    Step(network, system, test, _REHEARSED_LIMIT_S)
    for network, system, tests in (
        (CAPPED, BRAID, ("collectives", "rates", "copies", "ddp", "ddp-buckets", "fsdp", "beside")),
        (CAPPED, GLOO, ("collectives", "rates", "ddp", "fsdp", "beside", "communicators")),
        (UNEVEN, BRAID, ("rates",)),
        (OPEN, BRAID, ("rates",)),
        (OPEN, IPERF, ("rates",)),
    )
    for test in tests
]

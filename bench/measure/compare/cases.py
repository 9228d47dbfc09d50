# SPDX-License-Identifier: Apache-2.0
"""What is measured. Needs nothing but Python: workers know it, too."""

import dataclasses

BRAID, BEFORE = "braid", "braid-before"
GLOO = {"gloo": 1, "gloo-links4": 4}  # how often its interface is named
ELEMENT_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2, "float64": 8}
# What a collective sends over a link of the slowest kind, in parts of its bytes, as in nccl-tests; n are the ranks.
_BUS_SHARES = {
    "all_reduce": lambda n: 2 * (n - 1) / n,
    "reduce_scatter": lambda n: (n - 1) / n,
    "all_gather": lambda n: (n - 1) / n,
    "broadcast": lambda n: 1.0 if n > 1 else 0.0,
    "all_to_all": lambda n: (n - 1) / n,
    "gather": lambda n: (n - 1) / n,
    "scatter": lambda n: (n - 1) / n,
}
COLLECTIVES = tuple(_BUS_SHARES)


@dataclasses.dataclass(frozen=True)
class Case:
    """One collective of one size: `bytes` are a rank's input or result, whichever is larger."""

    bytes: int
    collective: str = "all_reduce"
    dtype: str = "float32"

    def elements(self, ranks: int) -> int:
        """So many that the ranks can share them equally: `bytes` or a little more."""
        per_rank = -(-self.bytes // (ELEMENT_BYTES[self.dtype] * ranks))
        return per_rank * ranks

    def bus_share(self, ranks: int) -> float:
        return _BUS_SHARES[self.collective](ranks)

    def least_bytes_sent(self, nodes: int, ranks_per_node: int) -> float:
        """By all nodes in sum, however it is done.

        An all-reduce: each node's input must leave it, added to others' or not, and the result must reach each node
        (Patarasuk and Yuan, JPDC 2009, section 3). A reduce-scatter is the first half of that, an all-gather or a
        broadcast the second. In an all-to-all each rank has a block for each rank of another node, and in a gather
        or scatter all blocks but those of the root's node go to it or come from it.
        """
        others = nodes - 1
        if self.collective == "all_reduce":
            return 2 * others * self.bytes
        if self.collective == "all_to_all":
            return others * ranks_per_node * self.bytes
        if self.collective in ("gather", "scatter"):
            return others / nodes * self.bytes
        return others * self.bytes

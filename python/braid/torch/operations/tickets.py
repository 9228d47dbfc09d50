# SPDX-License-Identifier: Apache-2.0
"""How many tensors may be in flight, each of which holds a ticket."""

from __future__ import annotations

import gc
import weakref
from typing import Any

# The most tickets of all optimizers of a job. libbraid keeps at most 8192 tickets per job. The
# process group's collectives need some of them, and so do the operations that an optimizer has on
# its way ahead when another optimizer is made.
TICKETS_MAX = 6500


class Tickets:
    """Tickets of one job, on the thread that trains. An owner's share goes with the owner."""

    def __init__(self) -> None:
        self._shares: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self._ahead: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()

    def take(self, owner: Any, count: int) -> None:
        """Makes `count` the owner's share. ValueError says what to do if there are not as many."""
        if self._of_others(owner) + count > TICKETS_MAX:
            gc.collect()  # Optimizers are often parts of cycles.
        others = self._of_others(owner)
        if others + count > TICKETS_MAX:
            raise ValueError(
                f"{count} parameters are to be updated by the daemons, beside {others} of other "
                f"optimizers of the same process group; {TICKETS_MAX} together are the most: merge "
                "small ones, or give this optimizer, and its model's DistributedDataParallel, a "
                "process group of their own (torch.distributed.new_group())"
            )
        self._shares[owner] = count

    def take_ahead(self, owner: Any) -> bool:
        """As many again for the owner's next round. False if there are not as many."""
        self._ahead[owner] = self._shares[owner]
        if sum(self._shares.values()) + sum(self._ahead.values()) <= TICKETS_MAX:
            return True
        del self._ahead[owner]
        return False

    def _of_others(self, owner: Any) -> int:
        return sum(count for other, count in self._shares.items() if other is not owner)

# SPDX-License-Identifier: Apache-2.0
"""BRAID_EXPLAIN=1: once, the log of a job's first rank says why its steps take what they take.

The sentences are those of `braidctl explain`. They come BRAID_EXPLAIN_SECONDS (60) after the job's
first gradients were registered; where there is nothing to say by then, a little later.
"""

from __future__ import annotations

import logging
import os
import threading
import time
import weakref

from braid.torch.environment.variables import is_on
from braid import BraidError, Job, explain
from braid.errors import NotFoundError

_log = logging.getLogger("braid")
_SECONDS_DEFAULT = 60
_SECONDS_MAX = 86_400
_AGAIN_SECONDS = 5
_begun = False


def explain_once(job: Job) -> None:
    """`job` has planned tensors now. Only the first job of a process is explained."""
    global _begun
    if _begun or job.rank != 0 or not is_on("BRAID_EXPLAIN"):
        return
    _begun = True
    threading.Thread(
        target=_explain, args=(weakref.ref(job), _seconds()), name="braid-explain", daemon=True
    ).start()


def _seconds() -> int:
    text = os.environ.get("BRAID_EXPLAIN_SECONDS", "") or str(_SECONDS_DEFAULT)
    if text.isascii() and text.isdecimal() and 1 <= int(text) <= _SECONDS_MAX:
        return int(text)
    _log.warning("BRAID_EXPLAIN_SECONDS is a whole number from 1 to %d, not '%s': %d",
                 _SECONDS_MAX, text, _SECONDS_DEFAULT)  # fmt: skip
    return _SECONDS_DEFAULT


def _explain(reference: weakref.ref[Job], seconds: int) -> None:
    time.sleep(seconds)
    while (job := reference()) is not None and job.is_open:
        name, socket_path = job.name, job.socket_path
        del job
        try:
            # A warning, for loggers show no less by default, and somebody has asked for it.
            return _log.warning("%s", explain(name, socket_path=socket_path))
        except NotFoundError:
            time.sleep(_AGAIN_SECONDS)  # Too few steps have ended.
        except BraidError as error:
            return _log.warning("BRAID_EXPLAIN: the job is not explained: %s", error)

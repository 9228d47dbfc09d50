# SPDX-License-Identifier: Apache-2.0
"""Lets a script that ends for a reason of braid's end with braid's sentence, which says the remedy.

Under torchrun what a rank prints last is followed by some hundred lines of the other ranks and of torchrun. The last
ones are those of the file that torchrun names to each rank (TORCHELASTIC_ERROR_FILE), so the sentence goes there, as
`torch.distributed.elastic.multiprocessing.errors.record` does it with whole tracebacks.

Where no process group could be made, all ranks of a node fail for one reason. The first one of the node tells it; the
others wait for torchrun to end them, which it does as soon as one has failed. A group that fails after others were made
is another matter: where in the script that was counts, so each rank shows its traceback, and then the sentence.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import NoReturn

from braid.errors import BraidError
from braid.torch.environment.logs import is_first_of_node
from braid.torch.environment.variables import WrongVariable

_ERROR_FILE = "TORCHELASTIC_ERROR_FILE"
_PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) + os.sep
# Files of the package in whose functions a process group is made, or the library is loaded.
_STARTS = tuple(os.path.join(_PACKAGE, *name) for name in (("torch", "group", "creation.py"), ("_library.py",)))
# Far more than torchrun needs to see that another rank has failed.
_LAUNCHER_S = 15.0


def install() -> None:
    """From here on, what ends this process is looked at. A second call does nothing."""
    if not getattr(sys.excepthook, "_braid", False):
        sys.excepthook = _Hook(sys.excepthook)


def begin() -> None:
    """A process group has been made: from here on, the script runs."""
    _Hook.has_begun = True


def end(sentence: str, code: int = 1) -> NoReturn:
    """Ends this process with a sentence, and no traceback."""
    _tell(sentence)
    sys.exit(code)


def sentence_of(error: BaseException) -> str | None:
    """What braid says of an error in one line; None: it is not braid's."""
    if not isinstance(error, Exception):
        return None
    if any(isinstance(one, (BraidError, WrongVariable)) for one in _chain(error)) or _is_from_us(error):
        text = " ".join(str(error).split())
        return text if text.startswith("braid") else f"braid: {text}"
    return None


class _Hook:
    _braid = True
    has_begun = False  # a process group was made in this process

    def __init__(self, before: Callable[..., None]) -> None:
        self._before = before

    def __call__(self, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        sentence = sentence_of(error)
        if sentence is None:
            self._before(kind, error, trace)
        elif isinstance(error, WrongVariable) or (not self.has_begun and _came_at_start(error)):
            _tell(sentence)
        else:
            self._before(kind, error, trace)
            _leave_for_launcher(sentence)


def _tell(sentence: str) -> None:
    """For an error that all ranks of the node have."""
    if _ERROR_FILE in os.environ and not is_first_of_node():
        time.sleep(_LAUNCHER_S)
    print(sentence, file=sys.stderr, flush=True)
    _leave_for_launcher(sentence)


def _leave_for_launcher(sentence: str) -> None:
    path = os.environ.get(_ERROR_FILE)
    if not path:
        return
    said = {"message": {"message": sentence, "extraInfo": {"timestamp": str(int(time.time()))}}}
    try:
        with open(path, "w", encoding="utf-8") as file:
            json.dump(said, file)
    except OSError:
        pass  # The sentence has been printed.


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The error, and what it was raised from."""
    seen: set[int] = set()
    one: BaseException | None = error
    while one is not None and id(one) not in seen:
        seen.add(id(one))
        yield one
        one = one.__cause__


def _files(error: BaseException) -> list[str]:
    """Where the functions stand through which it came, the innermost last."""
    files, trace = [], error.__traceback__
    while trace is not None:
        files.append(os.path.abspath(trace.tb_frame.f_code.co_filename))
        trace = trace.tb_next
    return files


def _is_from_us(error: BaseException) -> bool:
    files = _files(error)
    return bool(files) and files[-1].startswith(_PACKAGE)


def _came_at_start(error: BaseException) -> bool:
    return any(file in _STARTS for one in _chain(error) for file in _files(one))

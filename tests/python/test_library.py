# SPDX-License-Identifier: Apache-2.0
"""Finding libbraid, and the plain interface without torch."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from cluster_runs import run

import braid
from braid import _library
from braid.errors import BraidError, InvalidArgumentError, LibraryError, error_of

pytestmark = pytest.mark.once


def test_a_wrong_library_path_is_named(monkeypatch):
    monkeypatch.setenv("BRAID_LIBRARY", "/nowhere/libbraid.so.0")
    with pytest.raises(LibraryError, match="/nowhere/libbraid.so.0") as caught:
        _library._load()
    assert "BRAID_LIBRARY" in str(caught.value)


def test_a_library_that_is_not_libbraid_is_refused(monkeypatch):
    monkeypatch.setenv("BRAID_LIBRARY", "libc.so.6")
    with pytest.raises(LibraryError, match="libc.so.6 is not a usable libbraid.so.0"):
        _library._load()


def test_every_code_of_the_header_has_its_own_exception():
    kinds = {type(error_of(code, "text")) for code in range(1, 13)}
    assert len(kinds) == 12 and BraidError not in kinds
    assert all(error_of(code, "text").code == code for code in range(1, 13))
    assert error_of(99, "new").code == 99 and "99" in str(error_of(99, "new"))


def test_importing_the_package_loads_neither_torch_nor_the_library():
    program = (
        "import sys, braid, braid.torch\n"
        "from braid import _library\n"
        "assert 'torch' not in sys.modules and _library._library is None\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, env=dict(os.environ))


def test_without_a_daemon_the_error_says_where_it_looked():
    with pytest.raises(BraidError, match="/nowhere/braidd.sock") as caught:
        braid.Job("lonely", 0, 1, socket_path="/nowhere/braidd.sock", timeout=5)
    assert caught.value.name in ("BRAID_ERROR_UNAVAILABLE", "BRAID_ERROR_NOT_FOUND")


@pytest.mark.parametrize(("nodes", "ranks_per_node"), [(2, 1), (1, 2)])
def test_a_job_without_torch(nodes, ranks_per_node):
    results = run("plain_job.py", nodes=nodes, ranks_per_node=ranks_per_node).expect(2)
    assert all(result["done"] for result in results)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("a\0b", 0, 1), "the job's name is 'a.x00b', which has a NUL character in it"),
        (("job", -1, 1), "the rank is -1; right is a whole number, 0 to 4294967295"),
        (("job", 0, 1.5), "the world size is 1.5; right is a whole number"),
    ],
)
def test_arguments_that_ctypes_would_cut_are_refused(arguments, text):
    with pytest.raises(InvalidArgumentError, match=text):
        braid.Job(*arguments)

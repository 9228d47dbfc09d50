# SPDX-License-Identifier: Apache-2.0
"""Marks of these tests, and what several files need."""

import pytest


def pytest_configure(config):
    config.addinivalue_line("markers", "once: no other version of torch can change the result")


@pytest.fixture
def gpu(monkeypatch):
    """CPU tensors count as those of a GPU where made_up_gpu.py has put them there."""
    from made_up_gpu import MadeUpCuda  # With torch, which not all tests need.

    from braid.torch.operations import devices

    made = MadeUpCuda()
    monkeypatch.setattr(devices, "cuda", made)
    return made


# These take longest. Those that run beside each other end together if these begin first.
LONG_FILES = [f"test_{name}.py" for name in ("torch_suite", "attaching", "failures", "training", "sharded")]


def pytest_collection_modifyitems(items):
    rank = {name: number for number, name in enumerate(LONG_FILES)}
    items.sort(key=lambda item: rank.get(item.path.name, len(rank)))

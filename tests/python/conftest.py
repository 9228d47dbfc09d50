# SPDX-License-Identifier: Apache-2.0
"""Marks of these tests."""


def pytest_configure(config):
    config.addinivalue_line("markers", "once: no other version of torch can change the result")


# These take longest. Those that run beside each other end together if these begin first.
LONG_FILES = [f"test_{name}.py" for name in ("torch_suite", "attaching", "failures", "training", "sharded")]


def pytest_collection_modifyitems(items):
    rank = {name: number for number, name in enumerate(LONG_FILES)}
    items.sort(key=lambda item: rank.get(item.path.name, len(rank)))

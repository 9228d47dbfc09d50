# SPDX-License-Identifier: Apache-2.0
"""Marks of these tests."""


def pytest_configure(config):
    config.addinivalue_line("markers", "once: no other version of torch can change the result")

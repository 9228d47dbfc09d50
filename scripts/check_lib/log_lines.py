# SPDX-License-Identifier: Apache-2.0
"""Finds lines of the daemon's log that name a job, a process or a user and have no LogFields: the log counts lines by
users, and one that does not say whose it is can be hidden by another user's flood."""

import re
from collections.abc import Iterator, Mapping

# Held-back lines alone: those for debugging are all written.
WITHOUT_FIELDS = re.compile(r'BRAID_LOG_(?:INFO|WARN|ERROR)\(\s*((?:"(?:[^"\\]|\\.)*"\s*)+)')
ABOUT_A_USER = re.compile(r"\b(job|process|user|client) (?:'\{\}'|\{\})")


def breaches(texts: Mapping[str, str]) -> Iterator[tuple[str, int, str]]:
    """Yields (path, line, what is wrong)."""
    for path, text in texts.items():
        if not path.startswith(("src/", "daemon/")) or not path.endswith((".h", ".cpp")):
            continue
        for found in WITHOUT_FIELDS.finditer(text):
            if named := ABOUT_A_USER.search(found[1].replace('"', "")):
                yield path, text.count("\n", 0, found.start()) + 1, (
                    f"this log line names a {named[1]} and does not say whose: give it LogFields with .job or .user")

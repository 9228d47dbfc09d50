# SPDX-License-Identifier: Apache-2.0
"""The documents: what they point to is there, and the README leads to each of them."""

import pathlib
import re
import subprocess

import pytest
from braid_build import PATIENCE_S, REPOSITORY
from document_links import anchors, broken_links, links_in


def documents() -> list[pathlib.Path]:
    """All that git has, or would take."""
    done = subprocess.run(
        ["git", "-C", REPOSITORY, "ls-files", "--cached", "--others", "--exclude-standard", "*.md"],
        capture_output=True, text=True, check=False, timeout=PATIENCE_S,
    )  # fmt: skip
    if done.returncode != 0:
        pytest.skip(f"this is no checkout: {done.stderr.strip()}")
    return [REPOSITORY / line for line in done.stdout.splitlines() if (REPOSITORY / line).exists()]


def test_links_lead_to_files_and_headings():
    found = documents()
    assert len(found) > 20
    assert broken_links(REPOSITORY, found) == []


def test_a_broken_link_is_found(tmp_path):
    (tmp_path / "b.md").write_text("# What `b` is: (1)\n\n## Again\n\n## Again\n", encoding="utf-8")
    assert anchors(tmp_path / "b.md") == {"what-b-is-1", "again", "again-1"}
    good = "[1](b.md#again-1) [2](b.md#what-b-is-1) [3](#here) [4](https://x.org/)"
    bad = "[5](b.md#gone) [6](c.md) [7](../b.md)"
    (tmp_path / "a.md").write_text(f"{good}\n{bad}\n```\n[8](d.md)\n```\n# Here\n", encoding="utf-8")
    assert broken_links(tmp_path, [tmp_path / "a.md"]) == ["a.md: b.md#gone", "a.md: c.md", "a.md: ../b.md"]


def test_pictures_are_no_wider_than_a_page_shows_them():
    pictures = [*(REPOSITORY / "docs").rglob("*.svg")]
    assert len(pictures) > 5
    for picture in pictures:
        points = float(re.search(r'<svg [^>]*width="([\d.]+)pt"', picture.read_text(encoding="utf-8"))[1])
        assert points * 96 / 72 <= 830, f"{picture.name}: letters shrink"


def test_the_table_of_the_readme_has_each_document():
    _, _, table = (REPOSITORY / "README.md").read_text(encoding="utf-8").partition("\n## Where to go next\n")
    listed = {link.partition("#")[0] for row in re.findall(r"^\|.*$", table, re.M) for link in links_in(row)}
    assert {str(path.relative_to(REPOSITORY)) for path in documents()} - {"README.md"} == {
        link for link in listed if link.endswith(".md")
    }

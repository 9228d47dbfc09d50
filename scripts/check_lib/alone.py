#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whether each of our .cpp files but the tests compiles by itself, as users build it: does it include what it uses?

usage: scripts/check_lib/alone.py BUILD_FOLDER   (configured without CMAKE_UNITY_BUILD, its generated headers built)

scripts/check.sh tests a build that compiles several files as one, where a file may live on what another one includes.
Nothing is written: the compiler only looks. Prints what it says, and exits with 1 if it complains.
"""

import concurrent.futures
import json
import os
import shlex
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TIMEOUT_S = 300


def complaint_of(entry):
    words = shlex.split(entry["command"])
    at = words.index("-o")
    del words[at : at + 2]
    # Warnings are errors of the build that is tested. ccache keeps objects, and here is none.
    words = [word for word in words if os.path.basename(word) != "ccache"] + ["-fsyntax-only", "-w"]
    done = subprocess.run(
        words, cwd=entry["directory"], capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    return None if done.returncode == 0 else done.stdout + done.stderr


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with open(os.path.join(sys.argv[1], "compile_commands.json"), encoding="utf-8") as file:
        # A file that several targets compile is looked at once; generated ones not at all.
        by_file = {os.path.realpath(entry["file"]): entry for entry in json.load(file)}
    left_out = tuple(os.path.join(ROOT, folder) + os.sep for folder in ("build", "tests"))
    entries = [entry for path, entry in sorted(by_file.items()) if not path.startswith(left_out)]
    if len(entries) < 100:
        sys.exit(f"alone: {sys.argv[1]} has only {len(entries)} files of ours: was it configured with unity builds?")
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for complaint in pool.map(complaint_of, entries):
            if complaint is not None:
                failed += 1
                print(complaint, flush=True)
    print(f"alone: {len(entries)} files, {failed} do not compile by themselves")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

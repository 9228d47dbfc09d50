#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What scripts/check.sh says about the files that its runners left.

usage: report.py count JUNIT                 how many tests passed, failed and were skipped
       report.py failed ctest|gtest|pytest JUNIT
                                             what the runner must be given to run each failed test by itself
       report.py problems FOLDER NAME…       what failed in the runs of these names, and why

A run is FOLDER/NAME.xml and FOLDER/NAME.log, with dashes for blanks. A run without a failed test in its JUnit file
(a crash, a deadline, a check that is no test) is told by the end of its log. A test that failed was run again by
itself: NAME-again-1 and so on. One that passed then is unstable.
"""

import glob
import itertools
import os
import re
import sys
import xml.etree.ElementTree as ElementTree

# All of it fits the end of a log that is cut to its last 60 lines.
LINES_MAX = 40
LINES_OF_A_LOG = 15
COLUMNS_MAX = 160


def cases_of(junit):
    return list(ElementTree.parse(junit).iter("testcase"))


def problem_of(case):
    for kind in ("failure", "error"):
        if (found := case.find(kind)) is not None:
            return found
    return None


def count(junit):
    cases = cases_of(junit)
    failed = sum(problem_of(case) is not None for case in cases)
    skipped = sum(
        problem_of(case) is None
        and (case.find("skipped") is not None or case.get("status") in ("notrun", "disabled"))
        for case in cases
    )
    return len(cases) - failed - skipped, failed, skipped


def again_name(runner, case):
    """What selects this test and no other one; nothing if it is no test, such as a file that cannot be imported."""
    name, group = case.get("name") or "", case.get("classname") or ""
    if runner == "ctest":
        return f"^{re.escape(name)}$"
    if runner == "gtest":
        return f"{group}.{name}"
    file = case.get("file") or ""
    module = file.removesuffix(".py").replace("/", ".")
    if not module or not (group + ".").startswith(module + "."):
        return None
    return "::".join([file, *filter(None, group[len(module) :].split(".")), name])


def failed(runner, junit):
    names = (again_name(runner, case) for case in cases_of(junit) if problem_of(case) is not None)
    return [name for name in names if name]


# What the integration tests add: how each trainer ended, a line each, and after a blank one what all of them said.
TRAINERS = re.compile(r"-+ trainers -+")


def message_of(case):
    """Lines that say why. pytest marks them with E, and has the place in its last line; ctest only has what the
    test printed."""
    problem = problem_of(case)
    printed = (case.findtext("system-out") or "").splitlines()
    text = (problem.text or "").strip().splitlines()
    if text:
        end = next((i for i, line in enumerate(text) if TRAINERS.fullmatch(line)), len(text))
        trainers = list(itertools.takewhile(str.strip, text[end + 1 :]))
        # Not the message alone: newer pytest keeps only the first line of a long one.
        marked = [line[1:].strip() for line in text[:end] if line.startswith("E ")]
        why = [line for line in marked or (problem.get("message") or "").splitlines() if line.strip()]
        return [*why, *text[:end][-1:], *trainers]
    begin = next((i for i, line in enumerate(printed) if ": Failure" in line or "Sanitizer" in line), None)
    if begin is not None:
        return printed[begin:]
    return [problem.get("message") or "failed", *printed[-LINES_OF_A_LOG + 1 :]]


def log_of(path):
    try:
        with open(path + ".log", encoding="utf-8", errors="replace") as log:
            return log.read().splitlines()[-LINES_OF_A_LOG:]
    except OSError as error:
        return [str(error)]


def passed_again(path):
    """{(class, name): path of the run} of the tests that passed when they were run again."""
    found = {}
    for junit in sorted(glob.glob(glob.escape(path) + "-again-*.xml")):
        try:
            for case in cases_of(junit):
                if problem_of(case) is None and case.find("skipped") is None and case.get("status") != "notrun":
                    found[case.get("classname"), case.get("name")] = junit.removesuffix(".xml")
        except (OSError, ElementTree.ParseError):
            pass  # It did not end well: not passed.
    return found


def problems_of(folder, name):
    """[(title, lines)] of one run."""
    path = os.path.join(folder, name.replace(" ", "-"))
    try:
        wrong = [case for case in cases_of(path + ".xml") if problem_of(case) is not None]
    except (OSError, ElementTree.ParseError):
        wrong = []
    if not wrong:
        return [(f"FAILED {name}", log_of(path))]
    again, found = passed_again(path), []
    for case in wrong:
        title, lines = f"{name}: {case.get('name')}", message_of(case)
        then = again.get((case.get("classname"), case.get("name")))
        if then is None:
            found.append((f"FAILED {title}", lines))
        else:
            found.append((f"UNSTABLE {title}", [*lines, "by itself it passed:", *log_of(then)[-1:]]))
    # What keeps the check from passing comes first.
    return sorted(found, key=lambda problem: problem[0].startswith("UNSTABLE"))


def shortened(lines, most):
    """Both ends of a long message: a program's output, say, stands before its exit code."""
    if len(lines) <= most:
        return lines
    head = most // 2
    return [*lines[:head], "…", *lines[len(lines) - (most - head - 1) :]][:most]


def report(problems):
    """Every title as long as there is room; the rest of the room is shared by the messages."""
    lines = []
    each = max(LINES_MAX // max(len(problems), 1) - 1, 0)
    for title, message in problems[:LINES_MAX]:
        lines.append(title)
        lines += ["    " + line for line in shortened([line for line in message if line.strip()], each)]
    if len(problems) > LINES_MAX:
        lines.append(f"and {len(problems) - LINES_MAX} more")
    return [line[:COLUMNS_MAX] for line in lines]


def main():
    match sys.argv[1:]:
        case ["count", junit]:
            print(*count(junit))
        case ["failed", "ctest" | "gtest" | "pytest" as runner, junit]:
            print("".join(name + "\n" for name in failed(runner, junit)), end="")
        case ["problems", folder, *names]:
            print(*report([one for name in names for one in problems_of(folder, name)]), sep="\n")
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""What a node's daemon has noted of a rank's gradients, from a file of `braidctl trace`. A pure function."""


def read(document: dict) -> dict:
    """What rank 0's node says of its gradients, from a file of `braidctl trace`."""
    tracks = {
        (event["pid"], event["tid"]): event["args"]["name"]
        for event in document["traceEvents"]
        if event["name"] == "thread_name"
    }
    (rank, node) = next(place[::-1] for place, name in tracks.items() if name == "rank 0: trainer")
    origin = document["otherData"]["begin_ns"]
    gradients, operations = [], []
    for event in document["traceEvents"]:
        if event["pid"] != node or "ts" not in event:
            continue
        begin = origin + round(1000 * event["ts"])
        if event["ph"] == "i" and event["tid"] == rank:
            gradients.append(begin)
        # Not those that wait, which are within others, nor barriers.
        elif tracks[node, event["tid"]].startswith("operations") and event["args"].get("bytes"):
            operations.append([begin, begin + round(1000 * event["dur"]), event["args"]["bytes"]])
    return {"gradients": gradients, "operations": operations}

# SPDX-License-Identifier: Apache-2.0
"""Finds a wrong BRAID_CODEC before a process group is made. Whether a number is in its range the daemon says, when
gradients are registered."""

from __future__ import annotations

import difflib
import os

from braid.torch.environment.variables import WrongVariable

_BLOCKS = ("block", "rounding", "seed")
_SIGNS = ("block", "full-every")
# The parameters of each codec, as docs/compression.md has them; PowerSGD's are of this package, others of the daemon
# (src/codec/codec_spec.cpp, which a test holds against these).
PARAMETERS = {
    "none": (), "bf16": ("rounding", "seed"), "fp16": (), "int8": _BLOCKS, "int4": _BLOCKS, "fp8-e4m3": _BLOCKS,
    "fp8-e5m2": _BLOCKS, "ef-sign": _SIGNS, "sign-vote": (), "1bit": _SIGNS, "2bit": ("threshold", "full-every"),
    "topk": ("ratio", "full-every"), "dgc": ("ratio", "momentum"), "qsgd": ("block", "levels", "seed"),
    "terngrad": ("block", "seed"), "natural": ("seed",), "block-sparse": ("block",), "powersgd": ("rank",),
}  # fmt: skip
_WORDS = ("nearest", "stochastic")  # of rounding


def check_codec() -> None:
    """Raises WrongVariable, which says what would be right."""
    text = os.environ.get("BRAID_CODEC", "")
    if not text:
        return
    name, colon, rest = text.partition(":")
    said = f"BRAID_CODEC is '{text}'"
    if name not in PARAMETERS:
        near = difflib.get_close_matches(name, PARAMETERS, n=1)
        hint = f"; did you mean '{near[0]}'?" if near else ""
        raise WrongVariable(f"{said}: no codec is named '{name}'; there are {', '.join(PARAMETERS)}{hint}")
    for part in rest.split(",") if colon else ():
        key, _, value = part.partition("=")
        if key not in PARAMETERS[name]:
            right = ", ".join(PARAMETERS[name]) or "none at all"
            raise WrongVariable(f"{said}: {name} has no parameter '{key}'; right are {right}")
        if not _is_value(key, value):
            right = "nearest or stochastic" if key == "rounding" else "a number"
            raise WrongVariable(f"{said}: {key} is '{value}'; right is {right}")


def _is_value(key: str, value: str) -> bool:
    if key == "rounding":
        return value in _WORDS
    try:
        return float(value) >= 0
    except ValueError:
        return False

# SPDX-License-Identifier: Apache-2.0
"""client/include/braid.h in ctypes: enums, option structs and signatures, and nothing else."""

from __future__ import annotations

import ctypes
import enum
from ctypes import POINTER, c_char_p, c_double, c_int, c_size_t, c_uint32, c_uint64, c_void_p

NO_ORDER = 0xFFFFFFFF
EVERYBODY = 0xFFFFFFFF
OK = 0
# braid_device_buffers: copies of the result are queued by the submission, and not by the wait for it.
DEVICE_STREAM_WAITS = 1


class DType(enum.IntEnum):
    """Element types that braid adds and compares."""

    FLOAT32 = 0
    FLOAT64 = 1
    FLOAT16 = 2
    BFLOAT16 = 3
    INT32 = 4
    INT64 = 5
    UINT8 = 6

    @property
    def itemsize(self) -> int:
        return _ITEM_SIZES[self]


_ITEM_SIZES = {
    DType.FLOAT32: 4,
    DType.FLOAT64: 8,
    DType.FLOAT16: 2,
    DType.BFLOAT16: 2,
    DType.INT32: 4,
    DType.INT64: 8,
    DType.UINT8: 1,
}


class Reduction(enum.IntEnum):
    SUM = 0
    AVERAGE = 1
    MIN = 2
    MAX = 3
    PRODUCT = 4


class Collective(enum.IntEnum):
    ALL_REDUCE = 0
    BROADCAST = 1
    ALL_GATHER = 2
    REDUCE_SCATTER = 3
    BARRIER = 4
    GATHER = 5
    SCATTER = 6
    ALL_TO_ALL = 7


class UpdateAction(enum.IntEnum):
    """What one all-reduce of a tensor with `state_slots` does. braid.h has the whole of it."""

    APPLY = 0
    PUSH = 1
    LOAD = 2
    FETCH = 3
    ESTIMATE = 4


class Optimizer(enum.IntEnum):
    """Whose step the owner of an element takes."""

    SGD = 0
    ADAM = 1
    LION = 2


class StateSlot(enum.IntEnum):
    """What the owner keeps for an element. FIRST_MOMENT is also SGD's and Lion's momentum."""

    WEIGHTS = 0
    FIRST_MOMENT = 1
    SECOND_MOMENT = 2


class StateBits(enum.IntEnum):
    """HIGH and LOW move the two halves of a 16-bit tensor's state, which is float32."""

    ROUNDED = 0
    HIGH = 1
    LOW = 2


class UpdateFlag(enum.IntFlag):
    NESTEROV = 1
    DECOUPLED_DECAY = 2
    PULL_BFLOAT16 = 4


class Update(ctypes.Structure):
    """braid_update: what one operation does to weights that the daemons keep. By its field names.

    All ranks give the same numbers. `count` is this tensor's number of updates, this one included.
    """

    _fields_ = [
        ("struct_size", c_size_t),
        ("action", c_uint32),
        ("optimizer", c_uint32),
        ("slot", c_uint32),
        ("bits", c_uint32),
        ("flags", c_uint32),
        ("count", c_uint64),
        ("learning_rate", c_double),
        ("momentum", c_double),
        ("dampening", c_double),
        ("second_momentum", c_double),
        ("epsilon", c_double),
        ("weight_decay", c_double),
    ]

    def __init__(self, **fields: float) -> None:
        super().__init__(struct_size=ctypes.sizeof(Update), **fields)


class JobOptions(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("socket_path", c_char_p),
        ("name", c_char_p),
        ("rank", c_uint32),
        ("world_size", c_uint32),
        ("master_address", c_char_p),
        ("timeout_ms", c_uint32),
        ("arena_bytes", c_uint64),
        ("token", c_char_p),
        ("master_node", c_uint64),
    ]


class TensorOptions(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("name", c_char_p),
        ("dtype", c_uint32),
        ("count", c_uint64),
        ("backward_order", c_uint32),
        ("dynamic", c_uint32),
        ("planned", c_uint32),
        ("codec", c_char_p),
        ("state_slots", c_uint32),
    ]


ANY_RANK = 2**32 - 1


class Message(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("peer", c_uint32),
        ("timeout_ms", c_uint32),
        ("tag", c_uint64),
        ("bytes", c_uint64),
        ("data", c_void_p),
    ]


class Operation(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("collective", c_uint32),
        ("tensor", c_uint32),
        ("step", c_uint64),
        ("reduction", c_uint32),
        ("root", c_uint32),
        ("dtype", c_uint32),
        ("timeout_ms", c_uint32),
        ("count", c_uint64),
        ("input", c_void_p),
        ("input_splits", c_void_p),
        ("output_splits", c_void_p),
        ("update", c_void_p),
    ]


class DeviceBuffers(ctypes.Structure):
    """braid_device_buffers: where an operation's data lie on a GPU. Addresses are plain integers."""

    _fields_ = [
        ("struct_size", c_size_t),
        ("input", c_uint64),
        ("result", c_uint64),
        ("result_of_rank", c_void_p),
        ("stream", c_void_p),
        ("flags", c_uint32),
    ]


class PlaceItem(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("id", c_char_p),
        ("shape", POINTER(c_uint64)),
        ("dimensions", c_size_t),
        ("cost_seconds", c_double),
        ("bytes", c_uint64),
    ]


class PlaceOptions(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("ranks", c_uint32),
        ("rule", c_char_p),
        ("startup_seconds", c_double),
        ("seconds_per_byte", c_double),
    ]


class PlacementNumbers(ctypes.Structure):
    """braid_placement: what is told of a placement besides its lists."""

    _fields_ = [
        ("struct_size", c_size_t),
        ("makespan_seconds", c_double),
        ("bound_seconds", c_double),
        ("is_optimal", c_uint32),
        ("order_count", c_uint32),
    ]


class WorkItem(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("name", c_char_p),
        ("owner", c_uint32),
        ("seconds", c_double),
        ("least_seconds", c_double),
    ]


class WorkSpan(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("begin_ns", c_uint64),
        ("end_ns", c_uint64),
        ("item", c_uint32),
        ("is_wait", c_uint32),
    ]


class Work(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("name", c_char_p),
        ("items", POINTER(WorkItem)),
        ("item_count", c_size_t),
        ("spans", POINTER(WorkSpan)),
        ("span_count", c_size_t),
        ("updates", c_uint64),
        ("interval_seconds", c_double),
        ("seconds", c_double),
        ("wait_seconds", c_double),
        ("input_wait_seconds", c_double),
        ("planned_seconds", c_double),
        ("makespan_seconds", c_double),
        ("bound_seconds", c_double),
    ]


# A braid_job* is a void* here; tickets and handles are plain integers.
SIGNATURES = {
    "braid_open": (c_int, [POINTER(JobOptions), POINTER(c_void_p)]),
    "braid_master": (c_int, [c_char_p, c_uint32, c_char_p, c_size_t, POINTER(c_uint64)]),
    "braid_open_start": (c_int, [POINTER(JobOptions), POINTER(c_void_p)]),
    "braid_open_wait": (c_int, [c_void_p, c_uint32, POINTER(c_int)]),
    "braid_close": (c_int, [c_void_p]),
    "braid_leave": (c_int, [c_void_p, c_char_p]),
    "braid_check": (c_int, [c_void_p]),
    "braid_rank": (c_uint32, [c_void_p]),
    "braid_world_size": (c_uint32, [c_void_p]),
    "braid_nodes": (c_uint32, [c_void_p]),
    "braid_register": (c_int, [c_void_p, POINTER(TensorOptions), c_size_t, POINTER(c_uint32)]),
    "braid_unregister": (c_int, [c_void_p, POINTER(c_uint32), c_size_t]),
    "braid_allocate": (c_int, [c_void_p, c_size_t, POINTER(c_void_p)]),
    "braid_free": (c_int, [c_void_p, c_void_p]),
    "braid_set_timeout": (c_int, [c_void_p, c_uint32]),
    "braid_extend_timeout": (c_int, [c_void_p, c_uint32]),
    "braid_set_patience": (c_int, [c_void_p, c_uint32]),
    "braid_submit": (c_int, [c_void_p, POINTER(Operation), POINTER(c_uint64)]),
    "braid_send": (c_int, [c_void_p, POINTER(Message), POINTER(c_uint64)]),
    "braid_receive": (c_int, [c_void_p, POINTER(Message), POINTER(c_uint64)]),
    "braid_source": (c_int, [c_void_p, c_uint64, POINTER(c_uint32)]),
    "braid_test": (c_int, [c_void_p, c_uint64, POINTER(c_int)]),
    "braid_wait": (c_int, [c_void_p, c_uint64, c_uint32]),
    "braid_result": (c_int, [c_void_p, c_uint64, POINTER(c_void_p), POINTER(c_size_t)]),
    "braid_result_of_rank": (
        c_int,
        [c_void_p, c_uint64, c_uint32, POINTER(c_void_p), POINTER(c_size_t)],
    ),
    "braid_copy_result": (c_int, [c_void_p, c_uint64, c_void_p, c_size_t]),
    "braid_release": (c_int, [c_void_p, c_uint64]),
    "braid_take": (c_int, [c_void_p, c_uint64, c_uint32, c_void_p, c_size_t]),
    "braid_open_levels": (
        c_int,
        [c_void_p, c_void_p, c_uint32, POINTER(c_uint32), c_char_p, c_size_t],
    ),
    "braid_submit_device": (
        c_int,
        [c_void_p, POINTER(Operation), POINTER(DeviceBuffers), POINTER(c_uint64)],
    ),
    "braid_stream_wait": (c_int, [c_void_p, c_uint64, c_void_p]),
    "braid_device_release": (c_int, [c_void_p, c_uint64]),
    "braid_tell_work": (c_int, [c_void_p, POINTER(Work)]),
    "braid_name_job": (c_int, [c_char_p, c_char_p, c_uint32, c_char_p, c_size_t]),
    "braid_explain": (c_int, [c_char_p, c_char_p, c_uint32, c_char_p, c_size_t]),
    "braid_place": (
        c_int,
        [
            POINTER(PlaceOptions),
            POINTER(PlaceItem),
            c_size_t,
            POINTER(c_uint32),
            POINTER(c_uint32),
            POINTER(c_double),
            POINTER(PlacementNumbers),
        ],
    ),
    "braid_error_message": (c_char_p, []),
    "braid_error_name": (c_char_p, [c_int]),
    "braid_version": (c_char_p, []),
}


def declare(library: ctypes.CDLL) -> None:
    """Gives every function of the ABI its types; AttributeError names one that is missing."""
    for name, (result, arguments) in SIGNATURES.items():
        function = getattr(library, name)
        function.restype = result
        function.argtypes = arguments

# SPDX-License-Identifier: Apache-2.0
"""A second implementation of what proto/SPEC.md says about hashes, cuts and flows, made from its text alone."""

import hashlib
import hmac
import struct

MASK = 2**64 - 1
LINE = 64
SMALL_CHUNK_BYTES = 32768
USUAL_CHUNK_BYTES = 65536
CHUNKS_MIN, CHUNKS_MAX = 4, 8  # of a segment that has enough bytes
SET, GROUP, SIGNATURE, SPLITS, MESSAGES = 2, 3, 5, 6, 7
DTYPES = ["float32", "float64", "float16", "bfloat16", "int32", "int64", "uint8"]
ELEMENT_BYTES = [4, 8, 2, 2, 4, 8, 1]
COLLECTIVES = ["all-reduce", "broadcast", "all-gather", "reduce-scatter", "barrier", "gather", "scatter",
               "all-to-all"]


# --- hashes ---

def rotate(x: int, bits: int) -> int:
    return (x << bits | x >> (64 - bits)) & MASK


def siphash24(key: tuple[int, int], text: bytes) -> int:
    v0, v1, v2, v3 = (key[0] ^ 0x736F6D6570736575, key[1] ^ 0x646F72616E646F6D,
                      key[0] ^ 0x6C7967656E657261, key[1] ^ 0x7465646279746573)

    def rounds(count: int) -> None:
        nonlocal v0, v1, v2, v3
        for _ in range(count):
            v0, v2 = (v0 + v1) & MASK, (v2 + v3) & MASK
            v1, v3 = rotate(v1, 13) ^ v0, rotate(v3, 16) ^ v2
            v0 = rotate(v0, 32)
            v2, v0 = (v2 + v1) & MASK, (v0 + v3) & MASK
            v1, v3 = rotate(v1, 17) ^ v2, rotate(v3, 21) ^ v0
            v2 = rotate(v2, 32)

    padded = text + bytes(7 - len(text) % 8) + bytes([len(text) % 256])
    for i in range(0, len(padded), 8):
        word = int.from_bytes(padded[i:i + 8], "little")
        v3 ^= word
        rounds(2)
        v0 ^= word
    v2 ^= 0xFF
    rounds(4)
    return v0 ^ v1 ^ v2 ^ v3


def mix64(x: int) -> int:
    x ^= x >> 30
    x = x * 0xBF58476D1CE4E5B9 & MASK
    x ^= x >> 27
    x = x * 0x94D049BB133111EB & MASK
    return x ^ x >> 31


def key_of(job_key: int) -> tuple[int, int]:
    digest = hmac.new(job_key.to_bytes(8, "little"), b"braid names of a job", hashlib.sha256).digest()
    return int.from_bytes(digest[:8], "little"), int.from_bytes(digest[8:16], "little")


def name_hash(job_key: int, name: str) -> int:
    first, second = key_of(job_key)
    return siphash24((first, second ^ 1), name.encode()) or 1


def record_hash(job_key: int, kind: int, *words: int) -> int:
    return siphash24(key_of(job_key), b"".join(word.to_bytes(8, "little") for word in (kind, *words))) or 1


def codec_hash(codec: str) -> int:
    """FNV-1a of its text; 0: none."""
    return 0 if codec == "none" else fnv1a64(codec.encode())


def fnv1a64(text: bytes) -> int:
    result = 0xCBF29CE484222325
    for byte in text:
        result = (result ^ byte) * 0x100000001B3 & MASK
    return result


def set_hash(job_key: int, tensors: list[dict]) -> int:
    result = 0
    for t in tensors:
        result = record_hash(job_key, SET, result, name_hash(job_key, t["name"]), t["count"], t["backward_order"],
                             DTYPES.index(t["dtype"]))
        if t.get("state_slots"):
            result = record_hash(job_key, SET, result, t["state_slots"])
    return result


def updates_hash(entries: list[bytes]) -> int:
    """The hash of what is asked of the owners of a group's tensors."""
    result = 0
    for entry in entries:
        result = mix64(result ^ fnv1a64(entry))
    return result or 1


def stripe(elements: int, nodes: int) -> int:
    return min(max(ceil(ceil(elements, 16 * nodes), 16) * 16, 256), 262_144)


def chain_hash(job_key: int, kind: int, tensors: list[dict]) -> int:
    """The hash of a group."""
    result = 0
    for t in tensors:
        result = record_hash(job_key, kind, result, name_hash(job_key, t["name"]), t["count"])
    return result


def splits_hash(job_key: int, expected: list[list[int]], given: list[list[int]]) -> int:
    """Each part is [giver, taker, elements]."""
    sums = [sum(record_hash(job_key, SPLITS, *part) for part in parts) & MASK for parts in (expected, given)]
    return record_hash(job_key, SPLITS, *sums)


def tensors_hash(tensors: list[dict]) -> int:
    result = fnv1a64(b"tensors")
    for t in sorted(tensors, key=lambda one: one["backward_order"]):
        result = mix64(result ^ mix64((t["count"] * 7 + DTYPES.index(t["dtype"])) & MASK))
    return result


def sketch_place(element: int) -> tuple[int, int]:
    """The bucket in which an element of a set is added (1) or subtracted (-1)."""
    number = mix64((element // 16 + 0x9E3779B97F4A7C15) & MASK)
    bucket = number // 2**16 % 16 * 16 + (element % 16 ^ number // 2**32 % 16)
    return bucket, -1 if number // 2 ** (element % 16) % 2 else 1


def io_loop(tensor: int, step: int, unit: int, loops: int) -> int:
    return (((mix64(tensor) + step) & MASK) % loops + unit) % loops


# --- cuts ---

def ceil(a: int, b: int) -> int:
    return -(-a // b)


def lines(bytes_: int) -> int:
    return ceil(bytes_, LINE) * LINE


def piece(begin: int, bytes_: int, length: int, index: int) -> tuple[int, int]:
    start = min(bytes_, index * length)
    return begin + start, min(bytes_ - start, length)


def units_of(case: dict) -> list[list[tuple[int, int]]]:
    """For each unit its segments, as (offset, bytes)."""
    element = ELEMENT_BYTES[DTYPES.index(case["dtype"])]
    block = case["count"] * element
    world = sum(case["ranks_of_node"])
    has_blocks = case["collective"] in ("all-gather", "reduce-scatter")
    total = block * world if has_blocks else block
    if total == 0:
        return []
    if case["direct"]:
        return [[(0, total)]]
    count = ceil(total, max(case["unit_bytes"] // LINE * LINE, ceil(total, 2**32 - 1)))
    if has_blocks:
        result = []
        for unit in range(count):
            begin, segments = 0, []
            for ranks in case["ranks_of_node"]:
                of_node = ranks * block
                segments.append(piece(begin, of_node, lines(ceil(of_node, count)), unit))
                begin += of_node
            result.append(segments)
        return result
    length = lines(ceil(total, count))
    result = []
    for unit in range(ceil(total, length)):
        begin, bytes_ = piece(0, total, length, unit)
        if case["collective"] == "broadcast":
            nodes = len(case["ranks_of_node"])
            result.append([(begin, bytes_ if node == case["root_node"] else 0) for node in range(nodes)])
        else:
            part = lines(ceil(bytes_, case["segments"]))
            result.append([piece(begin, bytes_, part, s) for s in range(case["segments"])])
    return result


def stream_units(case: dict) -> list[tuple[int, int]]:
    """The cut of one node's bytes for another in a gather, a scatter or an all-to-all."""
    share = max(case["unit_bytes"] // case["nodes"] // LINE * LINE, LINE)
    length = max(share, lines(ceil(case["bytes"], 2**32 - 1)))
    return [piece(0, case["bytes"], length, unit) for unit in range(ceil(case["bytes"], length))]


def chunks_of(case: dict, segment: tuple[int, int]) -> list[tuple[int, int]]:
    begin, bytes_ = segment
    if bytes_ == 0:
        return []
    most = case["chunk_bytes"] // LINE * LINE
    wanted = max(lines(ceil(bytes_, CHUNKS_MAX)), min(lines(ceil(bytes_, CHUNKS_MIN)), USUAL_CHUNK_BYTES))
    wanted = min(max(wanted, SMALL_CHUNK_BYTES), most)
    length = lines(ceil(bytes_, ceil(bytes_, wanted)))
    return [piece(begin, bytes_, length, i) for i in range(ceil(bytes_, length))]


# --- what protects flows ---

def hmac_sha256(key: bytes, *parts: bytes) -> bytes:
    return hmac.new(key, b"".join(parts), hashlib.sha256).digest()


def flow_keys(cluster_key: bytes, opener: int, receiver: int, nonce: int, io_loop: int, flow: int,
              generation: int) -> tuple[bytes, bytes, int]:
    """The proof key, the cipher key and the chunk token."""
    link = hmac_sha256(cluster_key, b"braid link", struct.pack("<QQQ", opener, receiver, nonce))
    which = struct.pack("<HHI", io_loop, flow, generation)
    token = hmac_sha256(link, b"braid flow chunks", which)
    proof_key, cipher_key = (hmac_sha256(link, label, which) for label in (b"braid flow proofs", b"braid flow cipher"))
    return proof_key, cipher_key, int.from_bytes(token[:8], "little")


def flow_proof(proof_key: bytes, side: str, port: int, salts: bytes = b"") -> bytes:
    """`salts`: on an encrypted connection, those that were said by then."""
    return hmac_sha256(proof_key, f"braid flow, {side}".encode(), struct.pack(">H", port), salts)


def flow_record_key(cipher_key: bytes, side: str, salts: bytes) -> bytes:
    return hmac_sha256(cipher_key, f"braid records, {side}".encode(), salts)

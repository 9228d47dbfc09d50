# SPDX-License-Identifier: Apache-2.0
"""A second implementation of what proto/SPEC.md says about records: AES-256-GCM as in FIPS 197 and NIST SP 800-38D.

Slow, and its time tells the key: for examples alone.
"""

import hashlib
import hmac
import struct

ROUNDS = 14
BLOCK = 16


def double(x: int) -> int:
    return (x << 1 ^ (0x11B if x & 0x80 else 0)) & 0xFF


def times(x: int, y: int) -> int:
    product = 0
    for bit in range(8):
        if y >> bit & 1:
            product ^= x
        x = double(x)
    return product


def substituted(x: int) -> int:
    inverse = next((y for y in range(1, 256) if times(x, y) == 1), 0)
    return 0x63 ^ inverse ^ left(inverse, 1) ^ left(inverse, 2) ^ left(inverse, 3) ^ left(inverse, 4)


def left(x: int, bits: int) -> int:
    return (x << bits | x >> (8 - bits)) & 0xFF


SBOX = [substituted(x) for x in range(256)]


def round_keys(key: bytes) -> list[list[int]]:
    words = [list(key[i : i + 4]) for i in range(0, 32, 4)]
    constant = 1
    while len(words) < 4 * (ROUNDS + 1):
        word = words[-1]
        if len(words) % 8 == 0:
            word = [SBOX[b] for b in word[1:] + word[:1]]
            word[0] ^= constant
            constant = double(constant)
        elif len(words) % 8 == 4:
            word = [SBOX[b] for b in word]
        words.append([a ^ b for a, b in zip(words[-8], word, strict=True)])
    return [sum(words[i : i + 4], []) for i in range(0, len(words), 4)]


def mixed(column: list[int]) -> list[int]:
    turned = [column[i:] + column[:i] for i in range(4)]
    return [double(w) ^ double(x) ^ x ^ y ^ z for w, x, y, z in turned]


def aes(key: bytes, block: bytes) -> bytes:
    keys = round_keys(key)
    state = [a ^ b for a, b in zip(block, keys[0], strict=True)]
    for number in range(1, ROUNDS + 1):
        state = [SBOX[state[(i + 4 * (i % 4)) % BLOCK]] for i in range(BLOCK)]
        if number < ROUNDS:
            state = sum((mixed(state[i : i + 4]) for i in range(0, BLOCK, 4)), [])
        state = [a ^ b for a, b in zip(state, keys[number], strict=True)]
    return bytes(state)


def hashed(key: int, blocks: bytes) -> int:
    """GHASH of whole blocks."""
    total = 0
    for i in range(0, len(blocks), BLOCK):
        x, factor, total = total ^ int.from_bytes(blocks[i : i + BLOCK]), key, 0
        for bit in range(127, -1, -1):
            if x >> bit & 1:
                total ^= factor
            factor = factor >> 1 ^ (0xE1 << 120 if factor & 1 else 0)
    return total


def padded(text: bytes) -> bytes:
    return text + bytes(-len(text) % BLOCK)


def gcm(key: bytes, nonce: bytes, clear: bytes, plain: bytes) -> tuple[bytes, bytes]:
    def keystream(counter: int) -> bytes:
        return aes(key, nonce + struct.pack(">I", counter))

    blocks = (len(plain) + BLOCK - 1) // BLOCK
    stream = b"".join(keystream(2 + i) for i in range(blocks))
    sealed = bytes(a ^ b for a, b in zip(plain, stream, strict=False))
    lengths = struct.pack(">QQ", 8 * len(clear), 8 * len(sealed))
    digest = hashed(int.from_bytes(aes(key, bytes(BLOCK))), padded(clear) + padded(sealed) + lengths)
    tag = bytes(a ^ b for a, b in zip(digest.to_bytes(BLOCK), keystream(1), strict=True))
    return sealed, tag


def records(key: bytes, records_per_key: int, given: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """(encrypted part, tag) of each (clear part, what is encrypted)."""
    made = []
    for place, (clear, plain) in enumerate(given):
        if place and place % records_per_key == 0:
            key = hmac.new(key, b"braid next key", hashlib.sha256).digest()
        made.append(gcm(key, struct.pack("<Q", place) + bytes(4), clear, plain))
    return made

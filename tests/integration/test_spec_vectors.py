# SPDX-License-Identifier: Apache-2.0
"""proto/vectors.json follows from the text of proto/SPEC.md. That it follows from the daemon's code, too, is held by
tests/unit/proto."""

import json

import pytest
import spec_hashes_and_cuts as spec
import spec_records
from braid_build import REPOSITORY

VECTORS = json.loads((REPOSITORY / "proto" / "vectors.json").read_text())


def number(text: str) -> int:
    return int(text, 16)


def step_word(vector: dict) -> int:
    """The word of a signature that stands for its owner's step."""
    return vector["owner_step"] and vector["owner_step"] ^ spec.mix64(number(vector["updates"]))


@pytest.mark.parametrize("vector", VECTORS["stripes"], ids=lambda vector: f"{vector['elements']} of {vector['nodes']}")
def test_stripe(vector):
    assert spec.stripe(vector["elements"], vector["nodes"]) == vector["stripe"]


def test_siphash_is_the_published_one():
    """From the appendix of the paper: key 00 01 … 0f, message 00 01 … 0e."""
    key = (0x0706050403020100, 0x0F0E0D0C0B0A0908)
    assert spec.siphash24(key, bytes(range(15))) == 0xA129CA6149BE45E5


@pytest.mark.parametrize("vector", VECTORS["hashes"], ids=lambda vector: vector["of"])
def test_hash(vector):
    job = number(vector["job_key"])
    tensors = vector.get("tensors", [])
    made = {
        "name": lambda: spec.name_hash(job, vector["name"]),
        "set": lambda: spec.set_hash(job, tensors),
        "group": lambda: spec.chain_hash(job, spec.GROUP, tensors),
        "signature": lambda: spec.record_hash(job, spec.SIGNATURE, spec.COLLECTIVES.index(vector["collective"]),
                                              spec.DTYPES.index(vector["dtype"]), vector["reduction"],
                                              vector["root"], vector["count"], number(vector["group"]),
                                              spec.codec_hash(vector["codec"]), step_word(vector)),
        "updates": lambda: spec.updates_hash([bytes.fromhex(entry) for entry in vector["entries"]]),
        "splits": lambda: spec.splits_hash(job, vector["expected"], vector["given"]),
        "messages": lambda: spec.record_hash(job, spec.MESSAGES, vector["from"], vector["to"]),
        "model": lambda: spec.tensors_hash(tensors),
    }[vector["of"]]()
    assert f"{made:016x}" == vector["hash"]


@pytest.mark.parametrize("vector", VECTORS["io_loops"], ids=lambda vector: vector["tensor"])
def test_io_loop(vector):
    assert [spec.io_loop(number(vector["tensor"]), number(vector["step"]), unit, vector["loops"])
            for unit in range(len(vector["of_units"]))] == vector["of_units"]


@pytest.mark.parametrize("vector", VECTORS["flow_keys"], ids=lambda vector: f"generation {vector['generation']}")
def test_flow_keys(vector):
    proof_key, cipher_key, token = spec.flow_keys(
        bytes.fromhex(vector["cluster_key"]), *(number(vector[name]) for name in ("opener", "receiver", "nonce")),
        vector["io_loop"], vector["flow"], vector["generation"],
    )  # fmt: skip
    assert (proof_key.hex(), f"{token:016x}") == (vector["proof_key"], vector["chunk_token"])
    assert cipher_key.hex() == vector["cipher_key"]
    for side in ("connecting", "listening"):
        assert spec.flow_proof(proof_key, side, vector["port"]).hex() == vector[side]


@pytest.mark.parametrize("vector", VECTORS["encrypted_connections"], ids=lambda vector: f"port {vector['port']}")
def test_encrypted_connections(vector):
    proof_key, cipher_key = (bytes.fromhex(vector[name]) for name in ("proof_key", "cipher_key"))
    said = bytes.fromhex(vector["connecting_salt"])
    both = said + bytes.fromhex(vector["listening_salt"])
    for side, salts in (("connecting", said), ("listening", both)):
        assert spec.flow_proof(proof_key, side, vector["port"], salts).hex() == vector[side]
        assert spec.flow_record_key(cipher_key, side, salts).hex() == vector[f"{side}_key"]


def test_gcm_is_the_published_one():
    """Test case 14 of "The Galois/Counter Mode of Operation"."""
    sealed, tag = spec_records.gcm(bytes(32), bytes(12), b"", bytes(16))
    assert sealed.hex() == "cea7403d4d606b6e074ec5d3baf39d18"
    assert tag.hex() == "d0d1c8a799996bf0265b98b5d48ab919"


@pytest.mark.parametrize("vector", VECTORS["records"], ids=lambda vector: f"{vector['records_per_key']} per key")
def test_records(vector):
    parts = [tuple(bytes.fromhex(record[part]) for part in ("clear", "plain")) for record in vector["records"]]
    made = spec_records.records(bytes.fromhex(vector["key"]), vector["records_per_key"], parts)
    assert [(sealed.hex(), tag.hex()) for sealed, tag in made] == [
        (record["sealed"], record["tag"]) for record in vector["records"]
    ]


@pytest.mark.parametrize("vector", VECTORS["sketches"], ids=lambda vector: str(vector["element"]))
def test_sketch(vector):
    assert spec.sketch_place(vector["element"]) == (vector["bucket"], vector["sign"])


@pytest.mark.parametrize("vector", VECTORS["streams"], ids=lambda vector: vector["what"])
def test_stream(vector):
    units = spec.stream_units(vector)
    assert len(units) == vector["units"]
    for sample in vector["samples"]:
        piece = units[sample["unit"]]
        assert list(piece) == [sample["offset"], sample["bytes"]]
        assert [list(chunk) for chunk in spec.chunks_of(vector, piece)] == sample["chunks"]


@pytest.mark.parametrize("vector", VECTORS["cuts"], ids=lambda vector: vector["what"])
def test_cut(vector):
    units = spec.units_of(vector)
    assert len(units) == vector["units"]
    for sample in vector["samples"]:
        segment = units[sample["unit"]][sample["segment"]]
        assert list(segment) == [sample["offset"], sample["bytes"]]
        assert [list(chunk) for chunk in spec.chunks_of(vector, segment)] == sample["chunks"]

"""Records as bytes: complete, tolerant of what is new, and clear about damage."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.errors import CorruptObjectError, FormatTooNewError
from omnigraph.ids import decode_ulid_ms
from omnigraph.storage.tables.pins import Pin
from omnigraph.versioning.id_sets import IdSet
from omnigraph.versioning.json_fields import decode_fields, encode_fields
from omnigraph.versioning.record import (
    Bulk,
    Changed,
    Close,
    CommitRef,
    LogEntry,
    Maintenance,
    MergeDecision,
    Record,
    Signature,
    Spilled,
    generate_commit_id,
)
from omnigraph.versioning.record_codec import decode_entry, encode_entry

RECORD = Record(
    stream="main.0",
    branch="main",
    seq=4127,
    commit="01JD0000000000000000000001",
    parent="01JD0000000000000000000000",
    created_at=1763195000120000,
    schema="sha256:ab",
    pins={"node:Person": Pin("t/Person-1a.lance", "ff250bbb0a5f94d6", 48012, 9, 311)},
    changes={
        "node:Person": Changed(IdSet(["p9"]), IdSet(["p3"]), IdSet(), IdSet()),
        "edge:Knows": Spilled("__manifest/changes/5c.arrow", inserted=250000),
        "node:Doc": Bulk(("0111.lance",), 2_000_000, replaces=True),
        "node:Tag": Maintenance(),
        "node:City": Changed(deleted=IdSet(["ö"])),
    },
    signature=Signature("svc-load", "hires", "key-1", ("op-1", "op-2")),
    members=3,
    merged=CommitRef("review", "review.5f", 88, "01JD0000000000000000000002"),
    registered=("node:Doc",),
    dropped=("node:Old",),
    renamed={"node:A": "node:B"},
    preferred={"divergent_update": "theirs"},
    decisions=(
        MergeDecision("node:A", "ada", "age", "divergent_update", "value", "5d1e"),
        MergeDecision("edge:E", "e1", None, "orphan_edge", "delete", "77aa"),
    ),
)
CLOSE = Close("review.5f", "review", 89, 1763195000120000, "ada")


@pytest.mark.parametrize("entry", [RECORD, replace(RECORD, is_whole=False), CLOSE])
def test_an_entry_survives_its_bytes(entry: LogEntry) -> None:
    assert decode_entry(entry.stream, entry.seq, encode_entry(entry)) == entry


def test_a_record_of_one_small_write_is_small() -> None:
    small = Record(
        stream="main.0",
        branch="main",
        seq=1,
        commit=RECORD.commit,
        parent=RECORD.parent,
        created_at=RECORD.created_at,
        schema="sha256:ab",
        pins=RECORD.pins,
        changes={"node:Person": Changed(inserted=IdSet(["p9"]), marks=IdSet())},
    )
    assert len(encode_entry(small)) < 400


def _document() -> dict[str, Any]:
    """The record without its digest, as older programs wrote it."""
    document: dict[str, Any] = json.loads(encode_entry(RECORD))
    del document["digest"]
    return document


def test_a_record_without_a_digest_is_read_as_before() -> None:
    assert decode_entry("main.0", 4127, json.dumps(_document()).encode()) == RECORD


def test_a_flipped_bit_anywhere_in_a_record_is_found() -> None:
    data = encode_entry(RECORD)
    for place in range(len(data)):
        for bit in range(8):
            flipped = bytes([data[place] ^ 1 << bit])
            with pytest.raises(CorruptObjectError):
                decode_entry("main.0", 4127, data[:place] + flipped + data[place + 1 :])


def test_an_object_in_the_place_of_another_one_is_refused() -> None:
    data = encode_fields("__manifest/branches/a/000001.json", {"op": "create"})
    assert decode_fields("__manifest/branches/a/000001.json", data).get_text("op") == "create"
    with pytest.raises(CorruptObjectError, match="its digest does not match"):
        decode_fields("__manifest/branches/b/000001.json", data)


def test_a_version_is_text_because_no_json_number_can_hold_it() -> None:
    document = _document()
    assert document["pins"]["node:Person"]["v"] == "ff250bbb0a5f94d6"


def test_unknown_fields_are_ignored() -> None:
    document = _document() | {"later": {"anything": 1}}
    document["pins"]["node:Person"]["later"] = 1
    assert decode_entry("main.0", 4127, json.dumps(document).encode()) == RECORD


def test_a_newer_format_is_refused_with_what_to_do() -> None:
    document = _document() | {"format": 2, "pins": "in a new form"}
    with pytest.raises(
        FormatTooNewError, match="has format 2; this program reads up to 1"
    ) as refused:
        decode_entry("main.0", 4127, json.dumps(document).encode())
    assert refused.value.hint == "upgrade omnigraph to open this graph"


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        ({"commit": None}, "'commit' is not a string"),
        ({"created_at": "now"}, "'created_at' is not an integer"),
        ({"created_at": -1}, "'created_at' is not an integer"),
        ({"created_at": True}, "'created_at' is not an integer"),
        ({"seq": 4126}, "'seq' is 4126, expected 4127"),
        ({"stream": "main.1"}, "'stream' is 'main.1', expected 'main.0'"),
        ({"pins": []}, "is not a JSON object"),
        ({"pins": {"node:A": {"v": "17"}}}, "'17' is not a version of a table|'uri'"),
        ({"operations": [1]}, "'operations' is not a list of strings"),
        ({"changes": {"node:A": {"maint": 1}}}, "'maint' is not true or false"),
        ({"renamed": {"a": 1}}, "'a' is not a string"),
        ({"merge": {}}, "'branch' is not a string"),
    ],
)
def test_a_damaged_record_is_named_with_what_is_wrong(damage: dict[str, Any], reason: str) -> None:
    data = json.dumps(_document() | damage).encode()
    with pytest.raises(CorruptObjectError, match=reason) as refused:
        decode_entry("main.0", 4127, data)
    assert refused.value.path == "__manifest/main.0/00000000000000004127.json"


def test_a_version_must_look_like_one() -> None:
    document = _document()
    document["pins"]["node:Person"]["v"] = "17"
    with pytest.raises(CorruptObjectError, match="'17' is not a version of a table"):
        decode_entry("main.0", 4127, json.dumps(document).encode())


@given(st.integers(min_value=0))
def test_a_torn_record_is_corrupt_and_nothing_else(cut: int) -> None:
    data = encode_entry(RECORD)
    with pytest.raises(CorruptObjectError):
        decode_entry("main.0", 4127, data[: cut % len(data)])


@given(st.binary(max_size=40))
def test_any_bytes_end_in_a_typed_error(data: bytes) -> None:
    with pytest.raises((CorruptObjectError, FormatTooNewError)):
        decode_entry("main.0", 1, data)


def test_a_commit_id_carries_its_time() -> None:
    commit = generate_commit_id(1763195000120999)
    assert len(commit) == 26
    assert decode_ulid_ms(commit) == 1763195000120
    assert decode_ulid_ms("no ulid") is None
    assert decode_ulid_ms("U" * 26) is None

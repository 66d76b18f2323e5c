"""Digests depend on what a document says, not on how it is written."""

from __future__ import annotations

import hashlib

from omnigraph.config.canonical_json import compute_digest, compute_value_digest
from omnigraph.config.yaml_reader import Findings, decode_node, parse_document


def _digest(text: str) -> str:
    return compute_value_digest(decode_node(parse_document(text, Findings("a.yaml"))))


def test_comments_order_and_quotes_do_not_count_and_values_do() -> None:
    assert _digest("a: 1\nb: [x, y]\n") == _digest("# hi\n{b: ['x', \"y\"], a: 1}")
    assert _digest("a: 1") != _digest("a: '1'")
    assert _digest("a: [x, y]") != _digest("a: [y, x]")


def test_a_digest_names_its_hash() -> None:
    assert compute_digest(b"x") == "sha256:" + hashlib.sha256(b"x").hexdigest()

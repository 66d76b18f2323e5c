"""The changes of a diff on a server as a table: the one that a diff of storage has."""

from __future__ import annotations

import json
from functools import partial
from uuid import uuid4

import pytest

import omnigraph
from omnigraph.client.remote_diff import RemoteDiff

SCHEMA = """
node P { n: String @key  after: String?  l: [String]?  f: F64?  d: Date? }
edge K: P -> P { before: String? }
"""
MARK = '"},"after":{"properties":{"'
ODD = '\u00fc\u2028\u0001\\"b'
RECORDS: list[dict[str, object]] = [
    {"type": "P", "data": {"n": MARK, "after": MARK, "l": [MARK, ODD], "f": 1e300}},
    {"type": "P", "data": {"n": ODD, "after": "}", "d": "2024-01-01"}},
    {"type": "P", "data": {"n": "plain"}},
    {"edge": "K", "from": ODD, "to": MARK, "data": {"before": ODD}},
]


@pytest.mark.parametrize("is_spelled_otherwise", [False, True])
def test_the_table_of_lines_is_that_of_the_changes(is_spelled_otherwise: bool) -> None:
    with omnigraph.create(f"memory://{uuid4().hex}", schema=SCHEMA) as graph:
        main = graph.branch("main")
        states = [main.head]
        main.load(RECORDS, mode="append")
        states.append(main.head)
        main.mutate('query q() { update P set { after: "new", f: 2 } where f > 1 }')
        states.append(main.head)
        main.mutate('query q() { delete P where n = "plain" }')
        states.append(main.head)
        for old, new in ((0, 1), (1, 2), (2, 3), (0, 3), (3, 0)):
            diff = graph.diff(states[old], states[new])
            lines = b"".join(diff.to_json_lines())
            if is_spelled_otherwise:
                documents = [json.loads(line) for line in lines.splitlines()]
                lines = "".join(json.dumps(each) + "\n" for each in documents).encode()
            remote = RemoteDiff(diff.old, diff.new, (), open_lines=partial(iter, [lines]))
            expected, found = diff.to_arrow(), remote.to_arrow()
            assert found.schema == expected.schema
            if not is_spelled_otherwise:
                assert found == expected
            for side in ("before", "after"):
                read = [
                    None if each is None else json.loads(each) for each in found[side].to_pylist()
                ]
                wanted = expected[side].to_pylist()
                assert read == [None if each is None else json.loads(each) for each in wanted]
            assert found["id"] == expected["id"]

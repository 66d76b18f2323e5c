"""Conflicts as JSON: values of every type of property, in documents, lines and decisions."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any

import pytest

from omnigraph import Branch, Graph, Snapshot
from omnigraph.errors import EntityConflict, MergeConflictError
from unit.writers.merge.merge_world import new_graph

# Of each type: the values at the base, on ours and on theirs, as JSON has them.
VALUES: dict[str, tuple[object, object, object]] = {
    "Bool": (False, True, None),
    "String": ("a", "b", 'c"\n'),
    "enum(low, mid, high)": ("low", "mid", "high"),
    "I32": (0, -(2**31), 2**31 - 1),
    "I64": (0, -(2**63), 2**63 - 1),
    "U32": (0, 1, 2**32 - 1),
    "U64": (0, 1, 2**64 - 1),
    "F32": (0.0, 0.1, -1.5),
    "F64": (0.0, 0.1, -1e300),
    "Date": ("2020-01-01", "2021-12-31", "1969-12-31"),
    "DateTime": (
        "2020-01-01T10:30:00.000Z",
        "2021-01-01T00:00:00.001Z",
        "1969-12-31T23:59:59.999Z",
    ),
    "Vector(2)": ([0.0, 1.0], [0.1, 1.0], [1.0, 0.1]),
    "[I64]": ([0], [], [2**63 - 1]),
    "[F32]": ([0.0], [0.1], [0.2, 0.3]),
    "[String]": (["a"], ["b"], []),
    "[Bool]": ([True], [False], []),
    "[Date]": (["2020-01-01"], ["2021-12-31"], []),
    "[DateTime]": (["2020-01-01T10:30:00.000Z"], ["2021-01-01T00:00:00.001Z"], []),
}
_BLOBS = (b"0", b"ours", b"theirs")
NAMES = {f"p{place}": type_ for place, type_ in enumerate(VALUES)}
SCHEMA = (
    "node P { k: String @key  b: Blob?  "
    + "  ".join(f"{name}: {type_}?" for name, type_ in NAMES.items())
    + " }"
)


def _record(side: int) -> dict[str, object]:
    values = {name: VALUES[type_][side] for name, type_ in NAMES.items()}
    return {"type": "P", "data": {"k": "x", "b": _BLOBS[side], **values}}


def _image(side: int) -> dict[str, object]:
    """What a conflict shows of a side: nulls are left out, and of a blob there is a hash."""
    blob = _BLOBS[side]
    shown = {"b": {"bytes": len(blob), "sha256": hashlib.sha256(blob).hexdigest()}}
    values = {name: VALUES[type_][side] for name, type_ in NAMES.items()}
    return {**shown, **{name: value for name, value in values.items() if value is not None}}


def _export(state: Branch | Snapshot) -> dict[str, Any]:
    [line] = b"".join(state.export()).splitlines()
    found: dict[str, Any] = json.loads(line)["data"]
    return found


@pytest.fixture
def graph() -> Iterator[Graph]:
    """A graph whose branches differ in a property of every type."""
    with new_graph(_record(0), schema=SCHEMA) as graph:
        review = graph.create_branch("review")
        graph.branch().load([_record(1)], mode="merge")
        review.load([_record(2)], mode="merge")
        yield graph


def test_the_documents_of_a_conflict_have_values_of_every_type(graph: Graph) -> None:
    main = graph.branch()
    plan = main.plan_merge("review")
    with pytest.raises(MergeConflictError) as caught:
        main.merge("review")
    for conflict in (*plan.conflicts, *caught.value.conflicts):
        document = json.loads(json.dumps(conflict.to_json()))
        assert [document[side] for side in ("base", "ours", "theirs")] == [*map(_image, range(3))]
    _, *lines = json.loads(json.dumps([*plan.iter_decision_lines()]))
    assert {line["property"] for line in lines} == {*NAMES, "b"}
    for line in lines:
        sides = [_image(side).get(line["property"]) for side in range(3)]
        assert [line[side] for side in ("base", "ours", "theirs")] == sides


def test_the_values_of_a_line_are_what_a_decision_takes(graph: Graph) -> None:
    main, review = graph.branch(), graph.branch("review")
    lines = json.loads(json.dumps([*main.plan_merge(review).iter_decision_lines()]))
    for line in lines[1:]:
        # A line has the hash of a blob instead of its bytes.
        line["take"] = "theirs" if line["property"] == "b" else {"value": line["theirs"]}
    expected = _export(review)
    main.merge(review, resolve=lines)
    assert _export(main) == expected


def test_a_value_that_is_decided_leaves_all_others_alone(graph: Graph) -> None:
    def decide(_conflict: EntityConflict) -> object:
        return dict.fromkeys([*NAMES, "b"], "ours") | {"p0": {"value": None}}

    main = graph.branch()
    expected = _export(main)
    del expected["p0"]  # nulls are left out
    main.merge("review", resolve=decide)
    assert _export(main) == expected


def test_what_becomes_as_at_the_base_has_all_values_of_it(graph: Graph) -> None:
    main = graph.branch()
    expected = _export(graph.snapshot(main.plan_merge("review").base.id))
    main.merge("review", resolve=[{"type": "P", "id": "x", "take": "base"}])
    assert _export(main) == expected

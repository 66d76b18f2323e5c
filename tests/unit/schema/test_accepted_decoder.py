"""The stored form of an accepted schema: read back whole, or refused."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterable, Iterator
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.errors import StoredSchemaError
from omnigraph.schema import load_catalog
from omnigraph.schema.catalog import Catalog
from omnigraph.schema.schema_identity import (
    AcceptedSchema,
    accept_schema,
    decode_accepted,
    hash_accepted,
)
from omnigraph.schema.schema_shape import JsonObject
from unit.schema.catalogs import catalogs, steady

DOMAIN = "01ARZ3NDEKTSV4RRFFQ69G5FAV"


def accept(text: str) -> AcceptedSchema:
    return accept_schema(load_catalog(text), domain=DOMAIN).schema


SCHEMA = """
interface Named { name: String @index @pii }
node Author @description("Who writes") implements Named {
  handle: String @key
  score: F64? @future(7, x="y")
  email: String? @unique
  blurb: String?
  state: enum(draft, out)
  tags: [String]?
  vec: Vector(8)? @embed(blurb, model="demo/mini")
  @range(score, 0..100.5)
  @range(score, ..99)
  @check(handle, "^[a-z]+$")
  @unique(score, email)
}
edge Wrote: Author -> Author @card(1..3) { since: DateTime  @key(@src, @dst, since) }
edge Follows: Author -> Author @instruction("x") { @index(@src) }
"""


def test_a_schema_with_every_feature_survives_storing() -> None:
    accepted = accept(SCHEMA)
    read = decode_accepted(json.loads(json.dumps(accepted.to_json())))
    assert read == accepted
    assert hash_accepted(read) == hash_accepted(accepted)


@pytest.mark.parametrize(("version", "program"), [(4, "that made it"), (6, "newer")])
def test_other_stored_versions_are_refused(version: int, program: str) -> None:
    document = accept("node A {}").to_json() | {"ir_version": version}
    with pytest.raises(StoredSchemaError, match=f"version {version}") as refused:
        decode_accepted(document)
    assert program in str(refused.value.hint)


def test_an_unknown_feature_is_refused_by_name() -> None:
    document = accept("node A {}").to_json() | {"features": ["system-columns", "time-machine"]}
    with pytest.raises(StoredSchemaError, match="time-machine"):
        decode_accepted(document)


def _without_nodes(document: JsonObject) -> None:
    del document["nodes"]


def _with_a_wrong_type(document: JsonObject) -> None:
    document["nodes"][0]["properties"][0]["type"]["scalar"] = "Money"


def _with_a_number_twice(document: JsonObject) -> None:
    document["nodes"][0]["properties"][0]["id"] = document["nodes"][0]["id"]


def _with_a_number_from_the_future(document: JsonObject) -> None:
    document["next_identity_id"] = 2


def _with_a_text_for_a_number(document: JsonObject) -> None:
    document["nodes"][0]["id"] = "1"


def _with_a_word_for_a_boolean(document: JsonObject) -> None:
    document["nodes"][0]["properties"][0]["type"]["nullable"] = "yes"


def _with_an_unknown_end(document: JsonObject) -> None:
    document["edges"][0]["source"] = {"id": 1, "name": "B"}


def _with_an_unknown_member(document: JsonObject) -> None:
    document["edges"][0]["constraints"] = [{"Unique": ["@src", "nope"]}]


def _with_two_keys(document: JsonObject) -> None:
    key = {"id": document["nodes"][0]["properties"][0]["id"], "name": "k"}
    document["nodes"][0]["properties"][0]["constraints"] = ["key"]
    document["nodes"][0]["constraints"] = [{"Key": [key]}]


def _without_a_domain(document: JsonObject) -> None:
    document["domain"] = None


@pytest.mark.parametrize(
    "damage",
    [
        _without_nodes,
        _with_a_wrong_type,
        _with_a_number_twice,
        _with_a_number_from_the_future,
        _with_a_text_for_a_number,
        _with_a_word_for_a_boolean,
        _with_an_unknown_end,
        _with_an_unknown_member,
        _with_two_keys,
        _without_a_domain,
    ],
)
def test_a_damaged_stored_schema_is_refused(damage: Callable[[JsonObject], None]) -> None:
    document = accept("node A { k: String }  edge E: A -> A").to_json()
    damage(document)
    with pytest.raises(StoredSchemaError, match="damaged") as refused:
        decode_accepted(document)
    assert refused.value.hint is not None


def _places(part: Any) -> Iterator[tuple[Any, Any]]:
    """Every container of a document with each of its keys or indexes."""
    if not isinstance(part, dict | list):
        return
    keys: Iterable[Any] = part if isinstance(part, dict) else range(len(part))
    for key in keys:
        yield part, key
        yield from _places(part[key])


_JUNK: st.SearchStrategy[object] = st.sampled_from(
    (None, True, False, 0, 1, 2, -1, 1.5, 10**30, "", "A", "@src", [], {}, [[]], {"name": "A"})
)


@pytest.mark.slow
@steady
@given(st.randoms(use_true_random=False), _JUNK, st.sampled_from(("replace", "remove", "copy")))
def test_a_document_with_any_damage_is_refused_or_means_what_it_says(
    random: Random, junk: object, damage: str
) -> None:
    document = accept(SCHEMA).to_json()
    container, key = random.choice(list(_places(document)))
    if damage == "replace":
        container[key] = junk
    elif damage == "remove":
        del container[key]
    else:
        source, other = random.choice(list(_places(document)))
        container[key] = copy.deepcopy(source[other])
    try:
        read = decode_accepted(document)
    except StoredSchemaError:
        return
    stored = json.dumps(read.to_json(), sort_keys=True)
    assert stored == json.dumps(document, sort_keys=True)


@pytest.mark.parametrize("document", [None, [], "x", 5, {}, {"ir_version": 5}])
def test_what_is_no_document_is_refused(document: Any) -> None:
    with pytest.raises(StoredSchemaError, match="damaged"):
        decode_accepted(document)


@steady
@given(catalogs())
def test_an_accepted_schema_survives_storing(catalog: Catalog) -> None:
    accepted = accept_schema(catalog, domain=DOMAIN).schema
    assert decode_accepted(json.loads(json.dumps(accepted.to_json()))) == accepted


def test_merge_rules_are_a_feature_and_survive_storage() -> None:
    text = "node City { k: String @key  hits: I64? merge counter  tags: [String]? merge set }"
    accepted = accept_schema(load_catalog(text)).schema
    assert accepted.features == ("merge-rules", "system-columns")
    assert decode_accepted(accepted.to_json()) == accepted
    plain = accept_schema(load_catalog(text.replace("merge counter", "").replace("merge set", "")))
    assert plain.schema.features == ("system-columns",)
    assert "merge" not in str(plain.schema.to_json())
    grouped = accept("node City { lat: F64?  lon: F64?  @together(lon, lat) }")
    assert grouped.features == ("merge-rules", "system-columns")
    assert decode_accepted(grouped.to_json()) == grouped

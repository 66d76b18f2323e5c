"""What two schemas share: by number, by alias, and by name where that is asked for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from omnigraph.errors import StoredSchemaError
from omnigraph.schema import evolve_schema, load_catalog
from omnigraph.schema.accepted_decoder import decode_accepted
from omnigraph.schema.accepted_schema import AcceptedSchema, TypeKey, TypeKind
from omnigraph.schema.identity_map import map_identities
from unit.schema.merges import first, migrated, numbers

CITY = TypeKey(TypeKind.NODE, "City")
TOWN = TypeKey(TypeKind.NODE, "Town")
ROAD = TypeKey(TypeKind.NODE, "Road")
BASE = first("node City { name: String @key  size: I32? }")


def later(text: str, *, numbers_from: int = 100) -> AcceptedSchema:
    return migrated(BASE, text, numbers_from=numbers_from).accepted


def test_renamed_types_and_properties_go_on() -> None:
    new = later(
        'node Town @rename_from("City") { name: String @key  big: I32? @rename_from("size") }'
    )
    same = map_identities(BASE.accepted, new)
    assert same.types == {CITY: TOWN}
    assert same.properties_of(CITY) == {"name": "name", "size": "big"}
    back = map_identities(new, BASE.accepted)
    assert back.types == {TOWN: CITY}
    assert back.properties_of(TOWN) == {"name": "name", "big": "size"}


def test_what_was_dropped_and_added_again_does_not_go_on() -> None:
    dropped = migrated(BASE, "node City { name: String @key }", numbers_from=100)
    again = migrated(dropped, "node City { name: String @key  size: I32? }", numbers_from=200)
    same = map_identities(BASE.accepted, again.accepted)
    assert same.properties_of(CITY) == {"name": "name"}
    named = map_identities(BASE.accepted, again.accepted, by_name=True)
    assert named.properties_of(CITY) == {"name": "name", "size": "size"}


def test_what_two_branches_added_goes_on_only_by_name() -> None:
    text = "node City { name: String @key  size: I32?  mayor: String? } node Road { a: I32? }"
    one, two = later(text, numbers_from=100), later(text, numbers_from=200)
    same = map_identities(one, two)
    assert same.types == {CITY: CITY}
    assert same.properties_of(CITY) == {"name": "name", "size": "size"}
    named = map_identities(one, two, by_name=True)
    assert named.types == {CITY: CITY, ROAD: ROAD}
    assert named.properties_of(CITY)["mayor"] == "mayor"
    assert named.properties_of(ROAD) == {"a": "a"}


def test_an_alias_on_either_side_is_as_good_as_the_number() -> None:
    text = "node City { name: String @key  size: I32?  mayor: String? }"
    one, two = later(text, numbers_from=100), later(text, numbers_from=200)
    joined = replace(one, aliases={200: 100}, next_identity_id=201)
    for old, new in ((joined, two), (two, joined)):
        assert map_identities(old, new).properties_of(CITY)["mayor"] == "mayor"
    other = replace(two, aliases={100: 200})
    assert map_identities(joined, other).properties_of(CITY)["mayor"] == "mayor"


def test_a_type_that_is_not_there_keeps_no_properties() -> None:
    assert map_identities(BASE.accepted, BASE.accepted).properties_of(ROAD) == {}


# ---- numbers and aliases of later schemas ----


def test_new_numbers_start_where_they_are_told_to_and_old_ones_stay() -> None:
    new = later("node City { name: String @key  size: I32?  a: I32? }", numbers_from=500)
    assert numbers(new, "City") == {**numbers(BASE.accepted, "City"), "a": 500}
    assert new.next_identity_id == 501


def test_numbers_never_go_back() -> None:
    new = later("node City { name: String @key  size: I32?  a: I32? }", numbers_from=1)
    assert numbers(new, "City")["a"] == BASE.accepted.next_identity_id


def test_a_schema_without_anything_new_leaves_the_counter_alone() -> None:
    new = later("node City { name: String @key }", numbers_from=500)
    assert new.next_identity_id == BASE.accepted.next_identity_id


def test_aliases_live_as_long_as_what_they_stand_for() -> None:
    text = "node City { name: String @key  size: I32?  mayor: String? }"
    joined = replace(later(text), aliases={200: 100}, next_identity_id=201)
    renamed = evolve_schema(joined, load_catalog(text + " node Road { a: I32? }")).schema
    assert renamed is not None
    assert renamed.aliases == {200: 100}
    dropped = evolve_schema(joined, load_catalog("node City { name: String @key }")).schema
    assert dropped is not None
    assert dropped.aliases == {}


def test_aliases_survive_storing_and_schemas_without_any_do_not_mention_them() -> None:
    assert "aliases" not in BASE.accepted.to_json()
    size = numbers(BASE.accepted, "City")["size"]
    joined = replace(BASE.accepted, aliases={40: size, 30: size}, next_identity_id=50)
    document = joined.to_json()
    assert document["aliases"] == [[30, size], [40, size]]
    assert decode_accepted(document) == joined


@pytest.mark.parametrize(
    "aliases",
    [
        [[1, 2]],  # a number in use
        [[40, 41]],  # leads to nothing
        [[40, 2], [40, 3]],
        [[60, 2]],  # beyond the counter
        [[40, 41], [41, 2]],
        [[40]],
        [[40, "2"]],
        {"40": 2},
    ],
)
def test_aliases_that_nobody_wrote_are_refused(aliases: Any) -> None:
    document = replace(BASE.accepted, next_identity_id=50).to_json()
    decode_accepted(document)
    with pytest.raises(StoredSchemaError):
        decode_accepted({**document, "aliases": aliases})

"""Generated data: values computed here a second time, from the definition."""

from __future__ import annotations

import hashlib
import json

import pytest

from logic.generate import (
    Blob,
    Cell,
    Endpoint,
    Generator,
    InOrder,
    Key,
    Literal,
    Modulo,
    Ordinal,
    Ranges,
    Repeat,
    Uniform,
    Vector,
    Zipf,
    batches,
    generate,
    generated_params,
    random_word,
)
from logic.recipes import read_params, read_recipe
from logic.strict_yaml import YamlError, load_yaml

SEED = 7


def cell(ordinal: int) -> Cell:
    return Cell(SEED, "Person", "data.x", ordinal)


def word(ordinal: int, lane: int = 0, attempt: int = 0) -> int:
    """The pseudo-random word, spelled out byte by byte."""
    text = b"omnigraph-gqt-generate-v1\0"
    for number in (SEED, ordinal, lane, attempt):
        text += number.to_bytes(8, "little")
    text += b"\x06\0\0\0\0\0\0\0Person" + b"\x06\0\0\0\0\0\0\0data.x"
    return int.from_bytes(hashlib.sha256(text).digest()[:8], "little")


@pytest.mark.parametrize(
    ("generator", "ordinal", "expected"),
    [
        (Literal("a"), 5, "a"),
        (Literal(None), 5, None),
        (Repeat("ab", 3), 5, "ababab"),
        (Ordinal(start=10, step=3), 4, 22),
        (Key("p-", 3), 7, "p-007"),
        (Key("p-", 3), 1234, "p-1234"),
        (Key("p-", 2, modulo=5), 7, "p-02"),
        (Modulo(4), 11, 3),
        (Ranges(((2, "low"), (5, "mid")), "high"), 1, "low"),
        (Ranges(((2, "low"), (5, "mid")), "high"), 2, "mid"),
        (Ranges(((2, "low"), (5, "mid")), "high"), 5, "high"),
        (Endpoint("p-", 3, 4, InOrder()), 6, "p-002"),
        (Blob(byte=0, length=3), 0, "base64:AAAA"),
        (Blob(byte=255, length=0), 0, "base64:"),
    ],
)
def test_a_generator_is_a_function_of_the_ordinal(
    generator: Generator, ordinal: int, expected: object
) -> None:
    assert generate(generator, cell(ordinal)) == expected


def test_a_random_word_is_a_hash_of_its_place() -> None:
    assert random_word(cell(3), lane=1, attempt=2) == word(3, 1, 2)
    assert random_word(Cell(SEED, "Person", "data.y", 3)) != word(3)


def test_a_vector_takes_the_top_24_bits_of_each_lane() -> None:
    expected = [word(2, lane) // 2**40 / 2**24 for lane in range(3)]
    assert generate(Vector(3), cell(2)) == expected
    assert all(0 <= number < 1 for number in expected)


def test_a_uniform_endpoint_is_the_remainder_of_the_first_accepted_word() -> None:
    population = 10
    # 2^64 mod 10 is 6, so words below 6 would be refused; such a word is too rare to meet here.
    assert (2**64 - population) % population == 6
    drawn = [generate(Endpoint("p", 1, population, Uniform()), cell(i)) for i in range(5)]
    assert drawn == [f"p{word(i) % population}" for i in range(5)]


def test_a_uniform_endpoint_skips_words_below_the_threshold() -> None:
    # With this population the threshold is 2^63 - 1: about every second word is refused.
    population = 2**63 + 1
    attempts = [word(0, attempt=attempt) for attempt in range(64)]
    accepted = next(each for each in attempts if each >= 2**63 - 1)
    assert generate(Endpoint("", 0, population, Uniform()), cell(0)) == str(accepted % population)


def test_a_zipf_endpoint_prefers_low_ranks() -> None:
    # The weights 1, 1/2 and 1/3 add up to 11/6.
    bounds = [6 / 11, 9 / 11, 1.0]
    for ordinal in range(20):
        unit = (word(ordinal) >> 11) / 2**53
        rank = next(index for index, bound in enumerate(bounds) if bound > unit)
        drawn = generate(Endpoint("p", 1, 3, Zipf(1.0)), cell(ordinal))
        assert drawn == f"p{rank}"


NODES = """
tables:
  - kind: node
    name: Person
    rows: 5
    commits: 2
    start: 8
    wrap: 10
    id: {kind: key, prefix: id-, width: 1}
    columns:
      name: {kind: key, prefix: p-, width: 3}
      age: {kind: ordinal, start: 1, step: 2}
"""


def test_rows_are_cut_into_batches_with_the_larger_ones_first() -> None:
    written = [batch.splitlines() for batch in batches(read_recipe(NODES, seed=SEED))]
    assert [len(lines) for lines in written] == [3, 2]
    assert [json.loads(line) for line in written[0]] == [
        {"type": "Person", "id": "id-8", "data": {"name": "p-008", "age": 17}},
        {"type": "Person", "id": "id-9", "data": {"name": "p-009", "age": 19}},
        {"type": "Person", "id": "id-0", "data": {"name": "p-000", "age": 1}},
    ]


def test_edges_have_ends() -> None:
    recipe = """
tables:
  - kind: edge
    name: Knows
    rows: 2
    commits: 1
    from: {kind: endpoint, prefix: p-, width: 3, population: 2, distribution: ordinal}
    to: {kind: literal, value: p-000}
    columns: {}
"""
    (batch,) = batches(read_recipe(recipe, seed=SEED))
    assert [json.loads(line) for line in batch.splitlines()] == [
        {"edge": "Knows", "from": "p-000", "to": "p-000", "data": {}},
        {"edge": "Knows", "from": "p-001", "to": "p-000", "data": {}},
    ]


def test_batch_rows_fix_the_size_of_all_but_the_last_batch() -> None:
    recipe = read_recipe(NODES.replace("commits: 2", "commits: 3\n    batch_rows: 2"), seed=1)
    assert recipe.tables[0].batch_sizes == (2, 2, 1)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("commits: 2", "commits: 6"),
        ("commits: 2", "commits: 0"),
        ("commits: 2", "commits: 2\n    batch_rows: 2"),
        ("commits: 2", "commits: 2\n    batch_rows: 4097"),
        ("rows: 5", "rows: 0"),
        ("rows: 5", "rows: five"),
        ("kind: node", "kind: graph"),
        ("wrap: 10", "wrap: 0"),
        ("wrap: 10", "wraps: 10"),
        ("width: 3", "width: -1"),
        ("kind: ordinal, start: 1, step: 2", "kind: ordinal, start: 1"),
        ("kind: ordinal, start: 1, step: 2", "kind: random"),
        ("kind: ordinal, start: 1, step: 2", "kind: blob, byte: 256, length: 1"),
        ("kind: ordinal, start: 1, step: 2", "kind: modulo, modulus: true"),
    ],
)
def test_a_malformed_recipe_is_refused(old: str, new: str) -> None:
    assert old in NODES
    with pytest.raises(YamlError):
        read_recipe(NODES.replace(old, new), seed=1)


def test_parameters_are_row_zero_of_a_table_of_their_own() -> None:
    generators = read_params(
        "params: {n: {kind: ordinal, start: 4, step: 9}, v: {kind: vector, dimensions: 2}}"
    )
    values = generated_params(3, generators)
    assert values["n"] == 4
    assert values["v"] == generate(Vector(2), Cell(3, "params", "data.v", 0))


@pytest.mark.parametrize(
    "text",
    [
        "a: 1\na: 2",
        "a: &x 1",
        "a: *x",
        "a: !!str 1",
        "<<: {a: 1}",
        "1: a",
        "? [a]\n: 1",
        "a: [",
        "a: 1\n--- b",
    ],
)
def test_surprising_yaml_is_refused(text: str) -> None:
    with pytest.raises(YamlError):
        load_yaml(text)


def test_plain_yaml_is_data() -> None:
    assert load_yaml("a: [1, x, 2.5, true, null]\nb: {c: d}") == {
        "a": [1, "x", 2.5, True, None],
        "b": {"c": "d"},
    }

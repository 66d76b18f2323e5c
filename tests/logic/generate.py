"""Generated data, `generate: v1`: the same seed and recipe give the same records everywhere.

A recipe lists tables; a row of a table has an ordinal, `(start + i) mod wrap`, and every value is a
function of that ordinal. The parameters of a step are generated as row 0 of a table called
`params`.
"""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from typing import assert_never

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]

_DOMAIN = b"omnigraph-gqt-generate-v1\0"
_WORD_RANGE = 2**64
PARAMS_TABLE = "params"


# ---- generators ----


@dataclass(frozen=True, slots=True)
class Literal:
    """One value for every row."""

    value: Json


@dataclass(frozen=True, slots=True)
class Repeat:
    """A text, repeated."""

    text: str
    count: int


@dataclass(frozen=True, slots=True)
class Ordinal:
    """`start + step * i`."""

    start: int
    step: int


@dataclass(frozen=True, slots=True)
class Key:
    """A prefix and the zero-padded ordinal, taken modulo something if asked."""

    prefix: str
    width: int
    modulo: int | None = None


@dataclass(frozen=True, slots=True)
class Modulo:
    """The ordinal modulo something."""

    modulus: int


@dataclass(frozen=True, slots=True)
class Ranges:
    """The value of the first range whose end lies above the ordinal."""

    ranges: tuple[tuple[int, Json], ...]
    fallback: Json


@dataclass(frozen=True, slots=True)
class Vector:
    """Pseudo-random numbers in [0, 1)."""

    dimensions: int


@dataclass(frozen=True, slots=True)
class Uniform:
    """Every member of the population is equally likely."""


@dataclass(frozen=True, slots=True)
class InOrder:
    """The members of the population in turn."""


@dataclass(frozen=True, slots=True)
class Zipf:
    """Member r (from 1) has weight r to the power of -exponent."""

    exponent: float


Distribution = Uniform | InOrder | Zipf


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The key of a member of a population."""

    prefix: str
    width: int
    population: int
    distribution: Distribution


@dataclass(frozen=True, slots=True)
class Blob:
    """One byte, repeated."""

    byte: int
    length: int


Generator = Literal | Repeat | Ordinal | Key | Modulo | Ranges | Vector | Endpoint | Blob


# ---- recipes ----


@dataclass(frozen=True, slots=True)
class Ends:
    """The ends of generated edges."""

    source: Generator
    target: Generator


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of one type; `ends` is None for nodes; `batch_sizes` add up to the rows."""

    name: str
    batch_sizes: tuple[int, ...]
    columns: tuple[tuple[str, Generator], ...]
    ends: Ends | None = None
    id: Generator | None = None
    start: int = 0
    wrap: int | None = None


@dataclass(frozen=True, slots=True)
class Recipe:
    """Tables and the seed of their pseudo-random words."""

    seed: int
    tables: tuple[Table, ...]


@dataclass(frozen=True, slots=True)
class Cell:
    """Where a value stands: all that a pseudo-random word depends on."""

    seed: int
    table: str
    column: str
    ordinal: int


def batches(recipe: Recipe) -> Iterator[str]:
    """The JSON lines of each batch, in the order in which they are committed."""
    for table in recipe.tables:
        row = 0
        for size in table.batch_sizes:
            lines = [_record(table, recipe.seed, index) for index in range(row, row + size)]
            row += size
            yield "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)


def _record(table: Table, seed: int, index: int) -> dict[str, Json]:
    ordinal = table.start + index
    if table.wrap is not None:
        ordinal %= table.wrap

    def value_of(column: str, generator: Generator) -> Json:
        return generate(generator, Cell(seed, table.name, column, ordinal))

    record: dict[str, Json] = {"type" if table.ends is None else "edge": table.name}
    if table.id is not None:
        record["id"] = value_of("row.id", table.id)
    if table.ends is not None:
        record["from"] = value_of("row.from", table.ends.source)
        record["to"] = value_of("row.to", table.ends.target)
    record["data"] = {name: value_of(f"data.{name}", each) for name, each in table.columns}
    return record


def generated_params(seed: int, generators: tuple[tuple[str, Generator], ...]) -> dict[str, Json]:
    """The values of generated parameters."""
    return {
        name: generate(generator, Cell(seed, PARAMS_TABLE, f"data.{name}", 0))
        for name, generator in generators
    }


def generate(generator: Generator, cell: Cell) -> Json:
    """The value of a generator in a cell."""
    match generator:
        case Literal(value):
            return value
        case Repeat(text, count):
            return text * count
        case Ordinal(start, step):
            return start + step * cell.ordinal
        case Key(prefix, width, modulo):
            number = cell.ordinal if modulo is None else cell.ordinal % modulo
            return f"{prefix}{number:0{width}d}"
        case Modulo(modulus):
            return cell.ordinal % modulus
        case Ranges(ranges, fallback):
            inside = (value for end, value in ranges if cell.ordinal < end)
            return next(inside, fallback)
        case Vector(dimensions):
            return [(random_word(cell, lane=lane) >> 40) / 2**24 for lane in range(dimensions)]
        case Endpoint():
            return f"{generator.prefix}{_member(generator, cell):0{generator.width}d}"
        case Blob(byte, length):
            return "base64:" + base64.b64encode(bytes([byte]) * length).decode("ascii")
        case _:
            assert_never(generator)


def _member(endpoint: Endpoint, cell: Cell) -> int:
    match endpoint.distribution:
        case InOrder():
            return cell.ordinal % endpoint.population
        case Uniform():
            return _uniform(endpoint.population, cell)
        case Zipf(exponent):
            return _zipf(endpoint.population, exponent, cell)
        case _:
            assert_never(endpoint.distribution)


def _uniform(population: int, cell: Cell) -> int:
    # Words below the threshold would make small remainders likelier than large ones.
    threshold = (_WORD_RANGE - population) % population
    words = (random_word(cell, attempt=attempt) for attempt in itertools.count())
    return next(word for word in words if word >= threshold) % population


def _zipf(population: int, exponent: float, cell: Cell) -> int:
    weights = [rank**-exponent for rank in range(1, population + 1)]
    total = sum(weights)
    bounds = [bound / total for bound in itertools.accumulate(weights)]
    unit = (random_word(cell) >> 11) / 2**53
    return min(bisect_right(bounds, unit), population - 1)


def random_word(cell: Cell, *, lane: int = 0, attempt: int = 0) -> int:
    """The pseudo-random 64-bit word of a cell, by lane and attempt."""
    numbers = (cell.seed, cell.ordinal, lane, attempt)
    digest = hashlib.sha256(_DOMAIN + b"".join(number.to_bytes(8, "little") for number in numbers))
    for name in (cell.table, cell.column):
        encoded = name.encode("utf-8")
        digest.update(len(encoded).to_bytes(8, "little") + encoded)
    return int.from_bytes(digest.digest()[:8], "little")

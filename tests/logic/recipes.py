"""Reads the YAML of generated data: recipes, generators, generated parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from logic.generate import (
    Blob,
    Distribution,
    Endpoint,
    Ends,
    Generator,
    InOrder,
    Json,
    Key,
    Literal,
    Modulo,
    Ordinal,
    Ranges,
    Recipe,
    Repeat,
    Table,
    Uniform,
    Vector,
    Zipf,
)
from logic.strict_yaml import Document, YamlError, load_yaml

_BATCH_ROWS_MAX = 4096
_BYTE_MAX = 255

T = TypeVar("T")


class _Fields:
    """The members of a YAML mapping, each to be taken once; leftovers are refused."""

    def __init__(self, document: Document, what: str) -> None:
        if not isinstance(document, dict):
            raise YamlError(f"{what} must be a mapping")
        self.what = what
        self._left = dict(document)

    def take(self, name: str, kind: type[T]) -> T:
        """A required member of a kind."""
        if name not in self._left:
            raise YamlError(f"{self.what} needs '{name}'")
        value = self._left.pop(name)
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is int):
            raise YamlError(f"'{name}' of {self.what} must be of type {kind.__name__}")
        return value

    def take_any(self, name: str) -> Document:
        """A required member of any kind."""
        if name not in self._left:
            raise YamlError(f"{self.what} needs '{name}'")
        return self._left.pop(name)

    def has(self, name: str) -> bool:
        """Whether a member is left."""
        return name in self._left

    def natural(self, name: str, *, minimum: int = 0) -> int:
        """A required integer with a lower bound."""
        value = self.take(name, int)
        if value < minimum:
            raise YamlError(f"'{name}' of {self.what} must be at least {minimum}")
        return value

    def done(self) -> None:
        """Refuse members nobody took."""
        if self._left:
            raise YamlError(f"{self.what} has unknown members: {', '.join(sorted(self._left))}")


def read_recipe(text: str, *, seed: int) -> Recipe:
    """The recipe of a generated seed or load."""
    fields = _Fields(load_yaml(text), "the recipe")
    tables = fields.take("tables", list)
    fields.done()
    if not tables:
        raise YamlError("the recipe has no tables")
    return Recipe(seed, tuple(_table(each) for each in tables))


def read_params(text: str) -> tuple[tuple[str, Generator], ...]:
    """The generators of generated parameters."""
    fields = _Fields(load_yaml(text), "the parameters")
    params = fields.take("params", dict)
    fields.done()
    return _named(params)


def _table(document: Document) -> Table:
    fields = _Fields(document, "a table")
    kind = fields.take("kind", str)
    if kind not in ("node", "edge"):
        raise YamlError(f"'{kind}' is no kind of table: use node or edge")
    ends = None
    if kind == "edge":
        ends = Ends(_generator(fields.take_any("from")), _generator(fields.take_any("to")))
    table = Table(
        name=fields.take("name", str),
        batch_sizes=_batch_sizes(fields),
        start=fields.natural("start") if fields.has("start") else 0,
        wrap=fields.natural("wrap", minimum=1) if fields.has("wrap") else None,
        id=_generator(fields.take_any("id")) if fields.has("id") else None,
        columns=_named(fields.take("columns", dict)),
        ends=ends,
    )
    fields.done()
    return table


def _batch_sizes(fields: _Fields) -> tuple[int, ...]:
    rows = fields.natural("rows", minimum=1)
    commits = fields.natural("commits", minimum=1)
    if commits > rows:
        raise YamlError(f"{commits} commits are more than {rows} rows")
    if not fields.has("batch_rows"):
        small, larger = divmod(rows, commits)
        return tuple(small + (index < larger) for index in range(commits))
    batch_rows = fields.natural("batch_rows", minimum=1)
    if batch_rows > _BATCH_ROWS_MAX:
        raise YamlError(f"'batch_rows' is at most {_BATCH_ROWS_MAX}")
    if -(-rows // batch_rows) != commits:
        raise YamlError(f"{rows} rows in batches of {batch_rows} are not {commits} commits")
    return (batch_rows,) * (commits - 1) + (rows - batch_rows * (commits - 1),)


def _named(document: dict[str, Document]) -> tuple[tuple[str, Generator], ...]:
    return tuple((name, _generator(each)) for name, each in document.items())


def _generator(document: Document) -> Generator:
    fields = _Fields(document, "a generator")
    kind = fields.take("kind", str)
    read = _READERS.get(kind)
    if read is None:
        raise YamlError(f"'{kind}' is no generator: use one of {', '.join(_READERS)}")
    fields.what = f"generator '{kind}'"
    generator = read(fields)
    fields.done()
    return generator


def _literal(fields: _Fields) -> Generator:
    return Literal(fields.take_any("value"))


def _repeat(fields: _Fields) -> Generator:
    return Repeat(fields.take("text", str), fields.natural("count"))


def _ordinal(fields: _Fields) -> Generator:
    return Ordinal(fields.take("start", int), fields.take("step", int))


def _key(fields: _Fields) -> Generator:
    prefix, width = fields.take("prefix", str), fields.natural("width")
    return Key(prefix, width, fields.natural("modulo", minimum=1) if fields.has("modulo") else None)


def _modulo(fields: _Fields) -> Generator:
    return Modulo(fields.natural("modulus", minimum=1))


def _ranges(fields: _Fields) -> Generator:
    ranges = tuple(_range(each) for each in fields.take("ranges", list))
    return Ranges(ranges, fields.take_any("fallback"))


def _range(document: Document) -> tuple[int, Json]:
    fields = _Fields(document, "a range")
    end, value = fields.natural("end"), fields.take_any("value")
    fields.done()
    return end, value


def _vector(fields: _Fields) -> Generator:
    return Vector(fields.natural("dimensions", minimum=1))


def _endpoint(fields: _Fields) -> Generator:
    return Endpoint(
        prefix=fields.take("prefix", str),
        width=fields.natural("width"),
        population=fields.natural("population", minimum=1),
        distribution=_distribution(fields.take_any("distribution")),
    )


def _distribution(document: Document) -> Distribution:
    if document == "ordinal":
        return InOrder()
    if document == "uniform":
        return Uniform()
    fields = _Fields(document, "a distribution")
    zipf = _Fields(fields.take("zipf", dict), "distribution 'zipf'")
    exponent = zipf.take_any("exponent")
    zipf.done()
    fields.done()
    if not isinstance(exponent, int | float):
        raise YamlError("'exponent' must be a number")
    return Zipf(float(exponent))


def _blob(fields: _Fields) -> Generator:
    byte = fields.natural("byte")
    if byte > _BYTE_MAX:
        raise YamlError(f"'byte' is at most {_BYTE_MAX}")
    return Blob(byte, fields.natural("length"))


_READERS: dict[str, Callable[[_Fields], Generator]] = {
    "literal": _literal,
    "repeat": _repeat,
    "ordinal": _ordinal,
    "key": _key,
    "modulo": _modulo,
    "ranges": _ranges,
    "vector": _vector,
    "endpoint": _endpoint,
    "blob": _blob,
}

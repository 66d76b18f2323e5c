"""Mappings as Spark SQL: the steps that make the rows of one type from the records of a source.

Everything is text, so that what a mapping does is seen in a plan without Spark.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, assert_never

from omnigraph.pipelines.mapping import (
    Chunk,
    Constant,
    Embedded,
    End,
    Expression,
    Phrase,
    Rule,
    Value,
)
from omnigraph.schema.catalog import Catalog, EdgeType, NodeType
from omnigraph.schema.types import Scalar

WORDS_COLUMN: Final = "__words"
CHUNK_COLUMN: Final = "chunk"
ID_COLUMN: Final = "@id"


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the result: its name, its expression, and the line it is written on."""

    name: str
    sql: str
    line: int

    @property
    def item(self) -> str:
        """The column as an item of a select."""
        return f"{self.sql} AS {quoted(self.name)}"


@dataclass(frozen=True, slots=True)
class Step:
    """A select over the rows before it; `line` is the line of the rule."""

    items: tuple[str, ...]
    line: int


@dataclass(frozen=True, slots=True)
class Steps:
    """How a record becomes rows of one type, and which columns hold texts to embed.

    `embedded` gives the dimension of each vector by its property.
    """

    type_name: str
    is_edge: bool
    source: str | None
    expansions: tuple[Step, ...]
    where: str | None
    columns: tuple[Column, ...]
    is_distinct: bool
    embedded: dict[str, int]
    line: int


def steps_of(rule: Rule, catalog: Catalog) -> Steps:
    """The steps of a rule whose mapping was checked."""
    type_: NodeType | EdgeType
    if rule.is_edge:
        edge = catalog.edge(rule.type_name)
        assert edge is not None, "a checked rule names a type of the schema"
        type_ = edge
    else:
        type_ = catalog.nodes[rule.type_name]
    return Steps(
        type_name=type_.name,
        is_edge=rule.is_edge,
        source=rule.source,
        expansions=tuple(_expansions(rule)),
        where=rule.where,
        columns=tuple(_columns(rule, type_, catalog)),
        is_distinct=rule.is_distinct,
        embedded={
            name: getattr(type_.properties[name].type.value, "dimension", 0)
            for name, value in rule.values.items()
            if isinstance(value, Embedded)
        },
        line=rule.line,
    )


def quoted(name: str) -> str:
    """A name of SQL."""
    return "`" + name.replace("`", "``") + "`"


def literal(value: object) -> str:
    """A constant of SQL."""
    match value:
        case None:
            return "NULL"
        case bool():
            return "true" if value else "false"
        case int():
            return f"{value}L" if -(2**63) <= value < 2**63 else f"{value}BD"
        case float():
            return f"{value!r}D"
        case list():
            return f"array({', '.join(map(literal, value))})"
        case _:
            text = str(value).replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n")
            return f"'{text}'"


def value_sql(value: Value) -> str:
    """The expression of a value; of an embedding, that of its text."""
    match value:
        case Expression(sql) | Embedded(sql):
            return f"({sql})"
        case Constant(constant):
            return literal(constant)
        case Phrase(parts):
            items = [
                f"cast(({part}) AS string)" if at % 2 else literal(part)
                for at, part in enumerate(parts)
                if part
            ]
            return f"concat({', '.join(items)})"
        case _:
            assert_never(value)


def _expansions(rule: Rule) -> Iterator[Step]:
    for each in rule.explode:
        yield Step(("*", f"explode({each.sql}) AS {quoted(each.name)}"), rule.line)
    if rule.chunk is not None:
        yield Step(("*", f"{_words(rule.chunk)} AS {quoted(WORDS_COLUMN)}"), rule.line)
        yield Step(("*", f"explode({_pieces(rule.chunk)}) AS {quoted(CHUNK_COLUMN)}"), rule.line)


def _words(chunk: Chunk) -> str:
    return f"filter(split(({chunk.sql}), '\\\\s+'), w -> w <> '')"


def _pieces(chunk: Chunk) -> str:
    """One struct for each piece; a text without words has none."""
    words = quoted(WORDS_COLUMN)
    step = chunk.words - chunk.overlap
    last = f"cast(greatest(0, ceil((size({words}) - {chunk.overlap}) / {step}) - 1) AS int)"
    piece = f"array_join(slice({words}, i * {step} + 1, {chunk.words}), ' ')"
    pieces = f"transform(sequence(0, {last}), i -> named_struct('number', i, 'text', {piece}))"
    return f"CASE WHEN size({words}) > 0 THEN {pieces} END"


def _columns(rule: Rule, type_: NodeType | EdgeType, catalog: Catalog) -> Iterator[Column]:
    if rule.id is not None:
        yield Column(ID_COLUMN, f"cast({value_sql(rule.id)} AS string)", rule.id.line)
    if rule.ends is not None and isinstance(type_, EdgeType):
        nodes = (catalog.nodes[type_.source], catalog.nodes[type_.target])
        for name, end, node in zip(("from", "to"), rule.ends, nodes, strict=True):
            yield Column(name, _end_sql(end, node), end.line)
    for name, value in rule.values.items():
        # A property without a column is null: a column of nulls would have no type.
        if not (isinstance(value, Constant) and value.value is None):
            yield Column(name, value_sql(value), value.line)


def _end_sql(end: End, node: NodeType) -> str:
    """The id of an end: the text of a single key, or a JSON array of the members of another."""
    key = node.key or ()
    if end.value is not None:
        scalar = node.properties[key[0]].type.scalar if len(key) == 1 else Scalar.STRING
        return _id_text(value_sql(end.value), scalar)
    texts = [
        _id_text(value_sql(end.members[name]), node.properties[name].type.scalar) for name in key
    ]
    if len(texts) == 1:
        return texts[0]
    missing = " OR ".join(f"{text} IS NULL" for text in texts)
    return f"CASE WHEN {missing} THEN NULL ELSE to_json(array({', '.join(texts)})) END"


def _id_text(sql: str, scalar: Scalar | None) -> str:
    """The text that stands for a member of a key in ids: days and milliseconds for times."""
    match scalar:
        case Scalar.DATE:
            return f"cast(unix_date(cast({sql} AS date)) AS string)"
        case Scalar.DATETIME:
            return f"cast(unix_millis(cast({sql} AS timestamp)) AS string)"
        case _:
            return f"cast({sql} AS string)"

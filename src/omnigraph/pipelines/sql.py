"""Mappings as Spark SQL: the steps that make the rows of one type from the records of a source.

Everything is text, so that what a mapping does is seen in a plan without Spark.
"""

from __future__ import annotations

import re
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
from omnigraph.pipelines.places import Place
from omnigraph.schema.catalog import Catalog, EdgeType, NodeType
from omnigraph.schema.types import Scalar

WORDS_COLUMN: Final = "__words"
CHUNK_COLUMN: Final = "chunk"
ID_COLUMN: Final = "@id"
_NAME: Final = r"(?:`[^`]+`|[A-Za-z_]\w*)"
_PLAIN: Final = re.compile(rf"\s*{_NAME}(?:\.{_NAME})*\s*")


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the result: its name, its expression, and where it is written."""

    name: str
    sql: str
    place: Place
    # Whether a value of the record can be such that the expression has no result.
    can_fail: bool = True

    @property
    def item(self) -> str:
        """The column as an item of a select."""
        return f"{self.sql} AS {quoted(self.name)}"


@dataclass(frozen=True, slots=True)
class Step:
    """A column more, or a row for each element of an array."""

    sql: str
    name: str
    place: Place
    is_explode: bool = True
    can_fail: bool = True

    @property
    def items(self) -> tuple[str, ...]:
        """The items of its select."""
        return self.items_of(self.sql)

    def items_of(self, sql: str) -> tuple[str, ...]:
        """The same select with another expression."""
        made = f"explode({sql})" if self.is_explode else sql
        return ("*", f"{made} AS {quoted(self.name)}")


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
    place: Place
    where_place: Place


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
        place=rule.place,
        where_place=rule.place_of("where"),
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


def is_plain(sql: str) -> bool:
    """Whether an expression is nothing but the name of a value, which every record has."""
    return _PLAIN.fullmatch(sql) is not None


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
        yield Step(each.sql, each.name, each.place, can_fail=not is_plain(each.sql))
    if rule.chunk is not None:
        can_fail = not is_plain(rule.chunk.sql)
        words = _words(rule.chunk)
        yield Step(words, WORDS_COLUMN, rule.chunk.place, is_explode=False, can_fail=can_fail)
        yield Step(_pieces(rule.chunk), CHUNK_COLUMN, rule.chunk.place, can_fail=False)


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
        text = f"cast({value_sql(rule.id)} AS string)"
        yield Column(ID_COLUMN, text, rule.id.place, _can_fail(rule.id))
    if rule.ends is not None and isinstance(type_, EdgeType):
        nodes = (catalog.nodes[type_.source], catalog.nodes[type_.target])
        for name, end, node in zip(("from", "to"), rule.ends, nodes, strict=True):
            yield Column(name, _end_sql(end, node), end.place, _can_end_fail(end, node))
    for name, value in rule.values.items():
        # A property without a column is null: a column of nulls would have no type.
        if not (isinstance(value, Constant) and value.value is None):
            yield Column(name, value_sql(value), value.place, _can_fail(value))


def _can_fail(value: Value) -> bool:
    match value:
        case Expression(sql) | Embedded(sql):
            return not is_plain(sql)
        case Phrase(parts):
            return not all(map(is_plain, parts[1::2]))
        case Constant():
            return False
        case _:
            assert_never(value)


def _can_end_fail(end: End, node: NodeType) -> bool:
    # Texts become days and instants here.
    times = (Scalar.DATE, Scalar.DATETIME)
    if any(node.properties[name].type.scalar in times for name in node.key or ()):
        return True
    values = end.members.values() if end.value is None else [end.value]
    return any(map(_can_fail, values))


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

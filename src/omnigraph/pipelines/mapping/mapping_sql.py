"""Mappings as Spark SQL: the steps that make the rows of one type from the records of a source.

Everything is text, so that what a mapping does is seen in a plan without Spark.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, assert_never

from omnigraph.config.yaml_reader import Position
from omnigraph.pipelines.config.definition import (
    Chunk,
    Constant,
    EmbeddedText,
    Endpoint,
    Expression,
    Interpolation,
    MappingRule,
    Value,
)
from omnigraph.pipelines.config.deletion_rules import ChangeOperations
from omnigraph.pipelines.config.expectations import Expectation
from omnigraph.schema.catalog import Catalog, EdgeType, NodeType
from omnigraph.schema.property_types import Scalar

WORDS_COLUMN: Final = "__words"
CHUNK_COLUMN: Final = "chunk"
ID_COLUMN: Final = "@id"
_NAME: Final = r"(?:`[^`]+`|[A-Za-z_]\w*)"
_PLAIN: Final = re.compile(rf"\s*{_NAME}(?:\.{_NAME})*\s*")
_TOKEN: Final = re.compile(
    r"""(?P<nothing>\s+|--[^\n]*|/\*.*?\*/)
    |[rR]'[^']*'|[rR]"[^"]*"
    |'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`(?:[^`]|``)*`
    |\w+|.""",
    re.DOTALL | re.VERBOSE,
)
_STAR: Final = "*"
_OPENS: Final = ("(", ",")
_CLOSES: Final = (")", ",")

# What a key calls the ends of an edge, and the columns that hold them.
_END_COLUMNS: Final = {"@src": "from", "@dst": "to"}

# It counts rows, and no columns.
_COUNT: Final = "count"


@dataclass(frozen=True, slots=True)
class MappedColumn:
    """A column of the result: its name, its expression, and where it is written."""

    name: str
    sql: str
    position: Position
    # Whether a value of the record can be such that the expression has no result.
    can_fail: bool = True

    @property
    def item(self) -> str:
        """The column as an item of a select."""
        return f"{self.sql} AS {quote_name(self.name)}"


@dataclass(frozen=True, slots=True)
class ExpansionStep:
    """A column more, or a row for each element of an array."""

    sql: str
    name: str
    position: Position
    is_explode: bool = True
    can_fail: bool = True

    @property
    def items(self) -> tuple[str, ...]:
        """The items of its select."""
        return self.items_of(self.sql)

    def items_of(self, sql: str) -> tuple[str, ...]:
        """The same select with another expression."""
        made = f"explode({sql})" if self.is_explode else sql
        return ("*", f"{made} AS {quote_name(self.name)}")


@dataclass(frozen=True, slots=True)
class MappingSteps:
    """How a record becomes rows of one type, and which columns hold texts to embed.

    `embedded` gives the dimension of each vector by its property.
    """

    type_name: str
    is_edge: bool
    source: str | None
    expansions: tuple[ExpansionStep, ...]
    where: str | None
    columns: tuple[MappedColumn, ...]
    is_distinct: bool
    embedded: dict[str, int]
    position: Position
    where_position: Position
    # Columns of the record that order those of one entity, and columns of the row that name it.
    latest: tuple[str, ...] = ()
    identity: tuple[str, ...] = ()
    latest_position: Position = field(default_factory=lambda: Position(1))
    expectations: tuple[Expectation, ...] = ()
    operations: ChangeOperations | None = None


def build_steps(rule: MappingRule, catalog: Catalog) -> MappingSteps:
    """The steps of a rule whose mapping was checked."""
    type_: NodeType | EdgeType
    if rule.is_edge:
        edge = catalog.find_edge(rule.type_name)
        assert edge is not None, "a checked rule names a type of the schema"
        type_ = edge
    else:
        type_ = catalog.nodes[rule.type_name]
    return MappingSteps(
        type_name=type_.name,
        is_edge=rule.is_edge,
        source=rule.source,
        expansions=tuple(_build_expansions(rule)),
        where=rule.where,
        columns=tuple(_build_columns(rule, type_, catalog)),
        is_distinct=rule.is_distinct,
        embedded={
            name: getattr(type_.properties[name].type.value, "dimension", 0)
            for name, value in rule.values.items()
            if isinstance(value, EmbeddedText)
        },
        position=rule.position,
        where_position=rule.position_of("where"),
        latest=rule.latest,
        identity=_list_identity_columns(rule, type_),
        latest_position=rule.position_of("latest"),
        expectations=rule.expectations,
        operations=rule.operations,
    )


def _list_identity_columns(rule: MappingRule, type_: NodeType | EdgeType) -> tuple[str, ...]:
    """The columns of a row that say which entity it is, as far as the type has a key."""
    if rule.id is not None:
        return (ID_COLUMN,)
    return tuple(_END_COLUMNS.get(name, name) for name in type_.key or ())


def quote_name(name: str) -> str:
    """A name of SQL."""
    return "`" + name.replace("`", "``") + "`"


def quote_literal(value: object) -> str:
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
            return f"array({', '.join(map(quote_literal, value))})"
        case _:
            text = str(value).replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n")
            return f"'{text}'"


def build_values_condition(sql: str, values: Sequence[str]) -> str:
    """A condition, never null: whether an expression gives one of some texts."""
    texts = ", ".join(map(quote_literal, values)) or "NULL"
    return f"coalesce(cast(({sql}) AS string) IN ({texts}), false)"


def is_column_name(sql: str) -> bool:
    """Whether an expression is nothing but the name of a value, which every record has."""
    return _PLAIN.fullmatch(sql) is not None


def build_value_sql(value: Value) -> str:
    """The expression of a value; of an embedding, that of its text."""
    match value:
        case Expression(sql) | EmbeddedText(sql):
            return f"({sql})"
        case Constant(constant):
            return quote_literal(constant)
        case Interpolation(parts):
            items = [
                f"cast(({part}) AS string)" if at % 2 else quote_literal(part)
                for at, part in enumerate(parts)
                if part
            ]
            return f"concat({', '.join(items)})"
        case _:
            assert_never(value)


def _build_expansions(rule: MappingRule) -> Iterator[ExpansionStep]:
    for each in rule.explode:
        yield ExpansionStep(
            each.sql, each.name, each.position, can_fail=not is_column_name(each.sql)
        )
    if rule.chunk is not None:
        can_fail = not is_column_name(rule.chunk.sql)
        words = _build_words_sql(rule.chunk)
        yield ExpansionStep(
            words, WORDS_COLUMN, rule.chunk.position, is_explode=False, can_fail=can_fail
        )
        yield ExpansionStep(
            _build_chunks_sql(rule.chunk), CHUNK_COLUMN, rule.chunk.position, can_fail=False
        )


def _build_words_sql(chunk: Chunk) -> str:
    return f"filter(split(({chunk.sql}), '\\\\s+'), w -> w <> '')"


def _build_chunks_sql(chunk: Chunk) -> str:
    """One struct for each piece; a text without words has none."""
    words = quote_name(WORDS_COLUMN)
    step = chunk.words - chunk.overlap
    last = f"cast(greatest(0, ceil((size({words}) - {chunk.overlap}) / {step}) - 1) AS int)"
    piece = f"array_join(slice({words}, i * {step} + 1, {chunk.words}), ' ')"
    pieces = f"transform(sequence(0, {last}), i -> named_struct('number', i, 'text', {piece}))"
    return f"CASE WHEN size({words}) > 0 THEN {pieces} END"


def _build_columns(
    rule: MappingRule, type_: NodeType | EdgeType, catalog: Catalog
) -> Iterator[MappedColumn]:
    if rule.id is not None:
        text = f"cast({build_value_sql(rule.id)} AS string)"
        yield MappedColumn(ID_COLUMN, text, rule.id.position, _can_value_fail(rule.id))
    if rule.ends is not None and isinstance(type_, EdgeType):
        nodes = (catalog.nodes[type_.source], catalog.nodes[type_.target])
        for name, end, node in zip(("from", "to"), rule.ends, nodes, strict=True):
            yield MappedColumn(
                name, _build_endpoint_sql(end, node), end.position, _can_endpoint_fail(end, node)
            )
    for name, value in rule.values.items():
        # A property without a column is null: a column of nulls would have no type.
        if not (isinstance(value, Constant) and value.value is None):
            yield MappedColumn(name, build_value_sql(value), value.position, _can_value_fail(value))


def _can_value_fail(value: Value) -> bool:
    match value:
        case Expression(sql) | EmbeddedText(sql):
            return not is_column_name(sql)
        case Interpolation(parts):
            return not all(map(is_column_name, parts[1::2]))
        case Constant():
            return False
        case _:
            assert_never(value)


def _can_endpoint_fail(end: Endpoint, node: NodeType) -> bool:
    # Texts become days and instants here.
    times = (Scalar.DATE, Scalar.DATETIME)
    if any(node.properties[name].type.scalar in times for name in node.key or ()):
        return True
    values = end.members.values() if end.value is None else [end.value]
    return any(map(_can_value_fail, values))


def _build_endpoint_sql(end: Endpoint, node: NodeType) -> str:
    """The id of an end: the text of a single key, or a JSON array of the members of another."""
    key = node.key or ()
    if end.value is not None:
        scalar = node.properties[key[0]].type.scalar if len(key) == 1 else Scalar.STRING
        return _build_id_text(build_value_sql(end.value), scalar)
    texts = [
        _build_id_text(build_value_sql(end.members[name]), node.properties[name].type.scalar)
        for name in key
    ]
    if len(texts) == 1:
        return texts[0]
    missing = " OR ".join(f"{text} IS NULL" for text in texts)
    return f"CASE WHEN {missing} THEN NULL ELSE to_json(array({', '.join(texts)})) END"


def _build_id_text(sql: str, scalar: Scalar | None) -> str:
    """The text that stands for a member of a key in ids: days and milliseconds for times."""
    match scalar:
        case Scalar.DATE:
            return f"cast(unix_date(cast({sql} AS date)) AS string)"
        case Scalar.DATETIME:
            return f"cast(unix_millis(cast({sql} AS timestamp)) AS string)"
        case _:
            return f"cast({sql} AS string)"


def expand_stars(sql: str, names: Sequence[str]) -> str | None:
    """An expression with names in place of the stars among arguments; None if one is elsewhere."""
    tokens = [each for each in _TOKEN.finditer(sql) if each.lastgroup != "nothing"]
    parts, end = [], 0
    for star, before, after in _find_stars([each.group() for each in tokens]):
        if before not in _OPENS or after not in _CLOSES:
            return None
        parts += [sql[end : tokens[star].start()], ", ".join(names)]
        end = tokens[star].end()
    return "".join([*parts, sql[end:]])


def _find_stars(tokens: Sequence[str]) -> Iterator[tuple[int, str, str]]:
    """The stars that stand for columns, with what is before and after each.

    One between two values multiplies them, and one after a point is the fields of a struct.
    """
    for at, token in enumerate(tokens):
        if token != _STAR:
            continue
        before = tokens[at - 1] if at else ""
        after = tokens[at + 1] if at + 1 < len(tokens) else ""
        is_value = before in ("", *_OPENS) or after in ("", *_CLOSES)
        is_count = before == "(" and at > 1 and tokens[at - 2].lower() == _COUNT
        if is_value and before != "." and not is_count:
            yield at, before, after

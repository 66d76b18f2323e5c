"""Types, keys and ends of edges from samples of data, as the text of a `.pg` file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import InvalidArgumentError
from omnigraph.inference.column_types import infer_property_type
from omnigraph.inference.source_samples import Sample, read_samples
from omnigraph.lang.quoting import sanitize_text
from omnigraph.schema import load_catalog
from omnigraph.schema.property_types import FLOATS, ListType, PropertyType, Scalar, VectorType

# The columns that hold the ends of an edge, under both of their names.
_ENDS: Final = (("from", "to"), ("@src", "@dst"))
_IDS: Final = ("@id",)
# A column of one of these names is more likely the key than one that is unique by chance.
_KEY_NAMES: Final = ("id", "key", "slug", "code", "handle", "uuid", "doi", "isbn")
_NO_KEY_TYPES: Final = frozenset({Scalar.BLOB, Scalar.BOOL, *FLOATS})


class _Names(NamedTuple):
    """Which names something may have, in words, and what to do about another one."""

    pattern: re.Pattern[str]
    rule: str
    hint: str


_TYPE: Final = _Names(
    re.compile(r"[A-Z][A-Za-z0-9_]*"),
    "a type: an upper-case letter, and then letters, digits and '_' can",
    "name the type in place of the file: Person=people.csv",
)
_PROPERTY: Final = _Names(
    re.compile(r"[a-z][A-Za-z0-9_]*"),
    "a property: a lower-case letter, and then letters, digits and '_' can",
    "rename it in the data; a pipeline maps columns of any name",
)


def infer_schema(sources: Mapping[str, Any]) -> str:  # Any: what a load takes
    """The text of a schema that accepts the first rows of sources, given by the name of a type.

    A source is a path, a table, a frame, a list of records or a dict of columns, as for a load.
    One with the columns `from` and `to` holds edges, whose ends are nodes of another source. Lines
    of JSON that name their types are of those types, whatever name the source is given.
    """
    if not isinstance(sources, Mapping):
        raise InvalidArgumentError(
            "sources",
            f"a {type(sources).__name__} names no types",
            hint='give each source by the name of its type, such as {"Person": "people.csv"}',
        )
    samples: dict[str, Sample] = {}
    for name, source in sources.items():
        for found, sample in read_samples(name, source).items():
            if found in samples:
                raise InvalidArgumentError(name, f"the type {found} is in another source, too")
            samples[_require_name(found, str(found), _TYPE)] = sample
    if not samples:
        raise InvalidArgumentError("sources", "no source is given")
    text = _print_types(samples)
    load_catalog(text)
    return text


def _print_types(samples: Mapping[str, Sample]) -> str:
    """The declarations of nodes, then those of edges."""
    edges = {name: ends for name, each in samples.items() if (ends := _find_ends(name, each))}
    nodes = {name: each for name, each in samples.items() if name not in edges}
    keys = {name: _choose_key(name, each) for name, each in nodes.items()}
    declared = [_print_node(name, each, keys[name]) for name, each in nodes.items()]
    ids = {name: nodes[name].table[key] for name, key in keys.items() if key is not None}
    for name, columns in edges.items():
        table = samples[name].table
        source, target = (_choose_end(name, column, table[column], ids) for column in columns)
        declared.append(_print_edge(name, samples[name], (source, target), columns))
    return "\n".join(declared)


def _find_ends(name: str, sample: Sample) -> tuple[str, str] | None:
    """The columns with the ends of edges; None for nodes."""
    names = set(sample.table.column_names)
    found = next((ends for ends in _ENDS if names.issuperset(ends)), None)
    if sample.is_edge and found is None:
        raise InvalidArgumentError(name, "the records of an edge have no 'from' and 'to'")
    return None if sample.is_edge is False else found


def _print_node(name: str, sample: Sample, key: str | None) -> str:
    lines = [
        f"  {column}: {type_}{' @key' if column == key else ''}\n"
        for column, type_ in _iter_properties(name, sample, omitted=_IDS)
    ]
    return f"node {name} {{\n{''.join(lines)}}}\n"


def _print_edge(name: str, sample: Sample, ends: tuple[str, str], columns: tuple[str, str]) -> str:
    lines = [
        f"  {column}: {type_}\n"
        for column, type_ in _iter_properties(name, sample, omitted=(*_IDS, *columns))
    ]
    if _are_distinct(sample.table.select(columns)):
        lines.append("  @key(@src, @dst)\n")
    header = f"edge {name}: {ends[0]} -> {ends[1]}"
    return f"{header} {{\n{''.join(lines)}}}\n" if lines else f"{header}\n"


def _iter_properties(
    name: str, sample: Sample, *, omitted: Iterable[str]
) -> Iterable[tuple[str, PropertyType]]:
    for column in sample.table.column_names:
        if column not in omitted:
            _require_name(column, name, _PROPERTY)
            yield column, _infer_type(name, sample, column)


def _infer_type(name: str, sample: Sample, column: str) -> PropertyType:
    values = sample.table[column].combine_chunks()
    found = infer_property_type(values, is_text=sample.is_text)
    if found is None:
        raise InvalidArgumentError(
            name,
            f"the column '{sanitize_text(column)}' is a {values.type}, which no property holds",
            hint="flatten or cast the column, or leave it out",
        )
    return found


def _require_name(text: object, source: str, names: _Names) -> str:
    if isinstance(text, str) and names.pattern.fullmatch(text) is not None:
        return text
    raise InvalidArgumentError(
        source, f"'{sanitize_text(str(text))}' cannot name {names.rule}", hint=names.hint
    )


def _choose_key(name: str, sample: Sample) -> str | None:
    """The column that identifies the rows: one with a usual name, or the first that can."""
    names = [each for each in sample.table.column_names if each not in _IDS]
    usual = [*_KEY_NAMES, f"{name.lower()}_id", f"{name.lower()}Id"]
    ordered = [each for each in usual if each in names] + names
    return next((each for each in ordered if _can_be_key(name, sample, each)), None)


def _can_be_key(name: str, sample: Sample, column: str) -> bool:
    type_ = _infer_type(name, sample, column)
    if type_.is_nullable or isinstance(type_.value, ListType | VectorType):
        return False
    return type_.scalar not in _NO_KEY_TYPES and _are_distinct(sample.table.select([column]))


def _are_distinct(rows: pa.Table) -> bool:
    """Whether no two rows are equal, and there are any."""
    distinct: int = rows.group_by(rows.column_names).aggregate([]).num_rows
    return distinct > 0 and distinct == int(rows.num_rows)


def _choose_end(
    name: str, column: str, ends: pa.ChunkedArray, ids: Mapping[str, pa.ChunkedArray]
) -> str:
    """The type of node of which most of the ends are."""
    texts = pc.unique(ends.drop_null()).cast(pa.utf8())
    shares = {
        node: pc.sum(pc.is_in(texts, value_set=keys.cast(pa.utf8()).combine_chunks())).as_py() or 0
        for node, keys in ids.items()
    }
    best = max(shares, key=lambda node: shares[node], default=None)
    if best is None or shares[best] == 0:
        raise InvalidArgumentError(
            name,
            f"no node has a key that occurs in the column '{column}'",
            hint="give the source of the nodes as well; their key is what edges name",
        )
    return best

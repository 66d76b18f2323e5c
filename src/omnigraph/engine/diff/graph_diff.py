"""A diff: what changed between two states of a graph."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from difflib import unified_diff
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph import versioning
from omnigraph.changes.type_difference import (
    ChangeFilter,
    Counts,
    Op,
    TypeDifference,
    compute_differences,
    decode_images,
    encode_difference_images,
)
from omnigraph.engine.arguments import datetime_of
from omnigraph.engine.commit import Commit
from omnigraph.engine.diff.diff_format import (
    HTML_CHANGES_MAX,
    SHOWN_MAX,
    format_lines,
    render_html,
    render_html_parts,
)
from omnigraph.engine.entity_changes import EntityChange, Filters
from omnigraph.engine.graph_session import Session
from omnigraph.errors import CommitNotFoundError
from omnigraph.execution.query_budget import Budget
from omnigraph.policy.acts import Act, Action
from omnigraph.rows.json_encoding import TEXT, concatenate_texts, quote_json_strings
from omnigraph.rows.view import View
from omnigraph.schema.accepted_schema import TypeKind
from omnigraph.schema.schema_shape import JsonObject
from omnigraph.versioning.commit_clock import time_of

# The first images of a type show how large they are; later reads are bounded by their bytes.
FIRST_IMAGES: Final = 256
IMAGE_BYTES: Final = 8 * 1024 * 1024
GROWTH_MAX: Final = 16

_WORDS: Final = pa.array([op.word for op in Op])
COLUMNS: Final = pa.schema(
    [
        ("kind", pa.utf8()),
        ("type_id", pa.utf8()),
        ("type_name", pa.utf8()),
        ("id", pa.utf8()),
        ("op", pa.utf8()),
        ("before", pa.large_utf8()),
        ("after", pa.large_utf8()),
    ]
)


@dataclass(frozen=True, slots=True)
class TypeSummary:
    """How many entities of a type were inserted, updated and deleted."""

    kind: str
    type_id: str
    type_name: str
    counts: Counts

    def to_json(self) -> JsonObject:
        """The type and its counts."""
        type_ = {"id": self.type_id, "name": self.type_name}
        return {"kind": self.kind, "type": type_, **self.counts.to_json()}


@dataclass(frozen=True, repr=False)
class Diff:
    """What changed from one commit to another, not always a later one.

    Iterated, it gives every entity that changed: nodes before edges, by the opaque id of the type,
    then by id. `schema_changes` are lines of a unified diff of the schema texts.
    """

    old: Commit
    new: Commit
    schema_changes: tuple[str, ...] = ()
    parts: tuple[TypeDifference, ...] = field(default=(), repr=False)
    # Around reads of images, which happen long after the states were compared.
    reading: Callable[[], AbstractContextManager[None]] = field(
        default=nullcontext, repr=False, compare=False
    )
    # Between reads of images: raises when the time of the request is over.
    check_interrupts: Callable[[], None] = field(default=lambda: None, repr=False, compare=False)

    @property
    def summary(self) -> tuple[TypeSummary, ...]:
        """The types with changes: nodes by name, then edges by name."""
        found = [
            TypeSummary(str(part.kind), part.pair.type_id, part.type_key.name, part.counts)
            for part in self.parts
        ]
        return tuple(
            sorted(
                found, key=lambda each: (each.kind != TypeKind.NODE, each.type_name, each.type_id)
            )
        )

    @property
    def counts(self) -> Counts:
        """How many entities changed, over all types."""
        each = [type_.counts for type_ in self.summary]
        return Counts(
            sum(counts.inserted for counts in each),
            sum(counts.updated for counts in each),
            sum(counts.deleted for counts in each),
        )

    def __repr__(self) -> str:
        counts = self.counts
        changed = f"inserted={counts.inserted}, updated={counts.updated}, deleted={counts.deleted}"
        schema = ", schema changed" if self.schema_changes else ""
        return f"Diff({self.old.id!r} to {self.new.id!r}, {changed}{schema})"

    def __len__(self) -> int:
        counts = self.counts
        return counts.inserted + counts.updated + counts.deleted

    def __bool__(self) -> bool:
        """Whether anything is different, be it only the schema."""
        return bool(self.summary or self.schema_changes)

    def __iter__(self) -> Iterator[EntityChange]:
        for piece in self._read_pieces():
            part = piece.part
            kind, name = str(part.kind), part.type_key.name
            ids, ops = part.ids.to_pylist(), part.ops.tolist()
            before, after = decode_images(piece.before), decode_images(piece.after)
            for id_, op, old, new in zip(ids, ops, before, after, strict=True):
                yield EntityChange(kind, part.pair.type_id, name, id_, Op(op).word, old, new)

    def to_arrow(self) -> pa.Table:
        """A row per change: kind, type_id, type_name, id, op, and the images as JSON text."""
        return pa.Table.from_batches(
            [_build_batch(piece) for piece in self._read_pieces()], schema=COLUMNS
        )

    def to_json_lines(self) -> Iterator[bytes]:
        """Every change as chunks of whole JSON lines, the documents of `EntityChange.to_json`."""
        return map(_encode_lines, self._read_pieces())

    def to_json(self) -> JsonObject:
        """The document of a diff, with every change."""
        return {**self.header(), "changes": [change.to_json() for change in self]}

    def header(self) -> JsonObject:
        """The document of a diff without its changes."""
        return {
            "old": self.old.to_json(),
            "new": self.new.to_json(),
            "summary": [each.to_json() for each in self.summary],
            "schema_changes": list(self.schema_changes),
        }

    def to_lines(self, *, changes_max: int | None = None) -> Iterator[str]:
        """The diff for people: counts per type, then a line per changed property."""
        return format_lines(self, changes_max=changes_max)

    def to_html(self, *, changes_max: int | None = None) -> str:
        """The diff as a piece of HTML."""
        return render_html(self, changes_max=changes_max)

    def html_parts(self) -> Iterator[str]:
        """The same with every change, one part after the other."""
        return render_html_parts(self, changes_max=None)

    def __str__(self) -> str:
        return "\n".join(self.to_lines(changes_max=SHOWN_MAX))

    def _repr_html_(self) -> str:
        return self.to_html(changes_max=HTML_CHANGES_MAX)

    def _read_pieces(self) -> Iterator[_ImageBatch]:
        with self.reading():
            for part in self.parts:
                for piece in _read_type_pieces(part):
                    yield piece
                    self.check_interrupts()


def compute_diff(
    session: Session,
    old: versioning.Snapshot,
    new: versioning.Snapshot,
    filters: Filters,
    budget: Budget | None = None,
) -> Diff:
    """The diff of two states; a collected state raises `HistoryGoneError`, now and later.

    The time of a budget bounds the comparison, type by type, and the images that are read later.
    """
    check_interrupts = (budget or Budget()).check_interrupts
    for state in (old, new):
        session.authorize(Act(Action.READ, state.stream.branch), filters.types or None)
    before, after = session.open_view(old), session.open_view(new)
    filters.resolve_in_any(before, after)
    wanted = ChangeFilter(
        kinds=frozenset(filters.kinds),
        types=frozenset(filters.types) if filters.types else None,
        ops=frozenset(filters.ops),
    )

    @contextmanager
    def reading() -> Iterator[None]:
        with session.guard_reads(old), session.guard_reads(new):
            yield

    found: list[TypeDifference] = []
    with reading():
        check_interrupts()
        for part in compute_differences(before, after, session.resources.lineage, wanted):
            found.append(part)
            check_interrupts()
    return Diff(
        old=_find_commit(session, old),
        new=_find_commit(session, new),
        schema_changes=tuple(_diff_schemas(before, after)),
        parts=tuple(found),
        reading=reading,
        check_interrupts=check_interrupts,
    )


@dataclass(frozen=True, slots=True)
class _ImageBatch:
    """Some changes of one type, with their images as JSON text."""

    part: TypeDifference
    before: pa.Array
    after: pa.Array


def _read_type_pieces(part: TypeDifference) -> Iterator[_ImageBatch]:
    start, rows_max = 0, FIRST_IMAGES
    while start < len(part):
        chosen = part.slice(start, rows_max)
        before, after = encode_difference_images(chosen)
        yield _ImageBatch(chosen, before, after)
        start += len(chosen)
        row_bytes = max(1, (before.nbytes + after.nbytes) // len(chosen))
        rows_max = min(max(1, IMAGE_BYTES // row_bytes), GROWTH_MAX * len(chosen))


def _build_batch(piece: _ImageBatch) -> pa.RecordBatch:
    part = piece.part
    count = len(part)
    columns = [
        pa.repeat(pa.scalar(str(part.kind)), count),
        pa.repeat(pa.scalar(part.pair.type_id), count),
        pa.repeat(pa.scalar(part.type_key.name), count),
        part.ids,
        _WORDS.take(pa.array(part.ops)),
        piece.before,
        piece.after,
    ]
    return pa.record_batch(columns, schema=COLUMNS)


def _encode_lines(piece: _ImageBatch) -> bytes:
    part = piece.part
    type_ = {"id": part.pair.type_id, "name": part.type_key.name}
    head = json.dumps({"kind": str(part.kind), "type": type_}, ensure_ascii=False)[:-1]
    images = [
        pc.fill_null(concatenate_texts(f',"{side}":', texts), "")
        for side, texts in (("before", piece.before), ("after", piece.after))
    ]
    ids, ops = quote_json_strings(part.ids), _WORDS.take(pa.array(part.ops)).cast(TEXT)
    lines = concatenate_texts(f'{head},"id":', ids, ',"op":"', ops, '"', *images, "}\n")
    return "".join(lines.to_pylist()).encode()


def _find_commit(session: Session, at: versioning.Snapshot) -> Commit:
    try:
        return session.read_commit(at)
    except CommitNotFoundError:
        # A branch keeps the state it started from longer than the record that said who made it.
        return Commit(
            id=at.commit,
            branch=at.ref.branch,
            version=at.seq,
            parents=(),
            actor=None,
            message=None,
            created_at=datetime_of(time_of(at)),
        )


def _diff_schemas(old: View, new: View) -> Iterator[str]:
    if old.schema.source == new.schema.source:
        return
    texts = old.schema.source.splitlines(), new.schema.source.splitlines()
    found = unified_diff(*texts, lineterm="")
    for number, line in enumerate(found):
        # The two lines that name files say nothing here.
        if number > 1:
            yield line

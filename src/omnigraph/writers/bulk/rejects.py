"""Records that a load cannot write: told in an error, and written to a file with the reasons."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from omnigraph.errors import (
    KeyConflictError,
    LoadError,
    Violation,
    WriteRefusedError,
    format_violations,
)
from omnigraph.storage.objects import Objects
from omnigraph.writers.bulk.origins import LocateOrigins, OriginRecord
from omnigraph.writers.bulk.problems import LOAD_PROBLEMS_MAX, CheckStage
from omnigraph.writers.bulk.raw_texts import RAW_CHARS_MAX, RawRecord
from omnigraph.writers.refusals import OWN_ID_HINT
from omnigraph.writers.validate.findings import hint_of

# A row that has the same key, or the same value, as the one that is told.
_OTHER_ROW: Final = re.compile(r"\(also table row (\d+)\)$")
_REJECTS_SCHEMA: Final = pa.schema(
    [
        ("place", pa.utf8()),
        ("file", pa.utf8()),
        ("number", pa.int64()),
        ("type", pa.utf8()),
        ("id", pa.utf8()),
        ("property", pa.utf8()),
        ("rule", pa.utf8()),
        ("reason", pa.utf8()),
        ("raw", pa.utf8()),
    ]
)


@dataclass(frozen=True, slots=True)
class RejectedRecord:
    """A record that cannot be written: where it is, and why; `raw` is its text if it was read.

    `order` is its file and its number there; `key` its unit and its number there. `origin` is the
    record that the row was made of, if that is known.
    """

    stage: CheckStage
    key: tuple[int, int]
    order: tuple[int, int]
    file: str
    violation: Violation
    hint: str | None = None
    origin: OriginRecord | None = None

    @property
    def number(self) -> int | None:
        """Its number in its file."""
        return self.order[1] if self.origin is None else self.origin.number

    @property
    def sort_key(self) -> tuple[str, int, tuple[int, int]]:
        """What to sort by: the file and the number there."""
        if self.origin is None:
            return "", 0, self.order
        return self.origin.file, self.origin.number or 0, self.order


def collect_other_rows(rejects: Iterable[RejectedRecord]) -> set[int]:
    """The rows that are named in what is told of rejected ones."""
    found = (_OTHER_ROW.search(each.violation.message) for each in rejects)
    return {int(each[1]) for each in found if each is not None}


def locate_rejects(
    rejects: Sequence[RejectedRecord],
    raws: Mapping[tuple[int, int], RawRecord],
    locate: LocateOrigins,
    others: Mapping[int, tuple[int, int]],
) -> list[RejectedRecord]:
    """Rejected rows with the records they were made of, as far as those are found.

    `others` are the keys of rows that are named with them.
    """
    keys = dict.fromkeys([*(each.key for each in rejects), *others.values()])
    named = {key: raws[key].origin for key in keys if key in raws}
    origins = {key: origin for key, origin in named.items() if origin is not None}
    found = locate(list(origins.values())) if origins else {}
    known = {key: found[origin] for key, origin in origins.items() if origin in found}
    places = {row: known[key].location for row, key in others.items() if key in known}
    return [
        _with_origin(each, known[each.key], places) if each.key in known else each
        for each in rejects
    ]


def _with_origin(
    reject: RejectedRecord, origin: OriginRecord, places: Mapping[int, str]
) -> RejectedRecord:
    message = reject.violation.message
    also = _OTHER_ROW.search(message)
    if also is not None and int(also[1]) in places:
        message = f"{message[: also.start()]}(also {places[int(also[1])]})"
    violation = replace(reject.violation, message=message, place=origin.location)
    return replace(reject, violation=violation, origin=origin)


def build_refusal(rejects: Sequence[RejectedRecord], count: int) -> WriteRefusedError:
    """The error that tells what is wrong with a load, what comes first in the input first."""
    ordered = sorted(rejects, key=lambda each: (each.stage, each.sort_key))[:LOAD_PROBLEMS_MAX]
    violations = [each.violation for each in ordered]
    first = ordered[0]
    match first.stage:
        case CheckStage.READ:
            hints = dict.fromkeys(each.hint for each in ordered if each.hint)
            return LoadError(
                format_violations(violations, count),
                record=first.number or 0,
                violations=violations,
                count=count,
                hint="; ".join(hints) or None,
            )
        case CheckStage.EXISTS:
            found, *others = violations
            assert found.type_name is not None, "an entity that exists has a type"
            assert found.entity_id is not None, "an entity that exists has an id"
            return KeyConflictError(
                found.type_name, found.entity_id, place=found.place, others=others, count=count
            )
    hint = hint_of(first.violation.rule)
    if first.stage is CheckStage.DUPLICATE:
        hint = OWN_ID_HINT if first.violation.rule == "id" else None
    return WriteRefusedError(
        format_violations(violations, count), violations=violations, count=count, hint=hint
    )


def write_rejects(
    objects: Objects,
    name: str,
    rejects: Sequence[RejectedRecord],
    raws: Mapping[tuple[int, int], RawRecord],
) -> str:
    """Write rejected records as Parquet into a store; the address of the file."""
    ordered = sorted(rejects, key=lambda each: (each.sort_key, each.stage))
    rows = [_encode_reject(each, raws.get(each.key)) for each in ordered]
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(rows, _REJECTS_SCHEMA), sink)
    objects.put(name, bytes(sink.getvalue()))
    return f"{objects.uri}/{name}"


def _encode_reject(reject: RejectedRecord, raw: RawRecord | None) -> dict[str, object]:
    violation, origin = reject.violation, reject.origin
    text = None if raw is None else raw.text
    return {
        "place": violation.place,
        "file": reject.file if origin is None else origin.file,
        "number": reject.number,
        "type": violation.type_name or (None if raw is None else raw.type_name),
        "id": violation.entity_id or (None if raw is None else raw.entity_id),
        "property": violation.property,
        "rule": violation.rule,
        "reason": violation.message,
        "raw": text if origin is None else origin.text[:RAW_CHARS_MAX],
    }

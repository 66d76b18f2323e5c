"""Records that a load cannot write: told in an error, and written to a file with the reasons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from omnigraph.errors import KeyConflict, LoadError, Violation, WriteRefused, told
from omnigraph.storage.objects import Objects
from omnigraph.writers.bulk.problems import TOLD_MAX, Step
from omnigraph.writers.bulk.raw_texts import Raw
from omnigraph.writers.refusals import OWN_ID_HINT
from omnigraph.writers.validate.findings import hint_for

_SCHEMA: Final = pa.schema(
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
class Reject:
    """A record that cannot be written: where it is, and why; `raw` is its text if it was read.

    `order` is its file and its number there; `key` its unit and its number there.
    """

    step: Step
    key: tuple[int, int]
    order: tuple[int, int]
    file: str
    violation: Violation
    hint: str | None = None


def refusal(rejects: Sequence[Reject], count: int) -> WriteRefused:
    """The error that tells what is wrong with a load, what comes first in the input first."""
    ordered = sorted(rejects, key=lambda each: (each.step, each.order))[:TOLD_MAX]
    violations = [each.violation for each in ordered]
    first = ordered[0]
    match first.step:
        case Step.READ:
            hints = dict.fromkeys(each.hint for each in ordered if each.hint)
            return LoadError(
                told(violations, count),
                record=first.order[1],
                violations=violations,
                count=count,
                hint="; ".join(hints) or None,
            )
        case Step.EXISTS:
            found, *others = violations
            assert found.type_name is not None, "an entity that exists has a type"
            assert found.entity_id is not None, "an entity that exists has an id"
            return KeyConflict(
                found.type_name, found.entity_id, place=found.place, others=others, count=count
            )
    hint = hint_for(first.violation.rule)
    if first.step is Step.TWICE:
        hint = OWN_ID_HINT if first.violation.rule == "id" else None
    return WriteRefused(told(violations, count), violations=violations, count=count, hint=hint)


def write_rejects(
    objects: Objects, name: str, rejects: Sequence[Reject], raws: Mapping[tuple[int, int], Raw]
) -> str:
    """Write rejected records as Parquet into a store; the address of the file."""
    ordered = sorted(rejects, key=lambda each: (each.order, each.step))
    rows = [_row(each, raws.get(each.key)) for each in ordered]
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(rows, _SCHEMA), sink)
    objects.put(name, bytes(sink.getvalue()))
    return f"{objects.uri}/{name}"


def _row(reject: Reject, raw: Raw | None) -> dict[str, object]:
    violation = reject.violation
    return {
        "place": violation.place,
        "file": reject.file,
        "number": reject.order[1],
        "type": violation.type_name or (None if raw is None else raw.type_name),
        "id": violation.entity_id or (None if raw is None else raw.entity_id),
        "property": violation.property,
        "rule": violation.rule,
        "reason": violation.message,
        "raw": None if raw is None else raw.text,
    }

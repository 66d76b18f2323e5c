"""Who holds a unique value that theirs wants too: the other side of a unique conflict."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.execution.membership import with_both_zeros
from omnigraph.schema.accepted import TypeKey
from omnigraph.versioning.effects import ID_COLUMN
from omnigraph.writers.change import TypeChange
from omnigraph.writers.committed import CommittedState
from omnigraph.writers.validate.groups import UniqueGroup, groups_of


def find_unique_conflicts(
    committed: CommittedState,
    type_key: TypeKey,
    change: TypeChange,
    wanted: Sequence[tuple[str, str]],
) -> dict[tuple[str, str], str]:
    """Of entities and the groups they break, as messages spell them: the id of the other one.

    It is an entity of ours that the merge leaves alone; there is none where two of theirs collide.
    """
    found: dict[tuple[str, str], str] = {}
    for group in groups_of(change.shape, committed.view.types[type_key]):
        ids = [id_ for id_, spelling in wanted if spelling == group.spelling]
        if ids and not group.has_key:
            for id_, other in _find_group_conflicts(
                committed, type_key, change, group=group, ids=ids
            ).items():
                found[id_, group.spelling] = other
    return found


def _find_group_conflicts(
    committed: CommittedState,
    type_key: TypeKey,
    change: TypeChange,
    *,
    group: UniqueGroup,
    ids: list[str],
) -> dict[str, str]:
    names = [ID_COLUMN, *(column for column in group.columns if column != ID_COLUMN)]
    is_wanted = pc.is_in(change.rows[ID_COLUMN], value_set=pa.array(ids, pa.utf8()))
    rows = change.rows.select(names).filter(is_wanted)
    values = with_both_zeros(rows[group.columns[0]].combine_chunks())
    others = committed.find_value_rows(type_key, group.columns, values)
    touched = pa.concat_arrays([change.written, change.deleted.cast(change.written.type)])
    others = others.filter(pc.invert(pc.is_in(others[ID_COLUMN], value_set=touched)))
    # The texts of a value are one for both zeros, as uniqueness has it.
    owners = dict(zip(_list_tuples(group, others), others[ID_COLUMN].to_pylist(), strict=True))
    mine = zip(rows[ID_COLUMN].to_pylist(), _list_tuples(group, rows), strict=True)
    return {id_: owners[values] for id_, values in mine if values in owners}


def _list_tuples(group: UniqueGroup, rows: pa.Table) -> list[tuple[str | None, ...]]:
    texts = [column.to_pylist() for column in group.format_texts(rows)]
    return list(zip(*texts, strict=True))

"""A staged load compared with itself and with what is committed, by hashes.

What is found here is suspected, no more: rows that share a hash need not share a text. That nothing
is found is certain, for equal texts have equal hashes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.bulk.hash_files import (
    NO_HASHES,
    HashFile,
    hash_tuples,
    read_hashes,
    union_hashes,
    write_hashes,
)
from omnigraph.bulk.key_join import (
    LOCAL_ROWS_MAX,
    CardinalityViolations,
    DuplicateKeys,
    HashFiles,
    KeyQuery,
    MissingKeys,
    Probe,
    SharedKeys,
    hash_committed,
    probe_committed,
    run_key_queries,
)
from omnigraph.bulk.split_writer import IDS, SOURCES, ends_name_of, tuples_name_of
from omnigraph.bulk.splits import get_stores
from omnigraph.bulk.staged_load import StagedLoad, join_texts
from omnigraph.bulk.task_runner import Runner
from omnigraph.rows.columns import SOURCE_COLUMN, TARGET_COLUMN
from omnigraph.rows.hashing import Hashes, hash_any_texts
from omnigraph.rows.view import View
from omnigraph.schema.accepted_schema import TypeKey
from omnigraph.schema.catalog import Cardinality, EdgeType
from omnigraph.sorted_search import are_among
from omnigraph.storage.tables.row_ids import ROW_ADDRESS, ROW_ID
from omnigraph.versioning.effects import ID_COLUMN
from omnigraph.writers.graph_change import LOOKUP_IDS_MAX, MARKS_MAX, PRESENT_MAX
from omnigraph.writers.load_records import LoadMode
from omnigraph.writers.validate.findings import Finding
from omnigraph.writers.validate.reference_rule import build_orphan_finding, ends_of
from omnigraph.writers.validate.unique_groups import UniqueGroup, groups_of


@dataclass
class ConstraintCheckResult:
    """What came out: suspected hashes by type and name, and what the load met in the tables.

    needed   hashes of ids without which suspects cannot be judged
    copies   the committed copies of the ids of a load, of types that have any
    present  the committed nodes that the edges of the load need; None if they are many
    left     committed edges that would lose a node, each with how to report it
    looked   types of which more was examined than can be listed
    """

    suspects: dict[TypeKey, dict[str, Hashes]] = field(default_factory=dict)
    required_ids: dict[TypeKey, Hashes] = field(default_factory=dict)
    copies: dict[TypeKey, pa.Table] = field(default_factory=dict)
    present_nodes: dict[TypeKey, pa.ChunkedArray | None] = field(default_factory=dict)
    dangling_edges: list[Finding] = field(default_factory=list)
    scanned_types: set[TypeKey] = field(default_factory=set)

    def add_suspects(self, type_key: TypeKey, name: str, hashes: Hashes) -> None:
        """Suspect the rows of a type that have one of the hashes."""
        if len(hashes):
            of_type = self.suspects.setdefault(type_key, {})
            of_type[name] = union_hashes([of_type.get(name, NO_HASHES), hashes])

    def may_repeat_unwritten(self, load: StagedLoad) -> bool:
        """Whether rows that were not written may have the ids of others.

        Which of several rows of an entity counts is decided among all of them.
        """
        return any(
            IDS in names and load.list_unchanged_files(type_key)
            for type_key, names in self.suspects.items()
        )

    def add_required_ids(self, type_key: TypeKey, hashes: Hashes) -> None:
        """Have the rows of a type with one of the hashes of ids at hand."""
        self.required_ids[type_key] = union_hashes(
            [self.required_ids.get(type_key, NO_HASHES), hashes]
        )


def check_constraints(load: StagedLoad, view: View, runner: Runner) -> ConstraintCheckResult:
    """Compare a load with itself and with the tables of a view."""
    return _ConstraintCheck(load, view, runner).run()


class _ConstraintCheck:
    """One comparison."""

    def __init__(self, load: StagedLoad, view: View, runner: Runner) -> None:
        self._load = load
        self._view = view
        self._runner = runner
        self._is_overwrite = load.job.mode is LoadMode.OVERWRITE
        self._found = ConstraintCheckResult()
        self._types = load.list_types(view)

    def run(self) -> ConstraintCheckResult:
        """All comparisons, in the order in which they need each other."""
        answers = run_key_queries(self._load.job, list(self._iter_key_queries()), self._runner)
        for type_key in self._types:
            self._found.add_suspects(type_key, IDS, self._read_hashes(answers[f"{type_key} {IDS}"]))
            if not self._is_overwrite:
                self._find_copies(type_key)
        self._find_ends(answers)
        for type_key in self._types:
            for group in self._list_groups(type_key):
                name = tuples_name_of(group)
                self._found.add_suspects(
                    type_key, name, self._read_hashes(answers[f"{type_key} {name}"])
                )
                self._find_unique_conflicts(type_key, group)
            if isinstance(self._view.types[type_key], EdgeType):
                self._count_edges(type_key)
        if self._is_overwrite:
            self._find_dangling_edges()
        return self._found

    def _iter_key_queries(self) -> Iterator[KeyQuery]:
        load = self._load
        for type_key in self._types:
            ids = load.list_hash_files(type_key, IDS) + load.list_unchanged_files(type_key)
            yield DuplicateKeys(f"{type_key} {IDS}", ids)
            for group in self._list_groups(type_key):
                name = tuples_name_of(group)
                yield DuplicateKeys(f"{type_key} {name}", load.list_hash_files(type_key, name))
            for node_key in self._list_end_types(type_key):
                name = ends_name_of(node_key)
                among = load.list_hash_files(node_key, IDS)
                yield MissingKeys(f"{type_key} {name}", load.list_hash_files(type_key, name), among)

    def _find_copies(self, type_key: TypeKey) -> None:
        """The committed copies of the ids: conflicts of an append, and what a merge replaces."""
        files = self._load.list_hash_files(type_key, IDS)
        if not files or not self._count_pinned_rows(type_key):
            return
        is_append = self._load.job.mode is LoadMode.APPEND
        columns = (ID_COLUMN,) if is_append else self._list_copied_columns(type_key)
        found = self._find_committed(type_key, columns, files)
        if not found.num_rows:
            return
        if is_append:
            self._found.add_suspects(
                type_key, IDS, union_hashes([hash_any_texts(found[ID_COLUMN])])
            )
            self._found.copies[type_key] = found
            return
        ids = self._load.read_ids(type_key)
        copies = found.filter(pc.is_in(found[ID_COLUMN].cast(ids.type), value_set=ids))
        if copies.num_rows:
            self._found.copies[type_key] = copies

    def _find_committed(
        self, type_key: TypeKey, columns: tuple[str, ...], files: HashFiles
    ) -> pa.Table:
        """The committed rows of the ids; few ids are looked up in a large table, not compared."""
        are_few = self._load.job.parts == 1 and self._load.count_rows(type_key) <= LOOKUP_IDS_MAX
        if not are_few or self._count_pinned_rows(type_key) <= LOCAL_ROWS_MAX:
            return self._probe_committed(Probe(str(type_key), columns, files))
        ids = self._load.read_ids(type_key).cast(pa.utf8())
        return self._view.open_table(type_key).find(ID_COLUMN, pc.unique(ids), columns=columns)

    def _list_copied_columns(self, type_key: TypeKey) -> tuple[str, ...]:
        """What has to be known of copies that are replaced."""
        type_ = self._view.types[type_key]
        columns = (ID_COLUMN, ROW_ID, ROW_ADDRESS)
        if not isinstance(type_, EdgeType):
            return columns
        is_bounded = type_.cardinality != Cardinality()
        are_few = self._load.count_rows(type_key) <= MARKS_MAX
        return (*columns, SOURCE_COLUMN, TARGET_COLUMN) if is_bounded or are_few else columns

    def _find_ends(self, answers: dict[str, HashFiles]) -> None:
        """Ends that are not in the load are asked for in the tables."""
        missing: dict[TypeKey, dict[TypeKey, HashFiles]] = {}
        for type_key in self._types:
            for node_key in self._list_end_types(type_key):
                files = answers[f"{type_key} {ends_name_of(node_key)}"]
                if files:
                    missing.setdefault(node_key, {})[type_key] = files
        for node_key, by_edge in missing.items():
            known = self._collect_committed_nodes(node_key, by_edge)
            for type_key, files in by_edge.items():
                name = ends_name_of(node_key)
                self._found.add_suspects(
                    type_key, name, self._read_answer(MissingKeys(name, files, known))
                )

    def _collect_committed_nodes(
        self, node_key: TypeKey, by_edge: dict[TypeKey, HashFiles]
    ) -> HashFiles:
        """The hashes of committed nodes that stay, of the wanted ones at least."""
        is_ending = self._is_overwrite and node_key in self._types
        if is_ending or not self._count_pinned_rows(node_key):
            return ()
        wanted = tuple(file for files in by_edge.values() for file in files)
        if sum(file.count for file in wanted) > PRESENT_MAX:
            self._found.present_nodes[node_key] = None
            return self._hash_committed(node_key, ID_COLUMN)
        probe = Probe(str(node_key), (ID_COLUMN,), wanted)
        ids = self._probe_committed(probe)[ID_COLUMN]
        self._found.present_nodes[node_key] = ids
        return (self._write_hashes(hash_any_texts(ids)),)

    def _find_unique_conflicts(self, type_key: TypeKey, group: UniqueGroup) -> None:
        """Committed entities that hold a tuple of the load and keep it."""
        files = self._load.list_hash_files(type_key, tuples_name_of(group))
        if self._is_overwrite or not files or not self._count_pinned_rows(type_key):
            return
        self._found.scanned_types.add(type_key)
        columns = tuple(dict.fromkeys([ID_COLUMN, *group.columns]))
        holders = self._probe_committed(Probe(str(type_key), columns, files, group))
        if not holders.num_rows:
            return
        own = self._found.copies.get(type_key)
        kept = holders
        if own is not None:
            replaced = join_texts(own[ID_COLUMN])
            is_replaced = pc.is_in(holders[ID_COLUMN].cast(replaced.type), value_set=replaced)
            kept = holders.filter(pc.invert(is_replaced))
        if kept.num_rows:
            suspected = union_hashes([hash_tuples(group.format_texts(kept))])
            self._found.add_suspects(type_key, tuples_name_of(group), suspected)
            # A look-up of these tuples in the table also meets those that are replaced.
            is_alike = are_among(hash_tuples(group.format_texts(holders)), suspected)
            self._found.add_required_ids(
                type_key, hash_any_texts(holders.filter(pa.array(is_alike))[ID_COLUMN])
            )

    def _count_edges(self, type_key: TypeKey) -> None:
        """Sources with too few or too many edges after the load."""
        type_ = self._view.types[type_key]
        assert isinstance(type_, EdgeType)
        bounds, files = type_.cardinality, self._load.list_hash_files(type_key, SOURCES)
        if bounds == Cardinality() or not files:
            return
        committed: HashFiles = ()
        former = NO_HASHES
        if not self._is_overwrite and self._count_pinned_rows(type_key):
            self._found.scanned_types.add(type_key)
            committed = self._hash_committed(type_key, SOURCE_COLUMN)
        copies = self._found.copies.get(type_key)
        if copies is not None and self._load.job.mode.keeps_entities:
            former = hash_any_texts(copies[SOURCE_COLUMN])
        replaced = (self._write_hashes(former),)
        question = CardinalityViolations(
            SOURCES, files, committed, replaced, bounds.minimum, bounds.maximum
        )
        suspected = self._read_answer(question)
        if not len(suspected):
            return
        self._found.add_suspects(type_key, SOURCES, suspected)
        # The check of the sources asks which of them, and which of their edges, the load writes.
        self._found.add_required_ids(ends_of(type_)[SOURCE_COLUMN], suspected)
        if copies is not None and len(former):
            theirs = copies.filter(pa.array(are_among(former, suspected)))
            self._found.add_required_ids(type_key, hash_any_texts(theirs[ID_COLUMN]))

    def _find_dangling_edges(self) -> None:
        """Committed edges at nodes that end with the overwriting of their type."""
        for type_key, type_ in self._view.types.items():
            if not isinstance(type_, EdgeType) or type_key in self._types:
                continue
            for column, node_key in ends_of(type_).items():
                has_rows = self._count_pinned_rows(node_key) and self._count_pinned_rows(type_key)
                if node_key in self._types and has_rows:
                    self._find_dangling_at(type_key, type_, column, node_key)

    def _find_dangling_at(
        self, type_key: TypeKey, type_: EdgeType, column: str, node_key: TypeKey
    ) -> None:
        self._found.scanned_types.add(type_key)
        nodes = self._hash_committed(node_key, ID_COLUMN)
        ended = self._run_key_query(
            MissingKeys(IDS, nodes, self._load.list_hash_files(node_key, IDS))
        )
        if not ended:
            return
        wanted = self._run_key_query(
            SharedKeys(column, self._hash_committed(type_key, column), ended)
        )
        if not wanted:
            return
        ids = join_texts(
            self._probe_committed(Probe(str(node_key), (ID_COLUMN,), wanted))[ID_COLUMN]
        )
        edges = self._probe_committed(Probe(str(type_key), (ID_COLUMN, column), wanted, column))
        is_left = pc.is_in(edges[column].cast(ids.type), value_set=ids)
        edges = edges.filter(is_left).sort_by(ID_COLUMN)
        if edges.num_rows:
            self._found.dangling_edges.append(
                build_orphan_finding(type_, column, node_key.name, edges)
            )

    def _probe_committed(self, probe: Probe) -> pa.Table:
        pin = self._view.snapshot.pins[probe.type_key]
        return probe_committed(self._load.job, pin, probe, self._runner)

    def _hash_committed(self, type_key: TypeKey, column: str) -> HashFiles:
        """The hashes of a column of all committed rows of a type."""
        probe = Probe(str(type_key), (), (), column)
        pin = self._view.snapshot.pins[probe.type_key]
        return hash_committed(self._load.job, pin, probe, self._runner)

    def _run_key_query(self, question: KeyQuery) -> HashFiles:
        return run_key_queries(self._load.job, [question], self._runner)[question.name]

    def _read_answer(self, question: KeyQuery) -> Hashes:
        return self._read_hashes(self._run_key_query(question))

    def _read_hashes(self, files: HashFiles) -> Hashes:
        return union_hashes([read_hashes(get_stores(self._load.job.location).objects, files)])

    def _write_hashes(self, hashes: Hashes) -> HashFile:
        job = self._load.job
        notes = get_stores(job.location).objects
        return write_hashes(notes, job.folder, [hashes], parts=job.parts, is_sorted=True)

    def _list_groups(self, type_key: TypeKey) -> list[UniqueGroup]:
        type_ = self._view.types[type_key]
        if not type_.constraints.uniques:
            return []
        groups = groups_of(self._view.get_shape(type_key), type_)
        return [group for group in groups if not group.has_key]

    def _list_end_types(self, type_key: TypeKey) -> list[TypeKey]:
        type_ = self._view.types[type_key]
        return list(dict.fromkeys(ends_of(type_).values())) if isinstance(type_, EdgeType) else []

    def _count_pinned_rows(self, type_key: TypeKey) -> int:
        return self._view.snapshot.pins[str(type_key)].rows

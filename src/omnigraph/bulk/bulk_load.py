"""A load of any size: units are written, compared and explained, and become one transaction.

In: what to read, and a view. Out: a transaction for the publisher. Guarantee: as that of a load in
one process, and in its words. In memory at once is what is wrong with a load and, if it replaces
entities or another commit overtakes it, its ids.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from itertools import chain
from typing import Final

from omnigraph.bulk.bulk_commit import build_load_transaction
from omnigraph.bulk.bulk_rejects import (
    RawRecord,
    RawRequest,
    RejectedRecord,
    build_refusal,
    list_keys,
    locate_rejects,
    read_raw_records,
    write_rejects,
)
from omnigraph.bulk.bulk_sources import BulkSource, LoadCounts, RecordOrigin
from omnigraph.bulk.bulk_violations import (
    NO_SPLIT,
    RejectedRow,
    Validation,
    ValidationResult,
    add_rejected_reason,
    validate_suspects,
)
from omnigraph.bulk.constraint_checks import ConstraintCheckResult, check_constraints
from omnigraph.bulk.key_join import clear_wanted_cache
from omnigraph.bulk.load_deletions import DeletionPlanner, PlannedDeletions
from omnigraph.bulk.row_checks import SPLIT_PROBLEMS_MAX, RecordProblem
from omnigraph.bulk.split_groups import write_splits
from omnigraph.bulk.split_writer import SplitResult, check_headers
from omnigraph.bulk.splits import (
    FileRange,
    GraphLocation,
    InputSplit,
    LoadJob,
    RowTerms,
    compute_parts,
    get_stores,
)
from omnigraph.bulk.staged_load import StagedLoad
from omnigraph.bulk.task_runner import Runner
from omnigraph.bulk.task_tracking import (
    TrackingRunner,
    delete_task_objects,
    discard_staged,
    stop_tasks_on_error,
)
from omnigraph.errors import (
    LoadError,
    OmnigraphError,
    ResourceLimitError,
    Violation,
    WriteRefusedError,
)
from omnigraph.ids import generate_ulid
from omnigraph.rows.view import View
from omnigraph.schema.accepted_schema import TypeKey, TypeKind
from omnigraph.storage.objects import layout
from omnigraph.storage.objects.object_store import open_objects
from omnigraph.storage.tables.pins import Staged
from omnigraph.versioning.sweeps import Sweeps
from omnigraph.versioning.transaction import Transaction
from omnigraph.writers.key_cache import KeyCache
from omnigraph.writers.load_records import LoadMode
from omnigraph.writers.prepare import Request
from omnigraph.writers.validate.findings import CheckStage

# A load that rejects more records is a wrong input rather than one with errors.
REJECTS_MAX: Final = 1_000_000
_SPLIT_REJECTS_MAX: Final = 100_000
# Nodes that are rejected take edges with them, whose absence may break a rule again.
ROUNDS_MAX: Final = 8


@dataclass(frozen=True, slots=True)
class BulkOptions:
    """What a load does to entities that are there, and to records that are wrong.

    With `is_quarantine` they are left out; `rejects` is the folder for a file that lists them.
    """

    mode: LoadMode
    is_quarantine: bool = False
    rejects: str | None = None
    terms: RowTerms | None = None


class BulkLoad:
    """One load, from its source to its transactions; its rows are written once for each schema."""

    def __init__(
        self,
        place: GraphLocation,
        source: BulkSource,
        *,
        terms: BulkOptions,
        runner: Runner,
        keys: KeyCache,
    ) -> None:
        self._place = place
        self._source = source
        self._terms = terms
        self._keys = self._view_keys = keys
        self._id = generate_ulid()
        self._folder = layout.build_staging_folder(self._id)
        self._runner = TrackingRunner(runner, place, self._folder)
        self._pieces: tuple[FileRange, ...] | None = None
        self._load: StagedLoad | None = None
        self._replaced: set[tuple[TypeKey, int, int]] = set()
        self._judged: list[RejectedRow] = []
        self._raws: dict[tuple[int, int], RawRecord] = {}
        self.rejects: str | None = None
        self.deleted: Mapping[str, int] = {}
        self.rejected, self._writes_all = 0, False

    @property
    def digest(self) -> str | None:
        """The schema that the rows were read by; None while nothing was read."""
        return None if self._load is None else self._load.job.schema

    def count_records(self, kind: TypeKind, view: View) -> Mapping[str, int]:
        """How many records of which types of a kind were written, or replaced by later ones."""
        load = self._staged_load
        replaced = Counter(type_key for type_key, _, _ in self._replaced)
        types = [key for key in load.list_types(view) if key.kind is kind]
        found = ((key.name, load.count_rows(key) + replaced[key]) for key in types)
        return {name: rows for name, rows in found if rows}

    def prepare(self, view: View, request: Request) -> Transaction | None:
        """The load on a view, or its error; None if only changed rows are written, of none."""
        try:
            load = self._load
            if load is not None and (self._may_be_removed(load) or self._is_stale(view)):
                self.discard_rows()
            if self._load is None:
                self._write_splits(view)
            ending = self._plan_deletions(view, request)
            examined = self._check_load(ending.view)
            loaded = build_load_transaction(self._staged_load, examined, ending.view, request)
            made = ending.add_to(loaded, self._staged_load)
            return made if made.effects or not self._source.skips_unchanged else None
        except BaseException:
            self.discard_rows()
            self.finish()
            raise

    def _plan_deletions(self, view: View, request: Request) -> PlannedDeletions:
        """What else the load does to a view: its rows are compared with what is left."""
        load, pieces = self._staged_load, self._pieces or ()
        if load.has_problems and not self._terms.is_quarantine:
            return PlannedDeletions(view)
        planned = DeletionPlanner(load, view, self._keys, pieces).plan(self._source, request)
        self._view_keys, self.deleted = planned.keys or self._keys, planned.counts
        return planned

    def discard_rows(self) -> None:
        """Remove the rows that were written: no commit holds them."""
        self._discard_all_but(())
        self._load = None
        self._judged.clear()
        self._replaced.clear()
        self._raws.clear()

    def finish(self) -> None:
        """Remove the notes of the units; what cannot be removed is garbage like any other."""
        clear_wanted_cache()
        if self._load is not None:
            # What other attempts of its units wrote.
            self._discard_all_but(self._load.results)
        with suppress(Exception):
            delete_task_objects(get_stores(self._place).objects, self._folder)

    def _check_load(self, view: View) -> ConstraintCheckResult:
        """The load compared with a view, after leaving out what cannot be written."""
        if not all(written.is_complete for written in self._staged_load.results):
            raise self._build_error(self._collect_split_rejects(), unseen=0)
        for _ in range(ROUNDS_MAX):
            examined = check_constraints(self._staged_load, view, self._runner)
            if examined.may_repeat_unwritten(self._staged_load):
                self._writes_all = True
                self.discard_rows()
                self._write_splits(view)
                continue
            judgement = self._validate_rows(examined, view)
            if not judgement.rejected and not judgement.replaced:
                self._source.accept_counts(self._count_rows(view, self._record_rejects()))
                return examined
            self._rewrite_splits(judgement)
        raise WriteRefusedError(
            f"after {ROUNDS_MAX} rounds of rejecting records some still break rules"
        )

    @property
    def _staged_load(self) -> StagedLoad:
        assert self._load is not None, "a load is asked for after its preparation"
        return self._load

    def _may_be_removed(self, load: StagedLoad) -> bool:
        """Whether a clean-up may be removing its files."""
        files = (
            file
            for name in load.job.pins
            for written in load.results
            for portion in written.types.get(name, ())
            for file in Staged.from_json(portion.staged).list_files
        )
        return self._sweeps.may_remove(files, after=load.job.after_sweep)

    @property
    def _sweeps(self) -> Sweeps:
        return Sweeps(get_stores(self._place).objects)

    def _is_stale(self, view: View) -> bool:
        """Whether its rows are not those that a view would have to be compared with."""
        load = self._staged_load
        if self._judged and self._source.snapshot_types:
            # The rows of rejected records are left out by now: their entities would be missing.
            return True
        kept = {name for written in load.results for name in written.patched_types}
        return any(load.job.pins[name] != view.snapshot.pins[name] for name in kept)

    def _write_splits(self, view: View) -> None:
        if self._pieces is None:
            # Once: what is staged of a source need not be there a second time.
            with stop_tasks_on_error(get_stores(self._place).objects, self._folder):
                self._pieces = self._source.prepare_ranges(self._place, self._folder)
        job = LoadJob(
            location=self._place,
            schema=view.schema.digest,
            pins={name: view.snapshot.pins[name] for name in map(str, view.types)},
            mode=self._terms.mode,
            folder=self._folder,
            parts=compute_parts(self._pieces),
            problems_max=_SPLIT_REJECTS_MAX if self._terms.is_quarantine else SPLIT_PROBLEMS_MAX,
            may_mark=self._source.locate is not None,
            after_sweep=self._sweeps.find_newest(),
            skips_unchanged=self._source.skips_unchanged and not self._writes_all,
            terms=self._terms.terms or RowTerms(),
        )
        written = enumerate(piece for piece in self._pieces if not piece.is_deletion)
        units = tuple(InputSplit(job, *each) for each in written)
        if wrong := check_headers(units):
            self._load = StagedLoad(job, *zip(*wrong, strict=True))
            return
        self._load = StagedLoad(job, units, write_splits(self._runner, units, stage="write"))

    def _validate_rows(self, examined: ConstraintCheckResult, view: View) -> ValidationResult:
        """What is wrong between rows; refused unless records may be left out."""
        is_quarantine = self._terms.is_quarantine
        judgement = ValidationResult()
        if examined.suspects:
            load, keys = self._staged_load, self._view_keys
            validation = Validation(load, view, keys, self._runner, is_quarantine)
            judgement = validate_suspects(examined, validation)
            judgement = replace(judgement, rejected=self._with_rejected_ends(judgement.rejected))
        rejects = [*self._collect_split_rejects(), *map(self._build_reject, judgement.rejected)]
        left = [
            finding.build_violation(row)
            for finding in examined.dangling_edges
            for row in finding.rows.tolist()
        ]
        rejects += [
            RejectedRecord(CheckStage.GRAPH, (NO_SPLIT, 0), (0, 0), "", each) for each in left
        ]
        is_fatal = any(reject.key[0] == NO_SPLIT for reject in rejects)
        if rejects and (is_fatal or not is_quarantine):
            raise self._build_error(rejects, unseen=judgement.unchecked)
        self._require_few_rejects(judgement)
        return judgement

    def _build_error(self, rejects: list[RejectedRecord], *, unseen: int) -> WriteRefusedError:
        results = self._staged_load.results
        unlisted = sum(each.problem_count - len(each.problems) for each in results)
        rejects = self._with_origins(rejects)
        error = build_refusal(rejects, len(rejects) + unlisted + unseen)
        if self._terms.rejects is None:
            return error
        try:
            self._write_rejects(rejects)
            more = f"all of them: {self.rejects}"
        except OmnigraphError as failure:
            # What is wrong with the records matters more than who could not write it down.
            more = f"they are written down nowhere: {failure.message}"
        error.hint = "; ".join(filter(None, [error.hint, more]))
        return error

    def _require_few_rejects(self, judgement: ValidationResult) -> None:
        written = self._staged_load.results
        has_unlisted = any(each.problem_count > len(each.problems) for each in written)
        count = (
            sum(each.problem_count for each in written)
            + len(self._judged)
            + len(judgement.rejected)
        )
        if has_unlisted or judgement.unchecked or count > REJECTS_MAX:
            raise ResourceLimitError(
                "the number of reasons to reject records of a load",
                limit=REJECTS_MAX,
                actual=count + judgement.unchecked,
                hint="look at the first of them with on_error='fail'",
            )

    def _rewrite_splits(self, judgement: ValidationResult) -> None:
        """Write the units again whose rows were judged, without those rows."""
        load = self._staged_load
        self._judged += judgement.rejected
        self._replaced.update(judgement.replaced)
        numbers: dict[int, set[int]] = {}
        for each in self._judged:
            numbers.setdefault(each.split, set()).add(each.number)
        for _, unit, number in self._replaced:
            numbers.setdefault(unit, set()).add(number)
        touched = {each.split for each in judgement.rejected}
        touched |= {unit for _, unit, _ in judgement.replaced}
        changed = [
            replace(load.splits[unit], excluded=tuple(sorted(numbers[unit])))
            for unit in sorted(touched)
        ]
        results = write_splits(self._runner, changed, stage="leave out")
        written = dict(zip(sorted(touched), results, strict=True))
        units = {unit.number: unit for unit in changed}
        self._load = StagedLoad(
            load.job,
            tuple(units.get(unit.number, unit) for unit in load.splits),
            tuple(written.get(number, each) for number, each in enumerate(load.results)),
        )
        self._discard_all_but(self._load.results)

    def _collect_split_rejects(self) -> list[RejectedRecord]:
        places = self._staged_load.locations
        return [
            RejectedRecord(
                problem.stage,
                (unit, problem.number),
                places.order_of(unit, problem.number),
                self._staged_load.splits[unit].file_range.name,
                replace(problem.violation, place=places.location_of(unit, problem.number)),
                problem.hint,
            )
            for unit, problem in self._iter_problems()
        ]

    def _iter_problems(self) -> Iterator[tuple[int, RecordProblem]]:
        """What units found; what is wrong with a file as a whole once, although each finds it."""
        known: set[tuple[str, str | None, Violation]] = set()
        for unit, written in enumerate(self._staged_load.results):
            piece = self._staged_load.splits[unit].file_range
            for problem in written.problems:
                whole = (piece.name, piece.type, problem.violation)
                if problem.number or whole not in known:
                    yield unit, problem
                if not problem.number:
                    known.add(whole)

    def _build_reject(self, judged: RejectedRow) -> RejectedRecord:
        if judged.split == NO_SPLIT:
            return RejectedRecord(judged.stage, (NO_SPLIT, 0), (0, 0), "", judged.violation)
        order = self._staged_load.locations.order_of(judged.split, judged.number)
        name = self._staged_load.splits[judged.split].file_range.name
        return RejectedRecord(
            judged.stage,
            (judged.split, judged.number),
            order,
            name,
            judged.violation,
            earlier=judged.earlier,
        )

    def _with_rejected_ends(self, judged: list[RejectedRow]) -> list[RejectedRow]:
        """Edges whose node is a rejected record: not reported by themselves, or reported so."""
        lacking = [each for each in judged if each.missing_node is not None]
        if not lacking:
            return judged
        known, unknown = self._collect_rejected_nodes(), self._find_unidentified_nodes(lacking)

        def is_lost(each: RejectedRow) -> bool:
            if each.missing_node is None:
                return False
            return (
                each.missing_node in known
                or (each.missing_node[0], self._origin_of(each)) in unknown
            )

        if not self._terms.is_quarantine:
            # Mending the record mends the edge.
            return [each for each in judged if not is_lost(each)]
        return [add_rejected_reason(each) if is_lost(each) else each for each in judged]

    def _find_unidentified_nodes(
        self, lacking: Sequence[RejectedRow]
    ) -> set[tuple[str, RecordOrigin | None]]:
        """Of rejected nodes whose ids are not known, the types and the records they are made of.

        The records that some edges are made of are read with them.
        """
        if self._source.locate is None:
            return set()
        rejects = [*self._collect_split_rejects(), *map(self._build_reject, self._judged)]
        with suppress(OmnigraphError):
            self._read_raw_records(
                chain(list_keys(rejects), ((each.split, each.number) for each in lacking))
            )
        nameless = (each.key for each in rejects if each.violation.entity_id is None)
        raws = [self._raws[key] for key in nameless if key in self._raws]
        return {
            (raw.type_name, raw.origin)
            for raw in raws
            if raw.type_name is not None and raw.origin is not None and raw.entity_id is None
        }

    def _origin_of(self, judged: RejectedRow) -> RecordOrigin | None:
        raw = self._raws.get((judged.split, judged.number))
        return None if raw is None else raw.origin

    def _collect_rejected_nodes(self) -> set[tuple[str, str]]:
        """The node types and ids of rejected records, as far as they are known."""
        rejects = [*self._collect_split_rejects(), *map(self._build_reject, self._judged)]
        # Of those that cannot be read again less is known.
        with nullcontext() if self._terms.is_quarantine else suppress(OmnigraphError):
            self._read_raw_records(
                reject.key for reject in rejects if reject.violation.entity_id is None
            )
        found = set()
        for reject in rejects:
            raw = self._raws.get(reject.key)
            violation = reject.violation
            if violation.type_name and violation.entity_id:
                found.add((violation.type_name, violation.entity_id))
            elif raw is not None and raw.type_name and raw.entity_id:
                found.add((raw.type_name, raw.entity_id))
        return found

    def _read_raw_records(self, keys: Iterable[tuple[int, int]]) -> None:
        """Read records again as they stand in their files."""
        wanted: dict[int, set[int]] = {}
        for unit, number in keys:
            if number and unit != NO_SPLIT and (unit, number) not in self._raws:
                wanted.setdefault(unit, set()).add(number)
        questions = [
            RawRequest(self._staged_load.splits[unit], tuple(sorted(numbers)))
            for unit, numbers in wanted.items()
        ]
        answers = (
            self._runner.run(questions, read_raw_records, stage="rejects") if questions else []
        )
        for question, raws in zip(questions, answers, strict=True):
            self._raws.update({(question.split.number, raw.number): raw for raw in raws})

    def _count_rows(self, view: View, rejected: Set[tuple[int, int]]) -> LoadCounts:
        written = sum(sum(self.count_records(kind, view).values()) for kind in TypeKind)
        rows, splits = written + self._staged_load.count_unchanged(), self._staged_load.splits
        types = Counter(splits[unit].file_range.type or "" for unit, _ in rejected)
        records = self._staged_load.count_records()
        return LoadCounts(rows, self.rejected, self.rejects, types, records)

    def _record_rejects(self) -> set[tuple[int, int]]:
        """Count what was left out, and write it down where that is asked for; its keys."""
        rejects = [*self._collect_split_rejects(), *map(self._build_reject, self._judged)]
        self.rejected = len(keys := {reject.key for reject in rejects})
        if rejects and self._terms.rejects is not None:
            self._write_rejects(rejects)
        return keys

    def _write_rejects(self, rejects: Sequence[RejectedRecord]) -> None:
        assert self._terms.rejects is not None
        with suppress(LoadError):
            self._read_raw_records(reject.key for reject in rejects)
        objects = open_objects(self._terms.rejects, options=self._place.options)
        name, located = f"rejects-{self._id}.parquet", self._with_origins(rejects)
        self.rejects = write_rejects(objects, name, located, self._raws)

    def _with_origins(self, rejects: Sequence[RejectedRecord]) -> list[RejectedRecord]:
        """The same with the records that their rows were made of, where there are such."""
        locate = self._source.locate
        if locate is None or all(reject.origin is not None for reject in rejects):
            return list(rejects)
        # What is wrong with rows matters more than where they came from.
        with suppress(OmnigraphError):
            self._read_raw_records(list_keys(rejects))
            return locate_rejects(rejects, self._raws, locate)
        return list(rejects)

    def _discard_all_but(self, written: Iterable[SplitResult]) -> None:
        portions = chain.from_iterable(chain.from_iterable(each.types.values() for each in written))
        kept = [Staged.from_json(portion.staged) for portion in portions]
        # Any failure: it must not hide why the rows are not wanted.
        with suppress(Exception):
            discard_staged(get_stores(self._place), self._folder, kept=kept)

"""A load of any size: units are written, compared and explained, and become one transaction.

In: what to read, and a view. Out: a transaction for the publisher. Guarantee: as that of a load in
one process, and in its words. In memory at once is what is wrong with a load and, if it replaces
entities or another commit overtakes it, its ids.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from itertools import chain
from typing import Final

from omnigraph.errors import LoadError, OmnigraphError, ResourceLimit, Violation, WriteRefused
from omnigraph.execution.view import View
from omnigraph.ids import new_ulid
from omnigraph.schema.accepted import TypeKey, TypeKind
from omnigraph.storage import layout
from omnigraph.storage.objects import open_objects
from omnigraph.storage.pins import Staged
from omnigraph.versioning.sweeps import Sweeps
from omnigraph.versioning.transaction import Transaction
from omnigraph.writers.bulk.attending import (
    AttendedRunner,
    discard,
    forget_notes,
    stopped_if_left,
)
from omnigraph.writers.bulk.examining import Examined, examine_load
from omnigraph.writers.bulk.explaining import NOWHERE, Court, Judged, Judgement, explain
from omnigraph.writers.bulk.heads import wrong_heads
from omnigraph.writers.bulk.origins import Origin
from omnigraph.writers.bulk.probing import forget_wanted
from omnigraph.writers.bulk.problems import UNIT_TOLD_MAX, Problem, Step
from omnigraph.writers.bulk.publication import load_transaction
from omnigraph.writers.bulk.raw_texts import Raw, RawQuestion, read_raw
from omnigraph.writers.bulk.rejects import Reject, located, other_rows, refusal, write_rejects
from omnigraph.writers.bulk.runner import Runner
from omnigraph.writers.bulk.sources import BulkSource, LoadCounts
from omnigraph.writers.bulk.staged_load import StagedLoad
from omnigraph.writers.bulk.stores import stores_of
from omnigraph.writers.bulk.units import GraphPlace, Job, Piece, Unit, parts_for
from omnigraph.writers.bulk.writing import Written, write_unit
from omnigraph.writers.keys import Keys
from omnigraph.writers.load import LoadMode
from omnigraph.writers.prepare import Request

# A load that rejects more records is a wrong input rather than one with errors.
REJECTS_MAX: Final = 1_000_000
_UNIT_REJECTS_MAX: Final = 100_000
# Nodes that are rejected take edges with them, whose absence may break a rule again.
ROUNDS_MAX: Final = 8
_REJECTED: Final = "its record was rejected"


@dataclass(frozen=True, slots=True)
class BulkTerms:
    """What a load does to entities that are there, and to records that are wrong.

    With `is_quarantine` they are left out; `rejects` is the folder for a file that tells of them.
    """

    mode: LoadMode
    is_quarantine: bool = False
    rejects: str | None = None


class BulkLoad:
    """One load, from its source to its transactions; its rows are written once for each schema."""

    def __init__(
        self, place: GraphPlace, source: BulkSource, *, terms: BulkTerms, runner: Runner, keys: Keys
    ) -> None:
        self._place = place
        self._source = source
        self._terms = terms
        self._keys = keys
        self._id = new_ulid()
        self._folder = layout.staging_folder(self._id)
        self._runner = AttendedRunner(runner, place, self._folder)
        self._pieces: tuple[Piece, ...] | None = None
        self._load: StagedLoad | None = None
        self._replaced: set[tuple[TypeKey, int, int]] = set()
        self._judged: list[Judged] = []
        self._raws: dict[tuple[int, int], Raw] = {}
        self.rejected = 0
        self.rejects: str | None = None

    @property
    def digest(self) -> str | None:
        """The schema that the rows were read by; None while nothing was read."""
        return None if self._load is None else self._load.job.schema

    def counts(self, kind: TypeKind, view: View) -> Mapping[str, int]:
        """How many records of which types of a kind were written, or replaced by later ones."""
        load = self._staged_load
        replaced = Counter(type_key for type_key, _, _ in self._replaced)
        types = [key for key in load.types(view) if key.kind is kind]
        found = {key.name: load.rows(key) + replaced[key] for key in types}
        return {name: rows for name, rows in found.items() if rows}

    def prepare(self, view: View, request: Request) -> Transaction:
        """The load on a view, or the error that tells what is wrong with it."""
        try:
            if self._load is not None and (
                self._may_be_removed(self._load) or self._is_stale(view)
            ):
                self.forget()
            if self._load is None:
                self._write(view)
            examined = self._examined(view)
            return load_transaction(self._staged_load, examined, view, request)
        except BaseException:
            self.forget()
            self.finish()
            raise

    def forget(self) -> None:
        """Remove the rows that were written: no commit holds them."""
        self._discard_all_but(())
        self._load = None
        self._judged.clear()
        self._replaced.clear()
        self._raws.clear()

    def finish(self) -> None:
        """Remove the notes of the units; what cannot be removed is garbage like any other."""
        forget_wanted()
        if self._load is not None:
            # What other attempts of its units wrote.
            self._discard_all_but(self._load.written)
        with suppress(Exception):
            forget_notes(stores_of(self._place).notes, self._folder)

    def _examined(self, view: View) -> Examined:
        """The load compared with a view, after leaving out what cannot be written."""
        if not all(written.is_complete for written in self._staged_load.written):
            raise self._refused(self._unit_rejects(), unseen=0)
        for _ in range(ROUNDS_MAX):
            examined = examine_load(self._staged_load, view, self._runner)
            judgement = self._judge(examined, view)
            if not judgement.judged and not judgement.replaced:
                self._note_rejects()
                self._source.accept(self._counted(view))
                return examined
            self._leave_out(judgement)
        raise WriteRefused(f"after {ROUNDS_MAX} rounds of rejecting records some still break rules")

    @property
    def _staged_load(self) -> StagedLoad:
        assert self._load is not None, "a load is asked for after its preparation"
        return self._load

    def _may_be_removed(self, load: StagedLoad) -> bool:
        """Whether a clean-up may be removing its files."""
        files = (
            file
            for name in load.job.pins
            for written in load.written
            for portion in written.types.get(name, ())
            for file in Staged.from_json(portion.staged).files
        )
        return self._sweeps.may_remove(files, after=load.job.after_sweep)

    @property
    def _sweeps(self) -> Sweeps:
        return Sweeps(stores_of(self._place).notes)

    def _is_stale(self, view: View) -> bool:
        """Whether its rows hold values of versions that are not those of a view any more."""
        load = self._staged_load
        kept = {name for written in load.written for name in written.kept}
        return any(load.job.pins[name] != view.snapshot.pins[name] for name in kept)

    def _write(self, view: View) -> None:
        if self._pieces is None:
            # Once: what is staged of a source need not be there a second time.
            with stopped_if_left(stores_of(self._place).notes, self._folder):
                self._pieces = self._source.pieces(self._place, self._folder)
        pieces = self._pieces
        is_quarantine = self._terms.is_quarantine
        job = Job(
            place=self._place,
            schema=view.schema.digest,
            pins={name: view.snapshot.pins[name] for name in map(str, view.types)},
            mode=self._terms.mode,
            folder=self._folder,
            parts=parts_for(pieces),
            told_max=_UNIT_REJECTS_MAX if is_quarantine else UNIT_TOLD_MAX,
            may_mark=self._source.locate is not None,
            after_sweep=self._sweeps.newest(),
        )
        units = tuple(Unit(job, number, piece) for number, piece in enumerate(pieces))
        if wrong := wrong_heads(units):
            self._load = StagedLoad(job, *zip(*wrong, strict=True))
            return
        written = self._runner.run(units, write_unit, stage="write")
        self._load = StagedLoad(job, units, tuple(written))

    def _judge(self, examined: Examined, view: View) -> Judgement:
        """What is wrong between rows; refused unless records may be left out."""
        is_quarantine = self._terms.is_quarantine
        judgement = Judgement()
        if examined.suspects:
            court = Court(self._staged_load, view, self._keys, self._runner, is_quarantine)
            judgement = explain(examined, court)
            judgement = replace(judgement, judged=self._with_rejected_ends(judgement.judged))
        rejects = [*self._unit_rejects(), *map(self._reject, judgement.judged)]
        left = [finding.tell(row) for finding in examined.left for row in finding.rows.tolist()]
        rejects += [Reject(Step.GRAPH, (NOWHERE, 0), (0, 0), "", each) for each in left]
        is_fatal = any(reject.key[0] == NOWHERE for reject in rejects)
        if rejects and (is_fatal or not is_quarantine):
            raise self._refused(rejects, unseen=judgement.unseen)
        self._require_few(judgement)
        return judgement

    def _refused(self, rejects: list[Reject], *, unseen: int) -> WriteRefused:
        told = sum(len(written.problems) for written in self._staged_load.written)
        untold = sum(written.count for written in self._staged_load.written) - told
        rejects = self._with_origins(rejects)
        error = refusal(rejects, len(rejects) + untold + unseen)
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

    def _require_few(self, judgement: Judgement) -> None:
        written = self._staged_load.written
        untold = any(each.count > len(each.problems) for each in written)
        count = sum(each.count for each in written) + len(self._judged) + len(judgement.judged)
        if untold or judgement.unseen or count > REJECTS_MAX:
            raise ResourceLimit(
                "the number of reasons to reject records of a load",
                limit=REJECTS_MAX,
                actual=count + judgement.unseen,
                hint="look at the first of them with on_error='fail'",
            )

    def _leave_out(self, judgement: Judgement) -> None:
        """Write the units again whose rows were judged, without those rows."""
        load = self._staged_load
        self._judged += judgement.judged
        self._replaced.update(judgement.replaced)
        numbers: dict[int, set[int]] = {}
        for each in self._judged:
            numbers.setdefault(each.unit, set()).add(each.number)
        for _, unit, number in self._replaced:
            numbers.setdefault(unit, set()).add(number)
        touched = {each.unit for each in judgement.judged}
        touched |= {unit for _, unit, _ in judgement.replaced}
        changed = [
            replace(load.units[unit], left_out=tuple(sorted(numbers[unit])))
            for unit in sorted(touched)
        ]
        written = dict(
            zip(
                sorted(touched),
                self._runner.run(changed, write_unit, stage="leave out"),
                strict=True,
            )
        )
        units = {unit.number: unit for unit in changed}
        self._load = StagedLoad(
            load.job,
            tuple(units.get(unit.number, unit) for unit in load.units),
            tuple(written.get(number, each) for number, each in enumerate(load.written)),
        )
        self._discard_all_but(self._load.written)

    def _unit_rejects(self) -> list[Reject]:
        places = self._staged_load.places
        return [
            Reject(
                problem.step,
                (unit, problem.number),
                places.order(unit, problem.number),
                self._staged_load.units[unit].piece.name,
                replace(problem.violation, place=places.place(unit, problem.number)),
                problem.hint,
            )
            for unit, problem in self._problems()
        ]

    def _problems(self) -> Iterator[tuple[int, Problem]]:
        """What units found; what is wrong with a file as a whole once, although each finds it."""
        known: set[tuple[str, str | None, Violation]] = set()
        for unit, written in enumerate(self._staged_load.written):
            piece = self._staged_load.units[unit].piece
            for problem in written.problems:
                whole = (piece.name, piece.type, problem.violation)
                if problem.number or whole not in known:
                    yield unit, problem
                if not problem.number:
                    known.add(whole)

    def _reject(self, judged: Judged) -> Reject:
        if judged.unit == NOWHERE:
            return Reject(judged.step, (NOWHERE, 0), (0, 0), "", judged.violation)
        order = self._staged_load.places.order(judged.unit, judged.number)
        name = self._staged_load.units[judged.unit].piece.name
        return Reject(judged.step, (judged.unit, judged.number), order, name, judged.violation)

    def _with_rejected_ends(self, judged: list[Judged]) -> list[Judged]:
        """Edges whose node is a rejected record: not told of by themselves, or told so."""
        lacking = [each for each in judged if each.lacks is not None]
        if not lacking:
            return judged
        known, unknown = self._rejected_nodes(), self._rejected_unknown(lacking)

        def is_lost(each: Judged) -> bool:
            if each.lacks is None:
                return False
            return each.lacks in known or (each.lacks[0], self._origin(each)) in unknown

        if not self._terms.is_quarantine:
            # Whoever mends the record mends the edge.
            return [each for each in judged if not is_lost(each)]
        return [_because_rejected(each) if is_lost(each) else each for each in judged]

    def _rejected_unknown(self, lacking: Sequence[Judged]) -> set[tuple[str, Origin | None]]:
        """Of rejected nodes whose ids cannot be told, the types and the records they are made of.

        The records that some edges are made of are read with them.
        """
        if self._source.locate is None:
            return set()
        rejects = [*self._unit_rejects(), *map(self._reject, self._judged)]
        with suppress(OmnigraphError):
            self._read_raws(chain(_keys(rejects), ((each.unit, each.number) for each in lacking)))
        untold = (each.key for each in rejects if each.violation.entity_id is None)
        raws = [self._raws[key] for key in untold if key in self._raws]
        return {
            (raw.type_name, raw.origin)
            for raw in raws
            if raw.type_name is not None and raw.origin is not None and raw.entity_id is None
        }

    def _origin(self, judged: Judged) -> Origin | None:
        raw = self._raws.get((judged.unit, judged.number))
        return None if raw is None else raw.origin

    def _rejected_nodes(self) -> set[tuple[str, str]]:
        """The node types and ids of rejected records, as far as they can be told."""
        rejects = [*self._unit_rejects(), *map(self._reject, self._judged)]
        # Of those that cannot be read again less can be told.
        with nullcontext() if self._terms.is_quarantine else suppress(OmnigraphError):
            self._read_raws(reject.key for reject in rejects if reject.violation.entity_id is None)
        found = set()
        for reject in rejects:
            raw = self._raws.get(reject.key)
            violation = reject.violation
            if violation.type_name and violation.entity_id:
                found.add((violation.type_name, violation.entity_id))
            elif raw is not None and raw.type_name and raw.entity_id:
                found.add((raw.type_name, raw.entity_id))
        return found

    def _read_raws(self, keys: Iterable[tuple[int, int]]) -> None:
        """Read records again as they stand in their files."""
        wanted: dict[int, set[int]] = {}
        for unit, number in keys:
            if number and unit != NOWHERE and (unit, number) not in self._raws:
                wanted.setdefault(unit, set()).add(number)
        questions = [
            RawQuestion(self._staged_load.units[unit], tuple(sorted(numbers)))
            for unit, numbers in wanted.items()
        ]
        answers = self._runner.run(questions, read_raw, stage="rejects") if questions else []
        for question, raws in zip(questions, answers, strict=True):
            self._raws.update({(question.unit.number, raw.number): raw for raw in raws})

    def _counted(self, view: View) -> LoadCounts:
        written = sum(sum(self.counts(kind, view).values()) for kind in TypeKind)
        return LoadCounts(written, self.rejected, self.rejects)

    def _note_rejects(self) -> None:
        """Count what was left out, and write it down where that is asked for."""
        rejects = [*self._unit_rejects(), *map(self._reject, self._judged)]
        self.rejected = len({reject.key for reject in rejects})
        if rejects and self._terms.rejects is not None:
            self._write_rejects(rejects)

    def _write_rejects(self, rejects: Sequence[Reject]) -> None:
        assert self._terms.rejects is not None
        with suppress(LoadError):
            self._read_raws(reject.key for reject in rejects)
        name = f"rejects-{self._id}.parquet"
        objects = open_objects(self._terms.rejects, options=self._place.options)
        self.rejects = write_rejects(objects, name, self._with_origins(rejects), self._raws)

    def _with_origins(self, rejects: Sequence[Reject]) -> list[Reject]:
        """The same with the records that their rows were made of, where there are such."""
        locate = self._source.locate
        if locate is None or all(reject.origin is not None for reject in rejects):
            return list(rejects)
        # What is wrong with rows matters more than where they came from.
        with suppress(OmnigraphError):
            others = {row: self._staged_load.places.key(row) for row in other_rows(rejects)}
            self._read_raws(chain(_keys(rejects), others.values()))
            return located(rejects, self._raws, locate, others)
        return list(rejects)

    def _discard_all_but(self, written: Iterable[Written]) -> None:
        portions = chain.from_iterable(chain.from_iterable(each.types.values() for each in written))
        kept = [Staged.from_json(portion.staged) for portion in portions]
        # Any failure: it must not hide why the rows are not wanted.
        with suppress(Exception):
            discard(stores_of(self._place), self._folder, kept=kept)


def _keys(rejects: Iterable[Reject]) -> Iterator[tuple[int, int]]:
    return (reject.key for reject in rejects)


def _because_rejected(judged: Judged) -> Judged:
    violation = judged.violation
    message = f"{violation.message}: {_REJECTED}"
    return replace(judged, violation=replace(violation, message=message))

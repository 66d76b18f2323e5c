"""Decisions on conflicts: the lines of a resolution as data, and the conflicts they decide.

A line names an entity, and a property of it where the conflict is about properties. `take` is
`ours`, `theirs`, `base` or `delete`, or an object with the `value`; null leaves the conflict open.
The first line may name the three commits that the conflicts were found between.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, Never, TypeAlias

from omnigraph.errors import EntityConflict, InvalidArgumentError, ResolutionStaleError
from omnigraph.schema.accepted_schema import TypeKey, TypeKind
from omnigraph.versioning.record import MergeDecision
from omnigraph.writers.merge.conflict_kinds import PREFERABLE

JsonObject: TypeAlias = Mapping[str, Any]  # Any: a JSON value
Resolver: TypeAlias = Callable[[EntityConflict], object]

# The decisions of a merge are part of its commit, which every reader of the history reads.
DECISIONS_MAX: Final = 1_000
_NAMES: Final = frozenset({"type", "edge", "id", "property", "take"})
# What a line says to the person who decides.
_REMARKS: Final = frozenset({"kind", "message", "base", "ours", "theirs"})
_HEADER: Final = "merge"


class Take(StrEnum):
    """What a conflict becomes."""

    OURS = "ours"
    THEIRS = "theirs"
    BASE = "base"
    DELETE = "delete"
    VALUE = "value"


@dataclass(frozen=True, slots=True)
class Decision:
    """What becomes of an entity, or of one property of it, that is in conflict."""

    type_key: TypeKey
    entity_id: str
    property: str | None
    take: Take
    value: object = None

    def __str__(self) -> str:
        member = "" if self.property is None else f".{self.property}"
        return f"{self.type_key.name}{member} of '{self.entity_id}'"


@dataclass(frozen=True, slots=True)
class ConflictedCommits:
    """The commits that conflicts were found between, and a digest of all these conflicts."""

    base: str
    ours: str
    theirs: str
    digest: str

    @property
    def commits(self) -> tuple[str, str, str]:
        """The ids of the three."""
        return self.base, self.ours, self.theirs

    def to_json(self) -> dict[str, object]:
        """The first line of a file of conflicts."""
        members = {"base": self.base, "ours": self.ours, "theirs": self.theirs}
        return {_HEADER: {**members, "conflicts": self.digest}}


@dataclass(frozen=True, slots=True)
class Resolution:
    """Decisions, and the commits that they were made about, if that is known."""

    decisions: tuple[Decision, ...]
    about: ConflictedCommits | None = None


def parse_resolution(lines: object) -> Resolution:
    """The decisions of some lines, checked on their own."""
    if not isinstance(lines, Iterable) or isinstance(lines, str | bytes | Mapping):
        raise InvalidArgumentError("resolve", "it is neither lines of decisions nor a function")
    about: ConflictedCommits | None = None
    decisions: dict[tuple[TypeKey, str, str | None], Decision] = {}
    for number, line in enumerate(lines, 1):
        if not isinstance(line, Mapping):
            _refuse(number, "it is not an object")
        if _HEADER in line:
            about = _parse_header(number, line)
            continue
        decision = _parse_line(number, line)
        if decision is None:
            continue
        decided = decision.type_key, decision.entity_id, decision.property
        if decided in decisions:
            _refuse(number, f"{decision} is decided twice")
        decisions[decided] = decision
    for each in decisions.values():
        if each.property is not None and (each.type_key, each.entity_id, None) in decisions:
            raise InvalidArgumentError(
                "resolve",
                f"{each} has a line beside that of its entity",
                hint="keep the line of the entity, or those of its properties",
            )
    if len(decisions) > DECISIONS_MAX:
        raise InvalidArgumentError(
            "resolve",
            f"{len(decisions)} decisions are more than {DECISIONS_MAX}",
            hint="let `prefer` decide what is left, or merge in parts",
        )
    return Resolution(tuple(decisions.values()), about)


def iter_conflict_lines(
    conflicts: Sequence[EntityConflict], commits: tuple[str, str, str]
) -> Iterator[dict[str, object]]:
    """The lines of a file of conflicts between the base, ours and theirs, none of them decided."""
    yield ConflictedCommits(*commits, digest_conflicts(conflicts)).to_json()
    for conflict in conflicts:
        sides = {"base": conflict.base, "ours": conflict.ours, "theirs": conflict.theirs}
        for named in iter_named_parts(conflict):
            name = named.get("property")
            states = {
                side: image if name is None or image is None else image.get(str(name))
                for side, image in sides.items()
            }
            remarks = {"kind": conflict.kind, "message": conflict.message, **states}
            yield {**named, **remarks, "take": None}


def digest_conflicts(conflicts: Iterable[EntityConflict]) -> str:
    """A hash of some conflicts with the states of their entities."""
    documents = sorted(json.dumps(each.to_json(), sort_keys=True) for each in conflicts)
    return hashlib.sha256("\n".join(documents).encode()).hexdigest()


def require_same_conflicts(resolution: Resolution, about: ConflictedCommits) -> None:
    """Refuse decisions that were made about other conflicts than there are."""
    known = resolution.about
    if known is not None and known.commits != about.commits and known.digest != about.digest:
        raise ResolutionStaleError(ours=known.ours, theirs=known.theirs)


class OpenConflicts:
    """Conflicts by the entities that they are about, to find what a decision decides."""

    def __init__(self, conflicts: Iterable[EntityConflict]) -> None:
        self._by_entity: dict[tuple[TypeKey, str | None], list[EntityConflict]] = {}
        self._rules: dict[TypeKey, EntityConflict] = {}
        for each in conflicts:
            if each.entity_kind != "schema":
                key = TypeKey(TypeKind(each.entity_kind), each.type_name)
                self._by_entity.setdefault((key, each.entity_id), []).append(each)
                if each.kind not in PREFERABLE:
                    self._rules.setdefault(key, each)

    def match(self, decision: Decision) -> MergeDecision | None:
        """A decision as a commit keeps it; None if it is about none of the conflicts."""
        named = decision.type_key, decision.entity_id
        found = [e for e in self._by_entity.get(named, ()) if _is_about(decision, e)]
        if not found and may_mend(decision) and decision.type_key in self._rules:
            # A broken rule may be mended in any entity of the type.
            found = [self._rules[decision.type_key]]
        return _record_decision(decision, found[0]) if found else None

    def refuse(self, decision: Decision) -> InvalidArgumentError:
        """What a decision that is about none of the conflicts ends with."""
        known = self._by_entity.get((decision.type_key, decision.entity_id), ())
        if any(each.kind in PREFERABLE and not each.properties for each in known):
            what, hint = "the conflict is about the whole entity", "leave `property` out"
            return InvalidArgumentError("resolve", f"{decision}: {what}", hint=hint)
        which = "conflict" if may_mend(decision) else f"a conflict that '{decision.take}' decides"
        return InvalidArgumentError(
            "resolve",
            f"{decision} is not in {which}",
            hint="a merge with --conflicts, or dry_run=True, lists what is",
        )


def may_mend(decision: Decision) -> bool:
    """Whether a decision may mend any entity of a type that breaks a rule."""
    return decision.take in (Take.DELETE, Take.VALUE)


def _record_decision(decision: Decision, conflict: EntityConflict) -> MergeDecision:
    states = json.dumps([conflict.base, conflict.ours, conflict.theirs], sort_keys=True)
    return MergeDecision(
        type_key=str(decision.type_key),
        entity_id=decision.entity_id,
        property=decision.property,
        kind=conflict.kind,
        take=str(decision.take),
        states=hashlib.sha256(states.encode()).hexdigest(),
    )


def _is_about(decision: Decision, conflict: EntityConflict) -> bool:
    if conflict.kind not in PREFERABLE:
        return may_mend(decision)
    return decision.property is None or decision.property in conflict.properties


def _parse_line(number: int, line: JsonObject) -> Decision | None:
    unknown = sorted(set(line) - _NAMES - _REMARKS)
    if unknown:
        _refuse(number, f"a decision has no member '{unknown[0]}'")
    kinds = [kind for kind in ("type", "edge") if kind in line]
    if len(kinds) != 1:
        _refuse(number, "it names its entity by either `type` or `edge`, and `id`")
    type_name, entity_id, name = line[kinds[0]], line.get("id"), line.get("property")
    if not isinstance(type_name, str) or not isinstance(entity_id, str):
        _refuse(number, f"`{kinds[0]}` and `id` are texts")
    if name is not None and not isinstance(name, str):
        _refuse(number, "`property` is a text")
    if "take" not in line:
        _refuse(number, "`take` is missing; null leaves the conflict open")
    if line["take"] is None:
        return None
    key = TypeKey(TypeKind.NODE if kinds[0] == "type" else TypeKind.EDGE, type_name)
    take, value = _parse_take(number, line["take"], is_property=name is not None)
    return Decision(key, entity_id, name, take, value)


def _parse_take(number: int, given: object, *, is_property: bool) -> tuple[Take, object]:
    if isinstance(given, Mapping) and set(given) == {"value"}:
        value = given["value"]
        if not is_property and not isinstance(value, Mapping):
            _refuse(number, "without `property`, a value is an object of properties")
        return Take.VALUE, value
    words = [each for each in Take if each is not Take.VALUE]
    if not isinstance(given, str) or given not in words:
        known = ", ".join(f"'{each}'" for each in words)
        _refuse(number, f'`take` is {known}, {{"value": …}} or null, not {json.dumps(given)}')
    if given == Take.DELETE and is_property:
        _refuse(number, "'delete' is about an entity; leave `property` out, or take a null value")
    return Take(given), None


def _parse_header(number: int, line: JsonObject) -> ConflictedCommits:
    found = line[_HEADER]
    names = ("base", "ours", "theirs", "conflicts")
    if not isinstance(found, Mapping) or not all(isinstance(found.get(n), str) for n in names):
        _refuse(number, f"`{_HEADER}` has the texts base, ours, theirs and conflicts")
    return ConflictedCommits(*(found[name] for name in names))


def iter_named_parts(conflict: EntityConflict) -> Iterator[dict[str, object]]:
    """What a decision on a conflict names: each property of it, or the entity."""
    named = name_entity(conflict)
    if conflict.kind in PREFERABLE and conflict.properties:
        yield from ({**named, "property": each} for each in conflict.properties)
    elif conflict.entity_id is not None:
        yield named


def name_entity(conflict: EntityConflict) -> dict[str, object]:
    """How a line names the entity of a conflict."""
    kind = "edge" if conflict.entity_kind == TypeKind.EDGE else "type"
    return {kind: conflict.type_name, "id": conflict.entity_id}


def _refuse(number: int, what: str) -> Never:
    raise InvalidArgumentError("resolve", f"line {number}: {what}")

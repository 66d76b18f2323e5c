"""Errors of writes: refused, overtaken or left in doubt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from omnigraph.errors.base_error import OmnigraphError

# How many conflicts the message of an error lists; it carries all, or the first thousands.
CONFLICTS_SHOWN_MAX: Final = 3
_PREFERABLE: Final = frozenset({"divergent_insert", "divergent_update", "delete_vs_update"})


class MigrationUnsupportedError(OmnigraphError):
    """A schema change that cannot be applied to existing data."""

    code = "migration_unsupported"


# How many violations of one write are listed one by one; the others are counted.
VIOLATIONS_SHOWN_MAX = 20


@dataclass(frozen=True, slots=True)
class Violation:
    """One broken rule: `message` says it all, the other fields say it to a program.

    `place` is where the value came from, such as `people.jsonl line 7`; None for a mutation.
    `earlier` is the place of the record that has the same key, with which the message then ends.
    """

    rule: str
    message: str
    type_name: str | None = None
    property: str | None = None
    value: str | None = None
    entity_id: str | None = None
    place: str | None = None
    earlier: str | None = None

    def move(self, place: str, earlier: str | None) -> Violation:
        """The same of records that are at other places; None for an earlier one that is not."""
        if self.earlier is None or earlier is None:
            return replace(self, place=place)
        fact = self.message.removesuffix(format_earlier(self.earlier))
        message = f"{fact}{format_earlier(earlier)}"
        return replace(self, place=place, earlier=earlier, message=message)

    def __str__(self) -> str:
        return self.message if self.place is None else f"{self.place}: {self.message}"


def format_earlier(place: str) -> str:
    """The end of a message that names the place of another record with the same key."""
    return f" (also {place})"


class WriteRefusedError(OmnigraphError):
    """A write that breaks rules of the schema; nothing was written.

    `violations` are the first of them, `count` is how many there are.
    """

    code = "write_refused"

    def __init__(
        self,
        message: str,
        *,
        violations: Sequence[Violation] = (),
        count: int | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message, hint=hint)
        self.violations = tuple(violations)
        self.count = len(self.violations) if count is None else count


def format_violations(violations: Sequence[Violation], count: int) -> str:
    """The message for some violations: one line each, and how many more there are."""
    shown = violations[:VIOLATIONS_SHOWN_MAX]
    more = count - len(shown)
    return "\n".join([*map(str, shown), *([f"… and {more} more"] if more else [])])


class KeyConflictError(WriteRefusedError):
    """A strict insert met existing entities; three fields name the first of them.

    `count` is how many there are; `others` are some of them.
    """

    code = "key_conflict"

    def __init__(  # noqa: PLR0913 — one keyword for each field of the error
        self,
        type_name: str,
        entity_id: str,
        *,
        place: str | None = None,
        others: Sequence[Violation] = (),
        count: int | None = None,
        entity_kind: str = "node",
        hint: str = "use mode 'merge' to replace existing entities",
    ) -> None:
        violations = [self.build_violation(type_name, entity_id, place), *others]
        known = len(violations) if count is None else count
        super().__init__(
            format_violations(violations, known),
            violations=violations,
            count=known,
            hint=hint,
        )
        self.entity_kind = entity_kind
        self.type_name = type_name
        self.entity_id = entity_id

    @staticmethod
    def build_violation(type_name: str, entity_id: str, place: str | None) -> Violation:
        """One entity that exists, and where another one of its id came from."""
        message = f"{type_name} '{entity_id}' already exists"
        return Violation(
            "key", message, type_name=type_name, value=entity_id, entity_id=entity_id, place=place
        )


class ValueFaultError(WriteRefusedError):
    """A value that a statement assigns cannot be computed; `count` is at how many entities.

    `entity_id` is the first of them, None where the value is the same for all.
    """

    code = "value_fault"

    def __init__(
        self, type_name: str, property_: str, *, entity_id: str | None = None, count: int = 1
    ) -> None:
        where = "" if entity_id is None else f" of {type_name} '{entity_id}'"
        more = f" (and {count - 1} more)" if count > 1 else ""
        message = (
            f"{type_name}.{property_}: the value{where} cannot be computed{more}: it divides by "
            "zero, overflows or converts what cannot be converted"
        )
        violation = Violation(
            "value", message, type_name=type_name, property=property_, entity_id=entity_id
        )
        super().__init__(
            message,
            violations=[violation],
            count=count,
            hint="narrow the condition, or write what is meant then: coalesce(…, 0)",
        )
        self.type_name = type_name
        self.property = property_
        self.entity_id = entity_id


class AmbiguousUpdateError(WriteRefusedError):
    """Rows of one statement give an entity different values of a property."""

    code = "ambiguous_update"

    def __init__(
        self, type_name: str, entity_id: str, property_: str, *, values: tuple[str, str]
    ) -> None:
        message = (
            f"{type_name} '{entity_id}': two rows give '{property_}' different values: "
            f"{values[0]} and {values[1]}"
        )
        violation = Violation(
            "ambiguous", message, type_name=type_name, property=property_, entity_id=entity_id
        )
        hint = "narrow the pattern until each entity gets one value"
        super().__init__(message, violations=[violation], hint=hint)
        self.type_name = type_name
        self.entity_id = entity_id
        self.property = property_


class UnusableKeyError(WriteRefusedError):
    """A key value that cannot identify an entity; `row` counts from 0."""

    code = "unusable_key"

    def __init__(self, type_key: str, *, member: str, row: int, value: str) -> None:
        super().__init__(
            f"{type_key} row {row}: '{member}' is {value}, which cannot identify an entity",
            hint="give every key property a finite value",
        )
        self.type_key = type_key
        self.member = member
        self.row = row
        self.value = value


class LoadError(WriteRefusedError):
    """Input that cannot be read; `record` is the first bad one from 1, or 0 for all of it."""

    code = "load_error"

    def __init__(
        self,
        message: str,
        *,
        record: int,
        violations: Sequence[Violation] = (),
        count: int | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message, violations=violations, count=count, hint=hint)
        self.record = record


class ConflictError(OmnigraphError):
    """Another commit changed what this write depends on; nothing was written."""

    code = "conflict"
    retryable = True

    def __init__(
        self,
        message: str,
        *,
        type_key: str | None = None,
        entity_id: str | None = None,
        commit: str | None = None,
    ) -> None:
        super().__init__(message, hint="read the branch again and repeat the write")
        self.type_key = type_key
        self.entity_id = entity_id
        self.commit = commit


class PreconditionFailedError(OmnigraphError):
    """The head of the branch is not the expected commit; nothing was written."""

    code = "precondition_failed"

    def __init__(self, branch: str, *, expected: str, actual: str) -> None:
        super().__init__(
            f"branch '{branch}' is at commit {actual}, not at {expected}",
            hint="read the branch again and decide on its new state",
        )
        self.branch = branch
        self.expected = expected
        self.actual = actual


class SchemaMovedError(OmnigraphError):
    """The schema in force is not the expected one; nothing was written. Both are digests."""

    code = "schema_moved"

    def __init__(self, branch: str, *, expected: str, actual: str) -> None:
        super().__init__(
            f"the schema of branch '{branch}' has the digest {actual}, not {expected}",
            hint="read the schema again and decide on what it is now",
        )
        self.branch = branch
        self.expected = expected
        self.actual = actual


class ResolutionStaleError(OmnigraphError):
    """Decisions on conflicts that are other ones by now; nothing was written.

    `ours` and `theirs` are the commits that the decisions were made about.
    """

    code = "resolution_stale"

    def __init__(self, *, ours: str, theirs: str) -> None:
        super().__init__(
            f"the conflicts of {theirs} with {ours}, which the resolution decides, are other ones"
            " by now",
            hint="list the conflicts again, and decide what is new",
        )
        self.ours = ours
        self.theirs = theirs


class StagingExpiredError(OmnigraphError):
    """A clean-up overtook a write, which was stopped or took longer than the grace."""

    code = "staging_expired"
    retryable = True


class InDoubtError(OmnigraphError):
    """A commit that may or may not have happened; `commit` names it."""

    code = "in_doubt"

    def __init__(self, message: str, *, commit: str | None = None) -> None:
        super().__init__(message, hint="look the commit up by its id before repeating the write")
        self.commit = commit


@dataclass(frozen=True, slots=True)
class EntityConflict:
    """One entity that two sides leave in different states, or that breaks a rule after a merge.

    `kind` is one of divergent_insert, divergent_update, delete_vs_update, orphan_edge,
    unique_violation, cardinality_violation, value_constraint_violation and schema_conflict. `ours`
    is the state on the branch that is merged into, `theirs` the one that is merged, `base` the one
    both came from; None where the entity does not exist. Of an entity that exists on all sides
    only what differs is given; edges have their ends as `@src` and `@dst`. `properties` are those
    in conflict; there are none where the whole entity is, as it always is with `by="entity"`.
    """

    kind: str
    entity_kind: str
    type_name: str
    entity_id: str | None
    message: str
    base: Mapping[str, object] | None = None
    ours: Mapping[str, object] | None = None
    theirs: Mapping[str, object] | None = None
    properties: tuple[str, ...] = ()

    def to_json(self) -> dict[str, object]:
        """The document of a MergeConflictError, with the three states."""
        return {
            "entity_kind": self.entity_kind,
            "type_name": self.type_name,
            "entity_id": self.entity_id,
            "kind": self.kind,
            "message": self.message,
            "base": self.base,
            "ours": self.ours,
            "theirs": self.theirs,
            "properties": list(self.properties),
        }

    def __str__(self) -> str:
        return f"{self.kind} {self.message}"


class MergeConflictError(OmnigraphError):
    """Both sides of a merge changed the same entities, or break a rule together.

    A revert or a cherry-pick may also conflict with the branch; `operation` names the kind.
    Nothing was written. `conflicts` are all of them, or the first thousands; `count` is how many
    there are.
    """

    code = "merge_conflicts"

    def __init__(
        self,
        conflicts: Sequence[EntityConflict],
        *,
        count: int | None = None,
        operation: str = "merge",
    ) -> None:
        self.operation = operation
        self.conflicts = tuple(conflicts)
        self.count = len(self.conflicts) if count is None else count
        shown = "; ".join(str(each) for each in self.conflicts[:CONFLICTS_SHOWN_MAX])
        more = self.count - min(len(self.conflicts), CONFLICTS_SHOWN_MAX)
        super().__init__(
            f"{operation} conflicts: {shown}{f'; and {more} more' if more else ''}",
            hint=self._format_hint(),
        )

    @property
    def is_preferable(self) -> bool:
        """Whether a preference for one side would decide every conflict."""
        return all(each.kind in _PREFERABLE for each in self.conflicts)

    def _format_hint(self) -> str:
        match self.operation == "merge", self.is_preferable:
            case True, True:
                return "change one side, or pass prefer='ours' or 'theirs'"
            case True, False:
                return "change one side so that both go together, and merge again"
            case _, True:
                way = "keep what the branch has with prefer='ours'"
                return f"{way}, or take what the {self.operation} makes of it with 'theirs'"
            case _:
                return f"change the branch so that the {self.operation} fits, and try again"

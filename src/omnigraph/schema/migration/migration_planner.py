"""Compares the accepted schema with a desired catalog and lists the steps between them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

from omnigraph.html_views import HtmlDocument
from omnigraph.lang.diagnostics import Finding, Severity
from omnigraph.schema.accepted_schema import AcceptedSchema, TypeKind, types_of
from omnigraph.schema.catalog import Catalog
from omnigraph.schema.migration.constraint_changes import (
    plan_constraints,
    plan_dropped_constraints,
)
from omnigraph.schema.migration.data_checks import DataCheck, DataViolation, list_data_checks
from omnigraph.schema.migration.migration_steps import (
    EMPTY_SCHEMA,
    AddType,
    DropType,
    Step,
    UnsupportedChange,
)
from omnigraph.schema.migration.reference_changes import (
    plan_reference_constraints,
    plan_reference_properties,
    plan_reference_type,
)
from omnigraph.schema.migration.step_documents import describe_step
from omnigraph.schema.migration.type_changes import (
    plan_properties,
    plan_type,
    plan_type_annotations,
)
from omnigraph.schema.migration.type_versions import TypePair, TypeVersion, iter_type_versions
from omnigraph.schema.schema_identity import evolve_schema
from omnigraph.schema.schema_shape import JsonObject

DATA_LOSS_IGNORED = (
    "allow_data_loss is ignored: every drop is soft, and older versions of the graph keep the data"
    " until they are cleaned up"
)

# Which changes have steps: all that data can obey, or those of the reference.
PlanDialect: TypeAlias = Literal["omnigraph", "reference"]

# What is planned for a type that continues, in the order in which its steps are listed.
_RULES: Final[Mapping[PlanDialect, tuple[Callable[[TypePair], Iterator[Step]], ...]]] = {
    "omnigraph": (
        plan_type,
        plan_type_annotations,
        plan_dropped_constraints,
        plan_properties,
        plan_constraints,
    ),
    "reference": (
        plan_reference_type,
        plan_type_annotations,
        plan_reference_properties,
        plan_reference_constraints,
    ),
}


@dataclass(frozen=True, slots=True, repr=False)
class MigrationPlan(HtmlDocument):
    """The steps from one schema to another.

    `findings` are rename hints without effect, `warnings` are about options. `schema` is what the
    graph accepts when the steps are applied, None when one of them is unsupported. `violations` are
    what entities contradict, if entities were examined (`is_checked`).
    """

    steps: tuple[Step, ...]
    findings: tuple[Finding, ...]
    warnings: tuple[str, ...]
    schema: AcceptedSchema | None
    violations: tuple[DataViolation, ...] = ()
    is_checked: bool = False

    @property
    def supported(self) -> bool:
        """Whether every step can be applied, as far as entities were examined."""
        return self.schema is not None and not self.violations

    @property
    def checks(self) -> tuple[DataCheck, ...]:
        """What entities must obey before the steps can be applied."""
        return list_data_checks(self.steps)

    @property
    def refusal(self) -> str | None:
        """What applying fails with: the first unsupported step, or all that entities contradict."""
        refused = (step.message for step in self.steps if isinstance(step, UnsupportedChange))
        found = "\n".join(violation.message for violation in self.violations)
        return next(refused, found or None)

    def without_examples(self) -> MigrationPlan:
        """The plan for a caller who may not see entities: what contradicts it is only counted."""
        counted = [replace(each, examples=()) for each in self.violations or ()]
        return replace(self, violations=tuple(counted))

    def __repr__(self) -> str:
        return f"MigrationPlan(steps={len(self.steps)}, supported={self.supported})"

    def to_json(self) -> JsonObject:
        """The plan document, without the address of the graph."""
        found = [each.to_json() for each in self.violations]
        return {
            "supported": self.supported,
            "step_count": len(self.steps),
            "steps": [describe_step(step) for step in self.steps],
            # Few plans have checks: the documents of others do not mention them.
            **({"is_checked": self.is_checked} if self.checks else {}),
            **({"violations": found} if found else {}),
        }


def plan_migration(
    accepted: AcceptedSchema,
    desired: Catalog,
    *,
    allow_data_loss: bool = False,
    convert: bool = False,
    numbers_from: int | None = None,
    dialect: PlanDialect = "omnigraph",
) -> MigrationPlan:
    """The steps from the accepted schema to a desired catalog; equal schemas give none.

    `convert` allows types that are not wider ones.

    The dialect "reference" refuses what the reference refuses, whatever entities there are.

    Every drop is soft, and keeps `mode: "soft"`: `allow_data_loss` only permits a text that
    declares nothing to drop every type. A rename hint that cannot be resolved is an unsupported
    step. What is new gets numbers from the counter of the accepted schema, or from `numbers_from`.
    """
    evolution = evolve_schema(accepted, desired, numbers_from=numbers_from)
    is_emptied = _has_entity_types(accepted) and not any(types_of(desired))
    if evolution.schema is None:
        steps = tuple(_plan_unresolved(evolution.findings))
    elif is_emptied and not allow_data_loss:
        steps = (_refuse_empty_schema(accepted),)
    else:
        steps = tuple(plan_steps(accepted, evolution.schema, dialect=dialect, convert=convert))
    is_supported = not any(isinstance(step, UnsupportedChange) for step in steps)
    return MigrationPlan(
        steps=steps,
        findings=tuple(
            found for found in evolution.findings if found.severity is not Severity.ERROR
        ),
        warnings=(DATA_LOSS_IGNORED,) if allow_data_loss and not is_emptied else (),
        schema=evolution.schema if is_supported else None,
    )


def _has_entity_types(accepted: AcceptedSchema) -> bool:
    return any(key.kind is not TypeKind.INTERFACE for key in accepted.identities)


def _refuse_empty_schema(accepted: AcceptedSchema) -> UnsupportedChange:
    count = len(accepted.identities)
    types = f"all {count} types" if count > 1 else "the only type"
    reason = (
        f"the schema declares nothing, and would drop {types} of the graph; check that it is the"
        " file you mean, or allow data loss (--allow-data-loss, allow_data_loss=True)"
    )
    return UnsupportedChange("schema", reason, EMPTY_SCHEMA)


def _plan_unresolved(findings: tuple[Finding, ...]) -> Iterator[Step]:
    for found in findings:
        if found.severity is Severity.ERROR:
            yield UnsupportedChange(found.entity, found.message, found.code)


def plan_steps(
    old: AcceptedSchema,
    new: AcceptedSchema,
    *,
    dialect: PlanDialect = "omnigraph",
    convert: bool = False,
) -> list[Step]:
    """The steps from one schema to another one that was made from it."""
    steps: list[Step] = []
    for kind in TypeKind:
        steps += _plan_kind(kind, old, new, dialect=dialect, convert=convert)
    if not steps and old.catalog != new.catalog:
        steps.append(UnsupportedChange("schema", "unclassified semantic change"))
    return steps


def _plan_kind(
    kind: TypeKind, old: AcceptedSchema, new: AcceptedSchema, *, dialect: PlanDialect, convert: bool
) -> Iterator[Step]:
    before, after = dict(iter_type_versions(old, kind)), dict(iter_type_versions(new, kind))
    for identity, side in after.items():
        if identity in before:
            pair = TypePair(before[identity], side, convert)
            for plan in _RULES[dialect]:
                yield from plan(pair)
        else:
            yield AddType(side.key)
    for identity, side in before.items():
        if identity not in after:
            yield _plan_removed(side, dialect)


def _plan_removed(side: TypeVersion, dialect: PlanDialect) -> Step:
    if side.key.kind is TypeKind.INTERFACE and dialect == "reference":
        return UnsupportedChange(
            str(side.key), "removing or renaming an interface is not supported; keep it"
        )
    return DropType(side.key)

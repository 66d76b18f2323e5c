"""Compares the accepted schema with a desired catalog and lists the steps between them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from omnigraph.lang.diagnostics import Finding, Severity
from omnigraph.schema.accepted_schema import AcceptedSchema, TypeKind
from omnigraph.schema.catalog import Catalog
from omnigraph.schema.migration.migration_steps import (
    AddType,
    DropType,
    Step,
    UnsupportedChange,
    describe_step,
)
from omnigraph.schema.migration.type_changes import (
    TypePair,
    TypeVersion,
    iter_type_versions,
    plan_constraints,
    plan_properties,
    plan_type,
    plan_type_annotations,
)
from omnigraph.schema.schema_identity import evolve_schema
from omnigraph.schema.schema_shape import JsonObject

DATA_LOSS_IGNORED = (
    "allow_data_loss is ignored: every drop is soft, and older versions of the graph keep the data"
    " until they are cleaned up"
)

# What is asked of a type that continues, in the order in which its steps are listed.
_CHECKS = (plan_type, plan_type_annotations, plan_properties, plan_constraints)


@dataclass(frozen=True, slots=True, repr=False)
class MigrationPlan:
    """The steps from one schema to another.

    `findings` are rename hints without effect, `warnings` are about options. `schema` is what the
    graph accepts when the steps are applied, None when one of them is unsupported.
    """

    steps: tuple[Step, ...]
    findings: tuple[Finding, ...]
    warnings: tuple[str, ...]
    schema: AcceptedSchema | None

    @property
    def supported(self) -> bool:
        """Whether every step can be applied."""
        return self.schema is not None

    @property
    def refusal(self) -> str | None:
        """What applying fails with: the message of the first unsupported step."""
        refused = (step.message for step in self.steps if isinstance(step, UnsupportedChange))
        return next(refused, None)

    def __repr__(self) -> str:
        return f"MigrationPlan(steps={len(self.steps)}, supported={self.supported})"

    def to_json(self) -> JsonObject:
        """The plan document, without the address of the graph."""
        return {
            "supported": self.supported,
            "step_count": len(self.steps),
            "steps": [describe_step(step) for step in self.steps],
        }


def plan_migration(
    accepted: AcceptedSchema,
    desired: Catalog,
    *,
    allow_data_loss: bool = False,
    numbers_from: int | None = None,
) -> MigrationPlan:
    """The steps from the accepted schema to a desired catalog; equal schemas give none.

    Every drop is soft. `allow_data_loss` is accepted for old callers and ignored with a warning:
    steps keep `mode: "soft"`. A rename hint that cannot be resolved is an unsupported step. What
    is new gets numbers from the counter of the accepted schema, or from `numbers_from`.
    """
    evolution = evolve_schema(accepted, desired, numbers_from=numbers_from)
    if evolution.schema is None:
        steps = tuple(_plan_unresolved(evolution.findings))
    else:
        steps = tuple(plan_steps(accepted, evolution.schema))
    is_supported = not any(isinstance(step, UnsupportedChange) for step in steps)
    return MigrationPlan(
        steps=steps,
        findings=tuple(
            found for found in evolution.findings if found.severity is not Severity.ERROR
        ),
        warnings=(DATA_LOSS_IGNORED,) if allow_data_loss else (),
        schema=evolution.schema if is_supported else None,
    )


def _plan_unresolved(findings: tuple[Finding, ...]) -> Iterator[Step]:
    for found in findings:
        if found.severity is Severity.ERROR:
            yield UnsupportedChange(found.entity, found.message, found.code)


def plan_steps(old: AcceptedSchema, new: AcceptedSchema) -> list[Step]:
    """The steps from one schema to another one that was made from it."""
    steps = [step for kind in TypeKind for step in _plan_kind(kind, old, new)]
    if not steps and old.catalog != new.catalog:
        steps.append(UnsupportedChange("schema", "unclassified semantic change"))
    return steps


def _plan_kind(kind: TypeKind, old: AcceptedSchema, new: AcceptedSchema) -> Iterator[Step]:
    before, after = dict(iter_type_versions(old, kind)), dict(iter_type_versions(new, kind))
    for identity, side in after.items():
        if identity in before:
            pair = TypePair(before[identity], side)
            for check in _CHECKS:
                yield from check(pair)
        else:
            yield AddType(side.key)
    for identity, side in before.items():
        if identity not in after:
            yield _plan_removed(side)


def _plan_removed(side: TypeVersion) -> Step:
    if side.key.kind is TypeKind.INTERFACE:
        return UnsupportedChange(
            str(side.key), "removing or renaming an interface is not supported; keep it"
        )
    return DropType(side.key)

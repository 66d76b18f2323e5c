"""Migration: what must happen to a graph so that a desired schema comes into force.

In: the accepted schema and the catalog of the desired one. Out: a `MigrationPlan`, ordered steps as
data with two views, a line for people (`str(step)`) and JSON. Guarantee: pure and deterministic;
equal schemas give no steps; a change without a step of its own is reported as unsupported.

Modules, in order of control flow: `planner` (the comparison), `pairing` (old and new by identity),
`types`, `annotations`, `properties`, `constraints` (one concern each), `steps` (what they yield),
`lint_codes` (how risky changes are classified), `json_view`.
"""

from omnigraph.schema.migration.migration_codes import LINT_CODES, Family, LintCode, Tier
from omnigraph.schema.migration.migration_planner import MigrationPlan, plan_migration, plan_steps
from omnigraph.schema.migration.migration_steps import (
    AddIndex,
    AddProperty,
    AddType,
    DropProperty,
    DropType,
    ExtendEnum,
    RenameProperty,
    RenameType,
    Step,
    UnsupportedChange,
    UpdatePropertyMetadata,
    UpdateTypeMetadata,
    describe_step,
)

__all__ = [
    "LINT_CODES",
    "AddIndex",
    "AddProperty",
    "AddType",
    "DropProperty",
    "DropType",
    "ExtendEnum",
    "Family",
    "LintCode",
    "MigrationPlan",
    "RenameProperty",
    "RenameType",
    "Step",
    "Tier",
    "UnsupportedChange",
    "UpdatePropertyMetadata",
    "UpdateTypeMetadata",
    "describe_step",
    "plan_migration",
    "plan_steps",
]

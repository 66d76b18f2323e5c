"""Migration: the steps that bring a desired schema into force on a graph.

In: the accepted schema and the catalog of the desired one. Out: a `MigrationPlan`, ordered steps as
data with two views, a line for people (`str(step)`) and JSON. Guarantee: pure and deterministic;
equal schemas give no steps; a change without a step of its own is reported as unsupported.

    migration_planner   compares the two schemas
    type_changes        the changes of one type: properties, annotations, constraints
    migration_steps     the steps as data, and how risky changes are classified
"""

from omnigraph.schema.migration.migration_planner import MigrationPlan, plan_migration, plan_steps
from omnigraph.schema.migration.migration_steps import (
    LINT_CODES,
    AddIndex,
    AddProperty,
    AddType,
    DropProperty,
    DropType,
    ExtendEnum,
    Family,
    LintCode,
    RenameProperty,
    RenameType,
    Step,
    Tier,
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

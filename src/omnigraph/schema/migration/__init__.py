"""Migration: the steps that bring a desired schema into force on a graph.

In: the accepted schema and the catalog of the desired one. Out: a `MigrationPlan`, ordered steps as
data with two views, a line for people (`str(step)`) and JSON. Guarantee: pure and deterministic;
equal schemas give no steps; a change without a step of its own is reported as unsupported.

    migration_planner    compares the two schemas
    type_versions        a type before and after, by its identity
    type_changes         the changes of one type: header, annotations, properties
    constraint_changes   the changes of its constraints
    reference_changes    what the dialect "reference" refuses instead
    migration_steps      the steps as data, and how risky changes are classified
    written_constraints  constraints as steps name them
    step_documents       the steps as JSON
    data_checks          what existing entities must obey before steps are applied
"""

from omnigraph.schema.migration.data_checks import (
    EXAMPLES_MAX,
    Convertible,
    DataCheck,
    DataRule,
    DataViolation,
    Example,
    OneOf,
    Required,
    Unique,
    list_data_checks,
)
from omnigraph.schema.migration.migration_planner import (
    MigrationPlan,
    PlanDialect,
    plan_migration,
    plan_steps,
)
from omnigraph.schema.migration.migration_steps import (
    LINT_CODES,
    AddConstraint,
    AddIndex,
    AddProperty,
    AddType,
    ChangeConstraint,
    ChangeImplements,
    ConvertProperty,
    DropConstraint,
    DropProperty,
    DropType,
    ExtendEnum,
    Family,
    LintCode,
    ReembedProperty,
    RelaxProperty,
    RenameProperty,
    RenameType,
    Step,
    Tier,
    TightenProperty,
    UnsupportedChange,
    UpdatePropertyMetadata,
    UpdateTypeMetadata,
    WidenProperty,
)
from omnigraph.schema.migration.step_documents import describe_step
from omnigraph.schema.migration.written_constraints import WrittenConstraint

__all__ = [
    "EXAMPLES_MAX",
    "LINT_CODES",
    "AddConstraint",
    "AddIndex",
    "AddProperty",
    "AddType",
    "ChangeConstraint",
    "ChangeImplements",
    "ConvertProperty",
    "Convertible",
    "DataCheck",
    "DataRule",
    "DataViolation",
    "DropConstraint",
    "DropProperty",
    "DropType",
    "Example",
    "ExtendEnum",
    "Family",
    "LintCode",
    "MigrationPlan",
    "OneOf",
    "PlanDialect",
    "ReembedProperty",
    "RelaxProperty",
    "RenameProperty",
    "RenameType",
    "Required",
    "Step",
    "Tier",
    "TightenProperty",
    "Unique",
    "UnsupportedChange",
    "UpdatePropertyMetadata",
    "UpdateTypeMetadata",
    "WidenProperty",
    "WrittenConstraint",
    "describe_step",
    "list_data_checks",
    "plan_migration",
    "plan_steps",
]

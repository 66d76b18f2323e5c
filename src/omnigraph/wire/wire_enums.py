"""The closed lists of words in requests and answers."""

from __future__ import annotations

from enum import StrEnum


class LoadMode(StrEnum):
    """What a load does with entities that exist."""

    OVERWRITE = "overwrite"
    APPEND = "append"
    MERGE = "merge"
    PATCH = "patch"


class LoadDialect(StrEnum):
    """How strictly the records of a load are read."""

    STRICT = "strict"
    COMPATIBLE = "compatible"


class BranchMergeOutcome(StrEnum):
    """What became of a merge."""

    ALREADY_UP_TO_DATE = "already_up_to_date"
    FAST_FORWARD = "fast_forward"
    MERGED = "merged"


class CommitPickOutcome(StrEnum):
    """What became of a commit that was undone, or done on another branch."""

    REVERTED = "reverted"
    CHERRY_PICKED = "cherry_picked"
    NOTHING_TO_DO = "nothing_to_do"


class EntityKindOutput(StrEnum):
    """Whether an entity is a node or an edge."""

    NODE = "node"
    EDGE = "edge"


class ChangeOpOutput(StrEnum):
    """What happened to an entity."""

    INSERT = "insert"
    UPDATE = "update"
    DELETE = "delete"


class ParamKind(StrEnum):
    """The kind of a parameter of a stored query."""

    STRING = "string"
    BOOL = "bool"
    INT = "int"
    BIGINT = "bigint"
    FLOAT = "float"
    DATE = "date"
    DATETIME = "datetime"
    DURATION = "duration"
    BLOB = "blob"
    VECTOR = "vector"
    LIST = "list"
    OBJECT = "object"


class MergeConflictKindOutput(StrEnum):
    """The kinds of conflicts of a merge."""

    DIVERGENT_INSERT = "divergent_insert"
    DIVERGENT_UPDATE = "divergent_update"
    DELETE_VS_UPDATE = "delete_vs_update"
    ORPHAN_EDGE = "orphan_edge"
    UNIQUE_VIOLATION = "unique_violation"
    CARDINALITY_VIOLATION = "cardinality_violation"
    VALUE_CONSTRAINT_VIOLATION = "value_constraint_violation"
    # Beyond the contract of the reference, whose branches share one schema.
    SCHEMA_CONFLICT = "schema_conflict"


class ChangeDiffRefusalReason(StrEnum):
    """Why a commit cannot be compared with its parent."""

    PARENTLESS_COMMIT = "parentless_commit"
    SCHEMA_BOUNDARY = "schema_boundary"
    UNKNOWN = "unknown"


class ChartKind(StrEnum):
    """How the rows of a panel are drawn."""

    TABLE = "table"
    NUMBER = "number"
    BAR = "bar"
    LINE = "line"

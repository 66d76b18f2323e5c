"""The gate: what a session asks before it reads or writes for its actor."""

from __future__ import annotations

import importlib
import os
from collections.abc import Collection
from typing import Protocol, TypeAlias, cast, runtime_checkable

from omnigraph.errors import InvalidArgumentError, PolicyDeniedError
from omnigraph.policy.acts import Act
from omnigraph.policy.requirements import Requirement
from omnigraph.query.row_limits import RowLimits
from omnigraph.schema.catalog import Catalog


@runtime_checkable
class Gate(Protocol):
    """Decides acts of actors; a compiled policy is one."""

    @property
    def limits_types(self) -> bool:
        """Whether an act may be allowed for some types and not for the whole graph."""

    def has_query_limits(self, actor: str | None) -> bool:
        """Whether rules name the stored queries that an actor may invoke."""

    def find_row_limits(self, actor: str | None, act: Act) -> RowLimits | None:
        """What an actor may see of types whose rows rules limit; None if he sees all rows."""

    def list_requirements(self, target: str) -> tuple[Requirement, ...]:
        """What rules require of a proposal before its branch is merged into a target."""

    def check(self, actor: str | None, act: Act) -> None:
        """Raise `PolicyDeniedError` unless an act is allowed to an actor."""

    def check_some(self, actor: str | None, act: Act) -> None:
        """Raise `PolicyDeniedError` unless an act is allowed, of at least one type."""


# A gate, or the path of a policy bundle.
PolicySource: TypeAlias = Gate | str | os.PathLike[str]


@runtime_checkable
class SchemaBoundGate(Gate, Protocol):
    """A gate with conditions that must fit the schema of its graph."""

    def check_schema(self, catalog: Catalog) -> None:
        """Raise `PolicyInvalidError` if a condition does not fit a schema."""


def build_gate(policy: object, *, graph: str) -> Gate | None:
    """The gate that a caller asks for; a bundle is compiled, and a wrong one refused."""
    match policy:
        case None:
            return None
        case str() | os.PathLike():
            # By name: Cedar and YAML are loaded for graphs that have a policy.
            decisions = importlib.import_module("omnigraph.policy.decisions")
            return cast("Gate", decisions.load_policy(policy, graph=graph))
        case Gate():
            return policy
        case _:
            reason = f"a {type(policy).__name__} is not a policy"
            raise InvalidArgumentError("policy", reason, hint="pass the path of a bundle")


def check_types(gate: Gate, actor: str | None, act: Act, types: Collection[str] | None) -> None:
    """Raise unless an act is allowed for the whole graph, or for each of some types."""
    if types is None or not gate.limits_types:
        gate.check(actor, act)
        return
    try:
        gate.check(actor, act)
    except PolicyDeniedError:
        gate.check_some(actor, act)
        for name in sorted(types):
            gate.check(actor, act._replace(type_name=name))

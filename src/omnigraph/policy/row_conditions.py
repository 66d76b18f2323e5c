"""Conditions of a bundle on rows, compared with the schema of a graph that it is bound to."""

from __future__ import annotations

from collections.abc import Iterator

from omnigraph.errors import CompileError, PolicyInvalidError
from omnigraph.errors.config_errors import Problem
from omnigraph.policy.policy_bundle import Bundle
from omnigraph.query.row_limits import compile_row_condition
from omnigraph.schema.catalog import Catalog


def list_condition_problems(bundle: Bundle, catalog: Catalog) -> Iterator[str]:
    """What of the conditions does not fit a schema."""
    for rule in bundle.rules:
        for type_name, text in rule.conditions:
            try:
                compile_row_condition(text, type_name, catalog)
            except CompileError as failure:
                found = failure.diagnostics[0]
                hint = "" if found.hint is None else f" ({found.hint})"
                yield (
                    f"rule '{rule.id}': the condition of type '{type_name}': {found.message}{hint}"
                )


def require_fitting_conditions(bundle: Bundle, catalog: Catalog) -> None:
    """Refuse a bundle whose conditions do not fit the schema of its graph."""
    if problems := list(list_condition_problems(bundle, catalog)):
        raise PolicyInvalidError([Problem(bundle.file, 1, 1, each) for each in problems])

"""Which properties may have which merge rule."""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never

from omnigraph.lang.diagnostics import Collector
from omnigraph.schema import ast
from omnigraph.schema.catalog import Constraints, MergeRule
from omnigraph.schema.check.property_drafts import PropertyDraft
from omnigraph.schema.property_types import (
    INTEGERS,
    NUMERIC,
    ListType,
    PropertyType,
    Scalar,
    ScalarType,
)

# Values of one type with an order that people mean: the words of an enum have none.
_ORDERED = NUMERIC | {Scalar.STRING, Scalar.DATE, Scalar.DATETIME}


def check_merge_rules(
    drafts: Mapping[str, PropertyDraft], constraints: Constraints, collector: Collector
) -> None:
    """Refuse rules that do not fit the type of a property, or one whose value is not its own."""
    sources = {draft.meant.embed.source for draft in drafts.values() if draft.meant.embed}
    grouped = {member for members in constraints.together for member in members}
    for draft in drafts.values():
        if draft.syntax.merge is None or draft.meant.merge is None:
            continue
        problem = None
        if draft.name in (constraints.key or ()):
            problem = "is part of the key, and no merge changes it"
        elif draft.meant.embed is not None or draft.name in sources:
            problem = "is one value with its vector or text"
        elif draft.name in grouped:
            problem = "is one value with others, by @together"
        elif draft.has_type:
            problem = _find_misfit(draft.meant.merge, draft.meant.type)
        if problem is not None:
            _report_misfit(draft, draft.syntax.merge, problem, collector)


def _report_misfit(
    draft: PropertyDraft, rule: ast.Name, problem: str, collector: Collector
) -> None:
    message = f"{draft.path}: 'merge {rule.text}' does not fit: the property {problem}"
    collector.report_error("S024", rule.span, message, hint="remove the rule, or use another one")


def _find_misfit(rule: MergeRule, type_: PropertyType) -> str | None:
    match rule:
        case MergeRule.SET:
            is_fit, wanted = isinstance(type_.value, ListType), "a list"
        case MergeRule.COUNTER:
            is_fit, wanted = type_.scalar in INTEGERS, "an integer"
        case MergeRule.MAX | MergeRule.MIN:
            is_fit = isinstance(type_.value, ScalarType) and type_.value.scalar in _ORDERED
            wanted = "a number, a String, a Date or a DateTime"
        case _:
            assert_never(rule)
    return None if is_fit else f"is {type_}, not {wanted}"

"""Which properties may have a default, and which others it may read.

What stands in a default is read by the language of queries, as that of a condition is.
"""

from __future__ import annotations

from collections.abc import Mapping

from omnigraph.lang.diagnostics import Collector
from omnigraph.schema.check.property_drafts import PropertyDraft
from omnigraph.schema.check.schema_constraints import ConstraintScope
from omnigraph.schema.expression_tokens import EXPRESSION_WORDS


def check_defaults(
    scope: ConstraintScope, key: tuple[str, ...] | None, collector: Collector
) -> None:
    """Refuse defaults of what has a value anyway, unknown names in them, and cycles."""
    for draft in scope.drafts.values():
        if draft.syntax.default is None:
            continue
        _check_names(scope, draft, collector)
        problem = None
        if draft.name in (key or ()):
            problem = "is part of the key, which identifies an entity"
        elif draft.meant.embed is not None:
            problem = "is made from its text"
        elif draft.has_type and draft.meant.type.is_blob:
            problem = "is a Blob"
        elif draft.name in _find_read_names(scope.drafts, draft):
            problem = "is read by its own default"
        if problem is not None:
            message = f"{draft.path}: the property {problem}; it cannot have a default"
            hint = "remove the default"
            collector.report_error("T127", draft.syntax.default.span, message, hint=hint)


def _check_names(scope: ConstraintScope, draft: PropertyDraft, collector: Collector) -> None:
    default = draft.syntax.default
    assert default is not None, "the caller asks for those that have one"
    # A variable is refused as such, with what stands around it.
    for name in () if "$" in default.text else default.names:
        is_known = name in scope.drafts or name in EXPRESSION_WORDS
        if not is_known and not scope.may_declare(name):
            message = f"{draft.path}: the default reads the unknown property '{name}'"
            hint = collector.suggest_similar(name, scope.drafts)
            collector.report_error("S013", default.span, message, hint=hint)


def _find_read_names(drafts: Mapping[str, PropertyDraft], first: PropertyDraft) -> set[str]:
    """The properties that a default reads, and those that their defaults read."""
    found: set[str] = set()
    waiting = [first]
    while waiting:
        default = waiting.pop().meant.default
        for name in () if default is None else default.members:
            if name not in found and name in drafts:
                found.add(name)
                waiting.append(drafts[name])
    return found

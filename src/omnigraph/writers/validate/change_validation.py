"""The order of the checks: values of all types, unique nodes, then edges type by type."""

from __future__ import annotations

from collections.abc import Callable, Collection

from omnigraph.schema.accepted_schema import TypeKey
from omnigraph.schema.catalog import EdgeType
from omnigraph.versioning.footprint import Footprint
from omnigraph.writers.existing_rows import CommittedState
from omnigraph.writers.graph_change import GraphChange
from omnigraph.writers.validate.cardinality_rule import check_cardinality
from omnigraph.writers.validate.findings import Findings, RuleSubject
from omnigraph.writers.validate.image_after import ImageAfter
from omnigraph.writers.validate.reference_rule import check_kept_edges, check_written_edges
from omnigraph.writers.validate.uniqueness_rule import check_unique
from omnigraph.writers.validate.value_rules import VALUE_CHECKS


def validate_change(
    change: GraphChange, committed: CommittedState, *, poll: Callable[[], None] = lambda: None
) -> Footprint:
    """Refuse a change that breaks rules of the schema; else, what that answer depends on.

    Strict inserts of ids that exist are not looked for here: they are reported by themselves.
    What `poll` raises, between two checks of a type, ends the validation.
    """
    findings = Findings()
    reads = check_change(change, committed, findings, poll=poll)
    findings.raise_if_any()
    return reads


def validate_ends(
    change: GraphChange, committed: CommittedState, types: Collection[TypeKey]
) -> None:
    """Refuse written edges of some types at nodes that do not exist after a change."""
    findings, image = Findings(), ImageAfter(change, committed)
    for key, type_ in committed.view.types.items():
        if key in types and key in change and isinstance(type_, EdgeType):
            check_written_edges(RuleSubject(key, type_, change[key]), image, findings)
    findings.raise_if_any()


def check_change(
    change: GraphChange,
    committed: CommittedState,
    findings: Findings,
    *,
    poll: Callable[[], None] = lambda: None,
) -> Footprint:
    """Collect the rules of the schema that a change breaks; what that answer depends on."""
    types = committed.view.types
    subjects = {
        key: RuleSubject(key, type_, change[key]) for key, type_ in types.items() if key in change
    }
    # The writer of adopted rows has checked them by themselves.
    own = {key: subject for key, subject in subjects.items() if subject.change.adopted is None}
    image = ImageAfter(change, committed)
    for check in VALUE_CHECKS:
        for subject in own.values():
            poll()
            check(subject, findings)
    for key, type_ in types.items():
        poll()
        if key in own:
            check_unique(own[key], image, findings)
            poll()
        if isinstance(type_, EdgeType):
            if key in subjects:
                check_written_edges(subjects[key], image, findings)
            check_kept_edges(key, type_, image, findings)
            if key in own:
                check_cardinality(own[key], image, findings)
    return image.reads.build_footprint()

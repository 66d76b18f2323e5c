"""The order of the checks: values of all types, unique nodes, then edges type by type."""

from __future__ import annotations

from omnigraph.schema.catalog import EdgeType
from omnigraph.versioning.footprint import Footprint
from omnigraph.writers.change import GraphChange
from omnigraph.writers.committed import Committed
from omnigraph.writers.validate.cardinality import check_cardinality
from omnigraph.writers.validate.findings import Findings, Subject
from omnigraph.writers.validate.image import Image
from omnigraph.writers.validate.references import check_kept_edges, check_written_edges
from omnigraph.writers.validate.uniqueness import check_unique
from omnigraph.writers.validate.values import check_form, check_rules


def validate(change: GraphChange, committed: Committed) -> Footprint:
    """Refuse a change that breaks rules of the schema; else, what that answer depends on.

    Strict inserts of ids that exist are not looked for here: they are told by themselves.
    """
    types = committed.view.types
    subjects = {
        key: Subject(key, type_, change[key]) for key, type_ in types.items() if key in change
    }
    image, findings = Image(change, committed), Findings()
    for subject in subjects.values():
        check_form(subject, findings)
    for subject in subjects.values():
        check_rules(subject, findings)
    for key, type_ in types.items():
        touched = subjects.get(key)
        if touched is not None:
            check_unique(touched, image, findings)
        if isinstance(type_, EdgeType):
            if touched is not None:
                check_written_edges(touched, image, findings)
            check_kept_edges(key, type_, image, findings)
            if touched is not None:
                check_cardinality(touched, image, findings)
    findings.refuse_any()
    return image.reads.footprint()

"""One validator for every write: the rules of the schema, checked on the state after the write.

In: a change of the graph and what is committed. Out: the footprint of the look-ups that the answer
depends on. Guarantee: a change that passes leaves every rule of the schema true, provided that
nothing in the footprint changes before it is committed. A change that fails is refused with its
first violations, in the order of the checks, and with their number.

    change_validation   the order of the checks
    findings            violations, collected and counted
    value_rules         required and finite values; enums, ranges and patterns
    unique_groups       keys and `@unique` as columns, and the marks that footprints compare
    uniqueness_rule     a tuple that occurs twice in a batch, in the write, or in the graph
    image_after         which entities exist after the write; the look-ups as a footprint
    reference_rule      both ends of every edge exist after the write
    cardinality_rule    the number of edges of every source that the write touches
    existing_data       whether existing entities obey rules that a schema change adds
"""

from omnigraph.writers.validate.change_validation import (
    check_change,
    validate_change,
    validate_ends,
)
from omnigraph.writers.validate.findings import Findings
from omnigraph.writers.validate.unique_groups import build_edge_reads, marks_of

__all__ = [
    "Findings",
    "build_edge_reads",
    "check_change",
    "marks_of",
    "validate_change",
    "validate_ends",
]

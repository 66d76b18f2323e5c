"""One validator for every write: the rules of the schema, checked on the image after the write.

In: a change of the graph and what is committed. Out: the footprint of the look-ups that the answer
depends on. Guarantee: a change that passes leaves every rule of the schema true, provided that
nothing in the footprint changes before it is committed; one that fails is refused with its first
violations, in the order of the checks, and with how many there are.

    validation    the order of the checks
    findings      violations, collected and counted
    values        required and finite values; enums, ranges and patterns
    groups        what has to be unique: keys and `@unique`, as columns
    uniqueness    a tuple held twice in a batch, in the image, or by a committed entity
    image         who exists after the write, and who ends
    references    edges whose ends exist, and no edge left behind at a node that ends
    cardinality   the number of edges of every source that was touched
    reads         the look-ups, as a footprint
    marks         what changed entities hold that another write may have looked up, and the reads
                  of edge ends that cascades make
"""

from omnigraph.writers.validate.change_validation import check_change, validate_change
from omnigraph.writers.validate.findings import Findings
from omnigraph.writers.validate.unique_groups import build_edge_reads, marks_of

__all__ = ["Findings", "build_edge_reads", "check_change", "marks_of", "validate_change"]

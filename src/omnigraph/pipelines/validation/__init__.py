"""Everything that is wrong with a definition, found at once: what is written, and what it means.

In: the path of a definition. Out: its problems by their places, and notes about what could not be
looked at. Guarantee: no check waits for another to pass, and nothing is read but definitions,
schemas and the headers of files on this machine.

    whole          fields, kinds, names, schedules, secrets that are spelled out; types and
                   properties that targets do not have or cannot hold; then what Spark finds
    expressions    what Spark's parser cannot read, columns that a source does not have, and
                   values of a wrong type, if columns are known
"""

from omnigraph.pipelines.validation.expressions import LazySparkSession
from omnigraph.pipelines.validation.whole import (
    ValidationReport,
    find_catalog,
    make_resolver,
    validate_all,
    validate_definition,
    validate_pipeline,
)

__all__ = [
    "LazySparkSession",
    "ValidationReport",
    "find_catalog",
    "make_resolver",
    "validate_all",
    "validate_definition",
    "validate_pipeline",
]

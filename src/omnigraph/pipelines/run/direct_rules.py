"""Which rules of a target need no Spark SQL, and the ranges of files that they map.

A rule that is compiled maps records inside the tasks of the load, which read each file once for all
such rules, with the columns that these need. All other rules are frames of Spark. Both give the
same rows and the same rejects.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from omnigraph.bulk.mapped_records import MappedRange
from omnigraph.bulk.splits import FileRange, Format
from omnigraph.pipelines.config.definition import FileSource, MappingRule, RecordMapping, Source
from omnigraph.pipelines.mapping.arrow_rules import ArrowRule, compile_rule
from omnigraph.pipelines.mapping.mapping_checks import fits_property
from omnigraph.pipelines.mapping.mapping_sql import build_steps
from omnigraph.pipelines.mapping.row_guards import RowGuard
from omnigraph.pipelines.sources import SourceState
from omnigraph.pipelines.sources.record_readers import plan_readers, read_column_types
from omnigraph.schema.catalog import Catalog

# The name of rows that are not in a file, in places that are never shown.
_ROWS = "rows"


@dataclass(frozen=True, slots=True)
class DirectRules:
    """What is read without Spark: ranges of files, and the rules that they are for by number."""

    ranges: tuple[FileRange, ...] = ()
    rules: frozenset[int] = frozenset()
    # Sources whose unreadable records are reported by one of these rules.
    reported: frozenset[str] = frozenset()


def plan_direct_rules(
    mapped: RecordMapping,
    catalog: Catalog,
    sources: Mapping[str, tuple[Source, SourceState]],
) -> DirectRules:
    """The rules of a target that are compiled, with what they read."""
    ranges: list[FileRange] = []
    direct: set[int] = set()
    reported: set[str] = set()
    for number, (name, (source, state)) in enumerate(sources.items()):
        rules = _list_rules(mapped, name, is_first=not number)
        compiler = _RuleCompiler(mapped, catalog, name, number)
        found = compiler.compile_rules(rules, source, state)
        planned = list(_plan_ranges(name, state, list(found.values()), compiler))
        if not planned:
            # Without a record there are only columns, which a frame has too.
            continue
        ranges += planned
        direct |= found.keys()
        if min(found) == min(rules):
            reported.add(name)
    return DirectRules(tuple(ranges), frozenset(direct), frozenset(reported))


def _list_rules(mapped: RecordMapping, source: str, *, is_first: bool) -> dict[int, MappingRule]:
    """The rules over a source, by number; those that name none are over the first."""
    return {
        number: rule
        for number, rule in enumerate(mapped.rules)
        if rule.source == source or (rule.source is None and is_first)
    }


@dataclass
class _RuleCompiler:
    """Compiles the rules over one source."""

    mapped: RecordMapping
    catalog: Catalog
    source: str
    number: int
    types: Mapping[str, pa.DataType] = field(default_factory=dict)

    def compile_rules(
        self, rules: Mapping[int, MappingRule], source: Source, state: SourceState
    ) -> dict[int, ArrowRule]:
        """Those of the rules that need no Spark."""
        if not rules or not isinstance(source, FileSource) or state.is_empty:
            return {}
        types = read_column_types(source, state.listing)
        if types is None:
            return {}
        self.types = types
        found = {
            number: self._compile_rule(rule, is_first=number == min(rules))
            for number, rule in rules.items()
        }
        direct = {number: rule for number, rule in found.items() if rule is not None}
        # Spark numbers the records of these files in another way.
        is_split = len(direct) < len(rules) and state.listing.format != "csv"
        return {} if is_split else direct

    def _compile_rule(self, rule: MappingRule, *, is_first: bool) -> ArrowRule | None:
        steps = build_steps(rule, self.catalog)
        guard = RowGuard(steps.type_name, self.source, self.mapped.file, record="")
        found = compile_rule(
            steps, self.types, guard, source=self.number, reports_unreadable=is_first
        )
        if found is None:
            return None
        nodes, edges = self.catalog.nodes, self.catalog.edges
        type_ = edges[steps.type_name] if steps.is_edge else nodes[steps.type_name]
        for column in found.columns:
            property_ = type_.properties.get(column.name)
            if property_ is not None and not fits_property(column.value.type, property_.type):
                return None
        return found


def _plan_ranges(
    name: str, state: SourceState, rules: Sequence[ArrowRule], compiler: _RuleCompiler
) -> Iterator[FileRange]:
    """The ranges of each rule in turn, as if its rows had been written for it."""
    if not rules:
        return
    wanted = sorted(frozenset[str]().union(*(rule.wanted for rule in rules)))
    readers = plan_readers(name, state.listing, {name: compiler.types[name] for name in wanted})
    for rule in rules:
        kind = "edge" if rule.is_edge else "node"
        for each in readers:
            yield FileRange(
                each.file,
                Format.ARROW,
                _ROWS,
                f"{kind}:{rule.guard.type_name}",
                rows=each.rows,
                mapped=MappedRange(each.reader, rule),
            )

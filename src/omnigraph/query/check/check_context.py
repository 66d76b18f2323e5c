"""The state that all parts of the checker share: the catalog, parameters and diagnostics."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice

from omnigraph.lang.diagnostics import Collector
from omnigraph.lang.lexer import Mode
from omnigraph.lang.quoting import sanitize_text
from omnigraph.lang.source_text import Span
from omnigraph.lang.spellcheck import CANDIDATES_MAX
from omnigraph.query.typed_reads import EdgeStep
from omnigraph.query.typed_tree import ANONYMOUS_PREFIX, STAGE_PREFIX
from omnigraph.schema.catalog import Catalog
from omnigraph.schema.property_types import PropertyType


@dataclass(slots=True)
class CheckContext:
    """The state of one check; a parameter whose declaration is wrong has no type."""

    catalog: Catalog
    collector: Collector
    mode: Mode
    parameters: dict[str, PropertyType | None] = field(default_factory=dict)
    # The values that the stage before carried to the clauses under check.
    carried_values: frozenset[str] = frozenset()
    errors: int = 0
    # The variables of blocks that have ended, which messages distinguish from misspelt ones.
    block_variables: set[str] = field(default_factory=set)
    # The edge types that join two node types, found once: a schema may have very many.
    joining_steps: dict[tuple[str, str], tuple[EdgeStep, ...]] = field(default_factory=dict)
    _anonymous: int = 0
    _stages: int = 0
    _reported: set[tuple[str, str]] = field(default_factory=set)

    @property
    def is_strict(self) -> bool:
        """Whether old forms are refused."""
        return self.mode is Mode.STRICT

    def report_error(self, code: str, span: Span, message: str, *, hint: str | None = None) -> None:
        """Report something that makes the query unusable."""
        self.errors += 1
        self.collector.report_error(code, span, message, hint=hint)

    def report_deprecated(
        self, codes: tuple[str, str], span: Span, message: str, *, hint: str | None = None
    ) -> None:
        """Report an old form: the first code as an error when strict, else the second to warn."""
        refusal, warning = codes
        if self.is_strict:
            self.report_error(refusal, span, message, hint=hint)
        else:
            self.collector.report_warning(warning, span, message, hint=hint)

    def is_first(self, topic: str, name: str) -> bool:
        """Whether nothing was said about this name under this topic before; now it was."""
        is_first = (topic, name) not in self._reported
        self._reported.add((topic, name))
        return is_first

    def suggest_similar(self, word: str, candidates: Iterable[str]) -> str | None:
        """A "did you mean" for an unknown name."""
        return self.collector.suggest_similar(word, islice(candidates, CANDIDATES_MAX))

    def is_value(self, name: str) -> bool:
        """Whether a variable is a parameter, or another name of a value."""
        return name in self.parameters or name in self.carried_values

    def make_anonymous_name(self) -> str:
        """A variable name that no text can spell."""
        self._anonymous += 1
        return f"{ANONYMOUS_PREFIX}{self._anonymous}"

    def make_stage_name(self) -> str:
        """The variable of the rows of a stage, which no text can spell."""
        self._stages += 1
        return f"{STAGE_PREFIX}{self._stages}"

    def source_text_of(self, span: Span) -> str:
        """The text as written at a place, cut to a readable length."""
        return sanitize_text(" ".join(self.collector.source.text[span.start : span.end].split()))

"""The state that all parts of the checker share: the catalog, parameters and diagnostics."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING

from omnigraph.lang.diagnostics import Collector
from omnigraph.lang.lexer import Mode
from omnigraph.lang.quoting import sanitize_text
from omnigraph.lang.source_text import Span
from omnigraph.lang.spellcheck import CANDIDATES_MAX
from omnigraph.query import ast, typed_tree
from omnigraph.query.typed_reads import EdgeStep
from omnigraph.query.typed_tree import ANONYMOUS_PREFIX, STAGE_PREFIX, RecordParameter
from omnigraph.schema.catalog import Catalog
from omnigraph.schema.property_types import PropertyType

if TYPE_CHECKING:
    from omnigraph.query.check.variable_scope import Scope

CheckBlock = Callable[["CheckContext", "Scope", ast.BlockValue], typed_tree.Expr | None]
CheckScore = Callable[["CheckContext", "Scope", ast.Nearest | ast.Bm25], typed_tree.Expr | None]
CheckPredicate = Callable[["CheckContext", "Scope", ast.TextPredicate], typed_tree.Expr | None]


def refuse_block(context: CheckContext, _scope: Scope, block: ast.BlockValue) -> None:
    """Report a block where there are no variables that it could be about."""
    context.report_error("T44", block.span, "a block cannot stand here")


def refuse_predicate(
    context: CheckContext, _scope: Scope, predicate: ast.TextPredicate
) -> typed_tree.Expr | None:
    """Report a text predicate where there are no variables that it could be about."""
    context.report_error("T44", predicate.span, "a search predicate cannot stand here")
    return None


def refuse_score(
    context: CheckContext, _scope: Scope, call: ast.Nearest | ast.Bm25
) -> typed_tree.Expr | None:
    """Report a score where there are no variables that it could be about."""
    context.report_error("T44", call.span, "a score cannot stand here")
    return None


@dataclass(slots=True)
class CheckContext:
    """The state of one check; a parameter whose declaration is wrong has no type."""

    catalog: Catalog
    collector: Collector
    mode: Mode
    parameters: dict[str, PropertyType | None] = field(default_factory=dict)
    # The parameters with lists of records, which only `for` reads.
    records: dict[str, RecordParameter | None] = field(default_factory=dict)
    errors: int = 0
    # The variables of blocks that have ended, which messages distinguish from misspelt ones.
    block_variables: set[str] = field(default_factory=set)
    # The variables of `let` and `for`, which no constant reads.
    value_variables: set[str] = field(default_factory=set)
    # The edge types that join two node types, found once: a schema may have very many.
    joining_steps: dict[tuple[str, str], tuple[EdgeStep, ...]] = field(default_factory=dict)
    # The checker of blocks that stand in expressions, which are checked before blocks are.
    check_block: CheckBlock = refuse_block
    # The checker of text predicates in expressions, whose own arguments are expressions.
    check_predicate: CheckPredicate = refuse_predicate
    # The same for scores that are values.
    check_score: CheckScore = refuse_score
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

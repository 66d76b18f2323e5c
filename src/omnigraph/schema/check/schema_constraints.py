"""The constraints of one type, from its properties and its body."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from typing import assert_never

import re2

from omnigraph.lang.diagnostics import Applicability, Collector, Edit, Suggestion
from omnigraph.lang.lexer import Mode
from omnigraph.lang.quoting import sanitize_text
from omnigraph.lang.source_text import Span
from omnigraph.schema import ast
from omnigraph.schema.catalog import (
    SOURCE,
    TARGET,
    Check,
    Condition,
    ConstraintKind,
    Constraints,
    Range,
)
from omnigraph.schema.check.property_drafts import PropertyDraft
from omnigraph.schema.expression_tokens import EXPRESSION_WORDS
from omnigraph.schema.property_types import (
    EnumType,
    ListType,
    PropertyType,
    Scalar,
    ScalarType,
    VectorType,
)
from omnigraph.schema.schema_parser import NOT_ON_EDGES
from omnigraph.schema.schema_shape import canonicalize_members

_ENDS = {"src": SOURCE, "dst": TARGET}


@dataclass(frozen=True, slots=True)
class ConstraintScope:
    """The type whose constraints are checked, and what may be missing from it."""

    name: str
    drafts: Mapping[str, PropertyDraft]
    mode: Mode
    is_edge: bool
    # Words that a grammar error hides, and whether the properties of an interface are unknown.
    lost: Container[str] = ()
    is_partial: bool = False

    def may_declare(self, name: str) -> bool:
        """Whether a name that seems unknown may have been declared."""
        return self.is_partial or name in self.lost


def check_constraints(
    scope: ConstraintScope, members: Sequence[ast.Member], collector: Collector
) -> Constraints:
    """The constraints of a type; spellings on a property and in the body are merged."""
    checker = _ConstraintChecker(scope, collector)
    for draft in scope.drafts.values():
        checker.add_property(draft)
    for member in members:
        if isinstance(member, ast.Constraint):
            checker.add_body(member)
    return checker.build_constraints()


def check_embeds(scope: ConstraintScope, collector: Collector) -> None:
    """Refuse `@embed` on anything but a vector, and sources that are not text of the same node."""
    for draft in scope.drafts.values():
        embed = draft.meant.embed
        if embed is None:
            continue
        span = draft.span_of("embed")
        if draft.has_type and not isinstance(draft.meant.type.value, VectorType):
            message = f"{draft.path}: @embed needs a Vector property, not {draft.meant.type}"
            collector.report_error("S019", span, message)
        source = scope.drafts.get(embed.source)
        if source is None:
            if not scope.may_declare(embed.source):
                unknown = sanitize_text(embed.source)
                message = f"@embed on {draft.path} references unknown property '{unknown}'"
                hint = collector.suggest_similar(embed.source, scope.drafts)
                collector.report_error("S019", span, f"{message} of node '{scope.name}'", hint=hint)
        elif source.has_type and source.meant.type.scalar is not Scalar.STRING:
            message = (
                f"{draft.path}: the @embed source '{sanitize_text(embed.source)}' must be a String"
            )
            collector.report_error("S019", span, f"{message}, not {source.meant.type}")


@dataclass(slots=True)
class _ConstraintChecker:
    scope: ConstraintScope
    collector: Collector
    keys: list[tuple[str, ...]] = field(default_factory=list)
    # Groups by their members, so that one group in two orders is one group.
    groups: dict[tuple[ConstraintKind, frozenset[str]], tuple[str, ...]] = field(
        default_factory=dict
    )
    ranges: dict[Range, None] = field(default_factory=dict)
    checks: dict[Check, None] = field(default_factory=dict)
    conditions: dict[Condition, None] = field(default_factory=dict)
    body: dict[tuple[ConstraintKind, tuple[str, ...]], None] = field(default_factory=dict)

    def build_constraints(self) -> Constraints:
        return Constraints(
            key=self.keys[0] if self.keys else None,
            uniques=self._list_groups(ConstraintKind.UNIQUE),
            indexes=self._list_groups(ConstraintKind.INDEX),
            ranges=tuple(self.ranges),
            checks=tuple(self.checks),
            conditions=tuple(self.conditions),
            together=self._list_groups(ConstraintKind.TOGETHER),
            body=tuple(self.body),
        )

    def _list_groups(self, kind: ConstraintKind) -> tuple[tuple[str, ...], ...]:
        return tuple(members for (found, _), members in self.groups.items() if found is kind)

    def add_property(self, draft: PropertyDraft) -> None:
        for kind in sorted(draft.meant.property_constraints):
            if kind is ConstraintKind.KEY and self.scope.is_edge:
                continue
            span = draft.span_of(kind)
            self._check_fit(kind, draft, span)
            self._add(kind, (draft.name,), span)

    def add_body(self, constraint: ast.Constraint) -> None:
        kind = ConstraintKind(constraint.name.text)
        match kind:
            case ConstraintKind.RANGE | ConstraintKind.CHECK:
                self._add_value_rule(kind, constraint)
            case ConstraintKind.KEY | ConstraintKind.UNIQUE | ConstraintKind.INDEX:
                members = [self._check_member(kind, argument) for argument in constraint.arguments]
                known = tuple(dict.fromkeys(member for member in members if member))
                if len(known) == len(members) or kind is not ConstraintKind.KEY:
                    self._add_group(kind, known, constraint)
                elif None not in members:
                    self._report_error(
                        "S016", constraint.span, "@key names a member more than once"
                    )
            case ConstraintKind.TOGETHER:
                self._add_together(constraint)
            case _:
                assert_never(kind)

    def _add_together(self, constraint: ast.Constraint) -> None:
        """Two properties or more; the ends of an edge are one value anyway, and keys stay."""
        kind = ConstraintKind.TOGETHER
        members = [self._check_member(kind, argument) for argument in constraint.arguments]
        known = tuple(dict.fromkeys(member for member in members if member))
        if any(member.startswith("@") for member in known):
            self._report_error("S016", constraint.span, "@together lists properties, not ends")
        elif len(known) == len(members):
            self._add_group(kind, known, constraint)
        elif None not in members:
            message = "@together names a property more than once"
            self._report_error("S016", constraint.span, message)

    def _add_group(
        self, kind: ConstraintKind, members: tuple[str, ...], constraint: ast.Constraint
    ) -> None:
        if kind is ConstraintKind.KEY and self.scope.is_edge:
            if not {SOURCE, TARGET} <= set(members):
                message = "an edge @key must list both @src and @dst"
                self._report_error("S021", constraint.span, message)
            others = sorted(set(members) - {SOURCE, TARGET})
            members = (SOURCE, TARGET, *others)
        if members:
            self._add(kind, members, constraint.span)
            self.body[kind, members] = None

    def _add(self, kind: ConstraintKind, members: tuple[str, ...], span: Span) -> None:
        if kind is not ConstraintKind.KEY:
            self.groups.setdefault((kind, frozenset(members)), members)
            return
        if self.keys:
            hint = "list all key properties in one constraint: @key(a, b)"
            self._report_error("S011", span, "multiple @key, only one is supported", hint=hint)
        self.keys.append(members if self.scope.is_edge else tuple(sorted(members)))

    # ---- members ----

    def _check_member(
        self, constraint: ConstraintKind, argument: ast.ConstraintArgument
    ) -> str | None:
        match argument:
            case ast.Name(text):
                return self._check_named_member(constraint, text, argument.span)
            case ast.SystemField(name):
                if self.scope.is_edge and name in _ENDS:
                    return _ENDS[name]
                ends = "only edges have @src and @dst"
                if self.scope.is_edge:
                    ends = "only @src and @dst can be"
                self._report_error(
                    "S016", argument.span, f"@{name} cannot be in a constraint: {ends}"
                )
                return None
            case ast.Literal() | ast.RangeBounds() | ast.ExpressionText():
                message = f"@{constraint}: expected property name in constraint"
                self._report_error("S016", argument.span, message)
                return None
            case _ as unreachable:
                assert_never(unreachable)

    def _check_named_member(self, constraint: ConstraintKind, text: str, span: Span) -> str | None:
        draft = self.scope.drafts.get(text)
        if draft is not None:
            self._check_fit(constraint, draft, span)
            return text
        if self.scope.is_edge and text in _ENDS:
            self._report_bare_end(text, span)
            return _ENDS[text]
        if not self.scope.may_declare(text):
            message = f"@{constraint} references unknown property '{text}'"
            hint = self.collector.suggest_similar(text, self.scope.drafts)
            self._report_error("S013", span, message, hint=hint)
        return None

    def _report_bare_end(self, text: str, span: Span) -> None:
        message = f"{self.scope.name}: bare '{text}' stands for the end of the edge"
        hint = f"write @{text}"
        edit = Edit(span, f"@{text}")
        suggestion = Suggestion(Applicability.MACHINE_APPLICABLE, (edit,))
        is_strict = self.scope.mode is Mode.STRICT
        report = self.collector.report_error if is_strict else self.collector.report_warning
        report("S022", span, message, hint=hint, suggestion=suggestion)

    def _check_fit(self, constraint: ConstraintKind, draft: PropertyDraft, span: Span) -> None:
        reason = find_type_mismatch(constraint, draft.meant.type) if draft.has_type else None
        if reason:
            code = "S012" if constraint is ConstraintKind.KEY else "S014"
            self.collector.report_error(code, span, f"{draft.path}: {reason}")

    # ---- ranges and checks ----

    def _add_value_rule(self, kind: ConstraintKind, constraint: ast.Constraint) -> None:
        if self.scope.is_edge and self.scope.mode is Mode.STRICT:
            self._report_error("S015", constraint.span, f"@{kind} is {NOT_ON_EDGES}")
            return
        target, *others = constraint.arguments
        if isinstance(target, ast.ExpressionText):
            self._add_condition(target)
            return
        member = self._check_member(kind, target)
        match kind, others:
            case ConstraintKind.RANGE, [ast.RangeBounds(low, high)]:
                if member:
                    self.ranges[Range(member, low, high)] = None
            case ConstraintKind.CHECK, [ast.Literal(str(pattern)) as literal]:
                self._check_pattern(pattern, literal.span)
                if member:
                    self.checks[Check(member, pattern)] = None
            case ConstraintKind.RANGE, _:
                message = "bounds expected: write @range(property, low..high)"
                self._report_error("S016", constraint.span, message)
            case _:
                message = 'pattern expected: write @check(property, "pattern")'
                self._report_error("S016", constraint.span, message)

    def _add_condition(self, expression: ast.ExpressionText) -> None:
        """What an expression reads; whether it is a condition is for the language of queries."""
        drafts = self.scope.drafts
        for name in expression.names:
            is_known = name in drafts or name in EXPRESSION_WORDS
            if not is_known and not self.scope.may_declare(name):
                message = f"@check references unknown property '{name}'"
                hint = self.collector.suggest_similar(name, drafts)
                self._report_error("S013", expression.span, message, hint=hint)
        words = (*expression.names, *expression.labels)
        members = canonicalize_members(name for name in words if name in drafts)
        self.conditions[Condition(expression.text, members)] = None

    def _check_pattern(self, pattern: str, span: Span) -> None:
        options = re2.Options()
        options.log_errors = False
        try:
            re2.compile(pattern, options=options)
        except re2.error as failure:
            reason = failure.args[0].decode("utf-8", "replace")
            message = f"@check: the pattern is not a regular expression: {sanitize_text(reason)}"
            hint = "patterns are RE2: no look-around, no back-references"
            self._report_error("S020", span, message, hint=hint)

    def _report_error(
        self, code: str, span: Span, message: str, *, hint: str | None = None
    ) -> None:
        self.collector.report_error(code, span, f"{self.scope.name}: {message}", hint=hint)


def find_type_mismatch(constraint: ConstraintKind, type_: PropertyType) -> str | None:
    """Why a constraint does not fit a type, or None when it does."""
    match constraint:
        case ConstraintKind.KEY:
            if type_.is_nullable:
                return f"a nullable property ({type_}) cannot be part of a key"
            return _find_shape_mismatch(type_, "be part of a key", takes_vectors=False)
        case ConstraintKind.UNIQUE:
            return _find_shape_mismatch(type_, "be unique", takes_vectors=False)
        case ConstraintKind.INDEX:
            return _find_shape_mismatch(type_, "be indexed", takes_vectors=True)
        case ConstraintKind.RANGE:
            return None if type_.is_numeric else f"@range needs a number, not {type_}"
        case ConstraintKind.TOGETHER:
            return None
        case ConstraintKind.CHECK:
            is_text = isinstance(type_.value, EnumType) or type_.value == ScalarType(Scalar.STRING)
            return None if is_text else f"@check needs a String or an enum, not {type_}"
        case _:
            assert_never(constraint)


def _find_shape_mismatch(type_: PropertyType, what: str, *, takes_vectors: bool) -> str | None:
    match type_.value:
        case ListType():
            return f"a list ({type_}) cannot {what}"
        case VectorType() if not takes_vectors:
            return f"a vector ({type_}) cannot {what}"
        case ScalarType(Scalar.BLOB):
            return f"a Blob cannot {what}"
        case _:
            return None

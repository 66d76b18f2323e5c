"""The merged schema as an edit of our text: what does not change keeps its comments."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import assert_never

from omnigraph.schema import ast
from omnigraph.schema.accepted_schema import TypeKey
from omnigraph.schema.merging.merged_tree import MemberKey, RebuiltType, member_key_of
from omnigraph.schema.merging.schema_sides import Side, Sides
from omnigraph.schema.schema_printer import (
    format_schema,
    header_end_of,
    members_of,
    print_declaration,
    print_header,
    print_member,
)


def merge_text(sides: Sides, types: Iterable[RebuiltType]) -> str:
    """Our text with the changes of theirs, or theirs if only they wrote another one."""
    merged = list(types)
    if sides.ours.source == sides.base.source and _is_complete(sides.theirs, merged):
        return sides.theirs.source
    if _is_complete(sides.ours, merged):
        return sides.ours.source
    return format_schema(_edit_text(sides, merged))


def _is_complete(side: Side, merged: list[RebuiltType]) -> bool:
    """Whether a text says everything already, in its own order."""
    written = [_content_of(each) for each in side.parsed.schema.declarations]
    return Counter(written) == Counter(_content_of(each.declaration) for each in merged)


def _content_of(declaration: ast.Declaration) -> Hashable:
    """What a declaration says, without an order."""
    members = Counter(
        replace(member, annotations=_sort_annotations(member.annotations))
        if isinstance(member, ast.Property)
        else member
        for member in members_of(declaration)
    )
    match declaration:
        case ast.Interface():
            header: ast.Declaration = replace(declaration, properties=())
        case ast.Node():
            annotations = _sort_annotations(declaration.annotations)
            header = replace(declaration, annotations=annotations, members=())
        case ast.Edge(cardinality=written):
            # A bound that bounds nothing says no more than none.
            bounds = None if written is None or _is_open(written) else written
            annotations = _sort_annotations(declaration.annotations)
            header = replace(declaration, cardinality=bounds, annotations=annotations, members=())
        case _ as unreachable:
            assert_never(unreachable)
    return header, frozenset(members.items())


def _is_open(cardinality: ast.Cardinality) -> bool:
    return cardinality.minimum == 0 and cardinality.maximum is None


def _sort_annotations(annotations: tuple[ast.Annotation, ...]) -> tuple[ast.Annotation, ...]:
    return tuple(sorted(annotations, key=lambda each: each.name.text))


def _edit_text(sides: Sides, merged: list[RebuiltType]) -> str:
    by_token = {each.token: each for each in merged}
    ours = _SourceText(sides.ours)
    edits: list[_Edit] = []
    for token, key in sides.ours.keys.items():
        declaration = sides.ours.declarations[key]
        if token not in by_token:
            edits.append(ours.cut_part(declaration))
        elif by_token[token].declaration != declaration:
            edits += _edit_declaration(sides, key, by_token[token])
    added = [each for each in merged if each.token not in sides.ours.keys]
    blocks = [
        _apply_edits(ours.text, edits),
        *(_format_added_type(sides.theirs, each) for each in added),
    ]
    return "\n\n".join(blocks)


@dataclass(frozen=True, slots=True)
class _Edit:
    """Another text for a range of characters."""

    start: int
    end: int
    text: str


class _SourceText:
    """The text of a side, where comments belong to what follows them or stands before them."""

    def __init__(self, side: Side) -> None:
        self.text = side.parsed.source.text
        self._comments = side.parsed.comments
        self._starts = [comment.start for comment in self._comments]

    def range_of(self, part: ast.Declaration | ast.Member) -> tuple[int, int]:
        """The range of a part with the comments right above it and after it."""
        return self._find_leading_start(part.span.start), self._find_trailing_end(part.span.end)

    def slice_text(self, part: ast.Declaration | ast.Member) -> str:
        """The text of a part, with its comments."""
        start, end = self.range_of(part)
        return self.text[start:end]

    def cut_part(self, part: ast.Declaration | ast.Member) -> _Edit:
        """The edit that removes a part, with its line if nothing else stands on it."""
        start, end = self.range_of(part)
        before = self.text[:start].rstrip(" \t")
        # Only whole lines: what follows on the same line must not meet a comment before it.
        if before.endswith("\n") and self.text[end : end + 1] in ("\n", ""):
            start = len(before) - 1
        return _Edit(start, end, "")

    def _find_leading_start(self, start: int) -> int:
        at = bisect_left(self._starts, start)
        for comment in reversed(self._comments[:at]):
            between = self.text[comment.end : start]
            if not comment.is_own_line or between.strip() or between.count("\n") > 1:
                break
            start = comment.start
        return start

    def _find_trailing_end(self, end: int) -> int:
        at = bisect_left(self._starts, end)
        for comment in self._comments[at:]:
            between = self.text[end : comment.start]
            if between.strip() or "\n" in between or "\n" in comment.text:
                break
            end = comment.end
        return end


def _edit_declaration(sides: Sides, key: TypeKey, merged: RebuiltType) -> Iterator[_Edit]:
    ours = _SourceText(sides.ours)
    old = sides.ours.declarations[key]
    kept = {member_key_of(sides.ours, key, member): member for member in members_of(old)}
    header = print_header(merged.declaration)
    added = "".join(
        f"{_format_added_member(sides.theirs, merged, each)}\n"
        for each in merged.members
        if each not in kept
    )
    has_body = header_end_of(old) < old.span.end
    if header != print_header(old) or (added and not has_body):
        body = f" {{\n{added}}}" if added and not has_body else ""
        yield _Edit(old.span.start, header_end_of(old), header + body)
    for each, member in kept.items():
        new = merged.members.get(each)
        if new is None:
            yield ours.cut_part(member)
        elif new != member:
            yield _Edit(member.span.start, member.span.end, print_member(new))
    if added and has_body:
        closing = old.span.end - 1
        is_own_line = ours.text[:closing].rstrip(" \t").endswith("\n")
        yield _Edit(closing, closing, added if is_own_line else "\n" + added)


def _format_added_member(theirs: Side, merged: RebuiltType, key: MemberKey) -> str:
    """The text of a member that comes from theirs, with their comments if they fit."""
    owner = theirs.keys[merged.token]
    new = merged.members[key]
    members = members_of(theirs.declarations[owner])
    old = next(each for each in members if member_key_of(theirs, owner, each) == key)
    text = _SourceText(theirs)
    start, end = text.range_of(old)
    before = text.text[start : old.span.start]
    after = text.text[old.span.end : end]
    return f"{before}{print_member(new)}{after}"


def _format_added_type(theirs: Side, merged: RebuiltType) -> str:
    """The text of a type that comes from theirs, with their comments if nothing else changes."""
    old = theirs.declarations[theirs.keys[merged.token]]
    if old == merged.declaration:
        return _SourceText(theirs).slice_text(old)
    return print_declaration(merged.declaration)


def _apply_edits(text: str, edits: Iterable[_Edit]) -> str:
    pieces, at = [], 0
    for edit in sorted(edits, key=lambda edit: (edit.start, edit.end)):
        pieces += [text[at : edit.start], edit.text]
        at = edit.end
    return "".join((*pieces, text[at:]))

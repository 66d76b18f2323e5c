"""Changes of commits: lines for people, and one JSON document; pages are not held in memory."""

from __future__ import annotations

import json
import sys
import textwrap
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from omnigraph.cli.views.output_streams import (
    align_columns,
    encode_json,
    format_time,
    print_document,
    print_json,
    print_lines,
)
from omnigraph.lang.quoting import escape_unprintable

if TYPE_CHECKING:
    from omnigraph import Commit
    from omnigraph.engine.entity_changes import EntityChange
    from omnigraph.engine.entity_history import EntityVersion
    from omnigraph.engine.feed import Block, Cause, ChangesPage, FeedPage

if TYPE_CHECKING:
    from omnigraph.engine import Diff

_STEP = "  "
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_PAGE_START = '<!doctype html><html><head><meta charset="utf-8"><title>diff</title></head><body>'
_INDENT = "    "


def print_commit(pages: Iterator[ChangesPage], *, is_json: bool) -> None:
    """What one commit changed, all pages as one answer."""
    first = next(pages)
    changes = _iter_changes(first, pages)
    if is_json:
        print_document(_encode_block(first.cause, changes, depth=0))
    else:
        print_lines(_format_block(first.cause, changes))


def print_poll(pages: Iterable[FeedPage], *, is_json: bool) -> None:
    """The blocks of a poll, all pages as one answer, and then its cursor."""
    if is_json:
        print_document(_encode_poll(pages))
    else:
        print_lines(_format_poll(pages))


def print_block(block: Block) -> None:
    """One block as a line of JSON, with the cursor after it if it is complete."""
    document = block.to_json()
    if block.cursor is not None:
        document["cursor"] = block.cursor
    is_utf8 = (getattr(sys.stdout, "encoding", None) or "").lower().replace("-", "") == "utf8"
    print_lines([json.dumps(document, ensure_ascii=not is_utf8, separators=(",", ":"))])


def format_version(version: EntityVersion, entity: EntityChange) -> Iterator[str]:
    """One version of an entity: its commit, and what differs."""
    yield _format_commit(version.commit)
    yield from (f"{_STEP}decided {each}" for each in _format_decisions(version.commit, None))
    yield from (f"{_STEP}{line}" for line in _format_change(entity))


def format_blame(blamed: dict[str, Commit | None], values: dict[str, object]) -> Iterator[str]:
    """The properties of an entity: the value, and the commit that gave it."""
    rows = [
        (
            name,
            _format_value(values.get(name)),
            "(cleaned up)" if commit is None else _format_commit(commit),
            "" if commit is None else ", ".join(_format_decisions(commit, name)),
        )
        for name, commit in sorted(blamed.items())
    ]
    yield from align_columns(rows)


def _format_decisions(commit: Commit, name: str | None) -> list[str]:
    """What a merge was given to decide on the entity, or on one property of it."""
    return [
        f"{each.take}{'' if each.property is None else f' of {each.property}'} in {each.kind}"
        for each in commit.decisions
        if name is None or each.property in (None, name)
    ]


def _iter_changes(first: ChangesPage, pages: Iterator[ChangesPage]) -> Iterator[EntityChange]:
    yield from first.changes
    for page in pages:
        yield from page.changes


def _iter_blocks(pages: Iterable[FeedPage], last: list[FeedPage]) -> Iterator[Block]:
    """The blocks of all pages; the last page is left in a list."""
    for page in pages:
        last[:] = [page]
        yield from page.blocks


# ---- for people ----


def _format_poll(pages: Iterable[FeedPage]) -> Iterator[str]:
    last: list[FeedPage] = []
    shown_commit = ""
    for block in _iter_blocks(pages, last):
        header = [] if block.cause.commit_id == shown_commit else [_format_cause(block.cause)]
        yield from header
        for change in block.changes:
            yield from _format_change(change)
        shown_commit = block.cause.commit_id
    yield f"cursor: {last[0].cursor}"
    yield f"caught up: {'yes' if last[0].caught_up else 'no'}"


def _format_block(cause: Cause, changes: Iterable[EntityChange]) -> Iterator[str]:
    yield _format_cause(cause)
    for change in changes:
        yield from _format_change(change)


def _format_cause(cause: Cause) -> str:
    time = _EPOCH + timedelta(microseconds=cause.authored_at)
    return _format_header(cause.commit_id, time, cause.branch, cause.actor)


def _format_commit(commit: Commit) -> str:
    line = _format_header(commit.id, commit.created_at, commit.branch, commit.actor)
    return line if commit.message is None else f"{line}  {escape_unprintable(commit.message)}"


def _format_header(commit: str, time: datetime, branch: str, actor: str | None) -> str:
    names = f"{escape_unprintable(branch)}  {escape_unprintable(actor or '-')}"
    return f"commit {commit}  {format_time(time)}  {names}"


def _format_change(change: EntityChange) -> Iterator[str]:
    from omnigraph.engine.diff.diff_format import format_change

    return format_change(change)


def _format_value(value: object) -> str:
    from omnigraph.engine.diff.diff_format import format_value

    return "" if value is None else format_value(value)


# ---- for programs ----


def _encode_poll(pages: Iterable[FeedPage]) -> Iterator[str]:
    last: list[FeedPage] = []
    yield "{"
    yield from _encode_array(
        "blocks", _iter_block_items(_iter_blocks(pages, last)), depth=1, end=","
    )
    yield f'{_STEP}"cursor": {encode_json(last[0].cursor)},'
    yield f'{_STEP}"caught_up": {encode_json(last[0].caught_up)}'
    yield "}"


def _iter_block_items(blocks: Iterator[Block]) -> Iterator[Iterable[str]]:
    """The lines of each commit's block, which may go on over several pages."""
    block = next(blocks, None)
    while block is not None:
        rest = _CommitChanges(block, blocks)
        yield _encode_block(block.cause, rest, depth=2)
        block = rest.following


class _CommitChanges:
    """The changes of one commit, from block to block; then the first block of the next one."""

    def __init__(self, block: Block, blocks: Iterator[Block]) -> None:
        self._block = block
        self._blocks = blocks
        self.following: Block | None = None

    def __iter__(self) -> Iterator[EntityChange]:
        yield from self._block.changes
        for block in self._blocks:
            if block.cause.commit_id != self._block.cause.commit_id:
                self.following = block
                return
            yield from block.changes


def _encode_block(cause: Cause, changes: Iterable[EntityChange], *, depth: int) -> Iterator[str]:
    outer, inner = _STEP * depth, _STEP * (depth + 1)
    yield f"{outer}{{"
    yield f'{inner}"cause": {_encode_indented(cause.to_json(), inner)},'
    items = (
        [_STEP * (depth + 2) + _encode_indented(each.to_json(), _STEP * (depth + 2))]
        for each in changes
    )
    yield from _encode_array("changes", items, depth=depth + 1, end="")
    yield f"{outer}}}"


def _encode_array(
    name: str, items: Iterable[Iterable[str]], *, depth: int, end: str
) -> Iterator[str]:
    """The lines of an array, as `json.dumps` writes it; each item is some lines itself."""
    indent, held = _STEP * depth, ""
    for item in items:
        yield f"{held}," if held else f'{indent}"{name}": ['
        held = ""
        for line in item:
            if held:
                yield held
            held = line
    if held:
        yield held
        yield f"{indent}]{end}"
    else:
        yield f'{indent}"{name}": []{end}'


def _encode_indented(document: object, indent: str) -> str:
    return textwrap.indent(encode_json(document), indent).removeprefix(indent)


def print_diff(diff: Diff, *, is_json: bool) -> None:
    """Every change."""
    if is_json:
        print_document(_encode_diff(diff))
    else:
        print_lines(diff.to_lines())


def print_summary(diff: Diff, *, is_json: bool) -> None:
    """The counts of each type and the changes of the schema."""
    if is_json:
        print_json(diff.header())
    else:
        print_lines(diff.to_lines(changes_max=0))


def print_page(diff: Diff) -> None:
    """Every change, as a page that needs nothing else."""
    print_lines([_PAGE_START])
    print_lines(diff.html_parts())
    print_lines(["</body></html>"])


def _encode_diff(diff: Diff) -> Iterator[str]:
    """The lines of the document of a diff, as `print_json` would print it."""
    header = encode_json(diff.header())
    yield header.removesuffix("\n}") + ","
    last = len(diff) - 1
    if last < 0:
        yield '  "changes": []'
    else:
        yield '  "changes": ['
        for number, change in enumerate(diff):
            text = textwrap.indent(encode_json(change.to_json()), _INDENT)
            yield text if number == last else f"{text},"
        yield "  ]"
    yield "}"

"""Changes of commits: lines for people, and one JSON document; pages are not held in memory."""

from __future__ import annotations

import json
import sys
import textwrap
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from omnigraph.cli.views.alignment import aligned
from omnigraph.cli.views.streams import json_text, print_document, print_lines, time_text
from omnigraph.diagnostics.shown import escaped

if TYPE_CHECKING:
    from omnigraph import Commit
    from omnigraph.engine.entity_change import EntityChange
    from omnigraph.engine.feed import Block, Cause, ChangesPage, FeedPage
    from omnigraph.engine.history import EntityVersion

_STEP = "  "
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def print_commit(pages: Iterator[ChangesPage], *, is_json: bool) -> None:
    """What one commit changed, all pages as one answer."""
    first = next(pages)
    changes = _changes(first, pages)
    if is_json:
        print_document(_block_document(first.cause, changes, depth=0))
    else:
        print_lines(_block_lines(first.cause, changes))


def print_poll(pages: Iterable[FeedPage], *, is_json: bool) -> None:
    """The blocks of a poll, all pages as one answer, and then its cursor."""
    if is_json:
        print_document(_poll_document(pages))
    else:
        print_lines(_poll_lines(pages))


def print_block(block: Block) -> None:
    """One block as a line of JSON, with the cursor behind it if it is complete."""
    document = block.to_json()
    if block.cursor is not None:
        document["cursor"] = block.cursor
    is_utf8 = (getattr(sys.stdout, "encoding", None) or "").lower().replace("-", "") == "utf8"
    print_lines([json.dumps(document, ensure_ascii=not is_utf8, separators=(",", ":"))])


def version_lines(version: EntityVersion, entity: EntityChange) -> Iterator[str]:
    """One version of an entity: its commit, and what differs."""
    yield _commit_line(version.commit)
    yield from (f"{_STEP}{line}" for line in _change_lines(entity))


def blame_lines(blamed: dict[str, Commit | None], values: dict[str, object]) -> Iterator[str]:
    """The properties of an entity: the value, and the commit that gave it."""
    rows = [
        (
            name,
            _value(values.get(name)),
            "(cleaned up)" if commit is None else _commit_line(commit),
        )
        for name, commit in sorted(blamed.items())
    ]
    yield from aligned(rows)


def _changes(first: ChangesPage, pages: Iterator[ChangesPage]) -> Iterator[EntityChange]:
    yield from first.changes
    for page in pages:
        yield from page.changes


def _blocks(pages: Iterable[FeedPage], last: list[FeedPage]) -> Iterator[Block]:
    """The blocks of all pages; the last page is left in a list."""
    for page in pages:
        last[:] = [page]
        yield from page.blocks


# ---- for people ----


def _poll_lines(pages: Iterable[FeedPage]) -> Iterator[str]:
    last: list[FeedPage] = []
    told = ""
    for block in _blocks(pages, last):
        header = [] if block.cause.commit_id == told else [_cause_line(block.cause)]
        yield from header
        for change in block.changes:
            yield from _change_lines(change)
        told = block.cause.commit_id
    yield f"cursor: {last[0].cursor}"
    yield f"caught up: {'yes' if last[0].caught_up else 'no'}"


def _block_lines(cause: Cause, changes: Iterable[EntityChange]) -> Iterator[str]:
    yield _cause_line(cause)
    for change in changes:
        yield from _change_lines(change)


def _cause_line(cause: Cause) -> str:
    time = _EPOCH + timedelta(microseconds=cause.authored_at)
    return _line(cause.commit_id, time, cause.branch, cause.actor)


def _commit_line(commit: Commit) -> str:
    line = _line(commit.id, commit.created_at, commit.branch, commit.actor)
    return line if commit.message is None else f"{line}  {escaped(commit.message)}"


def _line(commit: str, time: datetime, branch: str, actor: str | None) -> str:
    return f"commit {commit}  {time_text(time)}  {escaped(branch)}  {escaped(actor or '-')}"


def _change_lines(change: EntityChange) -> Iterator[str]:
    from omnigraph.engine.diff.lines import change_lines  # noqa: PLC0415 — loads the engine

    return change_lines(change)


def _value(value: object) -> str:
    from omnigraph.engine.diff.lines import value_text  # noqa: PLC0415 — loads the engine

    return "" if value is None else value_text(value)


# ---- for programs ----


def _poll_document(pages: Iterable[FeedPage]) -> Iterator[str]:
    last: list[FeedPage] = []
    yield "{"
    yield from _array("blocks", _block_items(_blocks(pages, last)), depth=1, end=",")
    yield f'{_STEP}"cursor": {json_text(last[0].cursor)},'
    yield f'{_STEP}"caught_up": {json_text(last[0].caught_up)}'
    yield "}"


def _block_items(blocks: Iterator[Block]) -> Iterator[Iterable[str]]:
    """The lines of each commit's block, which may go on over several pages."""
    block = next(blocks, None)
    while block is not None:
        rest = _Rest(block, blocks)
        yield _block_document(block.cause, rest, depth=2)
        block = rest.following


class _Rest:
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


def _block_document(cause: Cause, changes: Iterable[EntityChange], *, depth: int) -> Iterator[str]:
    outer, inner = _STEP * depth, _STEP * (depth + 1)
    yield f"{outer}{{"
    yield f'{inner}"cause": {_indented(cause.to_json(), inner)},'
    items = (
        [_STEP * (depth + 2) + _indented(each.to_json(), _STEP * (depth + 2))] for each in changes
    )
    yield from _array("changes", items, depth=depth + 1, end="")
    yield f"{outer}}}"


def _array(name: str, items: Iterable[Iterable[str]], *, depth: int, end: str) -> Iterator[str]:
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


def _indented(document: object, indent: str) -> str:
    return textwrap.indent(json_text(document), indent).removeprefix(indent)

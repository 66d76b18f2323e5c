"""Prints text: quoting, and comments between the printed lines."""

from __future__ import annotations

import re
from bisect import bisect_left

from omnigraph.lang.lexer import Comment

# What may stand between a printed range and a comment that still belongs to its line.
_LINE_REST = re.compile(r"[ \t\r,;{]*")
_OPENERS = ("{", "(", "[")
_CLOSERS = ("}", ")", "]")
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def quote_string(value: str) -> str:
    """A string literal; line ends and tabs are escaped."""
    return '"' + "".join(_ESCAPES.get(character, character) for character in value) + '"'


class CommentedLines:
    """Lines being printed, with the comments of the source put back where they stood.

    Call `line` with the source range of what the line prints: comments that stood before the range
    go above it, a comment that followed on the same source line goes after it. With `keep_blanks`,
    a blank line of the source stays one blank line, except beside the braces of a block.
    """

    def __init__(
        self, text: str, comments: tuple[Comment, ...], *, keep_blanks: bool = False
    ) -> None:
        self._text = text
        self._keep_blanks = keep_blanks
        self._starts = [comment.start for comment in comments]
        self._comments = list(reversed(comments))
        self._lines: list[str] = []
        self._printed_to = 0
        self._is_block_start = True

    def add_line(self, content: str, *, indent: int, start: int, end: int) -> None:
        """Print one line that stands for source characters `start` to `end`."""
        self.add_comments_before(start, indent=indent)
        if not content.startswith(_CLOSERS):
            self._keep_blank(start)
        self._printed_to = max(self._printed_to, end)
        trailing: list[str] = []
        while self._comments and self._is_trailing():
            comment = self._comments.pop()
            trailing.append(comment.text.rstrip())
            self._printed_to = max(self._printed_to, comment.end)
            # Nothing can follow a line comment on its line.
            if comment.text.startswith("//"):
                break
        self._lines.append(("  " * indent + " ".join([content, *trailing])).rstrip())
        self._is_block_start = content.endswith(_OPENERS)

    def add_comments_before(self, offset: int, *, indent: int) -> None:
        """Print the comments that stand before an offset and have not been printed."""
        while self._comments and self._comments[-1].start < offset:
            comment = self._comments.pop()
            self._keep_blank(comment.start)
            self._lines.extend(_reindent_comment(comment, self._text, "  " * indent))
            self._printed_to = max(self._printed_to, comment.end)
            self._is_block_start = False

    def has_comment(self, start: int, end: int) -> bool:
        """Whether a comment of the source starts between two offsets."""
        return bisect_left(self._starts, start) < bisect_left(self._starts, end)

    @property
    def has_more_comments(self) -> bool:
        """Whether comments are left that stand after everything printed."""
        return bool(self._comments)

    def add_blank(self) -> None:
        """Print one blank line, unless there is one already or nothing precedes it."""
        if self._lines and self._lines[-1]:
            self._lines.append("")

    def finish(self) -> str:
        """The whole text, with what comments are left, ending in one line end."""
        self.add_comments_before(len(self._text) + 1, indent=0)
        text = "\n".join(self._lines).strip("\n")
        return text + "\n" if text else ""

    def _keep_blank(self, offset: int) -> None:
        if not self._keep_blanks or self._is_block_start:
            return
        if self._text.count("\n", self._printed_to, offset) > 1:
            self.add_blank()

    def _is_trailing(self) -> bool:
        comment = self._comments[-1]
        if comment.is_own_line or "\n" in comment.text:
            return False
        if comment.start < self._printed_to:
            return True
        rest = _LINE_REST.match(self._text, self._printed_to)
        return rest is not None and rest.end() == comment.start


def _reindent_comment(comment: Comment, text: str, indent: str) -> list[str]:
    first, *others = comment.text.split("\n")
    if not others:
        return [(indent + first).rstrip()]
    column = comment.start - (text.rfind("\n", 0, comment.start) + 1)
    lines = [indent + first]
    for line in others:
        body = line.lstrip()
        shift = max(0, len(line) - len(body) - column)
        lines.append(indent + " " * shift + body)
    return [line.rstrip() for line in lines]

"""Writing text back: quoting, and laying comments between the printed lines."""

from __future__ import annotations

from omnigraph.syntax.tokens import Comment

_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def quote(value: str) -> str:
    """A string literal; line ends and tabs are escaped."""
    return '"' + "".join(_ESCAPES.get(character, character) for character in value) + '"'


class CommentedLines:
    """Lines being printed, with the comments of the source put back where they stood.

    Call `line` with the source range of what the line prints: comments that stood before the range
    go above it, a comment that followed on the same source line goes behind it.
    """

    def __init__(self, text: str, comments: tuple[Comment, ...]) -> None:
        self._text = text
        self._comments = list(reversed(comments))
        self._lines: list[str] = []

    def line(self, content: str, *, indent: int, start: int, end: int) -> None:
        """Print one line that stands for source characters `start` to `end`."""
        self.comments_before(start, indent=indent)
        trailing = []
        while self._comments and self._trails(end):
            trailing.append(self._comments.pop().text.rstrip())
        shown = "  " * indent + " ".join([content, *trailing])
        self._lines.append(shown.rstrip())

    def comments_before(self, offset: int, *, indent: int) -> None:
        """Print the comments that stand before an offset and have not been printed."""
        while self._comments and self._comments[-1].start < offset:
            comment = self._comments.pop()
            self._lines.extend(
                ("  " * indent + part.strip()).rstrip() for part in comment.text.splitlines()
            )

    def blank(self) -> None:
        """Print one blank line, unless there is one already or nothing precedes it."""
        if self._lines and self._lines[-1]:
            self._lines.append("")

    def finish(self) -> str:
        """The whole text, with what comments are left, ending in one line end."""
        self.comments_before(len(self._text) + 1, indent=0)
        text = "\n".join(self._lines).strip("\n")
        return text + "\n" if text else ""

    def _trails(self, end: int) -> bool:
        comment = self._comments[-1]
        if comment.start < end:
            return not comment.is_own_line and "\n" not in comment.text
        return not comment.is_own_line and "\n" not in self._text[end : comment.end]

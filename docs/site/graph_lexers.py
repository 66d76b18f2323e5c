"""Colours for `pg` and `gq` blocks, and names for the other languages of the pages."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from pygments.lexer import RegexLexer, words
from pygments.lexers.data import JsonLexer
from pygments.lexers.special import TextLexer
from pygments.token import Comment, Keyword, Name, Number, Punctuation, String, Text

if TYPE_CHECKING:
    from sphinx.application import Sphinx

_WORDS = {
    "pg": ("interface", "node", "edge", "implements", "enum", "merge"),
    "gq": (
        *("query", "match", "return", "order", "limit", "offset", "with", "having", "let", "as"),
        *("not", "and", "or", "is", "null", "in", "optional", "exists", "each", "count", "case"),
        *("when", "then", "else", "end", "asc", "desc", "distinct", "union", "all", "intersect"),
        *("except", "create", "upsert", "replace", "insert", "update", "delete", "set", "where"),
        *("for", "from", "to", "true", "false", "after", "total", "unwind", "use"),
    ),
}


def _list_tokens(language: str) -> dict[str, list[tuple[object, ...]]]:
    return {
        "root": [
            (r"//[^\n]*", Comment.Single),
            (r"/\*.*?\*/", Comment.Multiline),
            (r'"(?:\\.|[^"\\])*"', String),
            (r"\$\w+", Name.Variable),
            (r"@\w+", Name.Decorator),
            (r"\d+(?:\.\d+)?", Number),
            (words(_WORDS[language], prefix=r"\b", suffix=r"\b"), Keyword),
            (r"[A-Z]\w*", Name.Class),
            (r"[a-z_]\w*", Name),
            (r"\s+", Text),
            (r"[^\w\s]", Punctuation),
        ]
    }


class SchemaLexer(RegexLexer):
    """Schemas."""

    name = "pg"
    tokens: ClassVar = _list_tokens("pg")


class QueryLexer(RegexLexer):
    """Queries and mutations."""

    name = "gq"
    tokens: ClassVar = _list_tokens("gq")


class GrammarLexer(RegexLexer):
    """Grammars, as the page of the grammar writes them."""

    name = "ebnf"
    tokens: ClassVar = {
        "root": [
            (r"'[^'\n]*'", String),
            (r"^[\w-]+(?=\s*=)", Name.Class),
            (r"[\w-]+", Name),
            (r"\s+", Text),
            (r"[^\w\s]", Punctuation),
        ]
    }


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the languages of fenced blocks."""
    lexers = {
        "csv": TextLexer,
        "ebnf": GrammarLexer,
        "gq": QueryLexer,
        # Cells of magics hold queries.
        "ipython": TextLexer,
        "jsonl": JsonLexer,
        "pg": SchemaLexer,
        "txt": TextLexer,
    }
    for name, lexer in lexers.items():
        app.add_lexer(name, lexer)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

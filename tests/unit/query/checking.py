"""One schema, and short ways to check query texts against it."""

from __future__ import annotations

from omnigraph.lang.diagnostics import Collector, Diagnostic
from omnigraph.lang.lexer import Mode
from omnigraph.query import typed_reads, typed_tree
from omnigraph.query.check import check_query
from omnigraph.query.parser import parse_query_file
from omnigraph.schema import load_catalog

CATALOG = load_catalog("""
interface Named { name: String }
node Author implements Named {
  handle: String @key
  score: F64?
  small: I32?
  tiny: F32?
  active: Bool?
  bornOn: Date?
  seen: DateTime?
  marks: [F32]?
}
node Book {
  isbn: String @key
  title: String
  state: enum(draft, out)?
  tags: [String]?
  pages: I64?
  cover: Blob?
  vec: Vector(2)?
}
node Note { body: String?  vec: Vector(2) @embed(body) }
edge Wrote: Author -> Book { role: enum(lead, helper)?  since: DateTime? }
edge Drew: Book -> Author { role: enum(artist)  since: DateTime }
edge Follows: Author -> Author
edge Mentors: Author -> Author { since: DateTime?  note: String?  @key(@src, @dst) }
edge Likes: Author -> Author { note: enum(warm) }
edge In: Author -> Book
""")


def diagnose(
    text: str, *, mode: Mode = Mode.LENIENT
) -> tuple[typed_reads.CheckedQuery | None, tuple[Diagnostic, ...]]:
    """The checked form of a text with one query, and what the checker says about it."""
    parsed = parse_query_file(text, mode=mode)
    assert not parsed.diagnostics, [str(found) for found in parsed.diagnostics]
    collector = Collector(parsed.source)
    (query,) = parsed.file.queries
    checked = check_query(query, CATALOG, collector, mode=mode)
    assert (checked is None) == collector.has_errors
    return checked, collector.list_diagnostics()


def read_of(body: str, *, parameters: str = "", mode: Mode = Mode.LENIENT) -> typed_reads.Read:
    """The checked form of a read without errors."""
    checked, diagnostics = diagnose(f"query q({parameters}) {{ {body} }}", mode=mode)
    assert isinstance(checked, typed_reads.Read), [str(found) for found in diagnostics]
    return checked


def pattern_of(clauses: str, *, parameters: str = "") -> typed_reads.Pattern:
    """The checked clauses of a `match`."""
    return read_of(f"match {{ {clauses} }} return {{ 1 }}", parameters=parameters).pattern


def condition_of(condition: str, *, parameters: str = "") -> typed_tree.Expr:
    """A filter over an author `$a`, a book `$b` and a bound edge `$w` between them."""
    clauses = f"$a: Author  $b: Book  $a $w:wrote $b  {condition}"
    found = pattern_of(clauses, parameters=parameters).clauses[-1]
    assert isinstance(found, typed_reads.Condition)
    return found.value


def column_of(item: str, *, parameters: str = "") -> typed_reads.Column:
    """The only column of a query over an author `$a` and a book `$b`."""
    read = read_of(f"match {{ $a: Author  $b: Book }} return {{ {item} }}", parameters=parameters)
    (column,) = read.columns
    return column


def statement_of(mutation: str, *, parameters: str = "") -> typed_tree.Statement:
    """A checked statement."""
    checked, diagnostics = diagnose(f"query q({parameters}) {{ {mutation} }}")
    assert isinstance(checked, typed_tree.Mutation), [str(found) for found in diagnostics]
    (statement,) = checked.statements
    return statement


def problems_of(body: str, *, parameters: str = "", mode: Mode = Mode.LENIENT) -> list[str]:
    """Each finding as its code and the text it points at."""
    _, diagnostics = diagnose(f"query q({parameters}) {{ {body} }}", mode=mode)
    return [
        f"{found.code} {found.source.text[found.span.start : found.span.end]}"
        for found in diagnostics
    ]


def filter_problems(clauses: str, *, parameters: str = "", mode: Mode = Mode.LENIENT) -> list[str]:
    """The findings about clauses after an author `$a` and a book `$b`."""
    return problems_of(
        f"match {{ $a: Author  $b: Book  {clauses} }} return {{ $a.name }}",
        parameters=parameters,
        mode=mode,
    )


def hints_of(body: str, *, parameters: str = "") -> list[str | None]:
    """The hint of each finding."""
    return [found.hint for found in diagnose(f"query q({parameters}) {{ {body} }}")[1]]

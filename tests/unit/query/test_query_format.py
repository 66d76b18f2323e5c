"""Formatting keeps the meaning and every comment, and formatting twice changes nothing."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from omnigraph.errors import CompileError
from omnigraph.lang.lexer import lex
from omnigraph.lang.source_text import Source
from omnigraph.query import ast
from omnigraph.query.parser import parse_query_file
from omnigraph.query.query_printer import format_queries, print_file
from unit.query.query_trees import files

COMMENTS = [
    "// {}\n",
    "\n// {}\n",
    " // {}\n",
    "/* {} */",
    "\n/* {} */\n",
    "/* {}\n   * more */",
    "\n",
]

MESSY = """
// a file

set   ann_nprobes=5 ; // five
/* a block
   comment */
query stuck ( $cut:F64,$me : String )@description("d"){ // opening
match{ // people
  // the author
  $a:Author{state:"open",} // open ones
  $a.email is null or not($a.score<$cut)


  not{$a follows $_} // nobody
  count{$a wrote $b
    // drafts only
    $b.state="draft"
  }>=1 // at least one
  $a $link:(follows|mentors){1,2} $x;
  // last
} // closed
return{$a, // the author
  $link.@type as via
  // the end
}
order{via desc,$a.name}limit 10 // ten
// nothing more
}
query unlink($s:String){delete Mentors where @src=$s and(@dst="x" or true) // gone
insert Author{handle:"a" // key
  name:"b"}}
// bye
"""

NEAT = """\
// a file

set ann_nprobes = 5; // five

/* a block
   comment */
query stuck($cut: F64, $me: String) @description("d") { // opening
  match { // people
    // the author
    $a: Author { state: "open" } // open ones
    $a.email is null or not $a.score < $cut

    not { $a follows $_ } // nobody
    count {
      $a wrote $b
      // drafts only
      $b.state = "draft"
    } >= 1 // at least one
    $a $link:(follows | mentors){1,2} $x
    // last
  } // closed
  return {
    $a, // the author
    $link.@type as via,
    // the end
  }
  order { via desc, $a.name }
  limit 10 // ten
  // nothing more
}

query unlink($s: String) {
  delete Mentors where @src = $s and (@dst = "x" or true) // gone
  insert Author {
    handle: "a", // key
    name: "b",
  }
}
// bye
"""


def test_a_messy_file_becomes_neat_and_keeps_its_comments() -> None:
    assert format_queries(MESSY) == NEAT
    assert format_queries(NEAT) == NEAT


def test_long_headers_are_broken_into_lines() -> None:
    parameters = ", ".join(f"$parameter_{number}: String?" for number in range(6))
    text = f'query q({parameters}) @description("d") {{ delete T where x = 1 }}'
    formatted = format_queries(text)
    assert formatted.splitlines()[:9] == [
        "query q(",
        *(f"  $parameter_{number}: String?," for number in range(5)),
        "  $parameter_5: String?",
        ")",
        '  @description("d")',
    ]
    assert format_queries(formatted) == formatted


@pytest.mark.parametrize(
    "text",
    ["branch list;\n", "branch list // all\n", "// a\nshow all; // b\n", "// only\n", ""],
)
def test_files_without_queries_keep_their_comments(text: str) -> None:
    assert format_queries(text) == text.replace("list;", "list")


def test_a_text_with_errors_is_refused() -> None:
    with pytest.raises(CompileError, match="expected a value"):
        format_queries("query q() { match { $p.x = } return { $p.x } }")


def test_line_ends_and_byte_order_marks_are_normalised() -> None:
    text = "\ufeffquery q() {\r\n  delete T where x = 1 // c\r\n}\r\n".encode()
    assert format_queries(text) == "query q() {\n  delete T where x = 1 // c\n}\n"


@pytest.mark.slow
@given(files, st.lists(st.tuples(st.integers(0, 10_000), st.sampled_from(COMMENTS)), max_size=8))
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_every_comment_survives(file: ast.File, inserted: list[tuple[int, str]]) -> None:
    text = with_comments(print_file(file), inserted)
    before = parse_query_file(text)
    assert before.file == file
    formatted = format_queries(text)
    after = parse_query_file(formatted)
    assert after.file == file
    assert all(
        f"c{number}c" in formatted for number in range(len(inserted)) if f"c{number}c" in text
    )
    assert sum(map(len, before.comments)) == 0 or after.comments
    assert format_queries(formatted) == formatted


def with_comments(text: str, inserted: list[tuple[int, str]]) -> str:
    """The text with comments between its tokens; each place is an index into the tokens."""
    # Nothing may stand between `@` and its word.
    tokens = lex(Source("x", text)).tokens
    starts = [token.start for token in tokens if not text[: token.start].endswith("@")]
    places = sorted((starts[place % len(starts)], comment) for place, comment in inserted)
    for number, (offset, comment) in reversed(list(enumerate(places))):
        text = text[:offset] + comment.format(f"c{number}c") + text[offset:]
    return text

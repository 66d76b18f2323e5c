"""The parser of `.gq` texts: recursive descent, written by hand.

In: a text or bytes, and the mode. Out: a `ParsedFile`: the tree, the comments beside it, and every
diagnostic of the text. Guarantee: any input ends in a tree or in errors, in linear time; a
declaration with an error is left out of the tree, so later passes never report its echoes.

Modules, in order of control flow: `file` (what stands beside what), `statements` (settings and
statements), `declarations` (queries), `patterns` (clauses of `match`), `mutations`, `expressions`,
`reader` (the cursor they share, and how it goes on after an error).
"""

from omnigraph.query.parser.parse_files import ParsedFile, parse_query_file

__all__ = ["ParsedFile", "parse_query_file"]

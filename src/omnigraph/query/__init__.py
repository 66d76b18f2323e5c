"""The query language, `.gq`.

In: a query text and a `Catalog`. Out: a typed logical plan, what the query reads, writes and
returns, and its parameters as values; the text in one style; a lint report. Guarantee: pure
functions of their input; any text ends in diagnostics, all of them with exact places; a plan
exists exactly when none of them is an error, and nothing in it is left to look up.

Modules, in order of control flow: `habits` (hints for what other languages spell differently),
`parser` (text to `ast`), `check` (`ast` and catalog to `typed`), `lower` and `assemble` (`typed` to
`plan`), `rewrites` and `walk` (plans to better plans), `compile` (all of it), `describe` and
`explain` (views of a query), `parameters` and `settings` (what arrives beside the text), `lint`
(reports), `spelling`, `printer` and `format` (trees back to text).
"""

from omnigraph.query.check import check_query
from omnigraph.query.logical_plan import Plan
from omnigraph.query.parser import ParsedFile, parse_query_file
from omnigraph.query.query_compiler import CompiledQuery, compile_query
from omnigraph.query.query_descriptor import Descriptor, describe_query
from omnigraph.query.query_explain import ExplainRow, explain_plan
from omnigraph.query.query_lint import LintReport, lint_file
from omnigraph.query.query_lowering import lower_query
from omnigraph.query.query_parameters import ParameterMode, bind_parameters
from omnigraph.query.query_printer import format_queries, print_expr, print_file
from omnigraph.query.rewrites import rewrite
from omnigraph.query.typed_tree import CheckedQuery

__all__ = [
    "CheckedQuery",
    "CompiledQuery",
    "Descriptor",
    "ExplainRow",
    "LintReport",
    "ParameterMode",
    "ParsedFile",
    "Plan",
    "bind_parameters",
    "check_query",
    "compile_query",
    "describe_query",
    "explain_plan",
    "format_queries",
    "lint_file",
    "lower_query",
    "parse_query_file",
    "print_expr",
    "print_file",
    "rewrite",
]

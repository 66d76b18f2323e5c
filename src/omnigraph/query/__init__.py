"""The query language, `.gq`.

In: a query text and a `Catalog`. Out: a typed logical plan; what the query reads, writes and
returns; its parameters as values; the text in one style; a lint report. Guarantee: pure functions
of their input. Any text ends in diagnostics with exact positions; a plan exists exactly when none
of them is an error, and nothing in it needs another look-up.

    entity_conditions     conditions that a schema has about its entities
    query_compiler        the whole way from a text to a plan
    parser                text to tree
    query_dialect_hints   hints for what other languages spell differently
    ast                   the tree
    check                 tree and catalog to the typed tree
    function_signatures   the functions of values
    table_functions       the table functions, which `for` goes through
    typed_tree            typed expressions
    typed_guards          which nodes a reader sees
    typed_statements      the typed statements of mutations
    typed_table_calls     typed calls of table functions
    typed_reads           typed reads: patterns, columns and order
    query_lowering        typed tree to logical plan
    tie_breaks            what decides between rows that an order leaves equal
    group_lowering        groups, and what is computed from them
    pattern_stages        what of a pattern is matched before and after its lateral blocks
    pattern_assembly      the order of a pattern, in which each variable is bound before its use
    logical_plan          the logical plan
    row_limits            conditions of a policy on rows, as guards of plans
    rewrites              plans to cheaper plans
    tree_walk             traversal of plans and typed expressions
    limit_binding         limits that parameters give
    query_parameters      supplied parameters to values of their declared types
    query_settings        the settings of a text, a request and a process
    query_descriptor      what a query returns, reads and writes
    query_explain         a logical plan as rows for people
    query_lint            all findings about a file, as one report
    query_printer         tree to text, in one layout
    expression_printer    the parts of a query that fit on one line
    table_call_printer    calls of table functions
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
from omnigraph.query.typed_reads import CheckedQuery

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
